/* resize.h - what the resizes with OpenCV's arithmetic share: plans along an axis, and the inner loops
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_CV_RESIZE_H
#define ST_OP_CV_RESIZE_H

#include "op/cv/cv.h"

/* Where values of a row come from. Vector instructions make them in groups whose sources lie in a window
 * of the input row, out of which they pick bytes. From the first group on whose sources lie too far
 * apart, pixels are made one by one. */
struct st_cv_windows {
    int32_t groups;
    const int32_t *base; /* [groups]: where each begins in the row */
};

/* Linear: two sources for each value of a row. */
struct st_cv_linear {
    int32_t values, channels, row_bytes; /* of a row: pixels times channels, and bytes of an input row */
    const int32_t *first;                /* [values]: offset of the first source in the row */
    const int32_t *second;               /* [values] */
    const int16_t *weight;               /* [values][2]: of 2048 */
    struct st_cv_windows windows;
    const uint8_t *pick; /* [values in groups][4]: the bytes of the window; 128: a zero */
};

/* Area: as many sources as the widest cell has, at equal distances; weights of those too many are 0. */
struct st_cv_area {
    int32_t values, channels, row_bytes;
    int32_t taps;         /* of each value */
    const int32_t *first; /* [values] */
    const float *weight;  /* [taps][values] */
    struct st_cv_windows windows;
    const uint8_t *pick; /* [values in groups]: of the first source; the next are `channels` bytes on */
};

struct st_cv_nearest {
    int32_t pixels, channels, row_bytes;
    const int32_t *first; /* [pixels]: offset in the row */
    struct st_cv_windows windows;
    const uint8_t *pick; /* [values in groups] */
};

struct st_cv_resize_rows {
    int32_t window, group; /* bytes, and values that are made of them; 0: there are no windows */
    /* The linear mean of the two sources of each value, in 1/128. */
    void (*across)(const struct st_cv_linear *plan, int16_t *out, const uint8_t *in);
    /* The linear mean of two rows of those. */
    void (*down)(uint8_t *out, const int16_t *a, const int16_t *b, int16_t weight_a, int16_t weight_b,
                 int32_t values);
    /* The weighted sums of each value's sources. */
    void (*area_across)(const struct st_cv_area *plan, float *out, const uint8_t *in);
    /* sum += row * weight, or sum = row * weight. */
    void (*area_add)(float *sum, const float *row, float weight, int32_t values);
    void (*area_set)(float *sum, const float *row, float weight, int32_t values);
    /* Rounds to bytes. */
    void (*area_round)(uint8_t *out, const float *sum, int32_t values);
    /* Means of 2 x 2 pixels of 1, 3 or 4 channels, halves rounded up; `width` of the result. */
    void (*halve)(uint8_t *out, const uint8_t *a, const uint8_t *b, int32_t width, int32_t channels);
    void (*nearest)(const struct st_cv_nearest *plan, uint8_t *out, const uint8_t *in);
};
/* The table for a level, or for the next lower one in this build. */
const struct st_cv_resize_rows *st_cv_resize_rows_for(enum st_cpu_level level);

/* Finds windows for `values` values of which each needs the bytes `first` to `last` of a row; false when
 * out of memory. */
bool st_cv_windows_find(struct st_cv_windows *out, const struct st_cv_resize_rows *rows,
                        const int32_t *first, const int32_t *last, int32_t values, int32_t row_bytes,
                        struct st_arena *arena);
/* The places of values in the windows of their groups; NULL when out of memory. */
const uint8_t *st_cv_windows_pick(const struct st_cv_windows *windows, int32_t group,
                                  const int32_t *first, struct st_arena *arena);
/* Checks what all resizes need; `op` is the op's name. */
int st_cv_resize_check(const struct st_cv_call *call, const char *op, struct stoker_error *err);
/* Input pixels for each output pixel, as OpenCV computes them. */
static inline double st_cv_scale(const struct st_cv_call *call, int32_t in, int32_t out)
{
    return 1. / (call->factor > 0 ? call->factor : (double)out / in);
}
/* One axis of the images of which the call has parts that begin at `in_at` and `out_at`. */
struct st_cv_axis {
    int32_t in, out, in_at, out_at;
};
struct st_cv_axis st_cv_axis_x(const struct st_cv_call *call);
struct st_cv_axis st_cv_axis_y(const struct st_cv_call *call);
/* Copies where both sizes are the same; true if it did. */
bool st_cv_resize_copied(const struct st_cv_call *call);
/* Linear, or what stands for the area where an axis becomes longer. */
int st_cv_resize_linearly(const struct st_cv_call *call, bool area, const char *op,
                          struct stoker_error *err);
/* By means of whole numbers of pixels: `step_x` times `step_y`. */
int st_cv_resize_wholly(const struct st_cv_call *call, int32_t step_x, int32_t step_y, const char *op,
                        struct stoker_error *err);
/* The number of pixels that become one if that is a whole number on both axes: false if not. */
bool st_cv_whole_steps(const struct st_cv_call *call, int32_t *step_x, int32_t *step_y);

#endif
