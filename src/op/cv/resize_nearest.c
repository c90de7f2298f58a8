/* resize_nearest.c - resizes as OpenCV's INTER_NEAREST does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/resize.h"

#include <math.h>
#include <string.h>

static const char NAME[] = "resize_nearest";

static int32_t source(int32_t x, double scale, int32_t size)
{
    const int32_t at = (int32_t)floor(x * scale);
    return at < size ? at : size - 1;
}

static bool make_plan(struct st_cv_nearest *plan, const struct st_cv_resize_rows *rows,
                      const struct st_cv_call *call)
{
    const struct st_view *in = &call->in, *out = &call->out;
    const int32_t channels = in->channels;
    const struct st_cv_axis axis = st_cv_axis_x(call);
    const double scale = st_cv_scale(call, axis.in, axis.out);
    const int64_t values = (int64_t)out->width * channels;
    int32_t *pixels = st_arena_take(call->arena, (size_t)out->width * sizeof *pixels);
    int32_t *first = st_arena_take(call->arena, (size_t)values * sizeof *first);
    if (!pixels || !first)
        return false;
    for (int32_t x = 0; x < out->width; x++) {
        pixels[x] = (source(x + axis.out_at, scale, axis.in) - axis.in_at) * channels;
        for (int32_t c = 0; c < channels; c++)
            first[x * channels + c] = pixels[x] + c;
    }
    *plan = (struct st_cv_nearest){
        .pixels = out->width, .channels = channels, .row_bytes = in->width * channels, .first = pixels};
    if (!st_cv_windows_find(&plan->windows, rows, first, first, (int32_t)values, plan->row_bytes,
                            call->arena))
        return false;
    plan->pick = st_cv_windows_pick(&plan->windows, rows->group, first, call->arena);
    return plan->pick != NULL;
}

static int run(const struct st_cv_call *call, struct stoker_error *err)
{
    const struct st_view *in = &call->in, *out = &call->out;
    const struct st_cv_resize_rows *rows = st_cv_resize_rows_for(call->level);
    const struct st_cv_axis axis = st_cv_axis_y(call);
    const double scale = st_cv_scale(call, axis.in, axis.out);
    struct st_cv_nearest plan;
    int rc = st_cv_resize_check(call, NAME, err);
    if (rc || st_cv_resize_copied(call))
        return rc;
    if (!make_plan(&plan, rows, call))
        return st_cv_no_memory(NAME, err);
    int32_t before = -1;
    for (int32_t y = 0; y < out->height; y++) {
        const int32_t at = source(y + axis.out_at, scale, axis.in) - axis.in_at;
        if (at == before)
            memcpy(st_row(out, y), st_row(out, y - 1), (size_t)out->width * (size_t)out->channels);
        else
            rows->nearest(&plan, st_row(out, y), st_row(in, at));
        before = at;
    }
    return STOKER_OK;
}

const struct st_cv_op st_cv_resize_nearest = {
    .name = NAME,
    .help = "cv2.resize with INTER_NEAREST",
    .run = run,
};
