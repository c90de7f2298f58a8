/* gpu.c - watching a GPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/sized.h"
#include "gpu/gpu.h"

ST_SIZED(samples, stoker_gpu_sample, driver);

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
    if (!watch || !out)
        return st_fail(err, STOKER_EINVAL, "stoker_gpu_watch_sample: watch and out must not be NULL");
    st_nvml_sample(watch, &sample);
    return st_sized_give(&samples, &sample, out, err);
}

void stoker_gpu_watch_close(struct stoker_gpu_watch *watch) { st_nvml_close(watch); }
