/* png_file.c - converts the rows of a PNG to the RGB pixels of a region
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/png_file.h"
#include "codec/png_rows.h"
#include "codec/to_rgb.h"

#include <string.h>

/* Every dx-th pixel of every dy-th row: one pass of an interlaced image, or the whole of another. */
struct pass {
    uint32_t x, y, dx, dy;
};
static const struct pass all_pixels[] = {{0, 0, 1, 1}};
static const struct pass adam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                    {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

struct painter {
    const struct st_png *png;
    struct st_packing packing;
    uint8_t greys[256][3];
    struct st_region region;
    struct st_view out;
    uint32_t left, top; /* position of the frame in the image */
    uint8_t *row, *rgb; /* one row as stored; one row of a pass as RGB */
};

/* Greys of 2 and 4 bits are scaled, as Pillow does when it opens the file. */
static struct st_packing numbers_of(const struct st_png *png, uint8_t table[256][3],
                                    struct st_numbers *numbers)
{
    numbers->wide = png->depth == 16 && png->colour == 0;
    if (numbers->wide)
        return (struct st_packing){.kind = ST_PACK_BYTES, .bits = 16, .at = {1, 0, 0}};
    for (uint32_t i = 0; i < 256; i++)
        memset(table[i], (int)i, 3);
    if (png->colour == 0 && png->depth > 1)
        st_grey_table(table, png->depth, false);
    return (struct st_packing){.kind = ST_PACK_TABLE, .bits = png->depth, .table = table};
}

static struct st_packing packing_of(const struct st_png *png, uint8_t greys[256][3])
{
    const bool wide = png->depth == 16;
    const uint8_t step = wide ? 2 : 1;
    switch (png->colour) {
    case 0:
        if (wide)
            return (struct st_packing){.kind = ST_PACK_INT, .bits = 16, .big_endian = true};
        if (png->depth == 8)
            return (struct st_packing){.kind = ST_PACK_BYTES, .bits = 8};
        st_grey_table(greys, png->depth, false);
        return (struct st_packing){.kind = ST_PACK_TABLE, .bits = png->depth, .table = greys};
    case 3:
        return (struct st_packing){.kind = ST_PACK_TABLE, .bits = png->depth, .table = png->table};
    case 4:
        return (struct st_packing){.kind = ST_PACK_BYTES, .bits = 16 * step};
    default:
        return (struct st_packing){.kind = ST_PACK_BYTES,
                                   .bits = (png->colour == 2 ? 24u : 32u) * step,
                                   .at = {0, step, 2 * step}};
    }
}

static uint32_t count_of(uint32_t size, uint32_t first, uint32_t step)
{
    return size > first ? (size - first + step - 1) / step : 0;
}

/* Writes the stored row of a pass, which is row y of the image, to its destination. */
static void paint(struct painter *p, const struct pass *pass, const uint8_t *row, uint32_t y,
                  uint32_t count)
{
    const struct st_region *r = &p->region;
    uint8_t *to = st_row(&p->out, (int32_t)(y - r->y));
    if (pass->dx == 1) {
        const uint32_t from = r->x > p->left ? r->x - p->left : 0;
        const uint32_t end = r->x + r->width - p->left < count ? r->x + r->width - p->left : count;
        if (r->x + r->width > p->left && from < end)
            st_to_rgb(&p->packing, row, from, end - from, to + 3 * (size_t)(p->left + from - r->x));
        return;
    }
    st_to_rgb(&p->packing, row, 0, count, p->rgb);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t x = pass->x + i * pass->dx;
        if (x >= r->x && x < r->x + r->width)
            memcpy(to + 3 * (size_t)(x - r->x), p->rgb + 3 * (size_t)i, 3);
    }
}

/* One pass. Rows below the region are inflated only if another pass follows or the file is truncated: a
 * bad file is refused whatever part of it is needed. */
static const char *paint_pass(struct painter *p, const struct st_png_library *library, void *reader,
                              const struct pass *pass, bool last, uint32_t *y)
{
    const uint32_t columns = count_of(p->png->frame.width, pass->x, pass->dx);
    const size_t bytes = st_packed_size(&p->packing, columns);
    for (*y = pass->y; columns > 0 && *y < p->png->frame.height; *y += pass->dy) {
        const uint32_t at = p->top + *y;
        const bool below = at >= p->region.y + p->region.height;
        if (below && last && p->png->ends)
            break;
        uint8_t *row = p->row;
        const char *wrong = library->row(reader, &row, bytes);
        if (wrong)
            return wrong;
        if (!below && at >= p->region.y)
            paint(p, pass, row, at, columns);
    }
    return NULL;
}

/* Areas not covered by the frame of an unusual animation get colour 0. */
static void clear(struct painter *p, bool numbered)
{
    const bool painted = p->png->colour == 3 && !numbered;
    const uint8_t *colour = painted ? p->png->table[0] : (const uint8_t[3]){0, 0, 0};
    for (int32_t y = 0; y < p->out.height; y++)
        for (int32_t x = 0; x < p->out.width; x++)
            memcpy(st_row(&p->out, y) + 3 * x, colour, 3);
}

static int prepare(struct painter *p, struct st_numbers *numbers, struct st_arena *arena,
                   struct stoker_error *err)
{
    const struct st_png *png = p->png;
    const bool numbered = numbers && (png->colour == 0 || png->colour == 3);
    p->packing = numbered ? numbers_of(png, p->greys, numbers) : packing_of(png, p->greys);
    if (!png->interlaced) { /* otherwise Pillow puts it into the corner */
        p->left = png->frame.x;
        p->top = png->frame.y;
    }
    const int rc = st_rgb_take(&p->out, arena, p->region.width, p->region.height, err);
    if (rc)
        return rc;
    p->row = st_arena_take(arena, st_packed_size(&p->packing, png->frame.width));
    p->rgb = png->interlaced ? st_arena_take(arena, 3 * (uint64_t)png->frame.width) : p->row;
    if (!p->row || !p->rgb)
        return st_fail(err, STOKER_ENOMEM, "PNG: no memory for a row of %u pixels", png->frame.width);
    if (png->frame.width < png->width || png->frame.height < png->height)
        clear(p, numbered);
    return STOKER_OK;
}

/* The usual file; false if a library has to read it from its beginning. */
static bool paint_own_rows(struct painter *p, const struct st_png_stream *stream, struct st_arena *arena)
{
    struct st_png_rows rows;
    uint32_t y;
    const uint64_t bottom = (uint64_t)p->region.y + p->region.height;
    const uint32_t needed = bottom > p->top ? (uint32_t)(bottom - p->top) : 0;
    return st_png_rows_open(&rows, p->png, stream, p->packing.bits,
                            st_packed_size(&p->packing, p->png->frame.width), needed, arena) &&
           !paint_pass(p, &st_png_rows_library, &rows, all_pixels, true, &y);
}

static int paint_by_library(struct painter *p, const struct st_png_library *library,
                            struct st_png_stream *stream, struct stoker_error *err)
{
    const struct st_png *png = p->png;
    int rc = STOKER_OK;
    void *reader = library->open(stream, &rc, err);
    if (!reader)
        return rc;
    const struct pass *passes = png->interlaced ? adam7 : all_pixels;
    const uint32_t count = png->interlaced ? 7 : 1;
    for (uint32_t i = 0; i < count && !rc; i++) {
        uint32_t y;
        const char *wrong = paint_pass(p, library, reader, &passes[i], i + 1 == count, &y);
        if (wrong && png->interlaced)
            rc = st_fail(err, STOKER_ECORRUPT, "PNG: %s at row %u of %u in pass %u of 7", wrong, y,
                         png->frame.height, i + 1);
        else if (wrong)
            rc = st_fail(err, STOKER_ECORRUPT, "PNG: %s at row %u of %u", wrong, y, png->frame.height);
    }
    library->close(reader);
    return rc;
}

int st_png_decode(const struct st_png_library *library, struct st_bytes in, const struct st_decode *how,
                  struct st_arena *arena, struct st_view *out, struct stoker_error *err)
{
    struct st_png png;
    struct st_png_stream stream;
    struct painter p = {.png = &png, .region = how->region};
    int rc = st_png_parse(in, &png, err);
    if (!rc)
        rc = prepare(&p, how->numbers, arena, err);
    if (rc)
        return rc;
    st_png_stream_open(&stream, in, &png);
    const struct st_arena_mark mark = st_arena_mark(arena);
    if (!paint_own_rows(&p, &stream, arena))
        rc = paint_by_library(&p, library, &stream, err);
    st_arena_rewind(arena, mark);
    *out = p.out;
    return rc;
}

int st_png_header(void *state, struct st_bytes in, struct st_header *out, struct stoker_error *err)
{
    struct st_png png;
    (void)state;
    const int rc = st_png_parse(in, &png, err);
    *out =
        (struct st_header){png.width, png.height, png.orientation, 1, st_png_rows_needs(&png, in.size)};
    return rc;
}
