/* resize.h - Pillow's resampling, byte for byte
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_RESIZE_RESIZE_H
#define ST_OP_RESIZE_RESIZE_H

#include "base/mem.h"
#include "op/tensor/finish.h"

enum st_filter {
    ST_FILTER_NEAREST, ST_FILTER_BOX, ST_FILTER_BILINEAR, ST_FILTER_HAMMING, ST_FILTER_BICUBIC,
    ST_FILTER_LANCZOS, ST_FILTERS,
    /* Of lazy images alone: with OpenCV's arithmetic (op/cv). The last is area where a side shrinks. */
    ST_FILTER_CV_NEAREST = ST_FILTERS, ST_FILTER_CV_LINEAR, ST_FILTER_CV_AREA,
    ST_FILTER_CV_LINEAR_AREA
};

/* A range of pixels with fractional ends; length 0: the whole axis. */
struct st_span {
    double begin, length;
};

/* Resizes in_width x in_height to out_width x out_height; only `window` of the result is needed. */
struct st_resize {
    int32_t in_width, in_height, out_width, out_height;
    struct st_region window;
    enum st_filter filter;
    uint32_t pillow; /* 13: vertical pass first where Pillow 13 does so; 12: always horizontal first */
    bool floored; /* the nearest pixel is the one at or before, as torch finds it */
    struct st_span span_x, span_y; /* the part of the input to be resized, as in Pillow's resize(box=) */
};

/* The part of the input that the window depends on. */
struct st_region st_resize_needs(const struct st_resize *job);

/* `pixels` holds exactly st_resize_needs(job) of the input. The result goes to `out` (allocated from the
 * arena, interleaved bytes), or directly to its destination. Both return STOKER_ENOMEM or STOKER_OK. */
int st_resize_view(const struct st_resize *job, const struct st_kernels *kernels, struct st_arena *arena,
                   const struct st_view *pixels, struct st_view *out);
int st_resize_finish(const struct st_resize *job, const struct st_kernels *kernels,
                     struct st_arena *arena, const struct st_view *pixels,
                     const struct st_finish *finish, bool mirror, bool flip,
                     const struct st_place *place);

#endif
