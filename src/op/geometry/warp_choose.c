/* warp_choose.c - chooses the inner loops of warps for a CPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp_rows.h"

extern const struct st_warp_rows st_warp_rows_c;
#if defined(__x86_64__)
extern const struct st_warp_rows st_warp_rows_avx2, st_warp_rows_avx512;
#endif

const struct st_warp_rows *st_warp_rows_for(enum st_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= ST_CPU_AVX512)
        return &st_warp_rows_avx512;
    if (level >= ST_CPU_AVX2)
        return &st_warp_rows_avx2;
#endif
    (void)level; /* on aarch64 the compiler vectorises the plain C version */
    return &st_warp_rows_c;
}
