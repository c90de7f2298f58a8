/* border.h - borders around an image, and crops that reach into them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_BORDER_H
#define ST_OP_GEOMETRY_BORDER_H

#include "op/op.h"

enum st_pad_mode { ST_PAD_CONSTANT, ST_PAD_EDGE, ST_PAD_REFLECT, ST_PAD_SYMMETRIC };
extern const char *const st_pad_words[];

/* The parameters `padding`, `fill` and `padding_mode` of an op. */
struct st_border {
    struct st_list padding, fill;
    int32_t mode;      /* an enum st_pad_mode */
    int32_t mask_fill; /* of masks */
    bool fill_refused; /* the image consists of floats here, and no byte value corresponds to the fill */
};
/* Entries of the parameter table for a struct with a member `border`. */
#define ST_BORDER_PARAMS(owner)                                                                         \
    {.name = "fill",                                                                                    \
     .type = ST_PARAM_LIST,                                                                             \
     .offset = offsetof(owner, border.fill),                                                            \
     .max = 255,                                                                                        \
     .help = "value of the border, or one per channel"},                                                \
    {.name = "mask_fill",                                                                               \
     .type = ST_PARAM_INT,                                                                              \
     .offset = offsetof(owner, border.mask_fill),                                                       \
     .max = 255,                                                                                        \
     .help = "value of the border of masks"},                                                           \
    {                                                                                                   \
        .name = "padding_mode", .type = ST_PARAM_WORD, .offset = offsetof(owner, border.mode),          \
        .words = st_pad_words, .help = "constant, edge, reflect or symmetric"                           \
    }

/* Checks padding (one number, two, or left, top, right, bottom) and fill. */
int st_border_plan(struct st_border *border, const struct st_shape *shape,
                   const struct st_finish_spec *finish, const char *op, struct stoker_error *err);

/* Pixels added to each side; negative: removed. */
struct st_sides {
    int32_t left, top, right, bottom;
};
struct st_sides st_border_sides(const struct st_border *border);

/* Pads `count` times, one border around the other, and keeps `window` of the result (NULL: all). If the
 * window lies inside the image, this is just a crop. */
int st_image_pad(struct st_image *image, const struct st_border *border, const struct st_sides *sides,
                 uint32_t count, const struct st_region *window, const char *op,
                 struct stoker_error *err);

#endif
