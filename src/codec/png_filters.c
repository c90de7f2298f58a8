/* png_filters.c - undoes the filters of PNG rows
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/png_filters.h"
#include "codec/png_vectors.h"

#include <stdlib.h>
#include <string.h>

/* ---- plain C ------------------------------------------------------------------------------------ */

/* In masks neighbours are mostly equal, which the first lines find without waiting for `left`. */
static inline int32_t paeth(int32_t left, int32_t above, int32_t before)
{
    if (above == before)
        return left;
    if (left == before)
        return above;
    const int32_t by_left = abs(above - before), by_above = abs(left - before);
    const int32_t by_before = abs(left + above - 2 * before);
    if (by_left <= by_above && by_left <= by_before)
        return left;
    return by_above <= by_before ? above : before;
}

/* `row` may be `above`. */
static inline __attribute__((always_inline)) void undo_paeth(const uint8_t *from, const uint8_t *above,
                                                             uint8_t *row, size_t bytes, uint32_t pixel)
{
    for (uint32_t c = 0; c < pixel; c++) {
        uint8_t left = 0, before = 0;
        for (size_t i = c; i < bytes; i += pixel) {
            const uint8_t over = above[i];
            row[i] = left = (uint8_t)(from[i] + paeth(left, over, before));
            before = over;
        }
    }
}

static void undo_average(const uint8_t *from, const uint8_t *above, uint8_t *row, size_t bytes,
                         uint32_t pixel)
{
    for (uint32_t c = 0; c < pixel; c++) {
        uint8_t left = 0;
        for (size_t i = c; i < bytes; i += pixel)
            row[i] = left = (uint8_t)(from[i] + (left + above[i]) / 2);
    }
}

static void undo_up(const uint8_t *from, const uint8_t *above, uint8_t *row, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        row[i] = (uint8_t)(above[i] + from[i]);
}

static void undo_sub(const uint8_t *from, uint8_t *row, size_t bytes, uint32_t pixel)
{
    for (uint32_t c = 0; c < pixel; c++) {
        uint8_t left = 0;
        for (size_t i = c; i < bytes; i += pixel)
            row[i] = left = (uint8_t)(left + from[i]);
    }
}

static bool undo_row(const struct st_png_lines *l, const uint8_t *from, const uint8_t *above,
                     uint8_t *row)
{
    switch (*from++) {
    case ST_PNG_NONE:
        memcpy(row, from, l->row);
        return true;
    case ST_PNG_SUB:
        undo_sub(from, row, l->row, l->pixel);
        return true;
    case ST_PNG_UP:
        undo_up(from, above, row, l->row);
        return true;
    case ST_PNG_AVERAGE:
        undo_average(from, above, row, l->row, l->pixel);
        return true;
    case ST_PNG_PAETH:
        if (l->pixel == 1)
            undo_paeth(from, above, row, l->row, 1);
        else
            undo_paeth(from, above, row, l->row, l->pixel);
        return true;
    default:
        return false;
    }
}

bool st_png_unfilter_c(const struct st_png_lines *l)
{
    const uint8_t *above = l->above, *from = l->from;
    uint8_t *to = l->to;
    for (uint32_t k = 0; k < l->count; k++, above = to, to += l->stride, from += l->row + 1)
        if (!undo_row(l, from, above, to))
            return false;
    return true;
}

/* ---- vectors ------------------------------------------------------------------------------------ */

#if ST_PNG_VECTORS

/* Four rows at once, whatever their filters: each has a pixel in a lane of 4 bytes, and is two pixels
 * behind the row above it, so that what the row above gives is ready well before it is needed. What a
 * pixel waits for is thus its left neighbour only, and three other pixels are calculated meanwhile.
 *
 * Of Paeth's prediction little depends on the left neighbour. Where c <= b it is the largest of a, of c
 * if a is at least c - 2(b - c) + 1, and of b if a is at least c - (b - c)/2. Where c > b the same holds
 * of all numbers subtracted from 255. Sub, Up and None are Paeth with zeros in place of those neighbours
 * that they do not use. */
struct wave {
    st_u8x16 keep_left, keep_above, average; /* of each row: all ones or 0 */
    st_u8x16 left, above, next_above;        /* a; c; the last result of the row above, not yet its b */
};

static inline __attribute__((always_inline)) struct wave wave_of(const struct st_png_lines *l)
{
    uint32_t left[4], above[4], average[4];
    for (int k = 0; k < 4; k++) {
        const uint8_t filter = l->from[(size_t)k * (l->row + 1)];
        left[k] = filter == ST_PNG_SUB || filter >= ST_PNG_AVERAGE ? UINT32_MAX : 0;
        above[k] = filter >= ST_PNG_UP ? UINT32_MAX : 0;
        average[k] = filter == ST_PNG_AVERAGE ? UINT32_MAX : 0;
    }
    const st_u8x16 zero = st_bytes_of(0);
    return (struct wave){st_lanes_of(left[0], left[1], left[2], left[3]),
                         st_lanes_of(above[0], above[1], above[2], above[3]),
                         st_lanes_of(average[0], average[1], average[2], average[3]),
                         zero,
                         zero,
                         zero};
}

/* The next pixel of each row, from its difference; `top` is the pixel above that of the first row. */
static inline __attribute__((always_inline)) st_u8x16 step(struct wave *w, st_u8x16 difference,
                                                           uint32_t top, bool only_paeth)
{
    st_u8x16 left = w->left, b = st_lanes_down(w->next_above, top), c = w->above;
    if (!only_paeth) {
        left = st_and(left, w->keep_left);
        b = st_and(b, w->keep_above);
        c = st_and(c, w->keep_left);
    }
    const st_u8x16 falls = st_less(b, c); /* numbers are then subtracted from 255 */
    const st_u8x16 high = st_xor(b, falls), low = st_xor(c, falls), a = st_xor(left, falls);
    const st_u8x16 height = st_subtract_to_0(high, low);
    const st_u8x16 from_low =
        st_subtract_to_0(st_add_to_255(low, st_bytes_of(1)), st_add_to_255(height, height));
    const st_u8x16 from_high = st_subtract_to_0(low, st_half(height));
    const st_u8x16 least =
        st_max(st_and(low, st_at_least(a, from_low)), st_and(high, st_at_least(a, from_high)));
    st_u8x16 predicted = st_xor(st_max(a, least), falls);
    if (!only_paeth)
        predicted = st_choose(w->average, st_mean(left, b), predicted);
    w->next_above = w->left;
    w->above = b;
    return w->left = st_add(difference, predicted);
}

/* A step near an end of the rows, where some have no pixel. */
static void step_at_end(struct wave *w, const struct st_png_lines *l, size_t t, size_t columns)
{
    uint32_t in[4] = {0}, out[4], top = 0;
    for (size_t k = 0; k < 4; k++)
        if (t >= 2 * k && t - 2 * k < columns)
            memcpy(&in[k], l->from + k * (l->row + 1) + 1 + (t - 2 * k) * l->pixel, l->pixel);
    if (t < columns)
        memcpy(&top, l->above + t * l->pixel, l->pixel);
    const st_u8x16 result = step(w, st_lanes_of(in[0], in[1], in[2], in[3]), top, false);
    memcpy(out, &result, sizeof out);
    for (size_t k = 0; k < 4; k++)
        if (t >= 2 * k && t - 2 * k < columns)
            memcpy(l->to + k * l->stride + (t - 2 * k) * l->pixel, &out[k], l->pixel);
}

static inline uint32_t word(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Where a pixel has less than 4 bytes, 4 are read and written all the same, and the rest is then
 * overwritten by the next pixels, or lies behind the row. */
static inline __attribute__((always_inline)) void run_wave(const struct st_png_lines *l, size_t pixel,
                                                           bool only_paeth)
{
    enum { BEHIND = 2 * (ST_PNG_GROUP - 1) }; /* pixels from the first row to the last */
    struct wave ends = wave_of(l);
    const size_t columns = l->row / pixel;
    const uint8_t *from[4], *above = l->above;
    uint8_t *to[4];
    size_t t = 0;
    for (size_t k = 0; k < 4; k++) {
        from[k] = l->from + k * (l->row + 1) + 1 - 2 * k * pixel;
        to[k] = l->to + k * l->stride - 2 * k * pixel;
    }
    for (; t < BEHIND; t++)
        step_at_end(&ends, l, t, columns);
    struct wave w = ends; /* a copy of which no address is taken stays in registers */
    for (; t < columns; t++) {
        const size_t at = t * pixel;
        const st_u8x16 in =
            st_lanes_of(word(from[0] + at), word(from[1] + at), word(from[2] + at), word(from[3] + at));
        st_lanes_to(step(&w, in, word(above + at), only_paeth), to[0] + at, to[1] + at, to[2] + at,
                    to[3] + at);
    }
    ends = w;
    for (; t < columns + BEHIND; t++)
        step_at_end(&ends, l, t, columns);
}

static void sub_in_words(const uint8_t *from, uint8_t *row, size_t bytes, size_t pixel)
{
    st_u8x16 left = st_bytes_of(0);
    for (size_t i = 0; i < bytes; i += pixel) {
        left = st_add(left, st_lanes_of(word(from + i), 0, 0, 0));
        st_first_lane_to(left, row + i);
    }
}

static void up_in_vectors(const uint8_t *from, const uint8_t *above, uint8_t *row, size_t bytes)
{
    size_t i = 0;
    for (; i + 16 <= bytes; i += 16)
        st_save(row + i, st_add(st_load(above + i), st_load(from + i)));
    undo_up(from + i, above + i, row + i, bytes - i);
}

/* Rows that do not wait for those above them are undone one by one. */
static bool each_alone(const struct st_png_lines *l)
{
    const uint8_t *above = l->above, *from = l->from;
    uint8_t *to = l->to;
    for (uint32_t k = 0; k < l->count; k++, above = to, to += l->stride, from += l->row + 1)
        if (*from == ST_PNG_SUB && (l->pixel == 3 || l->pixel == 4))
            sub_in_words(from + 1, to, l->row, l->pixel);
        else if (*from == ST_PNG_UP)
            up_in_vectors(from + 1, above, to, l->row);
        else if (!undo_row(l, from, above, to))
            return false;
    return true;
}

/* Masks have areas of one value, for which the plain code takes short cuts. */
static bool like_mask(const struct st_png_lines *l)
{
    enum { LOOKS = 64, MOST = LOOKS * 7 / 8 };
    const size_t size = l->count * (l->row + 1);
    uint32_t zeros = 0;
    for (size_t k = 0; k < LOOKS; k++)
        zeros += !l->from[k * size / LOOKS];
    return l->pixel == 1 && zeros >= MOST;
}

bool st_png_unfilter(const struct st_png_lines *l)
{
    bool waits = false, known = true, only_paeth = true;
    for (size_t k = 0; k < l->count; k++) {
        const uint8_t filter = l->from[k * (l->row + 1)];
        waits = waits || filter == ST_PNG_AVERAGE || filter == ST_PNG_PAETH;
        known = known && filter < ST_PNG_FILTERS;
        only_paeth = only_paeth && filter == ST_PNG_PAETH;
    }
    if (!known)
        return false;
    const bool lanes = l->pixel <= sizeof(uint32_t) && l->row / l->pixel > 2 * ST_PNG_GROUP;
    if (!waits || !lanes || l->count < ST_PNG_GROUP || like_mask(l))
        return each_alone(l);
    if (l->pixel == 3 && only_paeth)
        run_wave(l, 3, true);
    else if (l->pixel == 3)
        run_wave(l, 3, false);
    else if (only_paeth)
        run_wave(l, l->pixel, true);
    else
        run_wave(l, l->pixel, false);
    return true;
}

#else

bool st_png_unfilter(const struct st_png_lines *l) { return st_png_unfilter_c(l); }

#endif
