/* colour_common.c - the loops of spaces of colours for a CPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/colour.h"

#include "base/functions.h"

#include <math.h>

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

/* OpenCV's fixed point: 15 fractional bits of the cube root, and factors of 100 levels in 255. */
void st_cv_light_make(struct st_cv_light *light)
{
    enum { BITS = 15, FACTOR = (116 * 255 + 50) / 100, LESS = (16 * 255 * (1 << BITS) + 50) / 100 };
    for (int v = 0; v < 256; v++) {
        const double x = v / 255.0;
        const double linear = x <= 0.04045 ? x / 12.92 : st_exp(2.4 * st_ln((x + 0.055) / 1.055));
        light->linear[v] = (uint16_t)lrint(255 * 8 * linear);
    }
    for (int v = 0; v <= 255 * 8; v++) {
        const double y = v / (255.0 * 8);
        const double root = y < 216.0 / 24389 ? y * 841 / 108 + 16.0 / 116 : st_exp(st_ln(y) / 3);
        const int32_t fixed = (int32_t)lrint(root * (1 << BITS));
        light->light[v] = (uint8_t)((FACTOR * fixed - LESS + (1 << (BITS - 1))) >> BITS);
    }
}
