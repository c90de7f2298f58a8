/* choose.c - chooses the inner loops for a CPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/kernels/kernels_isa.h"

const struct st_kernels *st_kernels_for(enum st_cpu_level level)
{
#if defined(__aarch64__)
    return level >= ST_CPU_NEON ? &st_kernels_neon : &st_kernels_c;
#elif defined(__x86_64__)
    if (level >= ST_CPU_AVX512)
        return &st_kernels_avx512;
    if (level >= ST_CPU_AVX2)
        return &st_kernels_avx2;
    return level == ST_CPU_SSE2 ? &st_kernels_sse2 : &st_kernels_c;
#else
    (void)level;
    return &st_kernels_c;
#endif
}
