/* rand_augment.c - RandAugment and TrivialAugmentWide: random changes, with one magnitude or any
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/augment/augment.h"

struct rand_augment {
    int32_t ops, magnitude, bins;
    struct st_warp_params warp;
};

#define BINS                                                                                            \
    {                                                                                                   \
        .name = "num_magnitude_bins", .type = ST_PARAM_INT,                                             \
        .offset = offsetof(struct rand_augment, bins), .def = 31, .min = 2, .max = 1e6,                 \
        .help = "how many magnitudes there are"                                                         \
    }

static const struct st_param rand_params[] = {
    {.name = "num_ops",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct rand_augment, ops),
     .def = 2,
     .min = 0,
     .max = 100,
     .help = "how many changes are made one after the other"},
    {.name = "magnitude",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct rand_augment, magnitude),
     .def = 9,
     .min = 0,
     .max = 1e6,
     .help = "of all changes, from 0 to num_magnitude_bins - 1"},
    BINS,
    ST_WARP_PARAMS(struct rand_augment, ST_FILTER_NEAREST),
    {0},
};

static const struct st_param wide_params[] = {
    BINS,
    ST_WARP_PARAMS(struct rand_augment, ST_FILTER_NEAREST),
    {0},
};

static const char rand_name[] = "rand_augment", wide_name[] = "trivial_augment_wide";

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish, const char *name,
                struct stoker_error *err)
{
    const struct rand_augment *r = self;
    const int rc = st_plan_picture(shape, name, err);
    if (rc >= 0 && r->magnitude >= r->bins)
        return st_fail(err, STOKER_EINVAL, "%s: magnitude %d is not below num_magnitude_bins, %d", name,
                       r->magnitude, r->bins);
    return rc < 0 ? rc : st_warp_plan(&r->warp, shape, finish, name, err);
}

static int plan_rand(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                     struct stoker_error *err)
{
    return plan(self, shape, finish, rand_name, err);
}

static int plan_wide(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                     struct stoker_error *err)
{
    return plan(self, shape, finish, wide_name, err);
}

static int run_rand(const void *self, struct st_rng *rng, struct st_image *image,
                    struct stoker_error *err)
{
    static const struct st_augment_most most = {.shear = 0.3, .rotate = 30, .blend = 0.9, .bits = 4};
    const struct rand_augment *r = self;
    int rc = STOKER_OK;
    for (int32_t k = 0; rc >= 0 && k < r->ops; k++) {
        const enum st_augment kind = (enum st_augment)st_rng_below(rng, ST_AUGMENT_CHOICES);
        rc = st_augment_run(kind, r->magnitude, r->bins, &most, &r->warp, rng, image, rand_name, err);
    }
    return rc;
}

static int run_wide(const void *self, struct st_rng *rng, struct st_image *image,
                    struct stoker_error *err)
{
    static const struct st_augment_most most = {
        .shear = 0.99, .rotate = 135, .blend = 0.99, .translate = 32, .bits = 6};
    const struct rand_augment *r = self;
    const enum st_augment kind = (enum st_augment)st_rng_below(rng, ST_AUGMENT_CHOICES);
    const int32_t bin = (int32_t)st_rng_below(rng, (uint64_t)r->bins);
    return st_augment_run(kind, bin, r->bins, &most, &r->warp, rng, image, wide_name, err);
}

const struct st_op st_op_rand_augment = {
    .name = rand_name,
    .help = "makes a few random changes of one magnitude (RandAugment)",
    .self_size = sizeof(struct rand_augment),
    .params = rand_params,
    .plan = plan_rand,
    .run = run_rand,
    .pending = true,
};

const struct st_op st_op_trivial_augment_wide = {
    .name = wide_name,
    .help = "makes one random change of random magnitude (TrivialAugment Wide)",
    .self_size = sizeof(struct rand_augment),
    .params = wide_params,
    .plan = plan_wide,
    .run = run_wide,
    .pending = true,
};
