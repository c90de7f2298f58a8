/* holes.h - rectangles of an image that are overwritten, as Albumentations does it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_HOLES_H
#define ST_OP_GEOMETRY_HOLES_H

#include "op/op.h"

/* The parameters `fill`, `mask_fill`, `min_area` and `min_visibility` of an op. */
struct st_hole_fill {
    struct st_list fill;
    int32_t mask_fill; /* below 0: masks stay as they are */
    double area, visibility; /* what boxes need outside of holes */
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
    {.name = "mask_fill",                                                                               \
     .type = ST_PARAM_INT,                                                                              \
     .offset = offsetof(owner, fill.mask_fill),                                                         \
     .def = -1,                                                                                         \
     .max = 255,                                                                                        \
     .help = "their value in masks, which else stay as they are"},                                      \
        {.name = "min_area",                                                                            \
         .type = ST_PARAM_FLOAT,                                                                        \
         .offset = offsetof(owner, fill.area),                                                          \
         .max = 1e12,                                                                                   \
         .help = "pixels of a box that are not overwritten: boxes with fewer are removed"},             \
    {                                                                                                   \
        .name = "min_visibility", .type = ST_PARAM_FLOAT, .offset = offsetof(owner, fill.visibility),   \
        .max = 1, .help = "likewise, as a part of the box's pixels"                                     \
    }

/* Checks them, and that pixels can be computed here. */
int st_holes_plan(const struct st_hole_fill *fill, const struct st_shape *shape,
                  const struct st_finish_spec *finish, const char *op, struct stoker_error *err);
/* Whether there are pixels to be overwritten, or boxes and key points that holes may hide. */
bool st_holes_have_work(const struct st_hole_fill *fill, const struct st_image *image);
/* Overwrites the holes, which lie inside of the image, and have all been drawn: those of a mask are the
 * same, and have no colours. Boxes become those around their pixels outside of holes, in whole pixels;
 * those with too few are removed. So are key points in holes, behind begin_points. */
int st_image_drop(struct st_image *image, struct st_rng *rng, const struct st_hole_fill *fill,
                  const struct st_region *holes, uint64_t count, struct stoker_error *err);

#endif
