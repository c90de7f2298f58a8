/* resize_area.c - resizes as OpenCV's INTER_AREA does with bytes
 *
 * Each pixel is the mean of a cell of the input, whose outermost pixels count by the part inside of it,
 * in float32. Where an axis becomes longer, OpenCV takes a linear mean of two pixels instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/resize.h"

#include <math.h>
#include <string.h>

static const char NAME[] = "resize_area";

/* What one output pixel is made of: `count` pixels from `first`. */
struct cell {
    int32_t first, count;
    float before, inner, after; /* the weights of the first, those between, and the last */
    bool has_before, has_after;
};

static struct cell cell_of(int32_t x, double scale, int32_t size)
{
    const double begin = x * scale, end = begin + scale;
    const double width = scale < size - begin ? scale : size - begin;
    int32_t whole_begin = (int32_t)ceil(begin), whole_end = (int32_t)floor(end);
    if (whole_end > size - 1)
        whole_end = size - 1;
    if (whole_begin > whole_end)
        whole_begin = whole_end;
    struct cell cell = {
        .first = whole_begin, .count = whole_end - whole_begin, .inner = (float)(1.0 / width)};
    if (whole_begin - begin > 1e-3) {
        cell.has_before = true;
        cell.first--;
        cell.count++;
        cell.before = (float)((whole_begin - begin) / width);
    }
    if (end - whole_end > 1e-3) {
        const double part = fmin(fmin(end - whole_end, 1.), width);
        cell.has_after = true;
        cell.count++;
        cell.after = (float)(part / width);
    }
    return cell;
}

static float weight_of(const struct cell *cell, int32_t k)
{
    if (k >= cell->count)
        return 0;
    if (k == 0 && cell->has_before)
        return cell->before;
    return k == cell->count - 1 && cell->has_after ? cell->after : cell->inner;
}

/* Weights of taps behind a cell are 0, and read its neighbours: those at the right end begin earlier
 * instead, with zeros before. Adding 0 changes no sum. */
static int32_t shift_of(const struct cell *cell, int32_t taps, int32_t size)
{
    return cell->first + taps > size ? cell->first + taps - size : 0;
}

static bool make_plan(struct st_cv_area *plan, const struct st_cv_resize_rows *rows,
                      const struct st_cv_call *call)
{
    const int32_t channels = call->in.channels, size = call->in.width;
    const int64_t values = (int64_t)call->out.width * channels;
    const double scale = st_cv_scale(call, size, call->out.width);
    const size_t count = (size_t)values;
    int32_t taps = 1;
    for (int32_t x = 0; x < call->out.width; x++) {
        const struct cell cell = cell_of(x, scale, size);
        taps = cell.count > taps ? cell.count : taps;
    }
    int32_t *first = st_arena_take(call->arena, count * sizeof *first);
    float *weight = st_arena_take(call->arena, count * (size_t)taps * sizeof *weight);
    int32_t *last = st_arena_take(call->arena, count * sizeof *last);
    if (!first || !weight || !last)
        return false;
    for (int32_t x = 0; x < call->out.width; x++) {
        const struct cell cell = cell_of(x, scale, size);
        const int32_t shift = shift_of(&cell, taps, size);
        for (int32_t c = 0; c < channels; c++) {
            const size_t k = (size_t)x * (size_t)channels + (size_t)c;
            first[k] = (cell.first - shift) * channels + c;
            last[k] = first[k] + (taps - 1) * channels;
            for (int32_t t = 0; t < taps; t++)
                weight[(size_t)t * count + k] = t < shift ? 0 : weight_of(&cell, t - shift);
        }
    }
    *plan = (struct st_cv_area){.values = (int32_t)values,
                                .channels = channels,
                                .row_bytes = size * channels,
                                .taps = taps,
                                .first = first,
                                .weight = weight};
    if (!st_cv_windows_find(&plan->windows, rows, first, last, plan->values, plan->row_bytes,
                            call->arena))
        return false;
    plan->pick = st_cv_windows_pick(&plan->windows, rows->group, first, call->arena);
    return plan->pick != NULL;
}

static int resize_by_area(const struct st_cv_call *call, const char *op, struct stoker_error *err)
{
    const struct st_cv_resize_rows *rows = st_cv_resize_rows_for(call->level);
    const double scale = st_cv_scale(call, call->in.height, call->out.height);
    struct st_cv_area plan;
    if (!make_plan(&plan, rows, call))
        return st_cv_no_memory(op, err);
    const size_t bytes = (size_t)plan.values * sizeof(float);
    float *row = st_arena_take(call->arena, bytes), *sum = st_arena_take(call->arena, bytes);
    if (!row || !sum)
        return st_cv_no_memory(op, err);
    int32_t made = -1; /* the last row of a cell is often the first one of the next */
    for (int32_t y = 0; y < call->out.height; y++) {
        const struct cell cell = cell_of(y, scale, call->in.height);
        for (int32_t k = 0; k < cell.count; k++) {
            if (made != cell.first + k)
                rows->area_across(&plan, row, st_row(&call->in, cell.first + k));
            made = cell.first + k;
            (k ? rows->area_add : rows->area_set)(sum, row, weight_of(&cell, k), plan.values);
        }
        rows->area_round(st_row(&call->out, y), sum, plan.values);
    }
    return STOKER_OK;
}

static int run(const struct st_cv_call *call, struct stoker_error *err)
{
    int32_t step_x, step_y;
    int rc = st_cv_resize_check(call, NAME, err);
    if (rc || st_cv_resize_copied(call))
        return rc;
    if (call->in.width < call->out.width || call->in.height < call->out.height)
        return st_cv_resize_linearly(call, true, NAME, err);
    if (st_cv_whole_steps(call, &step_x, &step_y))
        return st_cv_resize_wholly(call, step_x, step_y, NAME, err);
    return resize_by_area(call, NAME, err);
}

const struct st_cv_op st_cv_resize_area = {
    .name = NAME,
    .help = "cv2.resize with INTER_AREA",
    .run = run,
};
