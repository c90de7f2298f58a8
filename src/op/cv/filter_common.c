/* filter_common.c - filters of bytes with OpenCV's arithmetic: borders, and rows in their order
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/filter.h"

#include <string.h>

extern const struct st_cv_filter_rows st_cv_filter_rows_c;
#if defined(__x86_64__)
extern const struct st_cv_filter_rows st_cv_filter_rows_avx2, st_cv_filter_rows_avx512;
#endif

const struct st_cv_filter_rows *st_cv_filter_rows_for(enum st_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= ST_CPU_AVX512)
        return &st_cv_filter_rows_avx512;
    if (level >= ST_CPU_AVX2)
        return &st_cv_filter_rows_avx2;
#endif
    (void)level;
    return &st_cv_filter_rows_c;
}

/* ---- borders ---- */

/* Where a place outside of [0, count) takes its pixel from. */
static int32_t inside(int32_t at, int32_t count, enum st_cv_border border)
{
    if (border == ST_CV_BORDER_REPLICATE || count == 1)
        return at < 0 ? 0 : at >= count ? count - 1 : at;
    const int32_t period = 2 * (count - 1), place = (at % period + period) % period; /* reflect 101 */
    return place < count ? place : period - place;
}

static void extend_row(const struct st_view *out, int32_t y, int32_t across, enum st_cv_border border)
{
    const ptrdiff_t pixel = out->channels;
    const int32_t width = out->width - 2 * across;
    uint8_t *row = st_row(out, y) + across * pixel;
    for (int32_t x = -across; x < 0; x++)
        memcpy(row + x * pixel, row + inside(x, width, border) * pixel, (size_t)pixel);
    for (int32_t x = width; x < width + across; x++)
        memcpy(row + x * pixel, row + inside(x, width, border) * pixel, (size_t)pixel);
}

bool st_cv_extend(const struct st_view *in, int32_t across, int32_t down, enum st_cv_border border,
                  struct st_arena *arena, struct st_view *out)
{
    const size_t row = (size_t)in->width * (size_t)in->channels;
    if (in->width > INT32_MAX / 4 - 2 * across || in->height > INT32_MAX - 2 * down)
        return false;
    out->width = in->width + 2 * across;
    out->height = in->height + 2 * down;
    out->channels = in->channels;
    out->stride = (ptrdiff_t)out->width * out->channels;
    out->data = st_arena_take(arena, (uint64_t)out->stride * (uint64_t)out->height);
    if (!out->data)
        return false;
    for (int32_t y = 0; y < in->height; y++) {
        memcpy(st_row(out, y + down) + (ptrdiff_t)across * in->channels, st_row(in, y), row);
        extend_row(out, y + down, across, border);
    }
    for (int32_t y = -down; y < in->height + down; y++)
        if (y < 0 || y >= in->height)
            memcpy(st_row(out, y + down), st_row(out, inside(y, in->height, border) + down),
                   (size_t)out->width * (size_t)out->channels);
    return true;
}

/* ---- filters ---- */

static size_t row_bytes(const struct st_view *view)
{
    return (size_t)view->width * (size_t)view->channels;
}

int st_cv_median(const struct st_cv_filter_rows *rows, int32_t side, struct st_arena *arena,
                 const struct st_view *in, const struct st_view *out)
{
    const uint8_t *tap[ST_CV_MEDIAN_MOST * ST_CV_MEDIAN_MOST];
    struct st_view wide;
    if (!st_cv_extend(in, side / 2, side / 2, ST_CV_BORDER_REPLICATE, arena, &wide))
        return STOKER_ENOMEM;
    for (int32_t y = 0; y < in->height; y++) {
        for (int32_t k = 0; k < side * side; k++)
            tap[k] = st_row(&wide, y + k / side) + (ptrdiff_t)(k % side) * in->channels;
        rows->median(st_row(out, y), tap, side * side, row_bytes(in));
    }
    return STOKER_OK;
}

int st_cv_box(const struct st_cv_filter_rows *rows, int32_t side, struct st_arena *arena,
              const struct st_view *in, const struct st_view *out)
{
    struct st_view wide;
    if (!st_cv_extend(in, side / 2, side / 2, ST_CV_BORDER_REFLECT_101, arena, &wide))
        return STOKER_ENOMEM;
    const size_t bytes = row_bytes(&wide);
    uint16_t *sum = st_arena_take(arena, bytes * sizeof *sum);
    uint8_t *none = st_arena_take(arena, bytes);
    if (!sum || !none)
        return STOKER_ENOMEM;
    memset(sum, 0, bytes * sizeof *sum);
    memset(none, 0, bytes);
    for (int32_t y = 0; y < side - 1; y++)
        rows->slide(sum, st_row(&wide, y), none, bytes);
    for (int32_t y = 0; y < in->height; y++) {
        rows->slide(sum, st_row(&wide, y + side - 1), y ? st_row(&wide, y - 1) : none, bytes);
        rows->mean(st_row(out, y), sum, side, in->channels, row_bytes(in));
    }
    return STOKER_OK;
}

int st_cv_weigh(const struct st_cv_filter_rows *rows, const struct st_cv_tap *taps, int32_t count,
                struct st_arena *arena, const struct st_view *in, const struct st_view *out)
{
    const uint8_t *tap[ST_CV_TAPS_MOST];
    struct st_view wide;
    int32_t reach = 0;
    for (int32_t k = 0; k < count; k++) {
        const int32_t x = taps[k].x < 0 ? -taps[k].x : taps[k].x,
                      y = taps[k].y < 0 ? -taps[k].y : taps[k].y;
        reach = x > reach ? x : reach;
        reach = y > reach ? y : reach;
    }
    if (!st_cv_extend(in, reach, reach, ST_CV_BORDER_REFLECT_101, arena, &wide))
        return STOKER_ENOMEM;
    for (int32_t y = 0; y < in->height; y++) {
        for (int32_t k = 0; k < count; k++)
            tap[k] =
                st_row(&wide, y + reach + taps[k].y) + (ptrdiff_t)(reach + taps[k].x) * in->channels;
        rows->weigh(st_row(out, y), tap, taps, count, row_bytes(in));
    }
    return STOKER_OK;
}

int st_cv_separate(const struct st_cv_filter_rows *rows, const float *weight, int32_t half,
                   struct st_arena *arena, const struct st_view *in, const struct st_view *out)
{
    const float *row[ST_CV_GAUSS_MOST];
    const int32_t side = 2 * half + 1;
    const size_t bytes = row_bytes(in);
    struct st_view wide;
    if (!st_cv_extend(in, half, half, ST_CV_BORDER_REFLECT_101, arena, &wide))
        return STOKER_ENOMEM;
    float *kept = st_arena_take(arena, (uint64_t)side * bytes * sizeof *kept); /* rows, in a ring */
    if (!kept)
        return STOKER_ENOMEM;
    for (int32_t y = 0; y < wide.height; y++) {
        rows->across(kept + (size_t)(y % side) * bytes,
                     st_row(&wide, y) + (ptrdiff_t)half * in->channels, weight, half, in->channels,
                     bytes);
        if (y < side - 1)
            continue;
        for (int32_t k = 0; k < side; k++)
            row[k] = kept + (size_t)((y - side + 1 + k) % side) * bytes;
        rows->down(st_row(out, y - side + 1), row, weight, half, bytes);
    }
    return STOKER_OK;
}
