/* jpeg.c - the loss of a JPEG of random quality
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg_recode.h"
#include "op/op.h"

#include <math.h>

struct jpeg {
    struct st_list quality;
    bool swapped;
};

static const struct st_param params[] = {
    {.name = "quality",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct jpeg, quality),
     .min = 1,
     .max = 100,
     .required = true,
     .help = "low and high quality, or one quality; integers"},
    {.name = "swapped",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct jpeg, swapped),
     .help = "red and blue are taken for each other, as Albumentations does"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct jpeg *j = self;
    int rc = st_plan_bytes(shape, finish, "jpeg", err);
    if (rc >= 0 && j->quality.count == 1)
        j->quality = (struct st_list){.count = 2, .value = {j->quality.value[0], j->quality.value[0]}};
    if (rc >= 0)
        rc = st_param_range(&j->quality, "jpeg", "quality", 1, 100, err);
    for (uint32_t k = 0; rc >= 0 && k < 2; k++)
        if (j->quality.value[k] != floor(j->quality.value[k]))
            rc = st_fail(err, STOKER_EINVAL, "jpeg: quality must be integers, and %g is none",
                         j->quality.value[k]);
    return rc;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct jpeg *j = self;
    const int32_t low = (int32_t)j->quality.value[0], high = (int32_t)j->quality.value[1];
    const int32_t quality = low + (int32_t)st_rng_below(rng, (uint64_t)(high - low + 1));
    struct st_work *work = image->work;
    struct st_view in, out;
    if (image->numbers || image->boxes)
        return STOKER_OK;
    int rc = st_image_pixels(image, false, false, &in, err);
    if (rc >= 0)
        rc = st_jpeg_recode(&in, quality, j->swapped, work->level, &work->arena, &out, err);
    if (rc >= 0)
        st_image_set(image, out, false);
    return rc;
}

const struct st_op st_op_jpeg = {
    .name = "jpeg",
    .help = "the loss of a JPEG of random quality",
    .self_size = sizeof(struct jpeg),
    .params = params,
    .plan = plan,
    .run = run,
};
