/* pending.c - runs an image's pending ops
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/pending.h"

#include "op/filter/blur.h"
#include "op/filter/sharpness.h"
#include "op/geometry/turn.h"
#include "op/geometry/warp_pixels.h"

#include <inttypes.h>
#include <string.h>

bool st_pending_by_pixel(const struct st_pending *pending, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        switch (pending[k].kind) {
        case ST_PENDING_CONTRAST:
        case ST_PENDING_AUTOCONTRAST:
        case ST_PENDING_EQUALIZE:
        case ST_PENDING_BLUR:
        case ST_PENDING_SHARPNESS:
        case ST_PENDING_WARP: return false;
        default: break;
        }
    return true;
}

struct run {
    const struct st_colour_rows *rows;
    const struct st_warp_rows *warp;
    struct st_arena *arena;
    struct st_view *pixels;
    bool *owned;
    struct st_row_changes *changes; /* of the pixels, not made yet */
    struct st_tables tables;        /* behind those */
};

/* ---- changes of rows ----------------------------------------------------------------------------- */

static void change_row(const struct st_row_changes *changes, const struct st_row_change *change,
                       uint8_t *out, const uint8_t *row, int32_t width)
{
    const struct st_colour_rows *rows = changes->rows;
    const size_t count = (size_t)width;
    switch (change->kind) {
    case ST_PENDING_SATURATION: rows->saturate(out, row, count, change->factor); break;
    case ST_PENDING_HUE: rows->hue(out, row, count, st_hue_shift(change->factor)); break;
    case ST_PENDING_PERMUTE: st_colour_permute(out, row, width, change->level); break;
    case ST_PENDING_GREY: rows->grey3(out, row, count); break;
    default:
        st_replacement_row(&change->values, rows, out, row, count * (size_t)changes->channels);
    }
}

/* There is at least one. `out` may be `row`. */
static void change_all(const struct st_row_changes *changes, uint8_t *out, const uint8_t *row,
                       int32_t width)
{
    for (uint32_t k = 0; k < changes->count; k++, row = out)
        change_row(changes, &changes->list[k], out, row, width);
}

/* Makes the changes, in new pixels where these are not ours. */
static int make_changes(struct run *run)
{
    struct st_view *pixels = run->pixels;
    const struct st_view in = *pixels;
    if (!*run->owned && !st_view_take(pixels, run->arena, in.width, in.height, in.channels))
        return STOKER_ENOMEM;
    for (int32_t y = 0; y < in.height; y++)
        change_all(run->changes, st_row(pixels, y), st_row(&in, y), in.width);
    *run->owned = true;
    run->changes->count = 0;
    st_tables_begin(&run->tables, run->rows, pixels);
    return STOKER_OK;
}

/* ---- collecting them ----------------------------------------------------------------------------- */

static int append(struct run *run, const struct st_row_change *change)
{
    const int rc = run->changes->count == ST_PENDING_MAX ? make_changes(run) : STOKER_OK;
    if (rc >= 0)
        run->changes->list[run->changes->count++] = *change;
    return rc;
}

/* Makes a change of the tables. */
static int append_tables(struct run *run)
{
    if (!run->tables.changed)
        return STOKER_OK;
    struct st_row_change change = {.kind = ST_PENDING_KINDS,
                                   .values = st_tables_replacement(&run->tables)};
    void *table = st_arena_take(run->arena, sizeof run->tables.table);
    if (!table)
        return STOKER_ENOMEM;
    change.values.table = memcpy(table, run->tables.table, sizeof run->tables.table);
    st_tables_begin(&run->tables, run->rows, run->pixels);
    return append(run, &change);
}

/* An op that sees the pixels as they are by now. */
static int make_all(struct run *run)
{
    const int rc = append_tables(run);
    return rc >= 0 && run->changes->count ? make_changes(run) : rc;
}

/* Adds an op that replaces each value by another. */
static int add_table(struct run *run, const struct st_pending *op)
{
    struct st_tables *tables = &run->tables;
    const bool looks = op->kind == ST_PENDING_CONTRAST || op->kind == ST_PENDING_AUTOCONTRAST ||
                       op->kind == ST_PENDING_EQUALIZE;
    /* A histogram follows from that of the pixels as long as only tables have changed them. */
    const int rc = looks && (run->changes->count || op->kind == ST_PENDING_CONTRAST) ? make_all(run)
                                                                                   : STOKER_OK;
    if (rc < 0)
        return rc;
    switch (op->kind) {
    case ST_PENDING_BRIGHTNESS: st_tables_brightness(tables, op->factor); break;
    case ST_PENDING_CONTRAST: st_tables_contrast(tables, op->factor); break;
    case ST_PENDING_SOLARIZE: st_tables_solarize(tables, op->level); break;
    case ST_PENDING_POSTERIZE: st_tables_posterize(tables, op->level); break;
    case ST_PENDING_LIGHTEN: st_tables_lighten(tables, op->level); break;
    case ST_PENDING_AUTOCONTRAST: st_tables_autocontrast(tables); break;
    case ST_PENDING_TABLE: st_tables_replace(tables, op->table); break;
    default: st_tables_equalize(tables);
    }
    return STOKER_OK;
}

static int add_colour(struct run *run, const struct st_pending *op)
{
    if (run->pixels->channels != 3)
        return STOKER_OK;
    const int rc = append_tables(run);
    return rc < 0 ? rc
                  : append(run, &(struct st_row_change){
                                    .kind = op->kind, .factor = op->factor, .level = op->level});
}

/* Of neighbours: the pixels are replaced by new ones. */
static int run_filter(struct run *run, const struct st_pending *op)
{
    int rc = make_all(run);
    const uint8_t *before = run->pixels->data;
    if (rc >= 0)
        rc = op->kind == ST_PENDING_BLUR
                 ? st_blur(run->rows, op->across, op->down, op->sigma, run->arena, run->pixels)
                 : st_sharpness(run->rows, op->factor, run->arena, run->pixels);
    *run->owned = *run->owned || run->pixels->data != before;
    if (rc >= 0)
        st_tables_begin(&run->tables, run->rows, run->pixels);
    return rc;
}

/* What lies between rows that are far apart is not copied. */
static bool is_scattered(const struct st_view *view)
{
    return (uint64_t)imaxabs(view->stride) * (uint64_t)view->height > INT32_MAX;
}

/* Transposed last. */
static int turn_pixels(struct run *run, struct st_turn before)
{
    const struct st_turn turn = {.transpose = true, .mirror = before.flip, .flip = before.mirror};
    const struct st_view in = *run->pixels;
    if (!st_turn_view(turn, &in, run->arena, run->pixels))
        return STOKER_ENOMEM;
    *run->owned = true;
    st_tables_begin(&run->tables, run->rows, run->pixels);
    return STOKER_OK;
}

static int run_warp(struct run *run, const struct st_pending *op)
{
    const struct st_turn turn = {.mirror = op->mirror, .flip = op->flip};
    const int rc = make_all(run);
    struct st_view *pixels = run->pixels;
    struct st_view in = *pixels;
    if (rc < 0)
        return rc;
    if (op->warp.mix == ST_MIX_TRANSPOSED)
        return turn_pixels(run, turn);
    if ((st_turn_needed(turn) || is_scattered(pixels)) && !st_turn_view(turn, pixels, run->arena, &in))
        return STOKER_ENOMEM;
    const struct st_region *part = &op->warp.window;
    const int32_t width = part->width ? (int32_t)part->width : in.width;
    const int32_t height = part->width ? (int32_t)part->height : in.height;
    if (!st_view_take(pixels, run->arena, width, height, in.channels) ||
        !st_warp_pixels(run->warp, &op->warp, run->arena, &in, pixels))
        return STOKER_ENOMEM;
    *run->owned = true;
    st_tables_begin(&run->tables, run->rows, pixels);
    return STOKER_OK;
}

int st_pending_begin(const struct st_pending *pending, uint32_t count, const struct st_colour_rows *rows,
                     const struct st_warp_rows *warp, struct st_arena *arena, struct st_view *pixels,
                     bool *owned, struct st_row_changes *changes)
{
    struct run run = {.rows = rows, .warp = warp, .arena = arena,
                      .pixels = pixels, .owned = owned, .changes = changes};
    int rc = STOKER_OK;
    changes->rows = rows;
    changes->channels = pixels->channels;
    changes->count = 0;
    st_tables_begin(&run.tables, rows, pixels);
    for (uint32_t k = 0; rc >= 0 && k < count; k++) {
        switch (pending[k].kind) {
        case ST_PENDING_BLUR:
        case ST_PENDING_SHARPNESS: rc = run_filter(&run, &pending[k]); break;
        case ST_PENDING_WARP: rc = run_warp(&run, &pending[k]); break;
        case ST_PENDING_SATURATION:
        case ST_PENDING_HUE:
        case ST_PENDING_PERMUTE:
        case ST_PENDING_GREY: rc = add_colour(&run, &pending[k]); break;
        default: rc = add_table(&run, &pending[k]);
        }
    }
    return rc < 0 ? rc : append_tables(&run);
}

bool st_row_changes_finish(const struct st_row_changes *changes, struct st_arena *arena,
                           const struct st_view *pixels, const struct st_finish *finish,
                           const struct st_kernels *kernels, bool mirror, bool flip,
                           const struct st_place *place)
{
    struct st_view row;
    if (!changes->count) {
        st_finish_view(finish, kernels, pixels, mirror, flip, place);
        return true;
    }
    if (!st_view_take(&row, arena, pixels->width, 1, pixels->channels))
        return false;
    for (int32_t y = 0; y < pixels->height; y++) {
        st_view_ahead(pixels, y);
        change_all(changes, row.data, st_row(pixels, y), row.width);
        st_finish_ahead(finish, flip, y + ST_ROWS_AHEAD, ST_ALL_OF_IT, place);
        st_finish_row(finish, kernels, row.data, mirror, flip, y, place);
    }
    return true;
}

int st_pending_run(const struct st_pending *pending, uint32_t count, const struct st_colour_rows *rows,
                   const struct st_warp_rows *warp, struct st_arena *arena, struct st_view *pixels,
                   bool *owned)
{
    struct st_row_changes changes;
    struct run run = {.rows = rows, .warp = warp, .arena = arena,
                      .pixels = pixels, .owned = owned, .changes = &changes};
    const int rc = st_pending_begin(pending, count, rows, warp, arena, pixels, owned, &changes);
    return rc < 0 || !changes.count ? rc : make_changes(&run);
}
