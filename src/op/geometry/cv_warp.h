/* cv_warp.h - affine and perspective maps of images with OpenCV's arithmetic, for Albumentations' steps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_CV_WARP_H
#define ST_OP_GEOMETRY_CV_WARP_H

#include "op/cv/cv.h"
#include "op/op.h"

/* The parameters `border`, `fill` and `mask_fill` of an op. */
struct st_cv_warp_params {
    int32_t border, mask_fill;
    struct st_list fill;
};
/* OpenCV's borders, in the order of their numbers. */
extern const char *const st_cv_border_words[];
/* Entries of the parameter table for a struct with a member `warp`. */
#define ST_CV_WARP_PARAMS(owner)                                                                        \
    {.name = "border",                                                                                  \
     .type = ST_PARAM_WORD,                                                                             \
     .offset = offsetof(owner, warp.border),                                                            \
     .words = st_cv_border_words,                                                                       \
     .help = "what is outside: constant, replicate, reflect, wrap or reflect_101"},                     \
        {.name = "fill",                                                                                \
         .type = ST_PARAM_LIST,                                                                         \
         .offset = offsetof(owner, warp.fill),                                                          \
         .max = 255,                                                                                    \
         .help = "value of pixels from outside the image, or one per channel"},                         \
    {                                                                                                   \
        .name = "mask_fill", .type = ST_PARAM_INT, .offset = offsetof(owner, warp.mask_fill),           \
        .max = 255, .help = "value of such pixels of masks"                                             \
    }

/* Checks them, and that pixels can be computed here. */
int st_cv_warp_plan(const struct st_cv_warp_params *params, const struct st_shape *shape,
                    const struct st_finish_spec *finish, const char *op, struct stoker_error *err);

/* What OpenCV's functions are told about the border of an image, or of a mask: its kind, and the value
 * of each channel. */
enum { ST_CV_BORDER_NUMBERS = 1 + ST_CV_CHANNELS };
void st_cv_border_numbers(const struct st_image *image, const struct st_cv_warp_params *params,
                          double out[ST_CV_BORDER_NUMBERS]);

/* From the image to the result: the middles of pixels have whole numbers in `pixels`, halves in `boxes`.
 * The last rows are 0, 0, 1 if the map is affine. */
struct st_cv_map {
    double pixels[9], boxes[9];
    bool perspective;
    int32_t width, height; /* of the result */
};
int st_image_cv_warp(struct st_image *image, const struct st_cv_map *map,
                     const struct st_cv_warp_params *params, const char *op, struct stoker_error *err);

#endif
