/* kernels.h - the interface between device.c and the kernels
 *
 * device.c owns the context, the stream and all memory; kernels.c knows the fat binary, which kernels a
 * batch needs, and how to launch them. Every function here is called with the device's context current,
 * does not change it, and does not wait for the GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_KERNELS_H
#define ST_GPU_KERNELS_H

#include "gpu/cuda.h"
#include "pipe/device.h"

struct st_gpu_kernels; /* per loader: the loaded module, its functions, tables on the device */

/* One batch of raw rows. The kernels read and write only these four areas. */
struct st_gpu_launch {
    const uint8_t *host; /* the slot's host half: starts with the jobs. Valid only during the call. */
    uint64_t raw;        /* the same bytes on the device, where all offsets count from; whole words
                            are read, so its size must be a multiple of 4 bytes */
    uint64_t used;       /* bytes of both */
    uint32_t count;      /* rows, 1 to want->rows */
    uint64_t images;     /* the output, as described by want->finish; row k starts at k * row bytes */
    uint64_t scratch;    /* st_gpu_kernels_scratch() bytes, 256-byte aligned; 0 if that is 0 */
    struct CUstream_st *stream;
};

/* Loads the module into the current context (of `device`) and uploads want->finish's tables. On failure,
 * the message names the built architectures and the driver they need. Copies may be queued in `stream`;
 * their source is valid until this returns, and no longer. */
int st_gpu_kernels_open(struct st_gpu_kernels **out, const struct st_cuda *cuda, int device,
                        const struct st_device_want *want, struct CUstream_st *stream,
                        struct stoker_error *err);
/* The stream must be idle. NULL is allowed. */
void st_gpu_kernels_close(struct st_gpu_kernels *kernels);

/* Bytes of scratch memory that are enough for any batch of this loader: fixed at open. */
uint64_t st_gpu_kernels_scratch(const struct st_gpu_kernels *kernels);

/* Queues the kernels of a batch in launch->stream: all rows from their jobs to launch->images. Only the
 * stream's order separates two batches. Does not handle labels. One thread at a time. Returns a status;
 * asynchronous errors are reported by later calls. */
int st_gpu_kernels_run(struct st_gpu_kernels *kernels, const struct st_gpu_launch *launch,
                       struct stoker_error *err);

/* Describes the built kernels: "sm_75 sm_80 ... compute_120 PTX, CUDA 13.0", or says why there are none
 * ("built without nvcc"); *there says which. Does not touch the driver. */
const char *st_gpu_kernels_about(bool *there);

#endif
