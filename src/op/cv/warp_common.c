/* warp_common.c - what the warps with OpenCV's arithmetic do alike
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/warp.h"

#include <float.h>
#include <math.h>

extern const struct st_cv_warp_rows st_cv_warp_rows_c;
#if defined(__x86_64__)
extern const struct st_cv_warp_rows st_cv_warp_rows_avx2, st_cv_warp_rows_avx512;
#endif

const struct st_cv_warp_rows *st_cv_warp_rows_for(enum st_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= ST_CPU_AVX512)
        return &st_cv_warp_rows_avx512;
    if (level >= ST_CPU_AVX2)
        return &st_cv_warp_rows_avx2;
#endif
    (void)level;
    return &st_cv_warp_rows_c;
}

static int32_t remainder_of(int32_t at, int32_t size)
{
    const int32_t rest = at % size;
    return rest < 0 ? rest + size : rest;
}

/* `twice`: whether the outermost pixel is its own reflection. */
static int32_t reflected(int32_t at, int32_t size, bool twice)
{
    const int32_t once = at < 0 ? -at - twice : 2 * size - 2 + twice - at;
    if (once >= 0 && once < size)
        return once;
    const int32_t period = 2 * size - 2 + 2 * twice, rest = remainder_of(at, period);
    return rest < size ? rest : period - twice - rest;
}

int32_t st_cv_border_at(int32_t at, int32_t size, enum st_cv_border kind)
{
    if (at >= 0 && at < size)
        return at;
    if (size == 1)
        return 0;
    switch (kind) {
    case ST_CV_BORDER_WRAP:
        return remainder_of(at, size);
    case ST_CV_BORDER_REFLECT:
        return reflected(at, size, true);
    case ST_CV_BORDER_REFLECT_101:
        return reflected(at, size, false);
    default:
        return at < 0 ? 0 : size - 1;
    }
}

int st_cv_warp_begin(struct st_cv_warp *warp, const struct st_cv_call *call, uint32_t at, bool nearest,
                     const char *op, struct stoker_error *err)
{
    const double *numbers = call->numbers + at;
    if (call->in.channels != call->out.channels)
        return st_fail(err, STOKER_EINVAL, "%s: the input has %d channels, and the result %d", op,
                       call->in.channels, call->out.channels);
    if (call->in.channels == 2)
        return st_fail(err, STOKER_EUNSUPPORTED, "%s: OpenCV warps two channels with other arithmetic",
                       op);
    if (!st_cv_whole(call, at, ST_CV_BORDER_CONSTANT, ST_CV_BORDER_REFLECT_101))
        return st_fail(err, STOKER_EINVAL, "%s: the kind of border %g must be one from 0 to 4", op,
                       numbers[0]);
    *warp = (struct st_cv_warp){.nearest = nearest,
                                .border.kind = (enum st_cv_border)numbers[0],
                                .width = call->parts ? call->parts->out_width : call->out.width,
                                .left = call->parts ? (int32_t)call->parts->out.x : 0,
                                .top = call->parts ? (int32_t)call->parts->out.y : 0};
    for (int c = 0; c < ST_CV_CHANNELS; c++)
        warp->border.value[c] = (uint8_t)lrint(fmin(fmax(numbers[1 + c], 0), 255));
    /* The vector loops count bytes in 32 bits, downwards from the first row. */
    const bool countable =
        call->in.stride >= 0 && (int64_t)call->in.stride * call->in.height <= INT32_MAX;
    warp->rows = st_cv_warp_rows_for(countable ? call->level : ST_CPU_C);
    const size_t bytes = ((size_t)warp->width + ST_CV_WARP_BLOCK) * sizeof(float);
    warp->x = st_arena_take(call->arena, bytes);
    warp->y = st_arena_take(call->arena, bytes);
    if (!warp->x || !warp->y)
        return st_cv_no_memory(op, err);
    /* Points behind a row are computed with, and dropped. */
    for (int32_t k = warp->width; k < warp->width + ST_CV_WARP_BLOCK; k++)
        warp->x[k] = warp->y[k] = 0;
    return STOKER_OK;
}

int st_cv_warp_row(const struct st_cv_warp *warp, const struct st_cv_call *call, int32_t y,
                   const char *op, struct stoker_error *err)
{
    const struct st_cv_points points = {warp->x + warp->left, warp->y + warp->left, call->out.width};
    /* Points behind the part of a row may come from where there are no pixels. */
    const int32_t end = warp->left + points.count;
    for (int32_t k = end; call->parts && k < end + ST_CV_WARP_BLOCK; k++) {
        warp->x[k] = warp->x[end - 1];
        warp->y[k] = warp->y[end - 1];
    }
    /* Where OpenCV computes with infinity and NaN, its result depends on the neighbours. */
    const float most = warp->border.kind == ST_CV_BORDER_CONSTANT ? FLT_MAX : ST_CV_FARTHEST;
    if (!warp->rows->all_near(&points, most))
        return st_fail(err, STOKER_EUNSUPPORTED, "%s: row %d has points that are too far outside", op,
                       y);
    (warp->nearest ? warp->rows->nearest : warp->rows->linear)(&call->in, &warp->border, &points,
                                                               st_row(&call->out, y));
    return STOKER_OK;
}
