/* rle.c - masks as run lengths, as COCO writes them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/mask/rle.h"

int st_mask_check_size(uint32_t width, uint32_t height, struct stoker_error *err)
{
    const uint64_t pixels = (uint64_t)width * height;
    if (!pixels)
        return st_fail(err, STOKER_ECORRUPT, "a mask of %u x %u pixels is empty", width, height);
    /* A view has signed sizes. */
    if (pixels > UINT32_MAX || width > INT32_MAX || height > INT32_MAX)
        return st_fail(err, STOKER_ELIMIT,
                       "a mask of %u x %u pixels is larger than COCO's format can describe", width,
                       height);
    return 0;
}

static int wrong_sum(uint64_t sum, uint32_t width, uint32_t height, struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT,
                   "the run lengths of the mask add up to %llu, but %u x %u pixels are %llu",
                   (unsigned long long)sum, width, height, (unsigned long long)width * height);
}

int st_rle_check(const struct st_rle *rle, struct stoker_error *err)
{
    const int rc = st_mask_check_size(rle->width, rle->height, err);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < rle->count && !rc; i++)
        if (!st_add(sum, rle->counts[i], &sum))
            return st_fail(err, STOKER_ECORRUPT, "the run lengths of the mask are too large");
    if (!rc && sum != (uint64_t)rle->width * rle->height)
        return wrong_sum(sum, rle->width, rle->height, err);
    return rc;
}

/* ---- compressed text -------------------------------------------------------------------------- */

enum { ZERO = '0', DIGIT_BITS = 5, DIGITS_MAX = 7, MORE = 0x20, NEGATIVE = 0x10 };

/* A number in digits of 5 bits, the lowest first; NULL if it is damaged. */
static const uint8_t *take_number(const uint8_t *at, const uint8_t *end, int64_t *out)
{
    int64_t value = 0;
    for (int digits = 0; at < end && digits < DIGITS_MAX; digits++) {
        const unsigned digit = (unsigned)*at++ - ZERO;
        if (digit >= 2 * MORE)
            return NULL;
        value |= (int64_t)(digit & (MORE - 1)) << DIGIT_BITS * digits;
        if (digit & MORE)
            continue;
        if (digit & NEGATIVE)
            value -= (int64_t)1 << DIGIT_BITS * (digits + 1);
        *out = value;
        return at;
    }
    return NULL;
}

int st_rle_read(struct st_rle *out, struct st_bytes text, uint32_t width, uint32_t height,
                struct st_arena *arena, struct stoker_error *err)
{
    const int rc = st_mask_check_size(width, height, err);
    if (rc)
        return rc;
    const uint64_t pixels = (uint64_t)width * height;
    const uint8_t *at = text.data, *end = at + text.size;
    uint32_t *counts =
        text.size <= SIZE_MAX / 8 ? st_arena_take(arena, text.size * sizeof *counts) : NULL;
    uint64_t count = 0, sum = 0;
    if (!counts)
        return st_fail(err, STOKER_ENOMEM, "out of memory for the run lengths of a mask");
    while (at < end) {
        int64_t value;
        const uint8_t *from = at;
        at = take_number(at, end, &value);
        if (!at)
            return st_fail(err, STOKER_ECORRUPT, "the compressed mask is damaged at its character %llu",
                           (unsigned long long)(from - text.data) + 1);
        value += count > 2 ? counts[count - 2] : 0;
        if (value < 0 || (uint64_t)value > pixels - sum)
            return st_fail(err, STOKER_ECORRUPT,
                           "run length %llu of the mask is %lld; %llu of %u x %u pixels are left",
                           (unsigned long long)count + 1, (long long)value,
                           (unsigned long long)(pixels - sum), width, height);
        sum += (uint64_t)value;
        counts[count++] = (uint32_t)value;
    }
    *out = (struct st_rle){width, height, counts, count};
    return sum == pixels ? 0 : wrong_sum(sum, width, height, err);
}

/* ---- what a mask covers ----------------------------------------------------------------------- */

/* A position in the mask that moves on without divisions, which would take most of the time. */
struct walk {
    uint32_t height, x;
    uint64_t y;
};

static void skip_outside(struct walk *walk, uint32_t run)
{
    for (walk->y += run; walk->y >= walk->height; walk->x++)
        walk->y -= walk->height;
}

static struct st_region box_of(const struct st_rle *rle)
{
    struct walk at = {.height = rle->height};
    uint32_t left = rle->width, right = 0, top = rle->height, bottom = 0;
    for (uint64_t i = 0; i < rle->count; i++) {
        const uint32_t run = rle->counts[i];
        const uint64_t end = at.y + run;
        if (i % 2 && run) {
            const bool wraps = end > at.height;
            left = left < at.x ? left : at.x;
            top = wraps ? 0 : top < at.y ? top : (uint32_t)at.y;
            bottom = wraps ? at.height : bottom > end ? bottom : (uint32_t)end;
            skip_outside(&at, run - 1);
            right = at.x + 1;
            skip_outside(&at, 1);
        } else {
            skip_outside(&at, run);
        }
    }
    return right ? (struct st_region){left, top, right - left, bottom - top} : (struct st_region){0};
}

/* A run inside: the column turns where it begins and ends, and at the top of each further column. */
static void turn_inside(struct st_turns *turns, struct walk *at, uint32_t run)
{
    if (!run)
        return;
    st_turn(turns, at->x, (uint32_t)at->y);
    for (at->y += run; at->y > at->height; at->y -= at->height)
        st_turn(turns, ++at->x, 0);
    if (at->y < turns->box.y + turns->box.height)
        st_turn(turns, at->x, (uint32_t)at->y);
    skip_outside(at, 0);
}

int st_rle_draw(const struct st_rle *rle, const struct st_view *plane, struct st_brush brush,
                struct st_arena *arena, struct stoker_error *err)
{
    const struct st_region box = box_of(rle);
    struct st_turns turns = {0};
    if (!box.width)
        return 0;
    const int rc = st_turns_begin(&turns, box, arena, err);
    if (rc)
        return rc;
    struct walk at = {.height = rle->height};
    for (uint64_t i = 0; i < rle->count; i++)
        if (i % 2)
            turn_inside(&turns, &at, rle->counts[i]);
        else
            skip_outside(&at, rle->counts[i]);
    st_turns_fill(&turns, plane, brush);
    return 0;
}
