/* random_resized_crop.c - crops a part of random size and shape and resizes it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include <math.h>

struct random_resized_crop {
    struct st_list size, scale, ratio;
    int32_t height, width, filter;
};

static const struct st_param params[] = {
    {.name = "size",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_resized_crop, size),
     .min = 1,
     .max = 1 << 20,
     .required = true,
     .help = "height and width of the result, or one number for both"},
    {.name = "scale",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_resized_crop, scale),
     .max = 1e6,
     .help = "the part's area as a fraction of the image: low, high (0.08, 1)"},
    {.name = "ratio",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_resized_crop, ratio),
     .min = 1e-6,
     .max = 1e6,
     .help = "the part's width divided by its height: low, high (3/4, 4/3)"},
    {.name = "interpolation",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct random_resized_crop, filter),
     .def = ST_FILTER_BILINEAR,
     .words = st_filter_words,
     .help = "the filter"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    static const char name[] = "random_resized_crop";
    struct random_resized_crop *c = self;
    int rc = st_plan_bytes(shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_size(&c->size, name, "size", &c->height, &c->width, err);
    if (rc >= 0)
        rc = st_param_range(&c->scale, name, "scale", 0.08, 1, err);
    if (rc >= 0)
        rc = st_param_range(&c->ratio, name, "ratio", 3.0 / 4.0, 4.0 / 3.0, err);
    shape->width = c->width;
    shape->height = c->height;
    return rc;
}

/* Used if ten attempts found no part that fits: the largest one with an allowed aspect ratio, at the
 * centre. */
static struct st_region central(const double *ratio, double width, double height)
{
    double w = width, h = height;
    if (width / height < ratio[0])
        h = fmax(rint(w / ratio[0]), 1);
    else if (width / height > ratio[1])
        w = fmax(rint(h * ratio[1]), 1);
    return (struct st_region){(uint32_t)((width - w) / 2), (uint32_t)((height - h) / 2), (uint32_t)w,
                              (uint32_t)h};
}

static struct st_region draw(const struct random_resized_crop *c, struct st_rng *rng, int32_t width,
                             int32_t height)
{
    for (int tries = 0; tries < 10; tries++) {
        double w, h;
        st_draw_box(rng, (double)width * height, c->scale.value, c->ratio.value, &w, &h);
        if (!(w > 0 && w <= width && h > 0 && h <= height))
            continue;
        struct st_region part = {.width = (uint32_t)w, .height = (uint32_t)h};
        part.y = (uint32_t)st_rng_below(rng, (uint64_t)(height - h + 1));
        part.x = (uint32_t)st_rng_below(rng, (uint64_t)(width - w + 1));
        return part;
    }
    return central(c->ratio.value, width, height);
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct random_resized_crop *c = self;
    const struct st_region region = draw(c, rng, st_image_width(image), st_image_height(image));
    const int rc = st_image_crop(image, region, err);
    return rc < 0 ? rc : st_image_resize(image, c->width, c->height, (enum st_filter)c->filter, err);
}

const struct st_op st_op_random_resized_crop = {
    .name = "random_resized_crop",
    .help = "crops a part of random size and shape and resizes it",
    .self_size = sizeof(struct random_resized_crop),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
