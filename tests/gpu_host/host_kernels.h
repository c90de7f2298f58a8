/* host_kernels.h - the kernels of src/gpu, run by the CPU: block after block, thread after thread
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_HOST_KERNELS_H
#define ST_TESTS_HOST_KERNELS_H

#include "gpu/kernels.h"

/* One launch of "st_gpu_rows" or "st_gpu_pending"; `batch` is its argument, a struct st_gpu_batch (of
 * st_gpu_host_argument bytes) whose addresses are the host's. */
void st_gpu_host_rows(const void *batch, unsigned blocks);
void st_gpu_host_pending(const void *batch, unsigned blocks);
void st_gpu_host_front_rows(const void *batch, unsigned blocks);
void st_gpu_host_front_pending(const void *batch, unsigned blocks);
extern const size_t st_gpu_host_argument;

/* A driver of which only what kernels.c asks for is there. Device memory is host memory, streams are
 * done at once. */
const struct st_cuda *st_gpu_host_cuda(void);
extern unsigned st_gpu_host_launches; /* by that driver, so far */

/* All of st_gpu_kernels_open, _run and _close by that driver, scratch included: launch->scratch and
 * launch->stream are not looked at. */
int st_gpu_host_run(const struct st_device_want *want, const struct st_gpu_launch *launch,
                    struct stoker_error *err);

#endif
