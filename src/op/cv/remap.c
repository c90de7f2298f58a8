/* remap.c - moves pixels from given points, as OpenCV's remap does with bytes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/warp.h"

#include <string.h>

static const char NAME[] = "remap";

/* The row's points out of pairs, or out of two tables. */
static void read_row(const struct st_cv_warp *warp, const struct st_cv_call *call, int32_t y)
{
    const size_t width = (size_t)call->out.width, bytes = width * sizeof(float);
    const uint8_t *from = call->table[0].data + (size_t)y * bytes * (3 - call->tables);
    if (call->tables == 2) {
        memcpy(warp->x, from, bytes);
        memcpy(warp->y, call->table[1].data + (size_t)y * bytes, bytes);
        return;
    }
    for (size_t k = 0; k < width; k++) {
        float pair[2];
        memcpy(pair, from + k * sizeof pair, sizeof pair);
        warp->x[k] = pair[0];
        warp->y[k] = pair[1];
    }
}

static int run(const struct st_cv_call *call, bool nearest, struct stoker_error *err)
{
    const uint64_t points = (uint64_t)call->out.height * (uint64_t)call->out.width;
    const uint64_t wanted = points * sizeof(float) * (3 - call->tables);
    struct st_cv_warp warp;
    for (uint32_t k = 0; k < call->tables; k++)
        if (call->table[k].size != wanted)
            return st_fail(err, STOKER_EINVAL, "remap: map %u has %llu bytes; %d x %d points have %llu",
                           k, (unsigned long long)call->table[k].size, call->out.height, call->out.width,
                           (unsigned long long)wanted);
    int rc = st_cv_warp_begin(&warp, call, 0, nearest, NAME, err);
    for (int32_t y = 0; !rc && y < call->out.height; y++) {
        read_row(&warp, call, y);
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

const struct st_cv_op st_cv_remap = {
    .name = NAME,
    .help = "cv2.remap with INTER_LINEAR",
    .least = ST_CV_WARP_NUMBERS,
    .most = ST_CV_WARP_NUMBERS,
    .least_tables = 1, /* of pairs */
    .most_tables = 2,
    .run = run_linear,
};

const struct st_cv_op st_cv_remap_nearest = {
    .name = "remap_nearest",
    .help = "cv2.remap with INTER_NEAREST",
    .least = ST_CV_WARP_NUMBERS,
    .most = ST_CV_WARP_NUMBERS,
    .least_tables = 1,
    .most_tables = 2,
    .run = run_nearest,
};
