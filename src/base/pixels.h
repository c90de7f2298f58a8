/* pixels.h - image types shared by all layers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_PIXELS_H
#define ST_BASE_PIXELS_H

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct st_bytes {
    const uint8_t *data;
    size_t size;
};

/* Whether these bytes are at this place. */
static inline bool st_has(struct st_bytes in, size_t at, const char *magic, size_t size)
{
    return in.size >= at && in.size - at >= size && memcmp(in.data + at, magic, size) == 0;
}

/* A rectangle of an image, in pixels from its upper left corner. */
struct st_region {
    uint32_t x, y, width, height;
};

/* Bytes of pixels, channels interleaved (HWC), rows `stride` bytes apart (negative: bottom up). */
struct st_view {
    uint8_t *data;
    ptrdiff_t stride;
    int32_t width, height, channels;
};

static inline uint8_t *st_row(const struct st_view *v, int32_t y) { return v->data + y * v->stride; }

/* Fetches memory into the nearest cache while something else is done: where rows are worked on at
 * length, the CPU does not look far enough ahead for the next ones. */
enum { ST_ROWS_AHEAD = 2 };
static inline void st_fetch_to_write(const uint8_t *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += ST_CACHE_LINE)
        __builtin_prefetch(from + at, 1);
}

/* While row `y` is read: a row that is read soon. */
static inline void st_view_ahead(const struct st_view *v, int32_t y)
{
    const size_t bytes = (size_t)v->width * (size_t)v->channels;
    for (size_t at = 0; y < v->height - ST_ROWS_AHEAD && at < bytes; at += ST_CACHE_LINE)
        __builtin_prefetch(st_row(v, y + ST_ROWS_AHEAD) + at, 0);
}

#endif
