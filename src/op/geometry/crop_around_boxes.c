/* crop_around_boxes.c - crops a random part with all boxes, as Albumentations' BBoxSafeRandomCrop does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/chosen_crop.h"

#include <math.h>

struct crop_around_boxes {
    double erosion;
};

static const struct st_param params[] = {
    {.name = "erosion",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct crop_around_boxes, erosion),
     .max = 1,
     .help = "part of the sides of the box around all boxes that may be lost; of a single box nothing"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)self;
    (void)finish;
    shape->width = shape->height = ST_SIZE_DIFFERS;
    return st_plan_movable(shape, "crop_around_boxes", err);
}

static double within(double at, double most) { return at > 0 ? (at < most ? at : most) : 0; }

/* The ends of all boxes along both axes, without what may be lost; false if nothing is left. */
static bool find_ends(const struct st_boxes *boxes, double erosion, const int32_t size[2],
                      double least[2], double most[2])
{
    for (int k = 0; k < 2; k++) {
        least[k] = size[k];
        most[k] = 0;
        /* Not fmin() and fmax(), of which GCC 12 for aarch64 makes an internal error. */
        for (uint64_t b = 0; b < boxes->count; b++) {
            const double from = boxes->box[b][k], to = boxes->box[b][k + 2];
            least[k] = from < least[k] ? from : least[k];
            most[k] = to > most[k] ? to : most[k];
        }
        const double lost = boxes->count > 1 ? (most[k] - least[k]) * erosion / 2 : 0;
        least[k] = within(least[k] + lost, size[k]);
        most[k] = within(most[k] - lost, size[k]);
        if (boxes->count > 1 && fabs(most[k] - least[k]) < 1e-6 * size[k])
            return false;
    }
    return boxes->count && erosion < 1;
}

/* A part with the image's ratio, at a random place. */
static void choose_any(double erosion, struct st_rng *rng, const int32_t size[2], uint32_t begin[2],
                       uint32_t end[2])
{
    const int32_t least = (int32_t)(size[1] * (1 - erosion));
    int32_t part[2] = {0, size[1]};
    if (least < size[1])
        part[1] = least + (int32_t)st_rng_below(rng, (uint64_t)(size[1] - least) + 1);
    part[0] = (int32_t)((double)part[1] * size[0] / size[1]);
    for (int k = 1; k >= 0; k--) {
        begin[k] = (uint32_t)((size[k] - part[k] + 1) * st_rng_f64(rng));
        end[k] = begin[k] + (uint32_t)part[k];
    }
}

/* Each side is drawn between that of all boxes and that of the image. */
static int choose(const void *self, struct st_rng *rng, struct st_image *guide, struct st_region *out,
                  struct stoker_error *err)
{
    const struct crop_around_boxes *c = self;
    const struct st_boxes *boxes = guide->boxes;
    const int32_t size[2] = {st_image_width(guide), st_image_height(guide)};
    uint32_t begin[2], end[2];
    double least[2], most[2];
    if (!find_ends(boxes, c->erosion, size, least, most))
        choose_any(c->erosion, rng, size, begin, end);
    else
        for (int k = 0; k < 2; k++) {
            begin[k] = (uint32_t)(least[k] * st_rng_f64(rng));
            end[k] = (uint32_t)(most[k] + (size[k] - most[k]) * st_rng_f64(rng));
        }
    if (end[0] <= begin[0] || end[1] <= begin[1])
        return st_fail(err, STOKER_EINVAL, "the part that was drawn around the boxes has no pixels");
    *out = (struct st_region){begin[0], begin[1], end[0] - begin[0], end[1] - begin[1]};
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const bool is_guide = image->boxes && image->boxes->box; /* not of key points */
    return st_image_crop_chosen(self, rng, image, is_guide, choose, "boxes", err);
}

const struct st_op st_op_crop_around_boxes = {
    .name = "crop_around_boxes",
    .help = "crops a random part with all boxes, or the whole image if there are none",
    .self_size = sizeof(struct crop_around_boxes),
    .params = params,
    .plan = plan,
    .run = run,
    .guide = ST_GUIDE_BOXES,
};
