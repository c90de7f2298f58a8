/* colour.h - spaces of colours with OpenCV's arithmetic
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_CV_COLOUR_H
#define ST_OP_CV_COLOUR_H

#include "base/cpu.h"

#include <stddef.h>
#include <stdint.h>

/* Tables for L of Lab: linear values of bytes with 3 fractional bits, and L of such a luminance. */
struct st_cv_light {
    uint16_t linear[256];
    uint8_t light[255 * 8 + 1];
};
void st_cv_light_make(struct st_cv_light *light);

/* Pixels that OpenCV takes at once; it rounds those in the rest of a row otherwise. */
enum { ST_CV_HSV_VECTOR = 32 };

/* The inner loops over `count` pixels of a whole row, in place where there is one array. */
struct st_cv_colour_rows {
    /* RGB2HSV, each channel replaced by its table, and HSV2RGB. Hues are from 0 to 179, and so must
     * those of the table be. */
    void (*through_hsv)(uint8_t *rgb, size_t count, const uint8_t table[3][256]);
    /* RGB2GRAY, to one channel or, in place, to three. */
    void (*grey)(uint8_t *out, const uint8_t *rgb, size_t count);
    void (*grey3)(uint8_t *rgb, size_t count);
    /* In place, to three: half of the sum of the most and the least, a third of that of all, the most;
     * without fractions. L of RGB2Lab. */
    void (*middle3)(uint8_t *rgb, size_t count);
    void (*mean3)(uint8_t *rgb, size_t count);
    void (*most3)(uint8_t *rgb, size_t count);
    void (*light3)(uint8_t *rgb, size_t count, const struct st_cv_light *light);
    /* The sum of each pixel times `factor` and its grey value times `rest`, rounded. */
    void (*saturate)(uint8_t *rgb, size_t count, float factor, float rest);
    /* RGB2YCrCb and YCrCb2RGB. */
    void (*to_ycrcb)(uint8_t *out, const uint8_t *rgb, size_t count);
    void (*from_ycrcb)(uint8_t *rgb, const uint8_t *ycrcb, size_t count);
};
/* The table for a level, or for the next lower one in this build. */
const struct st_cv_colour_rows *st_cv_colour_rows_for(enum st_cpu_level level);

#endif
