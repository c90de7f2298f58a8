/* baseline.c - our own JPEG decoder: a region, the same bytes as libjpeg-turbo
 *
 * There is one file per stage: headers, tables, unstuff (the scan's bytes), streams and speculate (bits
 * to coefficients), or progressive and bands, pixels (coefficients to RGB). Coefficients are decoded for
 * a band of rows at a time; most images are a single band, and progressive ones always.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/baseline.h"

#include "codec/jpeg/pixels.h"
#include "codec/jpeg/progressive.h"
#include "codec/jpeg/streams.h"

#include <stdlib.h>

enum {
    BLOCK = 8,
    BAND_BYTES = 4 << 20, /* of coefficients: a core's share of the cache */
    ALONE_PART = 4, /* marks are not used if one decoder would be alone for more than this part */
};

struct st_jpeg {
    struct st_jpeg_tables tables;
    const struct st_jpeg_kernels *kernels;
    struct st_jpeg_frame frame;
    struct st_jpeg_scan scan;
    struct st_jpeg_pixels pixels;
    struct st_jpeg_grid grids[ST_JPEG_COMPONENTS_MAX];
};

const char *st_jpeg_reason_name(enum st_jpeg_reason reason)
{
    static const char *const names[] = {
#define X(name, text) text,
        ST_JPEG_REASONS(X)
#undef X
    };
    return names[reason];
}

struct st_jpeg *st_jpeg_new(void)
{
    struct st_jpeg *state = st_alloc_aligned(sizeof *state);
    if (!state)
        return NULL;
    memset(state, 0, sizeof *state);
    state->kernels = st_jpeg_kernels_for(st_cpu_level());
    return state;
}

void st_jpeg_free(struct st_jpeg *state)
{
    if (state)
        st_jpeg_tables_free(&state->tables);
    free(state);
}

bool st_jpeg_was_progressive(const struct st_jpeg *state) { return state->frame.progressive; }

/* Sets the tables for each block of an MCU. */
static enum st_jpeg_reason set_phases(struct st_jpeg *state)
{
    const struct st_jpeg_frame *frame = &state->frame;
    enum st_jpeg_reason reason = ST_JPEG_OURS;
    uint32_t block = 0;
    for (uint32_t c = 0; c < frame->components; c++) {
        const struct st_jpeg_component *component = &frame->component[c];
        const struct st_jpeg_ac *ac =
            st_jpeg_ac_table(&state->tables, &frame->ac[component->ac], &reason);
        const struct st_jpeg_dc *dc =
            ac ? st_jpeg_dc_table(&state->tables, &frame->dc[component->dc], &reason) : NULL;
        if (!dc)
            return reason;
        state->scan.skips = state->scan.skips && ac->has_skip;
        for (uint32_t k = 0; k < (uint32_t)component->h * component->v; k++, block++)
            state->scan.phase[block] =
                (struct st_jpeg_phase){ac->look, ac->skip, dc->look, ac, dc,
                                       &state->scan.phase[(block + 1) % frame->mcu_blocks], c};
    }
    return ST_JPEG_OURS;
}

/* The blocks that pixels from `start` on need, along one axis: [*first, *end). Subsampled components
 * need an extra sample on either side. */
static void needed_blocks(uint32_t start, uint32_t count, uint32_t factor, uint32_t samples,
                          uint32_t *first, uint32_t *end)
{
    const uint32_t more = factor - 1, low = start / factor, high = (start + count - 1) / factor + more;
    *first = (low > more ? low - more : 0) / BLOCK;
    *end = (high < samples ? high : samples - 1) / BLOCK + 1;
}

static bool is_inside(const struct st_region *r, const struct st_jpeg_frame *frame)
{
    return r->width > 0 && r->height > 0 && r->x < frame->width && r->y < frame->height &&
           r->width <= frame->width - r->x && r->height <= frame->height - r->y;
}

static void set_scan(struct st_jpeg_scan *scan, const struct st_jpeg_frame *frame,
                     const struct st_region *region)
{
    /* The coarsest component has one block per MCU. */
    const struct st_jpeg_component *coarse = &frame->component[frame->components - 1];
    scan->frame = frame;
    needed_blocks(region->x, region->width, frame->h, coarse->width, &scan->left, &scan->right);
    needed_blocks(region->y, region->height, frame->v, coarse->height, &scan->top, &scan->bottom);
    scan->interval =
        frame->restart_interval ? frame->restart_interval : frame->mcus_across * frame->mcus_down;
    scan->next_interval = 0;
    scan->surplus = false;
    scan->skips = true; /* unless a table has no skip entries */
    memset(scan->stream, 0, sizeof scan->stream);
}

static bool are_in_order(const struct st_jpeg_marks *marks, uint32_t data_end)
{
    uint32_t before = 0;
    bool in_order = marks->count <= ST_JPEG_MARKS_MAX;
    for (uint32_t k = 0; in_order && k < marks->count; k++) {
        const uint32_t position = st_jpeg_mark_position(marks->mark[k]);
        in_order = position > before && position <= data_end * 8;
        before = position;
    }
    return in_order;
}

/* Sets where decoders start, and which marks are noted. */
static void use_marks(struct st_jpeg_scan *scan, struct st_jpeg_marks *marks, bool from_start)
{
    const uint32_t rows = st_jpeg_mark_rows(scan->frame->mcus_down);
    scan->intervals = scan->data.intervals;
    scan->marks = scan->frame->restart_interval ? NULL : marks;
    scan->mark_every = rows * scan->frame->mcus_across;
    if (!scan->marks)
        return;
    if (!are_in_order(marks, scan->data.start[1]))
        marks->count = 0;
    /* Rows that one decoder would have to decode alone, because there is no mark behind them. */
    const uint32_t last = marks->count * rows, start = scan->top < last ? scan->top / rows * rows : last;
    const uint32_t alone = scan->bottom > last + rows ? scan->bottom - last - rows : 0;
    if (from_start || !marks->count || alone > (scan->bottom - start) / ALONE_PART)
        return;
    scan->interval = scan->mark_every;
    scan->intervals = marks->count + 1;
}

static enum st_jpeg_reason decode_bands(struct st_jpeg *state, struct st_arena *arena)
{
    struct st_jpeg_scan *scan = &state->scan;
    const struct st_jpeg_frame *frame = scan->frame;
    const uint64_t block_bytes = 64 * sizeof(int16_t) * frame->mcu_blocks;
    const uint64_t fit = BAND_BYTES / (block_bytes * (scan->right - scan->left));
    const uint32_t rows = scan->bottom - scan->top;
    const uint32_t band = fit >= rows ? rows : fit > 1 ? (uint32_t)fit : 1;
    /* The second decoder keeps everything it reads, needed or not. */
    const uint64_t all = (uint64_t)frame->mcus_across * scan->bottom * block_bytes;
    const bool speculate = band == rows && scan->intervals == 1 && all <= BAND_BYTES;
    enum st_jpeg_reason reason = st_jpeg_scan_reserve(scan, band, arena);
    for (uint32_t top = scan->top; top < scan->bottom && reason == ST_JPEG_OURS; top += band) {
        scan->band_top = top;
        scan->band_bottom = scan->bottom - top < band ? scan->bottom : top + band;
        reason = speculate ? st_jpeg_scan_speculate(scan, arena) : st_jpeg_scan_band(scan);
        for (uint32_t row = top; row < scan->band_bottom && reason == ST_JPEG_OURS; row++)
            reason = st_jpeg_pixels_row(&state->pixels, row);
    }
    return reason;
}

static enum st_jpeg_reason decode_progressive(struct st_jpeg *state, struct st_region region, bool all,
                                              struct st_arena *arena, struct st_view *out)
{
    struct st_jpeg_scan *scan = &state->scan;
    const struct st_region whole = {0, 0, state->frame.width, state->frame.height};
    scan->kernels = state->kernels;
    set_scan(scan, &state->frame, all ? &whole : &region);
    enum st_jpeg_reason reason =
        st_jpeg_progressive(scan, &state->frame, &state->tables, arena, state->grids);
    if (reason != ST_JPEG_OURS)
        return reason;
    state->pixels = (struct st_jpeg_pixels){
        .kernels = state->kernels, .scan = scan, .grids = state->grids, .region = region};
    reason = st_jpeg_pixels_begin(&state->pixels, arena);
    for (uint32_t row = scan->top; row < scan->bottom && reason == ST_JPEG_OURS; row++)
        reason = st_jpeg_pixels_row(&state->pixels, row);
    *out = state->pixels.out;
    return reason;
}

/* Decoding starts at marks, if there are enough of them. */
static enum st_jpeg_reason attempt(struct st_jpeg *state, struct st_region region, bool *clean,
                                   struct st_jpeg_marks *marks, struct st_arena *arena,
                                   struct st_view *out)
{
    struct st_jpeg_scan *scan = &state->scan;
    const struct st_region all = {0, 0, state->frame.width, state->frame.height};
    scan->kernels = state->kernels;
    set_scan(scan, &state->frame, clean ? &all : &region);
    enum st_jpeg_reason reason = set_phases(state);
    const uint64_t mcus = (uint64_t)state->frame.mcus_across * state->frame.mcus_down;
    /* A block has two codes of at least one bit each. */
    if (reason == ST_JPEG_OURS && state->frame.scan.size < mcus * state->frame.mcu_blocks / 4)
        reason = ST_JPEG_DATA;
    if (reason == ST_JPEG_OURS)
        reason = st_jpeg_unstuff(state->kernels, &state->frame, mcus, arena, &scan->data, NULL);
    if (reason != ST_JPEG_OURS)
        return reason;
    use_marks(scan, marks, clean != NULL);
    state->pixels = (struct st_jpeg_pixels){.kernels = state->kernels, .scan = scan, .region = region};
    reason = st_jpeg_pixels_begin(&state->pixels, arena);
    if (reason == ST_JPEG_OURS)
        reason = decode_bands(state, arena);
    if (reason != ST_JPEG_OURS)
        return reason;
    *out = state->pixels.out;
    if (clean)
        *clean = !scan->surplus;
    return ST_JPEG_OURS;
}

enum st_jpeg_reason st_jpeg_decode(struct st_jpeg *state, struct st_bytes in, struct st_region region,
                                   bool *clean, struct st_jpeg_marks *marks, struct st_arena *arena,
                                   struct st_view *out)
{
    enum st_jpeg_reason reason = st_jpeg_headers(in, &state->frame);
    if (clean)
        *clean = false;
    if (reason != ST_JPEG_OURS && reason != ST_JPEG_PROGRESSIVE)
        return reason;
    if (!is_inside(&region, &state->frame))
        return ST_JPEG_REGION;
    if (reason == ST_JPEG_PROGRESSIVE)
        return decode_progressive(state, region, clean != NULL, arena, out);
    const uint32_t count = marks ? marks->count : 0;
    reason = attempt(state, region, clean, marks, arena, out);
    if (reason == ST_JPEG_OURS || !marks)
        return reason;
    marks->count = 0;
    if (!count)
        return reason;
    /* What is wrong may be the marks. */
    return attempt(state, region, clean, NULL, arena, out);
}
