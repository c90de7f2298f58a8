/* filter.h - filters of bytes with OpenCV's arithmetic
 *
 * Each takes an image with a border (st_cv_extend) and makes one without.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_CV_FILTER_H
#define ST_OP_CV_FILTER_H

#include "op/cv/cv.h"

enum {
    ST_CV_MEDIAN_MOST = 15, /* sides of a window, odd */
    ST_CV_BOX_MOST = 255,
    ST_CV_GAUSS_MOST = 127,
    ST_CV_TAPS_MOST = 129, /* OpenCV makes larger ones by Fourier transforms */
};

/* The weight of a pixel at a distance from the middle. */
struct st_cv_tap {
    int32_t x, y;
    float weight;
};

/* The inner loops over the bytes of a row. */
struct st_cv_filter_rows {
    /* The median of `count` (odd, up to 15 * 15) bytes, one at the same place of each tap. */
    void (*median)(uint8_t *out, const uint8_t *const *tap, int32_t count, size_t bytes);
    /* sum += in, less `out` */
    void (*slide)(uint16_t *sum, const uint8_t *in, const uint8_t *out, size_t bytes);
    /* Means of `side` sums at distances of `step`. */
    void (*mean)(uint8_t *out, const uint16_t *sum, int32_t side, int32_t step, size_t bytes);
    /* Weighted sums, rounded to bytes. */
    void (*weigh)(uint8_t *out, const uint8_t *const *tap, const struct st_cv_tap *of, int32_t count,
                  size_t bytes);
    /* Across: sums of values at multiples of `step`; weights of the middle and one side. */
    void (*across)(float *out, const uint8_t *in, const float *weight, int32_t half, int32_t step,
                   size_t bytes);
    /* Sums of floats, one at the same place of each tap. */
    void (*weigh_floats)(float *out, const float *const *tap, const float *weight, int32_t count,
                         size_t floats);
    /* Down: of rows from `half` above to `half` below, rounded to bytes. */
    void (*down)(uint8_t *out, const float *const *row, const float *weight, int32_t half, size_t bytes);
};
/* The table for a level, or for the next lower one in this build. */
const struct st_cv_filter_rows *st_cv_filter_rows_for(enum st_cpu_level level);

/* A view of the same pixels with `across` and `down` more beyond each border, in the arena: by
 * ST_CV_BORDER_REPLICATE or ST_CV_BORDER_REFLECT_101. False when out of memory. */
bool st_cv_extend(const struct st_view *in, int32_t across, int32_t down, enum st_cv_border border,
                  struct st_arena *arena, struct st_view *out);

/* Each returns STOKER_OK or STOKER_ENOMEM. The images have the same size and channels; `in` is not
 * changed, and `out` may not be the same. */
int st_cv_median(const struct st_cv_filter_rows *rows, int32_t side, struct st_arena *arena,
                 const struct st_view *in, const struct st_view *out);
int st_cv_box(const struct st_cv_filter_rows *rows, int32_t side, struct st_arena *arena,
              const struct st_view *in, const struct st_view *out);
int st_cv_weigh(const struct st_cv_filter_rows *rows, const struct st_cv_tap *taps, int32_t count,
                struct st_arena *arena, const struct st_view *in, const struct st_view *out);
/* `weight`: of the middle and one side. */
int st_cv_separate(const struct st_cv_filter_rows *rows, const float *weight, int32_t half,
                   struct st_arena *arena, const struct st_view *in, const struct st_view *out);

#endif
