/* elastic_transform.c - moves pixels by random, smooth distances
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"
#include "op/elastic/elastic.h"
#include "op/op.h"

struct elastic_transform {
    struct st_list alpha, sigma, fill;
    int32_t mask_fill;
    int32_t filter;
};

static const char name[] = "elastic_transform";

static const struct st_param params[] = {
    {.name = "alpha",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct elastic_transform, alpha),
     .min = -1e6,
     .max = 1e6,
     .help = "strength: across and down, or one number for both (50)"},
    {.name = "sigma",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct elastic_transform, sigma),
     .max = 4096,
     .help = "smoothness: across and down, or one number for both (5)"},
    {.name = "interpolation",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct elastic_transform, filter),
     .def = ST_FILTER_BILINEAR,
     .words = st_filter_words,
     .help = "nearest or bilinear"},
    {.name = "fill",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct elastic_transform, fill),
     .max = 255,
     .help = "value of pixels from outside the image, or one per channel"},
    {.name = "mask_fill",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct elastic_transform, mask_fill),
     .max = 255,
     .help = "value of such pixels of masks"},
    {0},
};

static int pair(struct st_list *list, double def, const char *what, struct stoker_error *err)
{
    if (list->count == 0)
        *list = (struct st_list){.count = 1, .value = {def}};
    if (list->count == 1)
        *list = (struct st_list){.count = 2, .value = {list->value[0], list->value[0]}};
    if (list->count != 2)
        return st_fail(err, STOKER_EINVAL, "%s: %s must be one number or two, not %u", name, what,
                       list->count);
    return STOKER_OK;
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct elastic_transform *e = self;
    int rc = st_plan_bytes(shape, finish, name, err);
    if (rc >= 0)
        rc = pair(&e->alpha, 50, "alpha", err);
    if (rc >= 0)
        rc = pair(&e->sigma, 5, "sigma", err);
    if (rc < 0)
        return rc;
    if ((e->sigma.value[0] > 0) != (e->sigma.value[1] > 0))
        return st_fail(err, STOKER_EINVAL, "%s: sigma must be positive in both directions, or 0 in both",
                       name);
    if (e->filter != ST_FILTER_NEAREST && e->filter != ST_FILTER_BILINEAR)
        return st_fail(err, STOKER_EINVAL,
                       "%s: interpolation=%s is not possible; use nearest or bilinear", name,
                       st_filter_words[e->filter]);
    if (e->fill.count > 1 && e->fill.count != (uint32_t)shape->channels)
        return st_fail(err, STOKER_EINVAL, "%s: fill has %u values, but the image has %d channel%s",
                       name, e->fill.count, shape->channels, st_s((uint64_t)shape->channels));
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct elastic_transform *e = self;
    struct st_displacement by = {.width = st_image_width(image), .height = st_image_height(image)};
    struct st_displaced how = {.filter = (enum st_filter)e->filter, .mask_fill = (uint8_t)e->mask_fill};
    if (image->boxes && !image->boxes->count && !image->boxes->points)
        return STOKER_OK; /* a displacement takes long to draw */
    for (uint32_t c = 0; c < sizeof how.fill; c++)
        how.fill[c] = (uint8_t)e->fill.value[c < e->fill.count ? c : 0];
    const int rc =
        st_displacement_draw(&by, rng, e->alpha.value, e->sigma.value, &image->work->arena, name, err);
    return rc < 0 ? rc : st_image_displace(image, &by, how, name, err);
}

const struct st_op st_op_elastic_transform = {
    .name = "elastic_transform",
    .help = "moves pixels by random, smooth distances",
    .self_size = sizeof(struct elastic_transform),
    .params = params,
    .plan = plan,
    .run = run,
};
