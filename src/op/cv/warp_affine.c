/* warp_affine.c - affine maps as OpenCV's warpAffine makes them of bytes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/warp.h"

static const char NAME[] = "warp_affine";

enum { MAP = 6, INVERSE = MAP, COMMON };

/* From the map of the input to the result, the one from the result to the input; a map that has none
 * becomes zeros. The order of these operations is OpenCV's. */
static void invert(double m[MAP])
{
    double d = m[0] * m[4] - m[1] * m[3];
    d = d != 0 ? 1. / d : 0;
    const double a = m[4] * d, e = m[0] * d;
    m[0] = a;
    m[1] *= -d;
    m[3] *= -d;
    m[4] = e;
    const double c = -m[0] * m[2] - m[1] * m[5], f = -m[3] * m[2] - m[4] * m[5];
    m[2] = c;
    m[5] = f;
}

static int run(const struct st_cv_call *call, bool nearest, struct stoker_error *err)
{
    struct st_cv_warp warp;
    double m[MAP];
    float map[MAP];
    int rc = st_cv_warp_begin(&warp, call, COMMON, nearest, NAME, err);
    for (int k = 0; k < MAP; k++)
        m[k] = call->numbers[k];
    if (call->numbers[INVERSE] == 0)
        invert(m);
    for (int k = 0; k < MAP; k++)
        map[k] = (float)m[k];
    for (int32_t y = 0; !rc && y < call->out.height; y++) {
        warp.rows->affine(warp.x, warp.y, warp.width, warp.top + y, map);
        rc = st_cv_warp_row(&warp, call, y, NAME, err);
    }
    return rc;
}

static int run_linear(const struct st_cv_call *call, struct stoker_error *err)
{
    return run(call, false, err);
}

static int run_nearest(const struct st_cv_call *call, struct stoker_error *err)
{
    return run(call, true, err);
}

const struct st_cv_op st_cv_warp_affine = {
    .name = NAME,
    .help = "cv2.warpAffine with INTER_LINEAR",
    .least = COMMON + ST_CV_WARP_NUMBERS,
    .most = COMMON + ST_CV_WARP_NUMBERS,
    .run = run_linear,
};

const struct st_cv_op st_cv_warp_affine_nearest = {
    .name = "warp_affine_nearest",
    .help = "cv2.warpAffine with INTER_NEAREST",
    .least = COMMON + ST_CV_WARP_NUMBERS,
    .most = COMMON + ST_CV_WARP_NUMBERS,
    .run = run_nearest,
};
