/* resize_op.c - resizes to a given size, or the shorter side to a given length
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"
#include "op/resize/sides.h"

struct resize {
    struct st_list size;
    int32_t max_size, filter;
    int32_t height, width; /* as planned; equal if one number was given */
};

static const struct st_param params[] = {
    {.name = "size",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct resize, size),
     .min = 1,
     .max = 1 << 20,
     .required = true,
     .help = "height and width, or the length of the shorter side"},
    {.name = "max_size",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct resize, max_size),
     .min = 1,
     .max = 1 << 20,
     .help = "maximum length of the longer side"},
    {.name = "interpolation",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct resize, filter),
     .def = ST_FILTER_BILINEAR,
     .words = st_filter_words,
     .help = "the filter"},
    {0},
};

static bool new_size(const struct resize *r, int32_t width, int32_t height, int32_t *out_width,
                     int32_t *out_height)
{
    if (r->size.count == 1)
        return st_resize_side(r->width, r->max_size, width, height, out_width, out_height);
    *out_width = r->width;
    *out_height = r->height;
    return true;
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct resize *r = self;
    int rc = st_plan_bytes(shape, finish, "resize", err);
    if (rc >= 0)
        rc = st_param_size(&r->size, "resize", "size", &r->height, &r->width, err);
    if (rc < 0)
        return rc;
    if (r->max_size && r->size.count == 2)
        return st_fail(err, STOKER_EINVAL,
                       "resize: max_size requires size to be one number, not two");
    if (r->max_size && r->max_size <= r->height)
        return st_fail(err, STOKER_EINVAL, "resize: max_size = %d must be greater than size = %d",
                       r->max_size, r->height);
    if (r->size.count == 2) {
        shape->width = r->width;
        shape->height = r->height;
    } else if (shape->width < 0 || shape->height < 0 ||
               !new_size(r, shape->width, shape->height, &shape->width, &shape->height)) {
        shape->width = shape->height = ST_SIZE_DIFFERS;
    }
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    (void)rng;
    const struct resize *r = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    int32_t out_width, out_height;
    if (!new_size(r, width, height, &out_width, &out_height))
        return st_fail(err, STOKER_ELIMIT,
                       "resize: with a shorter side of %d the longer side of %d x %d is too long",
                       r->width, width, height);
    return st_image_resize(image, out_width, out_height, (enum st_filter)r->filter, err);
}

const struct st_op st_op_resize = {
    .name = "resize",
    .help = "resizes to a size, or the shorter side to a length",
    .self_size = sizeof(struct resize),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
