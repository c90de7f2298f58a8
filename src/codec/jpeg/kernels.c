/* kernels.c - selects the variant of the JPEG decoder's inner loops for a CPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/kernels_isa.h"

const struct st_jpeg_kernels *st_jpeg_kernels_for(enum st_cpu_level level)
{
#if defined(__aarch64__)
    if (level == ST_CPU_NEON)
        return &st_jpeg_kernels_neon;
#elif defined(__x86_64__)
    if (level == ST_CPU_AVX512)
        return &st_jpeg_kernels_avx512;
    if (level == ST_CPU_AVX2)
        return &st_jpeg_kernels_avx2;
    if (level == ST_CPU_SSE2)
        return &st_jpeg_kernels_sse2;
#endif
    (void)level;
    return &st_jpeg_kernels_c;
}
