/* taps.c - the weights of Pillow's resampling filters
 *
 * The weights are doubles, normalised to a sum of 1, then converted to fixed point, rounding half away
 * from zero. The order of the operations is part of the contract, because another order may round
 * differently.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/resize/taps.h"

#include "base/functions.h"

#include <math.h>
#include <string.h>

static const double reach[ST_FILTERS] = {
    [ST_FILTER_BOX] = 0.5,   [ST_FILTER_BILINEAR] = 1, [ST_FILTER_HAMMING] = 1,
    [ST_FILTER_BICUBIC] = 2, [ST_FILTER_LANCZOS] = 3,
};

static double sinc(double x)
{
    if (x == 0)
        return 1;
    x *= M_PI;
    return st_sin(x) / x;
}

static double hamming(double x)
{
    x = fabs(x);
    if (x == 0)
        return 1;
    if (x >= 1)
        return 0;
    x *= M_PI;
    return st_sin(x) / x * (0.54f + 0.46f * st_cos(x)); /* the constants are floats in Pillow */
}

static double bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static inline double filter_at(enum st_filter filter, double x)
{
    switch (filter) {
    case ST_FILTER_BOX: return x > -0.5 && x <= 0.5 ? 1 : 0;
    case ST_FILTER_BILINEAR: x = fabs(x); return x < 1 ? 1 - x : 0;
    case ST_FILTER_HAMMING: return hamming(x);
    case ST_FILTER_BICUBIC: return bicubic(x);
    default: return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    }
}

/* The reach of the filter, and the position of an output pixel, in input pixels. */
struct scale {
    double begin, step, stretch, support;
};

static struct scale scale_of(const struct st_side *side)
{
    const double step = side->span.length / side->out, stretch = step < 1 ? 1 : step;
    return (struct scale){side->span.begin, step, stretch, reach[side->filter] * stretch};
}

static inline void bounds(const struct scale *s, int32_t in, int32_t o, int32_t *begin, int32_t *end)
{
    const double centre = s->begin + (o + 0.5) * s->step;
    const double low = centre - s->support + 0.5, high = centre + s->support + 0.5;
    *begin = low < 0 ? 0 : (int32_t)low;
    *end = high > in ? in : (int32_t)high;
}

/* torch multiplies float32 numbers. */
static void floored_walk(const struct st_side *side, int32_t *source)
{
    const float step = (float)side->in / (float)side->out;
    for (int32_t i = 0; i < side->count; i++) {
        const float at = (float)(side->from + i) * step;
        source[i] = at < (float)side->in ? (int32_t)at : side->in - 1;
    }
}

/* Pillow adds the step repeatedly, so its rounding errors accumulate; so must ours. */
static void nearest_walk(const struct st_side *side, int32_t *source)
{
    if (side->floored) {
        floored_walk(side, source);
        return;
    }
    const double step = side->span.length / side->out;
    double at = side->span.begin + step * 0.5;
    for (int32_t o = 0; o < side->from; o++)
        at += step;
    for (int32_t i = 0; i < side->count; i++, at += step)
        source[i] = at < side->in ? (int32_t)at : side->in - 1;
}

void st_side_needs(const struct st_side *side, int32_t *begin, int32_t *end)
{
    const int32_t last = side->from + side->count - 1;
    *begin = side->from;
    *end = last + 1;
    if (st_side_stays(side))
        return;
    if (side->filter == ST_FILTER_NEAREST) {
        struct st_side one = *side;
        one.count = 1;
        nearest_walk(&one, begin);
        one.from = last;
        nearest_walk(&one, end);
        ++*end;
        return;
    }
    const struct scale s = scale_of(side);
    int32_t ignored;
    bounds(&s, side->in, side->from, begin, &ignored);
    bounds(&s, side->in, last, &ignored, end);
}

static void reverse(int32_t *list, int32_t count)
{
    for (int32_t i = 0, j = count - 1; i < j; i++, j--) {
        const int32_t kept = list[i];
        list[i] = list[j];
        list[j] = kept;
    }
}

bool st_side_nearest(const struct st_side *side, bool mirror, struct st_arena *arena, int32_t **source)
{
    int32_t begin, end;
    if (!(*source = st_arena_take(arena, (uint64_t)side->count * sizeof **source)))
        return false;
    st_side_needs(side, &begin, &end);
    nearest_walk(side, *source);
    for (int32_t i = 0; i < side->count; i++)
        (*source)[i] -= begin;
    if (mirror)
        reverse(*source, side->count);
    return true;
}

/* The weights of output `o`, whose taps are [begin, end); inlined for each filter. */
static inline void weigh(enum st_filter filter, const struct scale *s, int32_t o, int32_t begin,
                         int32_t end, double *scratch, int32_t *weight)
{
    const double centre = s->begin + (o + 0.5) * s->step, shrink = 1 / s->stretch;
    const int32_t n = end - begin;
    double sum = 0;
    for (int32_t i = 0; i < n; i++) {
        scratch[i] = filter_at(filter, (i + begin - centre + 0.5) * shrink);
        sum += scratch[i];
    }
    for (int32_t i = 0; i < n; i++) {
        const double share = sum != 0 ? scratch[i] / sum : scratch[i];
        weight[i] = (int32_t)((share < 0 ? -0.5 : 0.5) + share * (1 << ST_WEIGHT_BITS));
    }
}

bool st_side_taps(const struct st_side *side, bool mirror, struct st_arena *arena, struct st_taps *taps)
{
    const struct scale s = scale_of(side);
    int32_t lowest, highest, width = 1;
    st_side_needs(side, &lowest, &highest);
    for (int32_t i = 0; i < side->count; i++) {
        int32_t begin, end;
        bounds(&s, side->in, side->from + i, &begin, &end);
        width = end - begin > width ? end - begin : width;
    }
    uint64_t cells;
    if (!st_mul((uint64_t)side->count, (uint64_t)width, &cells))
        return false;
    int32_t *first = st_arena_take(arena, (uint64_t)side->count * sizeof *first);
    int32_t *weight = cells > UINT64_MAX / 8 ? NULL : st_arena_take(arena, cells * sizeof *weight);
    double *scratch = st_arena_take(arena, (uint64_t)width * sizeof *scratch);
    if (!first || !weight || !scratch)
        return false;
    memset(weight, 0, cells * sizeof *weight);
    for (int32_t i = 0; i < side->count; i++) {
        const int32_t o = side->from + i, to = mirror ? side->count - 1 - i : i;
        int32_t begin, end;
        bounds(&s, side->in, o, &begin, &end);
        /* Near the end, the taps are shifted left behind zeros, to stay within the input. */
        const int32_t shift = begin + width > highest ? begin + width - highest : 0;
        int32_t *list = weight + (size_t)to * (size_t)width + shift;
        first[to] = begin - shift - lowest;
        if (side->filter == ST_FILTER_BILINEAR)
            weigh(ST_FILTER_BILINEAR, &s, o, begin, end, scratch, list);
        else
            weigh(side->filter, &s, o, begin, end, scratch, list);
    }
    *taps = (struct st_taps){side->count, width, first, weight};
    return true;
}
