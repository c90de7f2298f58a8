/* crop_around_boxes.c - crops a random part with all boxes, as Albumentations' BBoxSafeRandomCrop does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/chosen_crop.h"

static const struct st_param params[] = {{0}};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)self;
    (void)finish;
    shape->width = shape->height = ST_SIZE_DIFFERS;
    return st_plan_movable(shape, "crop_around_boxes", err);
}

static double within(double at, double most) { return at > 0 ? (at < most ? at : most) : 0; }

/* Each side is drawn between that of all boxes and that of the image. */
static int choose(const void *self, struct st_rng *rng, struct st_image *guide, struct st_region *out,
                  struct stoker_error *err)
{
    (void)self;
    const struct st_boxes *boxes = guide->boxes;
    const int32_t size[2] = {st_image_width(guide), st_image_height(guide)};
    uint32_t begin[2] = {0, 0}, end[2] = {(uint32_t)size[0], (uint32_t)size[1]};
    for (int k = 0; k < 2 && boxes->count; k++) {
        double least = size[k], most = 0;
        /* Not fmin() and fmax(), of which GCC 12 for aarch64 makes an internal error. */
        for (uint64_t b = 0; b < boxes->count; b++) {
            const double from = boxes->box[b][k], to = boxes->box[b][k + 2];
            least = from < least ? from : least;
            most = to > most ? to : most;
        }
        least = within(least, size[k]);
        most = within(most, size[k]);
        begin[k] = (uint32_t)(least * st_rng_f64(rng));
        end[k] = (uint32_t)(most + (size[k] - most) * st_rng_f64(rng));
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
    .params = params,
    .plan = plan,
    .run = run,
    .guide = ST_GUIDE_BOXES,
};
