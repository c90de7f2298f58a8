/* colour_common.c - the loops of spaces of colours for a CPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/colour.h"

extern const struct st_cv_colour_rows st_cv_colour_rows_c;
#if defined(__x86_64__)
extern const struct st_cv_colour_rows st_cv_colour_rows_avx2, st_cv_colour_rows_avx512;
#endif

const struct st_cv_colour_rows *st_cv_colour_rows_for(enum st_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= ST_CPU_AVX512)
        return &st_cv_colour_rows_avx512;
    if (level >= ST_CPU_AVX2)
        return &st_cv_colour_rows_avx2;
#endif
    (void)level;
    return &st_cv_colour_rows_c;
}
