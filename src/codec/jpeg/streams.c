/* streams.c - the scan: which MCUs are needed, and two decoders that decode their coefficients
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/streams.h"

#include "codec/jpeg/kernels_isa.h"

enum { NONE = UINT32_MAX, LOOKUPS = 5, SKIP_LOOKUPS = 3 };

/* ---- the loop ---------------------------------------------------------------------------------- */

/* Whether a stream's blocks are skipped, using the skip tables. */
ST_INLINE bool skips(const struct st_jpeg_scan *scan, const struct st_jpeg_stream *s)
{
    return scan->skips && s->lane.keep == 0;
}

/* Advances to the next block or, at the end of a run of blocks, to the next run. False: stop here. */
ST_INLINE bool next_block(struct st_jpeg_scan *scan, struct st_jpeg_stream *s, struct st_jpeg_lane *l,
                          const bool skip)
{
    if (!skip) {
        l->coefs += l->keep;
        l->end += l->keep >> 6;
        ST_KEEP_WHOLE(l->coefs); /* keeps compilers from vectorising the two pointers */
    }
    l->phase = l->phase->next;
    l->sum = 0;
    if (ST_UNLIKELY(--l->blocks == 0)) {
        s->lane.bits = l->bits;
        s->lane.coefs = l->coefs;
        s->lane.end = l->end;
        if (!st_jpeg_stream_run(scan, s))
            return false;
        l->coefs = s->lane.coefs;
        l->end = s->lane.end;
        l->keep = s->lane.keep;
        l->blocks = s->lane.blocks;
        if (skips(scan, s) != skip)
            return false;
    }
    if (ST_UNLIKELY(l->bits.next >= l->stop))
        return false;
    if (ST_LIKELY(st_jpeg_lane_begin(l, s->predicted, skip)))
        return true;
    s->reason = ST_JPEG_CODE;
    return false;
}

/* Does what a look-up left to do. False: the stream stops. */
ST_INLINE bool handle(struct st_jpeg_scan *scan, struct st_jpeg_stream *s, struct st_jpeg_lane *l,
                      uint64_t entry, const bool skip)
{
    const enum st_jpeg_event event = st_jpeg_lane_event(l, entry, scan->data.bytes, skip);
    if (ST_LIKELY(event == ST_JPEG_BLOCK_DONE))
        return next_block(scan, s, l, skip);
    if (ST_LIKELY(event == ST_JPEG_GO_ON))
        return true;
    s->reason = event == ST_JPEG_BAD_CODE ? ST_JPEG_CODE : ST_JPEG_INDEX;
    return false;
}

/* Starts the next block of a stream that stopped between blocks. */
ST_INLINE bool begin(struct st_jpeg_stream *s, struct st_jpeg_lane *l, const bool skip)
{
    if (l->sum != 0 || st_jpeg_lane_begin(l, s->predicted, skip))
        return true;
    s->reason = ST_JPEG_CODE;
    return false;
}

ST_INLINE uint32_t step(struct st_jpeg_lane *l, uint64_t *entry, const bool skip)
{
    return skip ? st_jpeg_lane_skip(l, entry) : st_jpeg_lane_step(l, entry);
}

/* The lanes are copied, so that they stay in registers. */
ST_INLINE struct st_jpeg_stream *run(struct st_jpeg_scan *scan, struct st_jpeg_stream *first,
                                     struct st_jpeg_stream *second, const bool two, const bool skip_a,
                                     const bool skip_b)
{
    struct st_jpeg_lane a = first->lane, b = second->lane;
    struct st_jpeg_stream *stopped = NULL;
    uint64_t entry_a = 0, entry_b = 0;
    if (!begin(first, &a, skip_a))
        stopped = first;
    else if (two && !begin(second, &b, skip_b))
        stopped = second;
    while (!stopped) {
        st_jpeg_lane_refill(&a);
        if (two)
            st_jpeg_lane_refill(&b);
#pragma GCC unroll 5
        for (int k = 0; k < LOOKUPS; k++) {
            if ((skip_a || skip_b) && k == SKIP_LOOKUPS)
                break;
            const uint32_t sum_a = step(&a, &entry_a, skip_a);
            if (ST_UNLIKELY(sum_a & ST_JPEG_EOB << 8))
                goto end_a;
            if (ST_UNLIKELY(sum_a & ST_JPEG_LONG << 8))
                goto event_a;
            if (!two)
                continue;
            const uint32_t sum_b = step(&b, &entry_b, skip_b);
            if (ST_UNLIKELY(sum_b & ST_JPEG_EOB << 8))
                goto end_b;
            if (ST_UNLIKELY(sum_b & ST_JPEG_LONG << 8))
                goto event_b;
        }
        continue;
    end_a:
        if (ST_LIKELY(st_jpeg_lane_end(&a, skip_a))) {
            if (ST_UNLIKELY(!next_block(scan, first, &a, skip_a)))
                stopped = first;
            continue;
        }
    event_a:
        ST_KEEP_WHOLE(entry_a);
        if (ST_UNLIKELY(!handle(scan, first, &a, entry_a, skip_a)))
            stopped = first;
        continue;
    end_b:
        if (ST_LIKELY(st_jpeg_lane_end(&b, skip_b))) {
            if (ST_UNLIKELY(!next_block(scan, second, &b, skip_b)))
                stopped = second;
            continue;
        }
    event_b:
        ST_KEEP_WHOLE(entry_b);
        if (ST_UNLIKELY(!handle(scan, second, &b, entry_b, skip_b)))
            stopped = second;
    }
    first->lane = a;
    if (two)
        second->lane = b;
    return stopped;
}

/* A stream also leaves the loop where it starts to skip or to keep blocks, and continues in another
 * one. */
ST_INLINE struct st_jpeg_stream *run_on(struct st_jpeg_scan *scan, struct st_jpeg_stream *a,
                                        struct st_jpeg_stream *b, const bool two)
{
    for (;;) {
        const bool skip_a = skips(scan, a), skip_b = two && skips(scan, b);
        struct st_jpeg_stream *stopped = skip_a && skip_b ? run(scan, a, b, two, true, two)
                                         : skip_a         ? run(scan, a, b, two, true, false)
                                         : skip_b         ? run(scan, a, b, two, false, two)
                                                          : run(scan, a, b, two, false, false);
        if (stopped->reason != ST_JPEG_OURS || stopped->lane.blocks == 0 ||
            stopped->lane.bits.next >= stopped->lane.stop)
            return stopped;
    }
}

struct st_jpeg_stream *st_jpeg_run_one(struct st_jpeg_scan *scan, struct st_jpeg_stream *a)
{
    return run_on(scan, a, a, false);
}

struct st_jpeg_stream *st_jpeg_run_two(struct st_jpeg_scan *scan, struct st_jpeg_stream *a,
                                       struct st_jpeg_stream *b)
{
    return run_on(scan, a, b, true);
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi,bmi2"))) struct st_jpeg_stream *
st_jpeg_run_one_bmi2(struct st_jpeg_scan *scan, struct st_jpeg_stream *a)
{
    return run_on(scan, a, a, false);
}

__attribute__((target("avx2,bmi,bmi2"))) struct st_jpeg_stream *
st_jpeg_run_two_bmi2(struct st_jpeg_scan *scan, struct st_jpeg_stream *a, struct st_jpeg_stream *b)
{
    return run_on(scan, a, b, true);
}
#endif

/* ---- runs: consecutive blocks that are all kept or all discarded -------------------------------- */

/* The first MCU from `mcu` on that this band needs. */
static uint32_t wanted(const struct st_jpeg_scan *scan, uint32_t mcu)
{
    const uint32_t across = scan->frame->mcus_across;
    uint32_t row = mcu / across, column = mcu % across;
    if (row < scan->band_top)
        row = scan->band_top, column = 0;
    if (column >= scan->right)
        row++, column = 0;
    if (row >= scan->band_bottom)
        return NONE;
    return row * across + (column > scan->left ? column : scan->left);
}

/* Assigns memory to the MCUs of a run inside the band, all in one row. */
static void keep_run(struct st_jpeg_scan *scan, struct st_jpeg_lane *l, uint32_t mcu, uint32_t count)
{
    const uint32_t across = scan->frame->mcus_across, blocks = scan->frame->mcu_blocks;
    const uint32_t row = mcu / across - scan->band_top, column = mcu % across - scan->left;
    struct st_jpeg_mcu *at = scan->mcus + (size_t)row * (scan->right - scan->left) + column;
    l->coefs = scan->coefs_free;
    l->end = scan->ends_free;
    l->keep = 64;
    for (uint32_t k = 0; k < count; k++) {
        at[k] = (struct st_jpeg_mcu){scan->coefs_free, scan->ends_free};
        scan->coefs_free += (size_t)blocks * 64;
        scan->ends_free += blocks;
    }
    scan->coefs_free += ST_JPEG_SLACK;
}

static struct st_jpeg_point point_of(const struct st_jpeg_scan *scan, const struct st_jpeg_stream *s)
{
    return (struct st_jpeg_point){st_jpeg_position(&s->lane.bits, scan->data.bytes),
                                  {s->predicted[0], s->predicted[1], s->predicted[2]}};
}

void st_jpeg_note_mark(struct st_jpeg_scan *scan, uint32_t mcu, const struct st_jpeg_point *point)
{
    struct st_jpeg_marks *marks = scan->marks;
    if (!marks || mcu != (marks->count + 1) * scan->mark_every || marks->count == ST_JPEG_MARKS_MAX)
        return;
    /* One that does not fit is the end of the marks: the next ones would not be in their place. */
    const uint64_t mark = st_jpeg_mark(point->position, point->predicted);
    if (mark)
        marks->mark[marks->count++] = mark;
}

/* Somewhere in the image, every MCU is a run, and its start is noted. */
static bool run_unplaced(const struct st_jpeg_scan *scan, struct st_jpeg_stream *s)
{
    if (s->unplaced == 0)
        return false;
    s->unplaced--;
    *s->points++ = point_of(scan, s);
    s->lane.blocks = scan->frame->mcu_blocks;
    return true;
}

bool st_jpeg_stream_run(struct st_jpeg_scan *scan, struct st_jpeg_stream *s)
{
    struct st_jpeg_lane *l = &s->lane;
    if (s->points)
        return run_unplaced(scan, s);
    const uint32_t target = wanted(scan, s->mcu);
    if (target >= s->mcu_end)
        return false;
    uint32_t end = target;
    if (scan->marks) {
        const uint32_t next_mark = (s->mcu / scan->mark_every + 1) * scan->mark_every;
        const struct st_jpeg_point here = point_of(scan, s);
        st_jpeg_note_mark(scan, s->mcu, &here);
        end = end < next_mark ? end : next_mark;
    }
    if (target == s->mcu) {
        const uint32_t across = scan->frame->mcus_across,
                       row_end = target / across * across + scan->right;
        end = row_end < s->mcu_end ? row_end : s->mcu_end;
        keep_run(scan, l, target, end - target);
    } else {
        l->coefs = scan->forgotten;
        l->end = &scan->forgotten_end;
        l->keep = 0;
    }
    l->blocks = (end - s->mcu) * scan->frame->mcu_blocks;
    s->mcu = end;
    return true;
}

/* ---- intervals --------------------------------------------------------------------------------- */

static void go_to_mark(const struct st_jpeg_scan *scan, struct st_jpeg_stream *s, uint64_t mark)
{
    st_jpeg_seek(&s->lane.bits, scan->data.bytes, st_jpeg_mark_position(mark));
    for (int c = 0; c < ST_JPEG_COMPONENTS_MAX; c++)
        s->predicted[c] = st_jpeg_mark_predicted(mark, c);
}

void st_jpeg_stream_begin(struct st_jpeg_scan *scan, struct st_jpeg_stream *s, uint32_t interval)
{
    const uint32_t all = scan->frame->mcus_across * scan->frame->mcus_down;
    const struct st_jpeg_data *data = &scan->data;
    *s = (struct st_jpeg_stream){.mcu = interval * scan->interval};
    s->mcu_end = interval + 1 == scan->intervals ? all : s->mcu + scan->interval;
    if (scan->intervals == data->intervals) {
        s->data_end = data->start[interval + 1];
        s->lane.bits.next = data->bytes + data->start[interval];
    } else { /* they start at marks */
        s->data_end = data->start[1];
        s->lane.bits.next = data->bytes;
        if (interval > 0)
            go_to_mark(scan, s, scan->marks->mark[interval - 1]);
    }
    s->lane.stop = data->bytes + s->data_end + ST_JPEG_PAST_THE_END;
    s->lane.phase = scan->phase;
}

bool st_jpeg_stream_overran(const struct st_jpeg_scan *scan, const struct st_jpeg_stream *s)
{
    return st_jpeg_position(&s->lane.bits, scan->data.bytes) > s->data_end * 8;
}

void st_jpeg_stream_ended(struct st_jpeg_scan *scan, const struct st_jpeg_stream *s)
{
    scan->surplus |= st_jpeg_position(&s->lane.bits, scan->data.bytes) + 8 <= s->data_end * 8;
}

/* Whether there is work for a stream: the rest of its interval, or another interval. Intervals without
 * needed MCUs are skipped. */
static bool find_work(struct st_jpeg_scan *scan, struct st_jpeg_stream *s)
{
    if (s->lane.blocks > 0 || st_jpeg_stream_run(scan, s))
        return true;
    if (scan->next_interval >= scan->intervals)
        return false;
    const uint32_t mcu = wanted(scan, scan->next_interval * scan->interval);
    if (mcu == NONE)
        return false;
    const uint32_t interval = mcu / scan->interval, last = scan->intervals - 1;
    scan->next_interval = (interval < last ? interval : last) + 1;
    st_jpeg_stream_begin(scan, s, scan->next_interval - 1);
    return st_jpeg_stream_run(scan, s);
}

/* ---- a band ------------------------------------------------------------------------------------ */

enum st_jpeg_reason st_jpeg_scan_reserve(struct st_jpeg_scan *scan, uint32_t rows,
                                         struct st_arena *arena)
{
    const uint64_t columns = scan->right - scan->left, mcus = rows * columns;
    const uint64_t blocks = mcus * scan->frame->mcu_blocks;
    const uint64_t cuts =
        columns / scan->interval + 2; /* maximum number of runs in a row */
    const uint64_t runs = rows * (cuts < columns ? cuts : columns);
    scan->mcus = st_arena_take(arena, mcus * sizeof *scan->mcus);
    scan->coefs = st_arena_take(arena, (blocks * 64 + runs * ST_JPEG_SLACK) * sizeof *scan->coefs);
    scan->ends = st_arena_take(arena, blocks);
    return scan->mcus && scan->coefs && scan->ends ? ST_JPEG_OURS : ST_JPEG_MEMORY;
}

enum st_jpeg_reason st_jpeg_scan_band(struct st_jpeg_scan *scan)
{
    struct st_jpeg_stream *a = &scan->stream[0], *b = &scan->stream[1];
    scan->coefs_free = scan->coefs;
    scan->ends_free = scan->ends;
    for (;;) {
        const bool has_a = find_work(scan, a), has_b = find_work(scan, b);
        struct st_jpeg_stream *stopped = has_a ? a : b;
        if (!has_a && !has_b)
            return ST_JPEG_OURS;
        if (has_a && has_b)
            stopped = scan->kernels->run_two(scan, a, b);
        else
            scan->kernels->run_one(scan, stopped);
        if (stopped->reason != ST_JPEG_OURS)
            return stopped->reason;
        if (stopped->lane.blocks > 0 || st_jpeg_stream_overran(scan, stopped))
            return ST_JPEG_DATA;
        if (stopped->mcu == stopped->mcu_end)
            st_jpeg_stream_ended(scan, stopped);
    }
}
