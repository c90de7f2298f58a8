/* resize_common.c - what the resizes with OpenCV's arithmetic check and compute alike
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/resize.h"

#include <float.h>
#include <math.h>
#include <string.h>

extern const struct st_cv_resize_rows st_cv_resize_rows_c;
#if defined(__x86_64__)
extern const struct st_cv_resize_rows st_cv_resize_rows_avx2, st_cv_resize_rows_avx512;
#endif

const struct st_cv_resize_rows *st_cv_resize_rows_for(enum st_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= ST_CPU_AVX512)
        return &st_cv_resize_rows_avx512;
    if (level >= ST_CPU_AVX2)
        return &st_cv_resize_rows_avx2;
#endif
    (void)level;
    return &st_cv_resize_rows_c;
}

bool st_cv_windows_find(struct st_cv_windows *out, const struct st_cv_resize_rows *rows,
                        const int32_t *first, const int32_t *last, int32_t values, int32_t row_bytes,
                        struct st_arena *arena)
{
    const int32_t group = rows->group, window = rows->window;
    *out = (struct st_cv_windows){0};
    if (!group || row_bytes < window)
        return true;
    int32_t *base = st_arena_take(arena, (size_t)(values / group) * sizeof *base);
    if (!base)
        return false;
    out->base = base;
    for (; (out->groups + 1) * group <= values; out->groups++) {
        int32_t begin = row_bytes - window, end = 0;
        for (int32_t k = out->groups * group; k < (out->groups + 1) * group; k++) {
            begin = first[k] < begin ? first[k] : begin;
            end = last[k] > end ? last[k] : end;
        }
        if (end - begin >= window)
            return true;
        base[out->groups] = begin;
    }
    return true;
}

const uint8_t *st_cv_windows_pick(const struct st_cv_windows *windows, int32_t group,
                                  const int32_t *first, struct st_arena *arena)
{
    uint8_t *pick = st_arena_take(arena, (size_t)windows->groups * (size_t)group);
    for (int32_t k = 0; pick && k < windows->groups * group; k++)
        pick[k] = (uint8_t)(first[k] - windows->base[k / group]);
    return pick;
}

struct st_cv_axis st_cv_axis_x(const struct st_cv_call *call)
{
    const struct st_cv_parts *p = call->parts;
    if (!p)
        return (struct st_cv_axis){.in = call->in.width, .out = call->out.width};
    return (struct st_cv_axis){p->in_width, p->out_width, (int32_t)p->in.x, (int32_t)p->out.x};
}

struct st_cv_axis st_cv_axis_y(const struct st_cv_call *call)
{
    const struct st_cv_parts *p = call->parts;
    if (!p)
        return (struct st_cv_axis){.in = call->in.height, .out = call->out.height};
    return (struct st_cv_axis){p->in_height, p->out_height, (int32_t)p->in.y, (int32_t)p->out.y};
}

/* Two pixels more on either side than the places of its ends, whatever is rounded. */
static void needs(int32_t in, int32_t out, uint32_t from, uint32_t count, uint32_t *first,
                  uint32_t *many)
{
    enum { MORE = 2 };
    const double scale = (double)in / out;
    const double begin = floor(from * scale) - MORE, end = ceil(((double)from + count) * scale) + MORE;
    *first = begin > 0 ? (uint32_t)begin : 0;
    *many = (uint32_t)(end < in ? end : in) - *first;
}

struct st_region st_cv_resize_needs(const struct st_cv_parts *parts)
{
    struct st_region in;
    needs(parts->in_width, parts->out_width, parts->out.x, parts->out.width, &in.x, &in.width);
    needs(parts->in_height, parts->out_height, parts->out.y, parts->out.height, &in.y, &in.height);
    return in;
}

int st_cv_resize_check(const struct st_cv_call *call, const char *op, struct stoker_error *err)
{
    const double factor = call->factor;
    const struct st_cv_axis x = st_cv_axis_x(call), y = st_cv_axis_y(call);
    if (x.in > ST_CV_SIDE || x.out > ST_CV_SIDE || y.in > ST_CV_SIDE || y.out > ST_CV_SIDE)
        return st_fail(err, STOKER_EINVAL,
                       "%s: images have at most %d pixels on each side, not %d x %d to %d x %d", op,
                       ST_CV_SIDE, y.in, x.in, y.out, x.out);
    if (call->in.channels != call->out.channels)
        return st_fail(err, STOKER_EINVAL, "%s: the input has %d channels, and the result %d", op,
                       call->in.channels, call->out.channels);
    if (factor != 0 && !(rint(call->in.width * factor) == call->out.width &&
                         rint(call->in.height * factor) == call->out.height))
        return st_fail(err, STOKER_EINVAL, "%s: %d x %d is not %g times %d x %d", op, call->out.width,
                       call->out.height, factor, call->in.width, call->in.height);
    return STOKER_OK;
}

bool st_cv_resize_copied(const struct st_cv_call *call)
{
    const struct st_view *in = &call->in, *out = &call->out;
    if (call->parts || in->width != out->width || in->height != out->height)
        return false;
    for (int32_t y = 0; y < out->height; y++)
        memcpy(st_row(out, y), st_row(in, y), (size_t)in->width * (size_t)in->channels);
    return true;
}

static bool whole_step(const struct st_cv_call *call, int32_t in, int32_t out, int32_t *step)
{
    const double scale = st_cv_scale(call, in, out);
    *step = (int32_t)lrint(scale);
    return fabs(scale - *step) < DBL_EPSILON;
}

bool st_cv_whole_steps(const struct st_cv_call *call, int32_t *step_x, int32_t *step_y)
{
    const struct st_cv_axis across = st_cv_axis_x(call), down = st_cv_axis_y(call);
    const bool x = whole_step(call, across.in, across.out, step_x);
    return whole_step(call, down.in, down.out, step_y) && x;
}

static int32_t sum_of(const struct st_cv_call *call, int32_t x, int32_t y, int32_t width, int32_t height,
                      int32_t channel)
{
    const int32_t channels = call->in.channels;
    int32_t sum = 0;
    for (int32_t j = 0; j < height; j++) {
        const uint8_t *in = st_row(&call->in, y + j) + x * channels + channel;
        for (int32_t i = 0; i < width; i++)
            sum += in[i * channels];
    }
    return sum;
}

/* The mean of a block of pixels; the product in float32 is what OpenCV rounds. Of blocks that do not lie
 * in the image whole, as there are with a factor, it divides what does. */
static void mean_row(const struct st_cv_call *call, int32_t y, int32_t from, int32_t step_x,
                     int32_t step_y)
{
    const int32_t channels = call->in.channels, top = y * step_y, below = call->in.height - top;
    const int32_t height = below < step_y ? below : step_y;
    const float scale = 1.f / (float)(step_x * step_y);
    uint8_t *out = st_row(&call->out, y) + from * channels;
    for (int32_t x = from; x < call->out.width; x++) {
        const int32_t left = x * step_x, behind = call->in.width - left;
        const int32_t width = behind < step_x ? behind : step_x;
        for (int32_t c = 0; c < channels; c++) {
            const float sum = (float)sum_of(call, left, top, width, height, c);
            const bool whole = width == step_x && height == step_y;
            *out++ = (uint8_t)lrintf(whole ? sum * scale : sum / (float)(width * height));
        }
    }
}

int st_cv_resize_wholly(const struct st_cv_call *call, int32_t step_x, int32_t step_y, const char *op,
                        struct stoker_error *err)
{
    const struct st_cv_resize_rows *rows = st_cv_resize_rows_for(call->level);
    const bool halves = step_x == 2 && step_y == 2 && call->in.channels != 2;
    /* Sums have 32 bits. */
    if ((int64_t)step_x * step_y > INT32_MAX / 255)
        return st_fail(err, STOKER_EUNSUPPORTED, "%s: means of %d x %d pixels are not made here", op,
                       step_x, step_y);
    for (int32_t y = 0; y < call->out.height; y++)
        if (halves && 2 * y + 1 < call->in.height) {
            rows->halve(st_row(&call->out, y), st_row(&call->in, 2 * y), st_row(&call->in, 2 * y + 1),
                        call->in.width / 2, call->in.channels);
            mean_row(call, y, call->in.width / 2, step_x, step_y);
        } else {
            mean_row(call, y, 0, step_x, step_y);
        }
    return STOKER_OK;
}
