/* marks.h - places in a file's entropy-coded data from which it can be decoded
 *
 * Without restart markers, such data can only be read from its start: where a code begins is known only
 * after the one before it, and DC values are differences. So a region at the bottom of an image takes as
 * long as the whole image. The decoder can note its state at the start of some rows, though. When the
 * same file is decoded again, usually for another region, it starts at the mark before that region; and
 * its two lanes start at different marks, instead of guessing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_MARKS_H
#define ST_CODEC_JPEG_MARKS_H

#include <stdbool.h>
#include <stdint.h>

enum { ST_JPEG_MARKS_MAX = 63 };

/* Of one file, whose bytes must not have changed since. Initially zeroed. */
struct st_jpeg_marks {
    uint32_t count;
    uint64_t mark[ST_JPEG_MARKS_MAX]; /* k: before row (k + 1) * st_jpeg_mark_rows() of MCUs */
};

/* Rows of MCUs between marks, in an image of `down` rows. */
static inline uint32_t st_jpeg_mark_rows(uint32_t down)
{
    return (down + ST_JPEG_MARKS_MAX) / (ST_JPEG_MARKS_MAX + 1);
}

/* A mark has the position in bits, without byte stuffing, and the three DC values as they are predicted
 * there. 0: they do not fit. */
static inline uint64_t st_jpeg_mark(uint32_t position, const int32_t predicted[3])
{
    uint64_t mark = position;
    bool fits = position >> 28 == 0;
    for (int c = 0; c < 3; c++) {
        fits = fits && predicted[c] >= -2048 && predicted[c] < 2048;
        mark |= (uint64_t)(predicted[c] & 0xFFF) << (28 + 12 * c);
    }
    return fits ? mark : 0;
}

static inline uint32_t st_jpeg_mark_position(uint64_t mark) { return mark & 0xFFFFFFF; }

static inline int32_t st_jpeg_mark_predicted(uint64_t mark, int c)
{
    const int32_t value = (int32_t)(mark >> (28 + 12 * c) & 0xFFF);
    return value < 2048 ? value : value - 4096;
}

#endif
