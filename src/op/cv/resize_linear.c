/* resize_linear.c - resizes as OpenCV's INTER_LINEAR does with bytes
 *
 * Weights are of 2048. Rows are resized first, to 1/128 of a value, and then added in pairs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/resize.h"

#include <math.h>
#include <string.h>

static const char NAME[] = "resize_linear";

enum { SCALE = 2048 };

/* The place between two pixels from which an output pixel comes. */
struct place {
    int32_t at;
    float beyond; /* of the first pixel, 0 to 1 */
};

static struct place place_of(int32_t x, double scale, bool area)
{
    if (!area) {
        const float at = (float)((x + 0.5) * scale - 0.5);
        const int32_t floored = (int32_t)floorf(at);
        return (struct place){floored, at - (float)floored};
    }
    const int32_t at = (int32_t)floor(x * scale);
    const float beyond = (float)((x + 1) - (at + 1) * (1. / scale));
    return (struct place){at, beyond <= 0 ? 0.f : beyond - floorf(beyond)};
}

static int16_t weight_of(float share) { return (int16_t)lrintf(share * SCALE); }

/* Pairs of bytes as pairs of 16-bit numbers. */
static const uint8_t *pick_pairs(const struct st_cv_linear *plan, int32_t group, struct st_arena *arena)
{
    const int32_t count = plan->windows.groups * group;
    uint8_t *pick = st_arena_take(arena, (size_t)count * 4);
    for (int32_t k = 0; pick && k < count; k++) {
        const int32_t base = plan->windows.base[k / group];
        const uint8_t four[4] = {(uint8_t)(plan->first[k] - base), 128,
                                 (uint8_t)(plan->second[k] - base), 128};
        memcpy(pick + (size_t)k * 4, four, 4);
    }
    return pick;
}

static bool make_plan(struct st_cv_linear *plan, const struct st_cv_resize_rows *rows,
                      const struct st_cv_call *call, bool area)
{
    const struct st_cv_axis axis = st_cv_axis_x(call);
    const int32_t channels = call->in.channels, last = axis.in - 1;
    const int64_t values = (int64_t)call->out.width * channels;
    const double scale = st_cv_scale(call, axis.in, axis.out);
    const size_t count = (size_t)values;
    int32_t *first = st_arena_take(call->arena, count * sizeof *first);
    int32_t *second = st_arena_take(call->arena, count * sizeof *second);
    int16_t *weight = st_arena_take(call->arena, count * 2 * sizeof *weight);
    if (!first || !second || !weight)
        return false;
    for (int32_t x = 0; x < call->out.width; x++) {
        struct place place = place_of(x + axis.out_at, scale, area);
        if (place.at < 0)
            place = (struct place){0, 0};
        if (place.at >= last)
            place = (struct place){last, 0};
        for (int32_t c = 0; c < channels; c++) {
            const int32_t k = x * channels + c;
            first[k] = (place.at - axis.in_at) * channels + c;
            second[k] = place.at < last ? first[k] + channels : first[k];
            weight[2 * k] = weight_of(1.f - place.beyond);
            weight[2 * k + 1] = weight_of(place.beyond);
        }
    }
    *plan = (struct st_cv_linear){.values = (int32_t)values,
                                  .channels = channels,
                                  .row_bytes = call->in.width * channels,
                                  .first = first,
                                  .second = second,
                                  .weight = weight};
    if (!st_cv_windows_find(&plan->windows, rows, first, second, plan->values, plan->row_bytes,
                            call->arena))
        return false;
    plan->pick = pick_pairs(plan, rows->group, call->arena);
    return plan->pick != NULL;
}

static int32_t inside(int32_t y, int32_t height) { return y < 0 ? 0 : y < height ? y : height - 1; }

int st_cv_resize_linearly(const struct st_cv_call *call, bool area, const char *op,
                          struct stoker_error *err)
{
    const struct st_cv_resize_rows *rows = st_cv_resize_rows_for(call->level);
    const struct st_cv_axis axis = st_cv_axis_y(call);
    const double scale = st_cv_scale(call, axis.in, axis.out);
    struct st_cv_linear plan;
    if (!make_plan(&plan, rows, call, area))
        return st_cv_no_memory(op, err);
    int32_t made[2] = {-1, -1}; /* which row of the input each of the two holds */
    int16_t *row[2];
    for (int k = 0; k < 2; k++)
        if (!(row[k] = st_arena_take(call->arena, (size_t)plan.values * sizeof **row)))
            return st_cv_no_memory(op, err);
    for (int32_t y = 0; y < call->out.height; y++) {
        const struct place place = place_of(y + axis.out_at, scale, area);
        const int32_t above = inside(place.at, axis.in) - axis.in_at,
                      below = inside(place.at + 1, axis.in) - axis.in_at;
        /* What one of them holds is kept; the other one is made. */
        const int upper = made[1] == above;
        if (made[upper] != above)
            rows->across(&plan, row[upper], st_row(&call->in, above));
        made[upper] = above;
        const int lower = below == above ? upper : !upper;
        if (made[lower] != below)
            rows->across(&plan, row[lower], st_row(&call->in, below));
        made[lower] = below;
        rows->down(st_row(&call->out, y), row[upper], row[lower], weight_of(1.f - place.beyond),
                   weight_of(place.beyond), plan.values);
    }
    return STOKER_OK;
}

/* Of parts, too, each pixel is the mean of four: those that belong to the part of the result. */
static int halve(const struct st_cv_call *call, struct stoker_error *err)
{
    const struct st_cv_axis x = st_cv_axis_x(call), y = st_cv_axis_y(call);
    struct st_cv_call halved = *call;
    halved.in.data = st_row(&call->in, 2 * y.out_at - y.in_at) +
                     (ptrdiff_t)(2 * x.out_at - x.in_at) * call->in.channels;
    halved.in.width = 2 * call->out.width;
    halved.in.height = 2 * call->out.height;
    return st_cv_resize_wholly(&halved, 2, 2, NAME, err);
}

static int run(const struct st_cv_call *call, struct stoker_error *err)
{
    int32_t step_x, step_y;
    int rc = st_cv_resize_check(call, NAME, err);
    if (rc || st_cv_resize_copied(call))
        return rc;
    if (st_cv_whole_steps(call, &step_x, &step_y) && step_x == 2 && step_y == 2)
        return call->parts ? halve(call, err) : st_cv_resize_wholly(call, 2, 2, NAME, err);
    return st_cv_resize_linearly(call, false, NAME, err);
}

const struct st_cv_op st_cv_resize_linear = {
    .name = NAME,
    .help = "cv2.resize with INTER_LINEAR",
    .run = run,
};
