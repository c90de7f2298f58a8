/* forward.h - what is left of pixels that are written as a JPEG and read again
 *
 * Colours are converted, chroma halved, blocks transformed and rounded to the steps of a quality as
 * libjpeg does it with its defaults; from there on the decoder's own code makes pixels of the
 * coefficients. What lies between in a file, their codes, loses nothing and is left out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_FORWARD_H
#define ST_CODEC_JPEG_FORWARD_H

#include "base/cpu.h"
#include "codec/jpeg/baseline.h"

enum { ST_JPEG_SIDE_MAX = 65500 }; /* libjpeg writes none that are larger */

/* The inner loops. */
struct st_jpeg_forward_rows {
    /* RGB (BGR with `swapped`) to one row of each component. */
    void (*split)(uint8_t *y, uint8_t *cb, uint8_t *cr, const uint8_t *rgb, bool swapped, size_t count);
    /* Means of 2 x 2 values; they are rounded up and down in turns. */
    void (*halve)(uint8_t *out, const uint8_t *upper, const uint8_t *lower, size_t count);
    /* One block of coefficients, as in the file: in zigzag order, and where the zeros at its end
     * begin. `scale` and `half`: 1 / (8 step), and half a step, row by row. */
    uint8_t (*block)(int16_t coefs[64], const uint8_t *samples, size_t stride, const float scale[64],
                     const float half[64]);
};
/* The table for a level, or for the next lower one in this build. */
const struct st_jpeg_forward_rows *st_jpeg_forward_rows_for(enum st_cpu_level level);

/* Sides are at most ST_JPEG_SIDE_MAX, channels 1 or 3, and the quality is from 1 to 100. With `swapped`,
 * the first channel is blue. The result has three channels, red first, and comes from the arena. Returns
 * 0, ST_JPEG_MEMORY, or ST_JPEG_RANGE: see ST_JPEG_COLUMN_MAX. */
enum st_jpeg_reason st_jpeg_there_and_back(const struct st_view *in, int32_t quality, bool swapped,
                                           enum st_cpu_level level, struct st_arena *arena,
                                           struct st_view *out);

#endif
