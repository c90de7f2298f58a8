/* random_photometric_distort.c - random changes of colours, and of the order of channels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, CHANGES };

struct distort {
    struct st_list range[CHANGES];
    double p;
};

#define RANGE(text, which, low, high, what)                                                             \
    {                                                                                                   \
        .name = text, .type = ST_PARAM_LIST, .offset = offsetof(struct distort, range[which]),          \
        .min = low, .max = high, .help = what                                                           \
    }

static const struct st_param params[] = {
    RANGE("brightness", BRIGHTNESS, 0, 1e6, "low and high factor (0.875, 1.125)"),
    RANGE("contrast", CONTRAST, 0, 1e6, "low and high factor (0.5, 1.5)"),
    RANGE("saturation", SATURATION, 0, 1e6, "low and high factor (0.5, 1.5)"),
    RANGE("hue", HUE, -0.5, 0.5, "low and high shift as a fraction of the colour circle (-0.05, 0.05)"),
    {.name = "p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct distort, p),
     .def = 0.5,
     .max = 1,
     .help = "probability of each change"},
    {0},
};

static const struct st_param no_params[] = {{0}};

static int permute(struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    static const uint32_t orders[] = {0x210, 0x120, 0x201, 0x021, 0x102, 0x012};
    const uint32_t order = orders[st_rng_below(rng, sizeof orders / sizeof *orders)];
    return st_image_do(image, (struct st_pending){.kind = ST_PENDING_PERMUTE, .level = order}, err);
}

static int plan_permutation(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                            struct stoker_error *err)
{
    (void)self;
    return st_plan_bytes(shape, finish, "random_channel_permutation", err);
}

static int run_permutation(const void *self, struct st_rng *rng, struct st_image *image,
                           struct stoker_error *err)
{
    (void)self;
    return permute(rng, image, err);
}

static int plan_distort(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                        struct stoker_error *err)
{
    static const struct {
        const char *name;
        double low, high;
    } usual[CHANGES] = {{"brightness", 0.875, 1.125},
                        {"contrast", 0.5, 1.5},
                        {"saturation", 0.5, 1.5},
                        {"hue", -0.05, 0.05}};
    struct distort *d = self;
    (void)finish;
    int rc = st_plan_picture(shape, "random_photometric_distort", err);
    for (int i = 0; rc >= 0 && i < CHANGES; i++)
        rc = st_param_range(&d->range[i], "random_photometric_distort", usual[i].name, usual[i].low,
                            usual[i].high, err);
    return rc;
}

static int run_distort(const void *self, struct st_rng *rng, struct st_image *image,
                       struct stoker_error *err)
{
    static const struct {
        enum st_pending_kind kind;
        int change;
    } steps[] = {{ST_PENDING_BRIGHTNESS, BRIGHTNESS},
                 {ST_PENDING_CONTRAST, CONTRAST}, /* here, or at the end */
                 {ST_PENDING_SATURATION, SATURATION},
                 {ST_PENDING_HUE, HUE},
                 {ST_PENDING_CONTRAST, CONTRAST}};
    const struct distort *d = self;
    float factor[CHANGES];
    bool active[CHANGES];
    int rc = STOKER_OK;
    for (int i = 0; i < CHANGES; i++) {
        active[i] = st_rng_f64(rng) < d->p;
        factor[i] = (float)st_rng_range(rng, d->range[i].value[0], d->range[i].value[1]);
    }
    const int skipped = st_rng_f64(rng) < 0.5 ? 4 : 1;
    for (int i = 0; rc >= 0 && i < 5; i++)
        if (i != skipped && active[steps[i].change])
            rc = st_image_do(
                image, (struct st_pending){.kind = steps[i].kind, .factor = factor[steps[i].change]},
                err);
    return rc >= 0 && st_rng_f64(rng) < d->p ? permute(rng, image, err) : rc;
}

const struct st_op st_op_random_channel_permutation = {
    .name = "random_channel_permutation",
    .help = "puts the channels into random order",
    .self_size = 1,
    .params = no_params,
    .plan = plan_permutation,
    .run = run_permutation,
    .pending = true,
};

const struct st_op st_op_random_photometric_distort = {
    .name = "random_photometric_distort",
    .help = "changes colours and the order of channels, each with probability p",
    .self_size = sizeof(struct distort),
    .params = params,
    .plan = plan_distort,
    .run = run_distort,
    .pending = true,
};
