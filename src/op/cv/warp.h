/* warp.h - what the warps with OpenCV's arithmetic share: borders, and the inner loops
 *
 * Every pixel of the result comes from a point of the input, in float32: a linear mean of the four
 * pixels around it, computed with fused multiplications and additions, as OpenCV does with FMA; or the
 * nearest pixel, for masks (of arrays OpenCV makes these faster).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_CV_WARP_H
#define ST_OP_CV_WARP_H

#include "op/cv/cv.h"

/* OpenCV computes the points of a row in blocks of this size with FMA, and rounds those of the rest in
 * another order. */
enum { ST_CV_WARP_BLOCK = 16 };
/* Points may be this many pixels away, unless the border is constant: they then are exact integers. */
#define ST_CV_FARTHEST 16777216.f

struct st_cv_border_of {
    enum st_cv_border kind;
    uint8_t value[ST_CV_CHANNELS]; /* ST_CV_BORDER_CONSTANT */
};

/* A row of points, followed by readable memory for ST_CV_WARP_BLOCK more. */
struct st_cv_points {
    const float *x, *y;
    int32_t count;
};

struct st_cv_warp_rows {
    /* Where the pixels of row `y` come from, with the map's six numbers, or its nine. */
    void (*affine)(float *xs, float *ys, int32_t count, int32_t y, const float map[6]);
    void (*perspective)(float *xs, float *ys, int32_t count, int32_t y, const float map[9]);
    /* Whether all coordinates are numbers from -most to most. */
    bool (*all_near)(const struct st_cv_points *points, float most);
    void (*nearest)(const struct st_view *in, const struct st_cv_border_of *border,
                    const struct st_cv_points *points, uint8_t *out);
    void (*linear)(const struct st_view *in, const struct st_cv_border_of *border,
                   const struct st_cv_points *points, uint8_t *out);
};
/* The table for a level, or for the next lower one in this build. */
const struct st_cv_warp_rows *st_cv_warp_rows_for(enum st_cpu_level level);

/* The coordinate inside of an axis of `size` pixels that stands for one outside; not for constants. */
int32_t st_cv_border_at(int32_t at, int32_t size, enum st_cv_border kind);

/* What follows the map in the numbers of a warp: the border's kind, and the values of its channels. */
enum { ST_CV_WARP_NUMBERS = 1 + ST_CV_CHANNELS };
struct st_cv_warp {
    const struct st_cv_warp_rows *rows;
    bool nearest;
    struct st_cv_border_of border;
    int32_t width;     /* of a row of points, of which the call may want a part: */
    int32_t left, top; /* where it begins */
    float *x, *y;      /* of a row */
};
int st_cv_warp_begin(struct st_cv_warp *warp, const struct st_cv_call *call, uint32_t at, bool nearest,
                     const char *op, struct stoker_error *err);
/* Makes row `y` of the call's result of the points, which are those of row `top` + y. */
int st_cv_warp_row(const struct st_cv_warp *warp, const struct st_cv_call *call, int32_t y,
                   const char *op, struct stoker_error *err);

#endif
