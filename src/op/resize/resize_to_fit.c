/* resize_to_fit.c - resizes by the factor that gives a side a length, as Albumentations does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include <math.h>

enum { SIDE_MAX = 1 << 20 };
enum by { SHORTEST, LONGEST };
static const char *const by_words[] = {"shortest", "longest", NULL};

struct resize_to_fit {
    struct st_list sizes;
    int32_t height, width, by, filter;
};

#define LENGTH(member, text)                                                                            \
    {                                                                                                   \
        .name = #member, .type = ST_PARAM_INT, .offset = offsetof(struct resize_to_fit, member),        \
        .max = SIDE_MAX, .help = text                                                                   \
    }

static const struct st_param params[] = {
    {.name = "sizes",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct resize_to_fit, sizes),
     .min = 1,
     .max = SIDE_MAX,
     .help = "the length of the side that `by` says; one of several is drawn"},
    LENGTH(height, "the height, without sizes"),
    LENGTH(width, "the width; with both, `by` says which of them is not exceeded, or reached"),
    {.name = "by",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct resize_to_fit, by),
     .words = by_words,
     .help = "shortest or longest: which side gets the length"},
    {.name = "interpolation",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct resize_to_fit, filter),
     .def = ST_FILTER_CV_LINEAR,
     .words = st_filter_words,
     .help = "the filter"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    const struct resize_to_fit *r = self;
    if (!r->sizes.count == (!r->height && !r->width))
        return st_fail(err, STOKER_EINVAL, "resize_to_fit: needs either sizes, or height or width");
    const int rc = st_plan_bytes(shape, finish, "resize_to_fit", err);
    shape->width = shape->height = ST_SIZE_DIFFERS;
    return rc;
}

static double factor(const struct resize_to_fit *r, struct st_rng *rng, int32_t width, int32_t height)
{
    const bool longest = r->by == LONGEST;
    if (r->sizes.count) {
        const double size = r->sizes.value[st_rng_below(rng, r->sizes.count)];
        return size / ((width > height) == longest ? width : height);
    }
    const double across = (double)r->width / width, down = (double)r->height / height;
    if (!r->width || !r->height)
        return r->width ? across : down;
    return (across < down) == longest ? across : down;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct resize_to_fit *r = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    const double by = factor(r, rng, width, height);
    const double wide = fmax(1, rint(width * by)), high = fmax(1, rint(height * by));
    if (wide > INT32_MAX || high > INT32_MAX)
        return st_fail(err, STOKER_ELIMIT, "resize_to_fit: %d x %d is too long for a factor of %g",
                       width, height, by);
    return st_image_resize(image, (int32_t)wide, (int32_t)high, (enum st_filter)r->filter, err);
}

const struct st_op st_op_resize_to_fit = {
    .name = "resize_to_fit",
    .help = "resizes so that a side gets a length",
    .self_size = sizeof(struct resize_to_fit),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
