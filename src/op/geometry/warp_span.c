/* warp_span.c - which part of a row of a warp certainly comes from inside the image
 *
 * Along a row, the numerators and the denominator of a map are linear, so where the denominator is
 * positive, "at least `low` and at most `high`" are four linear inequalities. Sums of magnitudes below
 * the limits here are off by less than 2^-12 pixels after rounding and division; the margin is larger.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp_span.h"

#include <math.h>

static const double margin = 0x1p-8, least_by = 0x1p-6, most_by = 0x1p10, most_sum = 0x1p24;
enum { SIDE_MAX = 1 << 20 };

/* Its value at pixel x is at + step (x + 1/2). */
struct linear {
    double at, step;
};

static struct linear along(const double *of, double one, double down)
{
    return (struct linear){of[1] * down + one, of[0]};
}

static bool is_small(const double *of, double one, double down, int32_t count, double most)
{
    return fabs(of[0]) * count + fabs(of[1]) * down + fabs(one) <= most; /* false for NaN */
}

/* a - by * b */
static struct linear less(struct linear a, double by, struct linear b)
{
    return (struct linear){a.at - by * b.at, a.step - by * b.step};
}

static struct linear negative(struct linear a) { return (struct linear){-a.at, -a.step}; }

/* Leaves the pixels where the value is at least 0. */
static void keep(struct st_warp_span *span, struct linear value)
{
    if (value.step == 0) {
        if (!(value.at >= 0))
            span->end = span->begin;
        return;
    }
    const double zero = -value.at / value.step - 0.5;
    if (value.step > 0) {
        if (zero > span->begin)
            span->begin = zero < span->end ? (int32_t)ceil(zero) : span->end;
    } else if (zero < span->end - 1) {
        span->end = zero >= span->begin ? (int32_t)floor(zero) + 1 : span->begin;
    }
}

/* Leaves the pixels whose coordinate is from `low` to `high`. */
static void keep_between(struct st_warp_span *span, struct linear over, struct linear by, double low,
                         double high)
{
    keep(span, less(over, low, by));
    keep(span, negative(less(over, high, by)));
}

void st_warp_spans(const double *map, bool perspective, const struct st_view *in, double reach,
                   int32_t y, int32_t count, struct st_warp_span *sure, struct st_warp_span *possible)
{
    const double down = y + 0.5;
    *possible = (struct st_warp_span){0, count};
    *sure = (struct st_warp_span){0, 0};
    if (!is_small(map, map[2], down, count, most_sum) ||
        !is_small(map + 3, map[5], down, count, most_sum) || in->width > SIDE_MAX ||
        in->height > SIDE_MAX)
        return;
    const struct linear x = along(map, map[2], down), y_of = along(map + 3, map[5], down);
    struct linear by = {1, 0};
    if (perspective) {
        if (!is_small(map + 6, 1, down, count, most_by))
            return;
        by = along(map + 6, 1, down);
    }
    *sure = *possible;
    keep(sure, (struct linear){by.at - least_by, by.step});
    if (sure->begin == 0 && sure->end == count) {
        keep_between(possible, x, by, -margin, in->width + margin);
        keep_between(possible, y_of, by, -margin, in->height + margin);
    }
    keep_between(sure, x, by, reach + margin, in->width - reach - margin);
    keep_between(sure, y_of, by, reach + margin, in->height - reach - margin);
    if (sure->end <= sure->begin)
        sure->begin = sure->end = possible->begin;
}
