/* warp_op.h - what the ops that warp images have in common: their parameters
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_WARP_OP_H
#define ST_OP_GEOMETRY_WARP_OP_H

#include "op/geometry/maps.h"
#include "op/op.h"

/* The parameters `interpolation`, `fill` and `center` of an op. */
struct st_warp_params {
    int32_t filter;
    struct st_list fill, centre;
};
/* Entries of the parameter table for a struct with a member `warp`. */
#define ST_WARP_PARAMS(owner, filter_by_default)                                                        \
    {.name = "interpolation",                                                                           \
     .type = ST_PARAM_WORD,                                                                             \
     .offset = offsetof(owner, warp.filter),                                                            \
     .def = filter_by_default,                                                                          \
     .words = st_filter_words,                                                                          \
     .help = "nearest, bilinear or bicubic"},                                                           \
    {                                                                                                   \
        .name = "fill", .type = ST_PARAM_LIST, .offset = offsetof(owner, warp.fill), .max = 255,        \
        .help = "value of pixels from outside the image, or one per channel"                            \
    }
#define ST_WARP_CENTRE(owner)                                                                           \
    {                                                                                                   \
        .name = "center", .type = ST_PARAM_LIST, .offset = offsetof(owner, warp.centre), .min = -1e6,   \
        .max = 1e6, .help = "x and y of the point that stays where it is (the middle of the image)"     \
    }

/* Checks them, and that pixels can be computed here. */
int st_warp_plan(const struct st_warp_params *params, const struct st_shape *shape,
                 const struct st_finish_spec *finish, const char *op, struct stoker_error *err);
/* The centre, or NULL for the middle of the image. */
const double *st_warp_centre(const struct st_warp_params *params);
/* Sets the filter and fill of a map, and warps the image. */
int st_warp_run(const struct st_warp_params *params, struct st_warp *warp, struct st_image *image,
                const char *op, struct stoker_error *err);

/* A range of angles: low and high, or one number for both directions. */
int st_param_angles(struct st_list *list, const char *op, const char *name, struct stoker_error *err);

#endif
