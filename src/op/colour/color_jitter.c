/* color_jitter.c - random changes of brightness, contrast, saturation and hue, in random order
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, CHANGES };
static const enum st_pending_kind pending_of[CHANGES] = {ST_PENDING_BRIGHTNESS, ST_PENDING_CONTRAST,
                                                         ST_PENDING_SATURATION, ST_PENDING_HUE};

struct color_jitter {
    struct st_list range[CHANGES];
    bool active[CHANGES]; /* the range contains more than the neutral factor */
};

#define RANGE(text, which, low, high, what)                                                             \
    {                                                                                                   \
        .name = text, .type = ST_PARAM_LIST, .offset = offsetof(struct color_jitter, range[which]),     \
        .min = low, .max = high, .help = what                                                           \
    }

static const struct st_param params[] = {
    RANGE("brightness", BRIGHTNESS, 0, 1e6, "maximum change, or low and high factor"),
    RANGE("contrast", CONTRAST, 0, 1e6, "maximum change, or low and high factor"),
    RANGE("saturation", SATURATION, 0, 1e6, "maximum change, or low and high factor"),
    RANGE("hue", HUE, -0.5, 0.5, "maximum shift as a fraction of the colour circle, or low and high"),
    {0},
};

static const char *const names[CHANGES] = {"brightness", "contrast", "saturation", "hue"};

/* A single number is a distance from the neutral factor; factors are at least 0. */
static int settle(struct st_list *range, int which, bool *active, struct stoker_error *err)
{
    const double centre = which == HUE ? 0 : 1;
    if (range->count == 1) {
        const double by = range->value[0];
        if (by < 0)
            return st_fail(err, STOKER_EINVAL,
                           "color_jitter: %s as a single number must not be negative", names[which]);
        const double low = centre - by;
        *range = (struct st_list){.count = 2, .value = {which != HUE && low < 0 ? 0 : low, centre + by}};
    }
    const int rc = st_param_range(range, "color_jitter", names[which], centre, centre, err);
    *active = range->value[0] != centre || range->value[1] != centre;
    return rc;
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)finish;
    struct color_jitter *j = self;
    int rc = st_plan_picture(shape, "color_jitter", err);
    for (int i = 0; rc >= 0 && i < CHANGES; i++)
        rc = settle(&j->range[i], i, &j->active[i], err);
    return rc;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct color_jitter *j = self;
    int order[CHANGES] = {BRIGHTNESS, CONTRAST, SATURATION, HUE};
    float factor[CHANGES] = {0};
    for (int i = CHANGES - 1; i > 0; i--) {
        const int other = (int)st_rng_below(rng, (uint64_t)i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < CHANGES; i++)
        if (j->active[i])
            factor[i] = (float)st_rng_range(rng, j->range[i].value[0], j->range[i].value[1]);
    int rc = STOKER_OK;
    for (int i = 0; rc >= 0 && i < CHANGES; i++)
        if (j->active[order[i]])
            rc = st_image_do(
                image, (struct st_pending){.kind = pending_of[order[i]], .factor = factor[order[i]]},
                err);
    return rc;
}

const struct st_op st_op_color_jitter = {
    .name = "color_jitter",
    .help = "changes brightness, contrast, saturation and hue at random",
    .self_size = sizeof(struct color_jitter),
    .params = params,
    .plan = plan,
    .run = run,
    .pending = true,
};
