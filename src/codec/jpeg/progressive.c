/* progressive.c - the coefficients of a region of a progressive file
 *
 * Each scan is read from its start to the last row that the region needs. All of them have to be there:
 * if some bits are missing at the end, libjpeg smooths the image, and the file is not ours.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/progressive.h"

#include "codec/jpeg/streams.h"

enum { SCANS_MAX = 500 /* each costs a pass over the image; libjpeg is not given more either */ };

/* One scan, and where it is being read. */
struct pass {
    const struct st_jpeg_scan *scan;
    const struct st_jpeg_frame *frame;
    struct st_jpeg_grid *grids;
    struct st_jpeg_data data;
    uint32_t interval;  /* between restart markers */
    uint64_t remaining; /* MCUs in it */
    struct st_jpeg_band band;
    const struct st_jpeg_dc *dc[ST_JPEG_COMPONENTS_MAX];
    uint32_t predicted[ST_JPEG_COMPONENTS_MAX];
};

/* ---- memory -------------------------------------------------------------------------------------- */

static enum st_jpeg_reason reserve(const struct st_jpeg_scan *scan, uint32_t c,
                                   struct st_jpeg_grid *grid, struct st_arena *arena)
{
    const struct st_jpeg_component *component = &scan->frame->component[c];
    const uint32_t h = component->h, v = component->v;
    *grid = (struct st_jpeg_grid){.stride = scan->frame->mcus_across * h,
                                  .across = (component->width + 7) / 8,
                                  .down = (component->height + 7) / 8,
                                  .left = scan->left * h,
                                  .right = scan->right * h,
                                  .top = scan->top * v,
                                  .bottom = scan->bottom * v};
    memset(grid->low, -1, sizeof grid->low);
    const uint64_t masks = (uint64_t)grid->stride * grid->bottom * sizeof *grid->masks;
    const uint64_t columns = grid->right - grid->left, rows = grid->bottom - grid->top;
    grid->masks = st_arena_take(arena, masks);
    grid->coefs = st_arena_take(arena, columns * rows * 64 * sizeof *grid->coefs);
    if (!grid->masks || !grid->coefs)
        return ST_JPEG_MEMORY;
    memset(grid->masks, 0, masks);
    return ST_JPEG_OURS;
}

/* ---- intervals ----------------------------------------------------------------------------------- */

static void begin_interval(struct pass *pass, uint32_t interval)
{
    const struct st_jpeg_data *data = &pass->data;
    pass->interval = interval;
    pass->remaining = pass->frame->restart_interval ? pass->frame->restart_interval : UINT64_MAX;
    pass->band.bits = (struct st_jpeg_bits){.next = data->bytes + data->start[interval]};
    pass->band.stop = data->bytes + data->start[interval + 1] + ST_JPEG_PAST_THE_END;
    pass->band.ended = 0;
    memset(pass->predicted, 0, sizeof pass->predicted);
}

static bool overran(const struct pass *pass)
{
    return st_jpeg_position(&pass->band.bits, pass->data.bytes) >
           (uint64_t)pass->data.start[pass->interval + 1] * 8;
}

/* Counts `mcus` that were read, which are no more than remained. */
static bool advance(struct pass *pass, uint64_t mcus, bool more)
{
    if (pass->band.reason == ST_JPEG_OURS && overran(pass))
        pass->band.reason = ST_JPEG_DATA;
    pass->remaining -= mcus;
    if (pass->remaining > 0 || !more || pass->band.reason != ST_JPEG_OURS)
        return pass->band.reason == ST_JPEG_OURS;
    if (pass->band.ended)
        pass->band.reason = ST_JPEG_RESTART;
    else
        begin_interval(pass, pass->interval + 1);
    return pass->band.reason == ST_JPEG_OURS;
}

/* ---- DC ------------------------------------------------------------------------------------------ */

static bool read_dc(struct pass *pass, uint32_t c, uint32_t row, uint32_t column)
{
    const struct st_jpeg_grid *grid = &pass->grids[c];
    struct st_jpeg_bits *bits = &pass->band.bits;
    const bool keep = row >= grid->top && column >= grid->left && column < grid->right;
    int16_t *coefs = keep ? st_jpeg_coefs_at(grid, row, column) : NULL;
    if (pass->frame->selection.high) {
        st_jpeg_refill(bits);
        if (keep)
            coefs[0] = (int16_t)(coefs[0] | (int32_t)(bits->word >> 63) << pass->band.low);
        st_jpeg_drop(bits, 1);
        return true;
    }
    uint32_t difference;
    if (!st_jpeg_dc_difference(bits, pass->dc[c]->look, pass->dc[c], &difference)) {
        pass->band.reason = ST_JPEG_CODE;
        return false;
    }
    pass->predicted[c] += difference;
    if ((int32_t)pass->predicted[c] != (int16_t)pass->predicted[c]) {
        pass->band.reason = ST_JPEG_RANGE; /* libjpeg refuses sums that overflow */
        return false;
    }
    if (keep) {
        st_jpeg_clear(coefs);
        coefs[0] = (int16_t)(pass->predicted[c] << pass->band.low);
    }
    return true;
}

static bool read_dc_mcu(struct pass *pass, uint32_t row, uint32_t column)
{
    const struct st_jpeg_selection *selection = &pass->frame->selection;
    if (pass->band.bits.next >= pass->band.stop) {
        pass->band.reason = ST_JPEG_DATA;
        return false;
    }
    if (selection->count == 1)
        return read_dc(pass, selection->component[0], row, column);
    for (uint32_t k = 0; k < selection->count; k++) {
        const uint32_t c = selection->component[k];
        const uint32_t h = pass->frame->component[c].h, v = pass->frame->component[c].v;
        for (uint32_t block = 0; block < h * v; block++)
            if (!read_dc(pass, c, row * v + block / h, column * h + block % h))
                return false;
    }
    return true;
}

/* Blocks that only fill the last MCUs are not in a scan of one component. */
static void clear_coefs(const struct st_jpeg_grid *grid)
{
    const size_t blocks = (size_t)(grid->right - grid->left) * (grid->bottom - grid->top);
    memset(grid->coefs, 0, blocks * 64 * sizeof *grid->coefs);
}

static void read_dc_scan(struct pass *pass, uint32_t across, uint32_t down)
{
    const struct st_jpeg_selection *selection = &pass->frame->selection;
    const struct st_jpeg_grid *grid = &pass->grids[selection->component[0]];
    uint32_t bottom = pass->scan->bottom;
    if (selection->count == 1) {
        bottom = grid->bottom < down ? grid->bottom : down;
        if (!selection->high)
            clear_coefs(grid);
    }
    for (uint32_t row = 0; row < bottom; row++)
        for (uint32_t column = 0; column < across;) {
            const uint32_t from = column, left = across - from;
            const uint32_t end = from + (left < pass->remaining ? left : (uint32_t)pass->remaining);
            while (column < end)
                if (!read_dc_mcu(pass, row, column++))
                    return;
            if (!advance(pass, end - from, row + 1 < down || column < across))
                return;
        }
}

/* ---- AC ------------------------------------------------------------------------------------------ */

/* Blocks [from, to) of a row, of which all are needed or none. */
static bool read_blocks(struct pass *pass, uint32_t row, uint32_t from, uint32_t to, bool keep)
{
    const struct st_jpeg_selection *selection = &pass->frame->selection;
    const struct st_jpeg_grid *grid = &pass->grids[selection->component[0]];
    const struct st_jpeg_kernels *kernels = pass->scan->kernels;
    while (from < to) {
        const uint32_t count = to - from < pass->remaining ? to - from : (uint32_t)pass->remaining;
        uint64_t *masks = st_jpeg_masks_at(grid, row, from);
        int16_t *coefs = keep ? st_jpeg_coefs_at(grid, row, from) : NULL;
        (selection->high ? kernels->band_later : kernels->band_first)(&pass->band, masks, coefs, count);
        from += count;
        if (!advance(pass, count, row + 1 < grid->down || from < grid->across))
            return false;
    }
    return true;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void read_ac_scan(struct pass *pass)
{
    const struct st_jpeg_grid *grid = &pass->grids[pass->frame->selection.component[0]];
    const uint32_t left = least(grid->left, grid->across), right = least(grid->right, grid->across);
    const uint32_t bottom = least(grid->bottom, grid->down);
    for (uint32_t row = 0; row < bottom; row++) {
        if (row < grid->top) {
            if (!read_blocks(pass, row, 0, grid->across, false))
                return;
        } else if (!read_blocks(pass, row, 0, left, false) ||
                   !read_blocks(pass, row, left, right, true) ||
                   !read_blocks(pass, row, right, grid->across, false)) {
            return;
        }
    }
}

/* ---- scans --------------------------------------------------------------------------------------- */

/* Whether the bits of this scan come next; if they do, they are counted as known. */
static bool comes_next(const struct st_jpeg_selection *selection, struct st_jpeg_grid *grid)
{
    const int known = selection->high ? selection->high : -1;
    bool good = selection->first == 0 || grid->low[0] >= 0;
    for (uint32_t k = selection->first; k <= selection->last; k++) {
        good = good && grid->low[k] == known;
        grid->low[k] = (int8_t)selection->low;
    }
    return good;
}

static enum st_jpeg_reason set_tables(struct pass *pass, struct st_jpeg_tables *tables)
{
    const struct st_jpeg_selection *selection = &pass->frame->selection;
    enum st_jpeg_reason reason = ST_JPEG_OURS;
    if (selection->first > 0) {
        const struct st_jpeg_component *component = &pass->frame->component[selection->component[0]];
        pass->band.table = st_jpeg_ac_single_table(tables, &pass->frame->ac[component->ac], &reason);
        return pass->band.table ? ST_JPEG_OURS : reason;
    }
    for (uint32_t k = 0; k < selection->count && !selection->high; k++) {
        const uint32_t c = selection->component[k];
        pass->dc[c] = st_jpeg_dc_table(tables, &pass->frame->dc[pass->frame->component[c].dc], &reason);
        if (!pass->dc[c])
            return reason;
    }
    return ST_JPEG_OURS;
}

static enum st_jpeg_reason read_scan(struct pass *pass, struct st_jpeg_tables *tables,
                                     struct st_arena *arena, struct st_bytes *behind)
{
    const struct st_jpeg_frame *frame = pass->frame;
    const struct st_jpeg_selection *selection = &frame->selection;
    const struct st_jpeg_grid *grid = &pass->grids[selection->component[0]];
    const bool alone = selection->count == 1;
    const uint32_t across = alone ? grid->across : frame->mcus_across;
    const uint32_t down = alone ? grid->down : frame->mcus_down;
    for (uint32_t k = 0; k < selection->count; k++)
        if (!comes_next(selection, &pass->grids[selection->component[k]]))
            return ST_JPEG_PROGRESSIVE;
    enum st_jpeg_reason reason = set_tables(pass, tables);
    if (reason == ST_JPEG_OURS)
        reason = st_jpeg_unstuff(pass->scan->kernels, frame, (uint64_t)across * down, arena, &pass->data,
                                 behind);
    if (reason != ST_JPEG_OURS)
        return reason;
    pass->band.first = selection->first;
    pass->band.last = selection->last;
    pass->band.low = selection->low;
    begin_interval(pass, 0);
    if (selection->first == 0)
        read_dc_scan(pass, across, down);
    else
        read_ac_scan(pass);
    return pass->band.reason;
}

static bool is_complete(const struct st_jpeg_frame *frame, const struct st_jpeg_grid *grids)
{
    for (uint32_t c = 0; c < frame->components; c++)
        for (uint32_t k = 0; k < 64; k++)
            if (grids[c].low[k] != 0)
                return false;
    return true;
}

enum st_jpeg_reason st_jpeg_progressive(const struct st_jpeg_scan *scan, struct st_jpeg_frame *frame,
                                        struct st_jpeg_tables *tables, struct st_arena *arena,
                                        struct st_jpeg_grid grids[ST_JPEG_COMPONENTS_MAX])
{
    const uint64_t blocks = (uint64_t)frame->mcus_across * frame->mcus_down * frame->mcu_blocks;
    if (frame->scan.size < blocks / 8) /* DC takes at least a bit of each block */
        return ST_JPEG_DATA;
    for (uint32_t c = 0; c < frame->components; c++)
        if (reserve(scan, c, &grids[c], arena) != ST_JPEG_OURS)
            return ST_JPEG_MEMORY;
    for (uint32_t count = 0; frame->scan.data; count++) {
        const struct st_arena_mark mark = st_arena_mark(arena);
        struct pass pass = {.scan = scan, .frame = frame, .grids = grids};
        struct st_bytes behind;
        enum st_jpeg_reason reason =
            count < SCANS_MAX ? read_scan(&pass, tables, arena, &behind) : ST_JPEG_PROGRESSIVE;
        if (reason == ST_JPEG_OURS)
            reason = st_jpeg_next_scan(behind, frame);
        if (reason != ST_JPEG_OURS)
            return reason;
        st_arena_rewind(arena, mark);
    }
    return is_complete(frame, grids) ? ST_JPEG_OURS : ST_JPEG_PROGRESSIVE;
}
