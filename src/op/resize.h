/* resize.h - Pillow's resampling, byte for byte
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_RESIZE_H
#define ST_OP_RESIZE_H

#include "base/mem.h"
#include "op/finish.h"

enum st_filter {
    ST_FILTER_NEAREST, ST_FILTER_BOX, ST_FILTER_BILINEAR, ST_FILTER_HAMMING, ST_FILTER_BICUBIC,
    ST_FILTER_LANCZOS, ST_FILTERS
};

/* A stretch of pixels whose ends may lie between two of them; of length 0: the whole side. */
struct st_span {
    double begin, length;
};

/* in_width x in_height becomes out_width x out_height; of the result only `window` is wanted. */
struct st_resize {
    int32_t in_width, in_height, out_width, out_height;
    struct st_region window;
    enum st_filter filter;
    uint32_t pillow; /* 13: vertical pass first where Pillow 13 does so; 12: always horizontal first */
    struct st_span span_x, span_y; /* what of the input becomes the output, as Pillow's resize(box=) */
};

/* The part of the input that the window depends on. */
struct st_region st_resize_needs(const struct st_resize *job);

/* `pixels` holds exactly st_resize_needs(job) of the input. The result goes to `out` (allocated from the
 * arena, interleaved bytes), or straight to its final place. They return STOKER_ENOMEM or STOKER_OK. */
int st_resize_view(const struct st_resize *job, const struct st_kernels *kernels, struct st_arena *arena,
                   const struct st_view *pixels, struct st_view *out);
int st_resize_finish(const struct st_resize *job, const struct st_kernels *kernels,
                     struct st_arena *arena, const struct st_view *pixels,
                     const struct st_finish *finish, bool mirror, bool flip,
                     const struct st_place *place);

#endif
