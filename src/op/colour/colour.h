/* colour.h - brightness, contrast, saturation, hue and grey, with the same results as Pillow
 *
 * Where Pillow's builds differ, all machines follow x86-64: Pillow's aarch64 build fuses the
 * multiplication and addition of a blend, which changes a few values by one level. Only single images
 * can follow that build, on request.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_COLOUR_COLOUR_H
#define ST_OP_COLOUR_COLOUR_H

#include "base/cpu.h"
#include "base/pixels.h"

/* A box of pixels whose mean replaces the one in its middle: the weights of a whole pixel, and of those
 * half in at both ends, in 1 / 2^24. */
struct st_box {
    int32_t radius;
    uint32_t whole, ends;
};
enum { ST_BOX_SIDE = 64 };

/* The inner loops over `count` pixels (bytes, where it says so). One source file, compiled for each kind
 * of CPU; all variants give the same bytes. Those from `row` to `out` may write where they read. */
struct st_colour_rows {
    /* Moves `count` bytes away from `level` by `factor` (below 1: towards it). */
    void (*blend)(uint8_t *row, size_t count, float level, float factor);
    /* Moves each pixel away from its own grey value. RGB. */
    void (*saturate)(uint8_t *out, const uint8_t *row, size_t count, float factor);
    /* Rotates the hue by shift / 256 of a full turn. RGB. */
    void (*hue)(uint8_t *out, const uint8_t *row, size_t count, uint8_t shift);
    /* The grey values of RGB pixels; grey3 writes them to all three channels. */
    void (*grey)(uint8_t *to, const uint8_t *row, size_t count);
    void (*grey3)(uint8_t *out, const uint8_t *row, size_t count);
    uint64_t (*grey_sum)(const uint8_t *row, size_t count);
    /* Replaces each value by another: one table for each of 1 or 3 channels. */
    void (*replace)(uint8_t *out, const uint8_t *row, size_t count, int32_t channels,
                    const uint8_t (*table)[256]);
    /* Inverts the values from `level` on, 0 to 256, and keeps the bits of `mask`. `count` bytes. */
    void (*fold)(uint8_t *out, const uint8_t *row, size_t count, uint32_t level, uint8_t mask);
    /* A line for each of 1 or 3 channels, rounded once, truncated and clipped. Its values are integers
     * of 32 bits. `count` bytes, of whole pixels. */
    void (*line)(uint8_t *out, const uint8_t *row, size_t count, int32_t channels, const float *mul,
                 const float *add);
    bool line_is_fast; /* faster than `replace` */
    /* Lowers `low` and raises `high` to the values of each of 1 or 3 channels of an image. */
    void (*extent)(const struct st_view *pixels, uint8_t *low, uint8_t *high);
    /* Counts the values of each of 1 or 3 channels in an image. */
    void (*histogram)(const struct st_view *pixels, uint64_t (*count_of)[256]);
    /* Moves values away from the weighted means of 3 x 3 pixels: of a row between two others, all but
     * its first and last pixel. `count` bytes, of pixels of `channels`. */
    void (*sharpen)(uint8_t *out, const uint8_t *above, const uint8_t *row, const uint8_t *below,
                    size_t count, int32_t channels, float factor);
    /* Means over boxes along a strip of `count` rows of ST_BOX_SIDE bytes. */
    void (*box)(uint8_t *out, const uint8_t *strip, int32_t count, struct st_box box);
    /* The weighted sum of 2 * half + 1 rows of `count` bytes: the middle one first, then pairs around
     * it, which share a weight. */
    void (*blur_down)(float *out, const uint8_t *const *rows, size_t count, const float *weight,
                      int32_t half);
    /* The same along a row, which goes on for `half` pixels at both ends; rounded. */
    void (*blur_across)(uint8_t *out, const float *row, size_t count, int32_t channels,
                        const float *weight, int32_t half);
};
/* Blends as Pillow's aarch64 build does, for images that must equal those of the Pillow installed. */
extern const struct st_colour_rows st_colour_rows_fused;
/* The table for a level, or for the next lower one in this build. */
const struct st_colour_rows *st_colour_rows_for(enum st_cpu_level level);

/* The rotation for a hue factor, in 1/256 of a full turn. */
static inline uint8_t st_hue_shift(float factor) { return (uint8_t)(int32_t)((double)factor * 255); }

/* On whole images of 1 or 3 channels. */
/* The mean of grey, rounded. */
float st_colour_mean(const struct st_colour_rows *rows, const struct st_view *pixels);
/* RGB to grey; `out` has 1 channel. */
void st_colour_grey(const struct st_colour_rows *rows, const struct st_view *pixels,
                    const struct st_view *out);
/* Grey to RGB with equal values. */
void st_colour_triple(const struct st_view *pixels, const struct st_view *out);
/* Of a row of RGB, channel k becomes that of digit k of `order`, in base 16. */
void st_colour_permute(uint8_t *out, const uint8_t *row, int32_t width, uint32_t order);

#endif
