/* fake_cuda.h - what tests may ask of the libcuda.so.1 made of host memory and threads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_FAKE_CUDA_H
#define ST_TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CUstream_st;

/* Set before the driver is used; read by it under its own lock from then on. */
struct fake_cuda {
    int version, devices;
    size_t memory;        /* of each device */
    size_t pinned;        /* how much may be pinned in all */
    unsigned delay_us;    /* every piece of work sleeps up to this long before it starts */
};
extern struct fake_cuda fake_cuda;

/* The nth call from now on (1: the next) of this function answers with `result`; n 0: never again. */
void fake_cuda_fail(const char *function, int nth, int result);
/* A kernel has failed: everything answers with `result`; 0 heals it. */
void fake_cuda_poison(int result);
/* Starts and ends the capture of a stream into a graph. Ending answers whether it was left undisturbed. */
void fake_cuda_capture(struct CUstream_st *stream, bool on);
bool fake_cuda_capture_whole(void);

/* A kernel: what cuModuleGetFunction finds by name. `argument` is its one argument, of so many bytes. */
void fake_cuda_kernel(const char *name, size_t bytes, void (*run)(const void *argument, unsigned blocks));

struct fake_cuda_counts {
    int allocations, pinned, events, streams, retained; /* alive now */
    int calls;          /* of everything, since the start */
    int launches;
    int illegal;        /* work that touched memory which is not, or no longer, there */
    uint64_t copied;    /* bytes from host to device */
};
struct fake_cuda_counts fake_cuda_count(void);
int fake_cuda_depth(void); /* of this thread's stack of contexts */
int fake_cuda_mode(void);  /* this thread's mode of capture */

/* Waits for all work, and ends the threads of the streams that never end by themselves. */
void fake_cuda_end(void);

/* The driver's own, for tests that play the consumer. */
int cuInit(unsigned flags);
int cuCtxGetCurrent(void **context);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuCtxSynchronize(void);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuStreamCreate(struct CUstream_st **stream, unsigned flags);
int cuStreamDestroy_v2(struct CUstream_st *stream);
int cuStreamSynchronize(struct CUstream_st *stream);
int cuLaunchHostFunc(struct CUstream_st *stream, void (*work)(void *), void *argument);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, struct CUstream_st *stream);

#endif
