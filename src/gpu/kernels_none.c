/* kernels_none.c - replaces kernels.c in builds without nvcc
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/kernels.h"

static const char why[] =
    "built without nvcc: batches are made on the CPU and copied to the GPU; rebuild Stoker with nvcc on "
    "PATH";

int st_gpu_kernels_open(struct st_gpu_kernels **out, const struct st_cuda *cuda, int device,
                        const struct st_device_want *want, struct CUstream_st *stream,
                        struct stoker_error *err)
{
    (void)out, (void)cuda, (void)device, (void)want, (void)stream;
    return st_fail(err, STOKER_EUNSUPPORTED, "this build has no GPU kernels: %s", why);
}

void st_gpu_kernels_close(struct st_gpu_kernels *kernels) { (void)kernels; }

uint64_t st_gpu_kernels_scratch(const struct st_gpu_kernels *kernels)
{
    (void)kernels;
    return 0;
}

int st_gpu_kernels_run(struct st_gpu_kernels *kernels, const struct st_gpu_launch *launch,
                       struct stoker_error *err)
{
    (void)kernels, (void)launch;
    return st_fail(err, STOKER_EUNSUPPORTED, "this build has no GPU kernels: %s", why);
}

const char *st_gpu_kernels_about(bool *there)
{
    *there = false;
    return why;
}
