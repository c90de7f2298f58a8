/* warp_perspective.c - perspective maps as OpenCV's warpPerspective makes them of bytes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/warp.h"

#include <string.h>

static const char NAME[] = "warp_perspective";

enum { MAP = 9, INVERSE = MAP, COMMON };

/* The inverse by cofactors; a map that has none becomes zeros. The order of these operations is
 * OpenCV's. */
static void invert(double m[MAP])
{
    double d = m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
               m[2] * (m[3] * m[7] - m[4] * m[6]);
    double t[MAP] = {0};
    if (d != 0) {
        d = 1. / d;
        t[0] = (m[4] * m[8] - m[5] * m[7]) * d;
        t[1] = (m[2] * m[7] - m[1] * m[8]) * d;
        t[2] = (m[1] * m[5] - m[2] * m[4]) * d;
        t[3] = (m[5] * m[6] - m[3] * m[8]) * d;
        t[4] = (m[0] * m[8] - m[2] * m[6]) * d;
        t[5] = (m[2] * m[3] - m[0] * m[5]) * d;
        t[6] = (m[3] * m[7] - m[4] * m[6]) * d;
        t[7] = (m[1] * m[6] - m[0] * m[7]) * d;
        t[8] = (m[0] * m[4] - m[1] * m[3]) * d;
    }
    memcpy(m, t, sizeof t);
}

static int run(const struct st_cv_call *call, bool nearest, struct stoker_error *err)
{
    struct st_cv_warp warp;
    double m[MAP];
    float map[MAP];
    int rc = st_cv_warp_begin(&warp, call, COMMON, nearest, NAME, err);
    memcpy(m, call->numbers, sizeof m);
    if (call->numbers[INVERSE] == 0)
        invert(m);
    for (int k = 0; k < MAP; k++)
        map[k] = (float)m[k];
    for (int32_t y = 0; !rc && y < call->out.height; y++) {
        warp.rows->perspective(warp.x, warp.y, warp.width, warp.top + y, map);
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

const struct st_cv_op st_cv_warp_perspective = {
    .name = NAME,
    .help = "cv2.warpPerspective with INTER_LINEAR",
    .least = COMMON + ST_CV_WARP_NUMBERS,
    .most = COMMON + ST_CV_WARP_NUMBERS,
    .run = run_linear,
};

const struct st_cv_op st_cv_warp_perspective_nearest = {
    .name = "warp_perspective_nearest",
    .help = "cv2.warpPerspective with INTER_NEAREST",
    .least = COMMON + ST_CV_WARP_NUMBERS,
    .most = COMMON + ST_CV_WARP_NUMBERS,
    .run = run_nearest,
};
