/* colour_rows.c - the inner loops of spaces of colours with OpenCV's arithmetic
 *
 * One file, compiled for each kind of CPU: written for auto-vectorisation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/colour.h"
#include "op/cv/cv.h"
#include "op/cv/hsv_rows.h"

/* ---- grey ---- */

enum { GREY_SHIFT = 15, RED = 9798, GREEN = 19235, BLUE = 3735 };

static inline int32_t grey_of(int32_t r, int32_t g, int32_t b)
{
    return (r * RED + g * GREEN + b * BLUE + (1 << (GREY_SHIFT - 1))) >> GREY_SHIFT;
}

static void grey(uint8_t *restrict out, const uint8_t *restrict rgb, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)grey_of(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
}

static void grey3(uint8_t *rgb, size_t count)
{
    for (size_t i = 0; i < 3 * count; i += 3)
        rgb[i] = rgb[i + 1] = rgb[i + 2] = (uint8_t)grey_of(rgb[i], rgb[i + 1], rgb[i + 2]);
}

static inline int32_t least_of(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t most_of(int32_t a, int32_t b) { return a > b ? a : b; }

static void middle3(uint8_t *rgb, size_t count)
{
    for (size_t i = 0; i < 3 * count; i += 3) {
        const int32_t r = rgb[i], g = rgb[i + 1], b = rgb[i + 2];
        const int32_t sum = most_of(most_of(r, g), b) + least_of(least_of(r, g), b);
        rgb[i] = rgb[i + 1] = rgb[i + 2] = (uint8_t)(sum / 2);
    }
}

static void mean3(uint8_t *rgb, size_t count)
{
    for (size_t i = 0; i < 3 * count; i += 3)
        rgb[i] = rgb[i + 1] = rgb[i + 2] = (uint8_t)((rgb[i] + rgb[i + 1] + rgb[i + 2]) / 3);
}

static void most3(uint8_t *rgb, size_t count)
{
    for (size_t i = 0; i < 3 * count; i += 3)
        rgb[i] = rgb[i + 1] = rgb[i + 2] = (uint8_t)most_of(most_of(rgb[i], rgb[i + 1]), rgb[i + 2]);
}

/* Factors of sRGB's luminance with 12 fractional bits. */
static void light3(uint8_t *rgb, size_t count, const struct st_cv_light *light)
{
    for (size_t i = 0; i < 3 * count; i += 3) {
        const int32_t r = light->linear[rgb[i]], g = light->linear[rgb[i + 1]],
                      b = light->linear[rgb[i + 2]];
        rgb[i] = rgb[i + 1] = rgb[i + 2] = light->light[(871 * r + 2929 * g + 296 * b + 2048) >> 12];
    }
}

static inline int32_t nearest_byte(float value)
{
    const float above = value > 0 ? value : 0;
    return (int32_t)st_cv_round(above < 255 ? above : 255);
}

static void saturate(uint8_t *rgb, size_t count, float factor, float rest)
{
    struct planes p;
    for (size_t done = 0; done < count; done += CHUNK, rgb += 3 * CHUNK) {
        const size_t n = count - done < CHUNK ? count - done : CHUNK;
        split(&p, rgb, n);
        for (size_t i = 0; i < n; i++) {
            const float level = (float)grey_of(p.first[i], p.second[i], p.third[i]) * rest;
            p.first[i] = nearest_byte(__builtin_fmaf((float)p.first[i], factor, level));
            p.second[i] = nearest_byte(__builtin_fmaf((float)p.second[i], factor, level));
            p.third[i] = nearest_byte(__builtin_fmaf((float)p.third[i], factor, level));
        }
        join(rgb, &p, n);
    }
}

/* ---- YCrCb ---- */

enum { YUV_SHIFT = 14, HALF = 1 << (YUV_SHIFT - 1), MIDDLE = 128 };

static void to_ycrcb(uint8_t *restrict out, const uint8_t *restrict rgb, size_t count)
{
    for (size_t i = 0; i < 3 * count; i += 3) {
        const int32_t r = rgb[i], g = rgb[i + 1], b = rgb[i + 2];
        const int32_t y = (r * 4899 + g * 9617 + b * 1868 + HALF) >> YUV_SHIFT;
        const int32_t centre = (MIDDLE << YUV_SHIFT) + HALF;
        out[i] = (uint8_t)y;
        out[i + 1] = (uint8_t)clipped(((r - y) * 11682 + centre) >> YUV_SHIFT);
        out[i + 2] = (uint8_t)clipped(((b - y) * 9241 + centre) >> YUV_SHIFT);
    }
}

static void from_ycrcb(uint8_t *restrict rgb, const uint8_t *restrict ycrcb, size_t count)
{
    for (size_t i = 0; i < 3 * count; i += 3) {
        const int32_t y = ycrcb[i], cr = ycrcb[i + 1] - MIDDLE, cb = ycrcb[i + 2] - MIDDLE;
        rgb[i] = (uint8_t)clipped(y + ((cr * 22987 + HALF) >> YUV_SHIFT));
        rgb[i + 1] = (uint8_t)clipped(y + ((cb * -5636 + cr * -11698 + HALF) >> YUV_SHIFT));
        rgb[i + 2] = (uint8_t)clipped(y + ((cb * 29049 + HALF) >> YUV_SHIFT));
    }
}

extern const struct st_cv_colour_rows ST_CV_ROWS;
const struct st_cv_colour_rows ST_CV_ROWS = {
    .through_hsv = through_hsv,
    .grey = grey,
    .grey3 = grey3,
    .middle3 = middle3,
    .mean3 = mean3,
    .most3 = most3,
    .light3 = light3,
    .saturate = saturate,
    .to_ycrcb = to_ycrcb,
    .from_ycrcb = from_ycrcb,
};
