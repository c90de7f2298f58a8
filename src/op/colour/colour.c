/* colour.c - saturation, hue and grey, with the same results as Pillow
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/colour/colour.h"

extern const struct st_colour_rows st_colour_rows_c;
#if defined(__x86_64__)
extern const struct st_colour_rows st_colour_rows_avx2, st_colour_rows_avx512;
#endif

const struct st_colour_rows *st_colour_rows_for(enum st_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= ST_CPU_AVX512)
        return &st_colour_rows_avx512;
    if (level >= ST_CPU_AVX2)
        return &st_colour_rows_avx2;
#endif
    (void)level; /* on aarch64 the compiler vectorises the plain C version */
    return &st_colour_rows_c;
}

static uint64_t byte_sum(const uint8_t *row, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += row[i];
    return sum;
}

float st_colour_mean(const struct st_colour_rows *rows, const struct st_view *pixels)
{
    uint64_t sum = 0;
    for (int32_t y = 0; y < pixels->height; y++)
        sum += pixels->channels == 1 ? byte_sum(st_row(pixels, y), (size_t)pixels->width)
                                     : rows->grey_sum(st_row(pixels, y), (size_t)pixels->width);
    const double mean = (double)sum / ((double)pixels->width * pixels->height);
    return (float)(int32_t)(mean + 0.5);
}

void st_colour_grey(const struct st_colour_rows *rows, const struct st_view *pixels,
                    const struct st_view *out)
{
    for (int32_t y = 0; y < pixels->height; y++)
        rows->grey(st_row(out, y), st_row(pixels, y), (size_t)pixels->width);
}

void st_colour_triple(const struct st_view *pixels, const struct st_view *out)
{
    for (int32_t y = 0; y < pixels->height; y++) {
        const uint8_t *from = st_row(pixels, y);
        uint8_t *to = st_row(out, y);
        for (size_t x = 0; x < (size_t)pixels->width; x++)
            to[3 * x] = to[3 * x + 1] = to[3 * x + 2] = from[x];
    }
}

void st_colour_permute(uint8_t *out, const uint8_t *row, int32_t width, uint32_t order)
{
    const uint32_t r = order & 15, g = order >> 4 & 15, b = order >> 8 & 15;
    for (int32_t x = 0; x < width; x++, row += 3, out += 3) {
        const uint8_t red = row[r], green = row[g], blue = row[b];
        out[0] = red;
        out[1] = green;
        out[2] = blue;
    }
}
