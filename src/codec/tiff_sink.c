/* tiff_sink.c - collects the pixels of a TIFF, and turns the image upright
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/tiff_sink.h"

#include <string.h>

/* How to make an image upright: first transpose, then swap left and right, then top and bottom. */
struct turn {
    bool transpose, mirror, flip;
};

static struct turn turn_of(uint32_t orientation)
{
    return (struct turn){
        .transpose = orientation >= 5,
        .mirror = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7,
        .flip = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8};
}

/* The part of a row that lies in the region; false if there is none. */
static bool clip(const struct st_tiff_sink *s, uint32_t x, uint32_t y, uint32_t count, uint32_t *from,
                 uint32_t *n)
{
    const struct st_region *r = &s->region;
    const uint64_t end = (uint64_t)x + count < (uint64_t)r->x + r->width ? (uint64_t)x + count
                                                                         : (uint64_t)r->x + r->width;
    *from = x > r->x ? x : r->x;
    *n = end > *from ? (uint32_t)(end - *from) : 0;
    return *n > 0 && y >= r->y && y < r->y + r->height;
}

/* Writes RGB pixels to their position in the turned image. */
static void place(struct st_tiff_sink *s, uint32_t x, uint32_t y, uint32_t n, const uint8_t *rgb)
{
    uint8_t *to =
        s->first + (ptrdiff_t)(y - s->region.y) * s->down + (ptrdiff_t)(x - s->region.x) * s->across;
    for (uint32_t i = 0; i < n; i++, to += s->across, rgb += 3)
        memcpy(to, rgb, 3);
}

static const uint8_t *turn_bits(struct st_tiff_sink *s, const uint8_t *row, uint32_t x, uint32_t n)
{
    const uint64_t end = st_packed_size(&s->packing, (uint64_t)x + n);
    for (uint64_t i = (uint64_t)x * s->packing.bits / 8; i < end; i++) {
        uint8_t b = row[i];
        b = (uint8_t)(b >> 4 | b << 4);
        b = (uint8_t)((b & 0xcc) >> 2 | (b & 0x33) << 2);
        s->reversed[i] = (uint8_t)((b & 0xaa) >> 1 | (b & 0x55) << 1);
    }
    return s->reversed;
}

void st_tiff_put(struct st_tiff_sink *s, uint32_t x, uint32_t y, uint32_t count, const uint8_t *row)
{
    uint32_t from, n;
    if (!clip(s, x, y, count, &from, &n))
        return;
    if (s->reversed)
        row = turn_bits(s, row, from - x, n);
    if (s->across == 3) {
        uint8_t *to = s->first + (ptrdiff_t)(y - s->region.y) * s->down;
        st_to_rgb(&s->packing, row, from - x, n, to + 3 * (size_t)(from - s->region.x));
    } else {
        st_to_rgb(&s->packing, row, from - x, n, s->line);
        place(s, from, y, n, s->line);
    }
}

void st_tiff_put_plane(struct st_tiff_sink *s, uint32_t plane, uint32_t x, uint32_t y, uint32_t count,
                       const uint8_t *row, uint32_t step, uint32_t high)
{
    uint32_t from, n;
    if (!clip(s, x, y, count, &from, &n))
        return;
    const uint8_t *in = row + (size_t)(from - x) * step + high;
    uint8_t *to =
        s->planes + 4 * ((uint64_t)(y - s->region.y) * s->region.width + (from - s->region.x)) + plane;
    for (uint32_t i = 0; i < n; i++, in += step, to += 4)
        *to = *in;
}

void st_tiff_sink_finish(struct st_tiff_sink *s)
{
    const struct st_region *r = &s->region;
    if (!s->planes)
        return;
    s->packing.bits = 32;
    for (uint8_t i = 0; i < 4; i++)
        s->packing.at[i] = s->tiff->bands > 2 ? i : 0;
    s->reversed = NULL;
    for (uint32_t y = 0; y < r->height; y++)
        st_tiff_put(s, r->x, r->y + y, r->width, s->planes + 4 * (uint64_t)y * r->width);
}

static int take_memory(struct st_tiff_sink *s, struct st_arena *arena, struct stoker_error *err)
{
    const struct st_region *r = &s->region;
    const uint64_t pixels = (uint64_t)r->width * r->height;
    s->line = st_arena_take(arena, 3 * (uint64_t)r->width);
    const bool turned = s->tiff->reversed && s->tiff->compression == ST_TIFF_RAW;
    s->reversed = turned ? st_arena_take(arena, st_packed_size(&s->packing, s->tiff->width)) : NULL;
    const bool planes = s->tiff->separate && s->tiff->bands > 1 && s->tiff->photometric != ST_TIFF_YCBCR;
    s->planes = planes ? st_arena_take(arena, 4 * pixels) : NULL;
    if (!s->line || (turned && !s->reversed) || (planes && !s->planes))
        return st_fail(err, STOKER_ENOMEM, "TIFF: no memory for %u x %u pixels", r->width, r->height);
    if (planes)
        memset(s->planes, 0, 4 * pixels);
    return STOKER_OK;
}

int st_tiff_sink_open(struct st_tiff_sink *s, const struct st_tiff *t, struct st_region r,
                      struct st_arena *arena, struct st_view *out, struct stoker_error *err)
{
    const struct turn turn = turn_of(t->orientation);
    *s = (struct st_tiff_sink){.tiff = t, .packing = t->packing};
    s->packing.table = t->table;
    const int rc = st_rgb_take(out, arena, r.width, r.height, err);
    if (rc)
        return rc;
    const ptrdiff_t right = turn.mirror ? -3 : 3, below = turn.flip ? -out->stride : out->stride;
    s->first = out->data + (turn.mirror ? 3 * (ptrdiff_t)(r.width - 1) : 0) +
               (turn.flip ? out->stride * (ptrdiff_t)(r.height - 1) : 0);
    s->across = turn.transpose ? below : right;
    s->down = turn.transpose ? right : below;
    const uint32_t width = turn.transpose ? t->height : t->width,
                   height = turn.transpose ? t->width : t->height;
    if (turn.mirror)
        r.x = width - r.x - r.width;
    if (turn.flip)
        r.y = height - r.y - r.height;
    s->region = turn.transpose ? (struct st_region){r.y, r.x, r.height, r.width} : r;
    return take_memory(s, arena, err);
}
