/* gpu.c - watching a GPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/nvml.h"

#include <string.h>

int stoker_gpu_watch_open(struct stoker_gpu_watch **out, const char *which, struct stoker_error *err)
{
    if (!out)
        return st_fail(err, STOKER_EINVAL, "stoker_gpu_watch_open: out must not be NULL");
    *out = NULL;
    return st_nvml_open(out, ST_NVML_LIBRARY, which, err);
}

int stoker_gpu_watch_sample(struct stoker_gpu_watch *watch, struct stoker_gpu_sample *out,
                            struct stoker_error *err)
{
    struct stoker_gpu_sample sample;
    if (!watch || !out || out->size < sizeof out->size)
        return st_fail(
            err, STOKER_EINVAL,
            "stoker_gpu_watch_sample: neither watch nor out may be NULL, and out->size must be set");
    st_nvml_sample(watch, &sample);
    sample.size = out->size;
    memcpy(out, &sample, out->size < sizeof sample ? out->size : sizeof sample);
    return STOKER_OK;
}

void stoker_gpu_watch_close(struct stoker_gpu_watch *watch) { st_nvml_close(watch); }
