/* speculate.c - two decoders in a stream without restart markers
 *
 * The second decoder starts at a guess, somewhere in the middle of the data, as if a block started
 * there. At first it reads nonsense, but Huffman codes synchronise by themselves, usually within a few
 * MCUs. When the first decoder, whose position is known, reaches a bit at which the second started an
 * MCU, both would read the same from there on: so everything that the second has decoded since is right,
 * except for the DC values, which lack the sum of what came before. Nothing is assumed; if they never
 * meet, the second decoder's work is discarded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/streams.h"

enum {
    WORTH_IT = 8192, /* bytes of data; with less, one decoder does everything */
    RECORDED = 24,   /* MCUs of the second decoder at whose starts they may meet */
    MARGIN =
        512, /* bytes that the second stays away from the end, since its place in the image is unknown */
};

struct guess {
    struct st_jpeg_stream *stream;
    uint32_t blocks; /* for which there is memory: */
    int16_t *coefs;  /* of its first recorded MCU */
    uint8_t *ends;
    struct st_jpeg_point *point; /* [RECORDED]; for marks, of all its MCUs */
};

/* Decodes one MCU, from between any two blocks. */
static void run_mcu(struct st_jpeg_scan *scan, struct st_jpeg_stream *s)
{
    const uint8_t *stop = s->lane.stop;
    s->lane.stop = scan->data.bytes; /* already passed: stops at every block */
    do
        scan->kernels->run_one(scan, s);
    while (s->reason == ST_JPEG_OURS && s->lane.blocks > 0 && s->lane.phase != scan->phase);
    s->lane.stop = stop;
}

/* The first MCUs of the second decoder, one at a time. An apparent error only means that it has not
 * synchronised yet: it continues after it, and discards what it has recorded. */
static bool warm_up(struct st_jpeg_scan *scan, struct guess *guess)
{
    struct st_jpeg_stream *s = guess->stream;
    const uint32_t limit = s->data_end * 8 - MARGIN * 8;
    for (uint32_t k = 0; k < RECORDED;) {
        guess->point[k].position = st_jpeg_position(&s->lane.bits, scan->data.bytes);
        if (guess->point[k].position >= limit)
            return false;
        for (uint32_t c = 0; c < ST_JPEG_COMPONENTS_MAX; c++)
            guess->point[k].predicted[c] = s->predicted[c];
        run_mcu(scan, s);
        k++;
        if (s->reason != ST_JPEG_OURS) {
            s->reason = ST_JPEG_OURS;
            s->lane.sum = 0;
            s->lane.phase = scan->phase;
            s->lane.coefs = guess->coefs;
            s->lane.end = guess->ends;
            s->lane.blocks = guess->blocks;
            st_jpeg_drop(&s->lane.bits, 1);
            k = 0;
        }
    }
    return true;
}

/* Runs the first decoder MCU by MCU until it reaches a meeting point: its index, or -1. */
static int32_t meet(struct st_jpeg_scan *scan, struct st_jpeg_stream *first, const struct guess *guess)
{
    int32_t k = 0;
    while (first->lane.blocks > 0) {
        if (first->lane.phase == scan->phase) {
            const uint32_t position = st_jpeg_position(&first->lane.bits, scan->data.bytes);
            while (k < RECORDED && guess->point[k].position < position)
                k++;
            if (k == RECORDED)
                return -1;
            if (guess->point[k].position == position)
                return k;
        }
        run_mcu(scan, first);
        if (first->reason != ST_JPEG_OURS)
            return -1;
    }
    return -1;
}

/* Notes the marks between `mcu`, where both have met at `point`, and the last needed MCU. */
static void note_marks(struct st_jpeg_scan *scan, const struct st_jpeg_point *point,
                       const int32_t *predicted, uint32_t mcu, uint32_t mcu_end)
{
    for (uint32_t at = mcu / scan->mark_every * scan->mark_every; at < mcu_end; at += scan->mark_every) {
        if (at < mcu)
            continue;
        struct st_jpeg_point there = point[at - mcu];
        for (uint32_t c = 0; c < ST_JPEG_COMPONENTS_MAX; c++)
            there.predicted[c] = (int32_t)((uint32_t)there.predicted[c] + (uint32_t)predicted[c] -
                                           (uint32_t)point->predicted[c]);
        st_jpeg_note_mark(scan, at, &there);
    }
}

/* Takes the needed MCUs from `mcu` on from the second decoder, and adds the DC that it did not know. */
static void hand_over(struct st_jpeg_scan *scan, const struct guess *guess,
                      const struct st_jpeg_point *point, const int32_t *predicted, uint32_t mcu)
{
    const uint32_t across = scan->frame->mcus_across, columns = scan->right - scan->left;
    const uint32_t blocks = scan->frame->mcu_blocks;
    const size_t first = (size_t)(point - guess->point);
    for (uint32_t row = scan->top; row < scan->bottom; row++)
        for (uint32_t column = scan->left; column < scan->right; column++) {
            if (row * across + column < mcu)
                continue;
            const size_t block = (first + row * across + column - mcu) * blocks;
            struct st_jpeg_mcu *at =
                &scan->mcus[(size_t)(row - scan->top) * columns + column - scan->left];
            *at = (struct st_jpeg_mcu){guess->coefs + block * 64, guess->ends + block};
            for (uint32_t k = 0; k < blocks; k++) {
                const uint32_t c = scan->phase[k].component;
                int16_t *dc = at->coefs + k * 64;
                *dc = (int16_t)((uint32_t)*dc + (uint32_t)predicted[c] - (uint32_t)point->predicted[c]);
            }
        }
}

/* Allocates memory for everything between the guess and the last needed MCU, and positions the
 * decoder. */
static bool make_guess(struct st_jpeg_scan *scan, struct guess *guess, uint32_t mcu_end, uint32_t at,
                       struct st_arena *arena)
{
    struct st_jpeg_stream *s = guess->stream;
    const uint64_t points = scan->marks ? RECORDED + (uint64_t)mcu_end : RECORDED;
    st_jpeg_stream_begin(scan, s, 0);
    guess->blocks = (mcu_end + RECORDED) * scan->frame->mcu_blocks;
    guess->point = st_arena_take(arena, points * sizeof *guess->point);
    guess->coefs =
        st_arena_take(arena, ((uint64_t)guess->blocks * 64 + ST_JPEG_SLACK) * sizeof *guess->coefs);
    guess->ends = st_arena_take(arena, guess->blocks);
    if (!guess->point || !guess->coefs || !guess->ends)
        return false;
    s->mcu = s->mcu_end;
    s->lane.bits.next += at;
    s->lane.coefs = guess->coefs;
    s->lane.end = guess->ends;
    s->lane.keep = 64;
    s->lane.blocks = guess->blocks;
    return true;
}

/* A decoder has stopped: has it made all it was to make? */
static enum st_jpeg_reason finished(struct st_jpeg_scan *scan, const struct st_jpeg_stream *s)
{
    if (s->reason != ST_JPEG_OURS)
        return s->reason;
    st_jpeg_stream_ended(scan, s);
    return s->lane.blocks > 0 || st_jpeg_stream_overran(scan, s) ? ST_JPEG_DATA : ST_JPEG_OURS;
}

/* From now on the second decoder notes where its MCUs start. */
static void note_points(struct st_jpeg_scan *scan, const struct guess *guess, uint32_t mcu_end)
{
    guess->stream->points = guess->point + RECORDED;
    guess->stream->unplaced = mcu_end;
    st_jpeg_stream_run(scan, guess->stream);
}

/* The second decoder's share, once its position in the image is known. */
static enum st_jpeg_reason finish_second(struct st_jpeg_scan *scan, struct st_jpeg_stream *s,
                                         uint32_t done, uint32_t needed)
{
    if (done >= needed) {
        scan->surplus = true; /* it stops well before the end, so there is more than needed */
        return ST_JPEG_OURS;
    }
    if (s->points) /* the current MCU is counted in lane.blocks */
        s->unplaced = (needed - done - s->lane.blocks) / scan->frame->mcu_blocks;
    else
        s->lane.blocks = needed - done;
    s->lane.stop = scan->data.bytes + s->data_end + ST_JPEG_PAST_THE_END;
    scan->kernels->run_one(scan, s);
    return finished(scan, s);
}

static enum st_jpeg_reason finish_alone(struct st_jpeg_scan *scan, struct st_jpeg_stream *s)
{
    s->lane.stop = scan->data.bytes + s->data_end + ST_JPEG_PAST_THE_END;
    if (s->reason == ST_JPEG_OURS && s->lane.blocks > 0)
        scan->kernels->run_one(scan, s);
    return finished(scan, s);
}

/* Where both have equally long to go. The first is faster where it skips; the second keeps
 * everything. */
static uint32_t middle_of(const struct st_jpeg_scan *scan, uint32_t share, uint32_t mcu_end)
{
    const uint32_t kept = (scan->bottom - scan->top) * (scan->right - scan->left);
    const uint32_t skipped = scan->skips ? mcu_end - kept : 0;
    return share / 2 + (uint32_t)((uint64_t)share * skipped / mcu_end / 8);
}

enum st_jpeg_reason st_jpeg_scan_speculate(struct st_jpeg_scan *scan, struct st_arena *arena)
{
    const struct st_jpeg_frame *frame = scan->frame;
    struct st_jpeg_stream *first = &scan->stream[0];
    struct guess guess = {.stream = &scan->stream[1]};
    const uint32_t mcu_end = (scan->bottom - 1) * frame->mcus_across + scan->right;
    const uint32_t all = frame->mcus_across * frame->mcus_down, size = scan->data.start[1];
    const uint32_t share = (uint32_t)((uint64_t)size * mcu_end / all);
    const uint32_t middle = middle_of(scan, share, mcu_end);

    scan->coefs_free = scan->coefs;
    scan->ends_free = scan->ends;
    st_jpeg_stream_begin(scan, first, 0);
    st_jpeg_stream_run(scan, first);
    if (share < WORTH_IT)
        return finish_alone(scan, first);
    if (!make_guess(scan, &guess, mcu_end, middle, arena))
        return ST_JPEG_MEMORY;
    if (!warm_up(scan, &guess))
        return finish_alone(scan, first);

    if (scan->marks)
        note_points(scan, &guess, mcu_end);
    const uint32_t second_stop = share + share / 64 < size - MARGIN ? share + share / 64 : size - MARGIN;
    first->lane.stop = scan->data.bytes + middle;
    guess.stream->lane.stop = scan->data.bytes + second_stop;
    if (scan->kernels->run_two(scan, first, guess.stream) == guess.stream)
        scan->kernels->run_one(scan, first);
    const int32_t met = first->reason == ST_JPEG_OURS ? meet(scan, first, &guess) : -1;
    if (met < 0 || guess.stream->reason != ST_JPEG_OURS)
        return finish_alone(scan, first);

    const uint32_t mcu = first->mcu - first->lane.blocks / frame->mcu_blocks;
    const uint32_t done = (uint32_t)(guess.stream->lane.end - guess.ends);
    const uint32_t needed = (mcu_end - mcu + (uint32_t)met) * frame->mcu_blocks;
    const enum st_jpeg_reason reason = finish_second(scan, guess.stream, done, needed);
    if (reason == ST_JPEG_OURS)
        hand_over(scan, &guess, &guess.point[met], first->predicted, mcu);
    if (reason == ST_JPEG_OURS && scan->marks)
        note_marks(scan, &guess.point[met], first->predicted, mcu, mcu_end);
    return reason;
}
