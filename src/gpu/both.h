/* both.h - code that is compiled twice: by nvcc for GPUs, and by the C compiler for tests without one
 *
 * A kernel is written as phases. A phase is a function executed by each thread; on a GPU all threads of
 * a block run it in parallel and then synchronise, on a CPU they run it one after the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_BOTH_H
#define ST_GPU_BOTH_H

#include <stdint.h>
#include <string.h>

enum { ST_GPU_THREADS = 256, ST_GPU_WARP = 32, ST_GPU_WARPS = ST_GPU_THREADS / ST_GPU_WARP };

/* ST_UNROLL, ST_ROLLED, ST_BY_FOUR: how the following loop is unrolled; by default nvcc
 * unrolls most loops 16 times. ST_RARE: not inlined, because that would cost the common code
 * registers and instruction cache. */
#if defined(__CUDACC__)
#define ST_BOTH static __host__ __device__ __forceinline__
#define ST_RARE static __host__ __device__ __noinline__
#else
#define ST_BOTH static inline
#define ST_RARE static inline
#endif

/* Whether the hardware multiplies matrices of bytes. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
enum { ST_HAS_PRODUCTS = 0 };
#else
enum { ST_HAS_PRODUCTS = 1 };
#endif

#if defined(__CUDA_ARCH__)
#define ST_UNROLL _Pragma("unroll")
#define ST_ROLLED _Pragma("unroll 1")
#define ST_BY_FOUR _Pragma("unroll 4")
#define ST_PHASE(call)                                                                                  \
    do {                                                                                                \
        const uint32_t thread = threadIdx.x;                                                            \
        call;                                                                                           \
        __syncthreads();                                                                                \
    } while (0)
#else
#define ST_UNROLL
#define ST_ROLLED
#define ST_BY_FOUR
#define ST_PHASE(call)                                                                                  \
    for (uint32_t thread = 0; thread < ST_GPU_THREADS; thread++) {                                      \
        call;                                                                                           \
    }
#endif

/* Loads what no kernel writes while this one runs, through the read-only cache. `at` is aligned. */
ST_BOTH uint32_t st_load(const void *at)
{
#if defined(__CUDA_ARCH__)
    return __ldg((const uint32_t *)at);
#else
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
#endif
}

ST_BOTH uint32_t st_load_byte(const uint8_t *at)
{
#if defined(__CUDA_ARCH__)
    return __ldg(at);
#else
    return *at;
#endif
}

ST_BOTH float st_load_float(const void *at)
{
    const uint32_t bits = st_load(at);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Four bytes that start `shift` bits (0, 8, 16 or 24) into the first of two words. */
ST_BOTH uint32_t st_straddle(uint32_t low, uint32_t high, uint32_t shift)
{
#if defined(__CUDA_ARCH__)
    return __funnelshift_r(low, high, shift);
#else
    return (uint32_t)(((uint64_t)high << 32 | low) >> shift);
#endif
}

/* A word of shared memory; `at` is aligned. */
ST_BOTH uint32_t st_word(const uint8_t *at) { return *(const uint32_t *)(const void *)at; }

/* Atomic *sum += value, within the block or globally. */
ST_BOTH void st_add_u32(uint32_t *sum, uint32_t value)
{
#if defined(__CUDA_ARCH__)
    atomicAdd(sum, value);
#else
    *sum += value;
#endif
}

ST_BOTH void st_add_u64(uint64_t *sum, uint64_t value)
{
#if defined(__CUDA_ARCH__)
    atomicAdd((unsigned long long *)sum, (unsigned long long)value);
#else
    *sum += value;
#endif
}

#endif
