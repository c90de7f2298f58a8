/* warp_pixels.c - moves pixels by affine and perspective maps, byte for byte as Pillow's x86-64 builds
 *
 * A row of the result has a part that certainly comes from inside the image, for which warp_rows.c has
 * loops without tests; the pixels around it are tested one by one, and the rest is filled.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp_pixels.h"

#include "op/geometry/warp_nearest.h"
#include "op/geometry/warp_span.h"

#include <math.h>
#include <string.h>

/* ---- pixels near the border --------------------------------------------------------------------- */

struct patch {
    const struct st_view *in;
    struct st_point from;
    uint8_t *out;
};

static int32_t clipped(int64_t at, int32_t count)
{
    return at < 0 ? 0 : at < count ? (int32_t)at : count - 1;
}

static const uint8_t *pixel_at(const struct st_view *in, int64_t x, int64_t y)
{
    return st_row(in, clipped(y, in->height)) + (ptrdiff_t)clipped(x, in->width) * in->channels;
}

static void put_nearest(const struct patch *p)
{
    memcpy(p->out, pixel_at(p->in, (int64_t)p->from.x, (int64_t)p->from.y), (size_t)p->in->channels);
}

static void put_bilinear(const struct patch *p)
{
    const double x = floor(p->from.x - 0.5), y = floor(p->from.y - 0.5);
    const double right = p->from.x - 0.5 - x, down = p->from.y - 0.5 - y;
    const uint8_t *pixel[2][2];
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 2; i++)
            pixel[j][i] = pixel_at(p->in, (int64_t)x + i, (int64_t)y + j);
    for (int32_t c = 0; c < p->in->channels; c++) {
        const double above = st_warp_linear(pixel[0][0][c], pixel[0][1][c], right);
        const double below = st_warp_linear(pixel[1][0][c], pixel[1][1][c], right);
        p->out[c] = (uint8_t)(int32_t)(above + (below - above) * down);
    }
}

static void put_bicubic(const struct patch *p)
{
    const double x = floor(p->from.x - 0.5), y = floor(p->from.y - 0.5);
    const double right = p->from.x - 0.5 - x, down = p->from.y - 0.5 - y;
    for (int32_t c = 0; c < p->in->channels; c++) {
        double row[4];
        for (int j = 0; j < 4; j++) {
            double v[4];
            for (int i = 0; i < 4; i++)
                v[i] = pixel_at(p->in, (int64_t)x - 1 + i, (int64_t)y - 1 + j)[c];
            row[j] = st_warp_cubic(v[0], v[1], v[2], v[3], right);
        }
        p->out[c] = st_warp_byte(st_warp_cubic(row[0], row[1], row[2], row[3], down));
    }
}

/* ---- rows --------------------------------------------------------------------------------------- */

struct filter {
    void (*row)(const struct st_warp_line *line);
    void (*put)(const struct patch *patch);
    double reach; /* of points this far inside, all pixels that are needed exist */
};

static struct filter filter_of(const struct st_warp_rows *rows, enum st_mix mix)
{
    if (mix == ST_MIX_BICUBIC)
        return (struct filter){rows->bicubic, put_bicubic, 1.5};
    if (mix == ST_MIX_BILINEAR)
        return (struct filter){rows->bilinear, put_bilinear, 0.5};
    return (struct filter){rows->nearest, put_nearest, 0};
}

/* Tests each pixel from the line's first one on; all are filled already. */
static void put_part(const struct filter *filter, const struct st_warp_line *line,
                     struct st_warp_span part)
{
    const struct st_view *in = line->in;
    for (int32_t x = part.begin; x < part.end; x++) {
        const struct st_point from = st_warp_source(line->map, line->perspective, line->x + x, line->y);
        if (from.x >= 0 && from.x < in->width && from.y >= 0 && from.y < in->height)
            filter->put(&(struct patch){in, from, line->out + (ptrdiff_t)x * in->channels});
    }
}

/* The pixels of a row from `first` on, counted from there. */
static void from_first(struct st_warp_span *span, int32_t first)
{
    span->begin = span->begin < first ? 0 : span->begin - first;
    span->end = span->end < first ? 0 : span->end - first;
}

/* Pixels are read aslant, which no CPU foresees. Images too large for the second cache are left. */
static void fetch_all(const struct st_view *in)
{
    enum { MOST = 512 << 10 };
    if ((int64_t)in->width * in->height * in->channels > MOST)
        return;
    for (int32_t y = -ST_ROWS_AHEAD; y < in->height - ST_ROWS_AHEAD; y++)
        st_view_ahead(in, y);
}

static void move_rows(const struct st_warp_rows *rows, const struct st_pixel_map *by,
                      const struct st_view *in, const uint8_t *fill, const struct st_view *out)
{
    const struct filter filter = filter_of(rows, by->mix);
    const bool perspective = by->perspective;
    const int32_t first = (int32_t)by->window.x, top = (int32_t)by->window.y;
    fetch_all(in);
    for (int32_t y = 0; y < out->height; y++) {
        struct st_warp_line line = {
            in, by->map, perspective, first, top + y, out->width, st_row(out, y)};
        struct st_warp_span sure, possible;
        st_warp_spans(by->map, perspective, in, filter.reach, line.y, first + out->width, &sure,
                      &possible);
        from_first(&sure, first);
        from_first(&possible, first);
        st_warp_fill(out, y, 0, sure.begin, fill);
        st_warp_fill(out, y, sure.end, out->width, fill);
        put_part(&filter, &line, (struct st_warp_span){possible.begin, sure.begin});
        put_part(&filter, &line, (struct st_warp_span){sure.end, possible.end});
        line.x = first + sure.begin;
        line.count = sure.end - sure.begin;
        line.out += (ptrdiff_t)sure.begin * in->channels;
        if (line.count > 0)
            filter.row(&line);
    }
}

/* Moves by whole pixels, as TranslateX and TranslateY of augmentations are: all filters give the pixel
 * itself. */
static bool is_shift(const struct st_pixel_map *by)
{
    const double *m = by->map, most = 1 << 30;
    return !by->perspective && m[0] == 1 && m[1] == 0 && m[3] == 0 && m[4] == 1 && fabs(m[2]) <= most &&
           fabs(m[5]) <= most && m[2] == floor(m[2]) && m[5] == floor(m[5]);
}

static int32_t from_zero_to(int64_t value, int32_t most)
{
    return value < 0 ? 0 : value < most ? (int32_t)value : most;
}

static void shift_rows(const struct st_pixel_map *by, const struct st_view *in, const uint8_t *fill,
                       const struct st_view *out)
{
    const int64_t right = (int64_t)by->map[2] + by->window.x, down = (int64_t)by->map[5] + by->window.y;
    const int32_t begin = from_zero_to(-right, out->width);
    const int32_t end = from_zero_to(in->width - right, out->width);
    const size_t pixel = (size_t)in->channels;
    for (int32_t y = 0; y < out->height; y++) {
        const bool outside = y + down < 0 || y + down >= in->height || begin >= end;
        st_warp_fill(out, y, 0, outside ? out->width : begin, fill);
        if (outside)
            continue;
        memcpy(st_row(out, y) + (size_t)begin * pixel,
               st_row(in, (int32_t)(y + down)) + (size_t)(begin + right) * pixel,
               (size_t)(end - begin) * pixel);
        st_warp_fill(out, y, end, out->width, fill);
    }
}

/* A row of pixels that come from outside; NULL: no memory. */
static const uint8_t *fill_row(const uint8_t *fill, int32_t width, int32_t channels,
                               struct st_arena *arena)
{
    uint8_t *row = st_arena_take(arena, (uint64_t)width * (uint64_t)channels);
    for (int32_t x = 0; row && x < width; x++)
        memcpy(row + (ptrdiff_t)x * channels, fill, (size_t)channels);
    return row;
}

bool st_warp_pixels(const struct st_warp_rows *rows, const struct st_pixel_map *by,
                    struct st_arena *arena, const struct st_view *in, const struct st_view *out)
{
    const uint8_t *fill = fill_row(by->fill, out->width, in->channels, arena);
    if (!fill)
        return false;
    if (is_shift(by)) {
        shift_rows(by, in, fill, out);
        return true;
    }
    if (!by->perspective && by->mix == ST_MIX_NEAREST)
        return st_warp_nearest(rows, by, in, fill, arena, out);
    move_rows(rows, by, in, fill, out);
    return true;
}
