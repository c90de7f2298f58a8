/* kernels.h - the batch's kernels, as device.c sees them
 *
 * device.c owns the context, the stream and all memory; kernels.c knows the fat binary, which kernels a
 * batch needs and how they are launched. Every call here is made with the device's context current;
 * nothing here changes which one that is, and nothing here waits for the GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_KERNELS_H
#define ST_GPU_KERNELS_H

#include "gpu/cuda.h"
#include "pipe/device.h"

struct st_gpu_kernels; /* one loader's: the loaded module, its functions, tables on the device */

/* One batch of raw rows. Everything that the kernels read or write lies in these four places. */
struct st_gpu_launch {
    const uint8_t *host; /* the slot's host half: jobs at its beginning. Valid during the call only. */
    uint64_t raw;        /* the same bytes on the device, and all offsets count from here as well; whole
                            words are read, so its memory ends on a multiple of 4 bytes */
    uint64_t used;       /* bytes of both */
    uint32_t count;      /* rows, 1 to want->rows */
    uint64_t images;     /* the output, as want->finish says; row k begins k * row bytes into it */
    uint64_t scratch;    /* st_gpu_kernels_scratch() bytes, 256-byte aligned; 0 where that is 0 */
    struct CUstream_st *stream;
};

/* Loads the module into the current context (of `device`) and uploads want->finish's tables. Says which
 * architectures there are and which driver they need where that fails. Copies may be put into `stream`;
 * what they read is still there when it returns, and no longer. */
int st_gpu_kernels_open(struct st_gpu_kernels **out, const struct st_cuda *cuda, int device,
                        const struct st_device_want *want, struct CUstream_st *stream,
                        struct stoker_error *err);
/* The stream is idle by then. NULL is allowed. */
void st_gpu_kernels_close(struct st_gpu_kernels *kernels);

/* Bytes of scratch that any batch of this loader can be done with: settled at open, never grown. */
uint64_t st_gpu_kernels_scratch(const struct st_gpu_kernels *kernels);

/* Puts the kernels of a batch into launch->stream: all rows from their jobs to launch->images. Only the
 * stream's order keeps two batches apart. Labels are not its business.
 * One thread at a time. Returns a status; asynchronous errors are found by later calls. */
int st_gpu_kernels_run(struct st_gpu_kernels *kernels, const struct st_gpu_launch *launch,
                       struct stoker_error *err);

/* What the build holds, in words for people: "sm_75 sm_80 ... compute_120 PTX, CUDA 13.0", or why there
 * is nothing ("built without nvcc"); *there says which. Touches no driver. */
const char *st_gpu_kernels_about(bool *there);

#endif
