/* holes.h - rectangles of an image that are overwritten, as Albumentations does it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_HOLES_H
#define ST_OP_GEOMETRY_HOLES_H

#include "op/op.h"

/* The parameters `fill` and `mask_fill` of an op. */
struct st_hole_fill {
    struct st_list fill;
    int32_t mask_fill; /* below 0: masks stay as they are */
};
extern const char *const st_hole_fill_words[];
/* Entries of the parameter table for a struct with a member `fill`. */
#define ST_HOLE_FILL_PARAMS(owner)                                                                      \
    {.name = "fill",                                                                                    \
     .type = ST_PARAM_LIST,                                                                             \
     .offset = offsetof(owner, fill.fill),                                                              \
     .max = 255,                                                                                        \
     .words = st_hole_fill_words,                                                                       \
     .help = "their value (0), or one per channel; random: for each pixel; random_color: for each "     \
             "rectangle"},                                                                              \
    {                                                                                                   \
        .name = "mask_fill", .type = ST_PARAM_INT, .offset = offsetof(owner, fill.mask_fill),           \
        .def = -1, .max = 255, .help = "their value in masks, which else stay as they are"              \
    }

/* Checks them, and that pixels can be computed here. */
int st_holes_plan(const struct st_hole_fill *fill, const struct st_shape *shape,
                  const struct st_finish_spec *finish, const char *op, struct stoker_error *err);
/* Above 0 if there are pixels to be overwritten, 0 if not. Boxes cannot follow, which is an error. */
int st_holes_have_work(const struct st_hole_fill *fill, const struct st_image *image, const char *op,
                       struct stoker_error *err);
/* Overwrites the holes, which lie inside of the image, and have all been drawn: those of a mask are the
 * same, and have no colours. */
int st_image_drop(struct st_image *image, struct st_rng *rng, const struct st_hole_fill *fill,
                  const struct st_region *holes, uint64_t count, struct stoker_error *err);

#endif
