/* png_filters.h - undoes the filters of PNG rows
 *
 * Each byte of a row is stored as its difference from a prediction: from the byte of the same channel on
 * the left (a), from the one above (b), from half their sum, or from whichever of a, b and the one above
 * a (c) is nearest to a + b - c (Paeth).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_PNG_FILTERS_H
#define ST_CODEC_PNG_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ST_PNG_NONE, ST_PNG_SUB, ST_PNG_UP, ST_PNG_AVERAGE, ST_PNG_PAETH, ST_PNG_FILTERS };

enum {
    ST_PNG_GROUP = 4,  /* rows undone at a time */
    ST_PNG_SPARE = 16, /* bytes after the last filtered row that are readable, and after each undone row
                          that may be overwritten */
};

/* Rows one after the other, each after the number of its filter. */
struct st_png_lines {
    const uint8_t *from;
    uint8_t *to; /* undone rows, `stride` bytes apart; at least row + ST_PNG_SPARE */
    size_t stride;
    const uint8_t *above; /* the row before the first; may be the last one of `to` */
    size_t row;           /* bytes */
    uint32_t pixel;       /* bytes */
    uint32_t count;       /* rows, at most ST_PNG_GROUP */
};

/* False: an unknown filter. */
bool st_png_unfilter(const struct st_png_lines *lines);
/* The same in plain C, which is the specification. */
bool st_png_unfilter_c(const struct st_png_lines *lines);

#endif
