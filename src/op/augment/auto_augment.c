/* auto_augment.c - AutoAugment: one of the learned pairs of changes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/augment/augment.h"

enum { IMAGENET, CIFAR10, SVHN, POLICIES, PAIRS = 25, BINS = 10 };

struct step {
    enum st_augment kind;
    double p;
    int32_t bin;
};

/* From Cubuk et al., "AutoAugment: Learning Augmentation Strategies from Data". */
static const struct step policies[POLICIES][PAIRS][2] = {
    [IMAGENET] = {
        {{ST_AUGMENT_POSTERIZE, 0.4, 8}, {ST_AUGMENT_ROTATE, 0.6, 9}},
        {{ST_AUGMENT_SOLARIZE, 0.6, 5}, {ST_AUGMENT_AUTOCONTRAST, 0.6, 0}},
        {{ST_AUGMENT_EQUALIZE, 0.8, 0}, {ST_AUGMENT_EQUALIZE, 0.6, 0}},
        {{ST_AUGMENT_POSTERIZE, 0.6, 7}, {ST_AUGMENT_POSTERIZE, 0.6, 6}},
        {{ST_AUGMENT_EQUALIZE, 0.4, 0}, {ST_AUGMENT_SOLARIZE, 0.2, 4}},
        {{ST_AUGMENT_EQUALIZE, 0.4, 0}, {ST_AUGMENT_ROTATE, 0.8, 8}},
        {{ST_AUGMENT_SOLARIZE, 0.6, 3}, {ST_AUGMENT_EQUALIZE, 0.6, 0}},
        {{ST_AUGMENT_POSTERIZE, 0.8, 5}, {ST_AUGMENT_EQUALIZE, 1.0, 0}},
        {{ST_AUGMENT_ROTATE, 0.2, 3}, {ST_AUGMENT_SOLARIZE, 0.6, 8}},
        {{ST_AUGMENT_EQUALIZE, 0.6, 0}, {ST_AUGMENT_POSTERIZE, 0.4, 6}},
        {{ST_AUGMENT_ROTATE, 0.8, 8}, {ST_AUGMENT_COLOR, 0.4, 0}},
        {{ST_AUGMENT_ROTATE, 0.4, 9}, {ST_AUGMENT_EQUALIZE, 0.6, 0}},
        {{ST_AUGMENT_EQUALIZE, 0.0, 0}, {ST_AUGMENT_EQUALIZE, 0.8, 0}},
        {{ST_AUGMENT_INVERT, 0.6, 0}, {ST_AUGMENT_EQUALIZE, 1.0, 0}},
        {{ST_AUGMENT_COLOR, 0.6, 4}, {ST_AUGMENT_CONTRAST, 1.0, 8}},
        {{ST_AUGMENT_ROTATE, 0.8, 8}, {ST_AUGMENT_COLOR, 1.0, 2}},
        {{ST_AUGMENT_COLOR, 0.8, 8}, {ST_AUGMENT_SOLARIZE, 0.8, 7}},
        {{ST_AUGMENT_SHARPNESS, 0.4, 7}, {ST_AUGMENT_INVERT, 0.6, 0}},
        {{ST_AUGMENT_SHEAR_X, 0.6, 5}, {ST_AUGMENT_EQUALIZE, 1.0, 0}},
        {{ST_AUGMENT_COLOR, 0.4, 0}, {ST_AUGMENT_EQUALIZE, 0.6, 0}},
        {{ST_AUGMENT_EQUALIZE, 0.4, 0}, {ST_AUGMENT_SOLARIZE, 0.2, 4}},
        {{ST_AUGMENT_SOLARIZE, 0.6, 5}, {ST_AUGMENT_AUTOCONTRAST, 0.6, 0}},
        {{ST_AUGMENT_INVERT, 0.6, 0}, {ST_AUGMENT_EQUALIZE, 1.0, 0}},
        {{ST_AUGMENT_COLOR, 0.6, 4}, {ST_AUGMENT_CONTRAST, 1.0, 8}},
        {{ST_AUGMENT_EQUALIZE, 0.8, 0}, {ST_AUGMENT_EQUALIZE, 0.6, 0}},
    },
    [CIFAR10] = {
        {{ST_AUGMENT_INVERT, 0.1, 0}, {ST_AUGMENT_CONTRAST, 0.2, 6}},
        {{ST_AUGMENT_ROTATE, 0.7, 2}, {ST_AUGMENT_TRANSLATE_X, 0.3, 9}},
        {{ST_AUGMENT_SHARPNESS, 0.8, 1}, {ST_AUGMENT_SHARPNESS, 0.9, 3}},
        {{ST_AUGMENT_SHEAR_Y, 0.5, 8}, {ST_AUGMENT_TRANSLATE_Y, 0.7, 9}},
        {{ST_AUGMENT_AUTOCONTRAST, 0.5, 0}, {ST_AUGMENT_EQUALIZE, 0.9, 0}},
        {{ST_AUGMENT_SHEAR_Y, 0.2, 7}, {ST_AUGMENT_POSTERIZE, 0.3, 7}},
        {{ST_AUGMENT_COLOR, 0.4, 3}, {ST_AUGMENT_BRIGHTNESS, 0.6, 7}},
        {{ST_AUGMENT_SHARPNESS, 0.3, 9}, {ST_AUGMENT_BRIGHTNESS, 0.7, 9}},
        {{ST_AUGMENT_EQUALIZE, 0.6, 0}, {ST_AUGMENT_EQUALIZE, 0.5, 0}},
        {{ST_AUGMENT_CONTRAST, 0.6, 7}, {ST_AUGMENT_SHARPNESS, 0.6, 5}},
        {{ST_AUGMENT_COLOR, 0.7, 7}, {ST_AUGMENT_TRANSLATE_X, 0.5, 8}},
        {{ST_AUGMENT_EQUALIZE, 0.3, 0}, {ST_AUGMENT_AUTOCONTRAST, 0.4, 0}},
        {{ST_AUGMENT_TRANSLATE_Y, 0.4, 3}, {ST_AUGMENT_SHARPNESS, 0.2, 6}},
        {{ST_AUGMENT_BRIGHTNESS, 0.9, 6}, {ST_AUGMENT_COLOR, 0.2, 8}},
        {{ST_AUGMENT_SOLARIZE, 0.5, 2}, {ST_AUGMENT_INVERT, 0.0, 0}},
        {{ST_AUGMENT_EQUALIZE, 0.2, 0}, {ST_AUGMENT_AUTOCONTRAST, 0.6, 0}},
        {{ST_AUGMENT_EQUALIZE, 0.2, 0}, {ST_AUGMENT_EQUALIZE, 0.6, 0}},
        {{ST_AUGMENT_COLOR, 0.9, 9}, {ST_AUGMENT_EQUALIZE, 0.6, 0}},
        {{ST_AUGMENT_AUTOCONTRAST, 0.8, 0}, {ST_AUGMENT_SOLARIZE, 0.2, 8}},
        {{ST_AUGMENT_BRIGHTNESS, 0.1, 3}, {ST_AUGMENT_COLOR, 0.7, 0}},
        {{ST_AUGMENT_SOLARIZE, 0.4, 5}, {ST_AUGMENT_AUTOCONTRAST, 0.9, 0}},
        {{ST_AUGMENT_TRANSLATE_Y, 0.9, 9}, {ST_AUGMENT_TRANSLATE_Y, 0.7, 9}},
        {{ST_AUGMENT_AUTOCONTRAST, 0.9, 0}, {ST_AUGMENT_SOLARIZE, 0.8, 3}},
        {{ST_AUGMENT_EQUALIZE, 0.8, 0}, {ST_AUGMENT_INVERT, 0.1, 0}},
        {{ST_AUGMENT_TRANSLATE_Y, 0.7, 9}, {ST_AUGMENT_AUTOCONTRAST, 0.9, 0}},
    },
    [SVHN] = {
        {{ST_AUGMENT_SHEAR_X, 0.9, 4}, {ST_AUGMENT_INVERT, 0.2, 0}},
        {{ST_AUGMENT_SHEAR_Y, 0.9, 8}, {ST_AUGMENT_INVERT, 0.7, 0}},
        {{ST_AUGMENT_EQUALIZE, 0.6, 0}, {ST_AUGMENT_SOLARIZE, 0.6, 6}},
        {{ST_AUGMENT_INVERT, 0.9, 0}, {ST_AUGMENT_EQUALIZE, 0.6, 0}},
        {{ST_AUGMENT_EQUALIZE, 0.6, 0}, {ST_AUGMENT_ROTATE, 0.9, 3}},
        {{ST_AUGMENT_SHEAR_X, 0.9, 4}, {ST_AUGMENT_AUTOCONTRAST, 0.8, 0}},
        {{ST_AUGMENT_SHEAR_Y, 0.9, 8}, {ST_AUGMENT_INVERT, 0.4, 0}},
        {{ST_AUGMENT_SHEAR_Y, 0.9, 5}, {ST_AUGMENT_SOLARIZE, 0.2, 6}},
        {{ST_AUGMENT_INVERT, 0.9, 0}, {ST_AUGMENT_AUTOCONTRAST, 0.8, 0}},
        {{ST_AUGMENT_EQUALIZE, 0.6, 0}, {ST_AUGMENT_ROTATE, 0.9, 3}},
        {{ST_AUGMENT_SHEAR_X, 0.9, 4}, {ST_AUGMENT_SOLARIZE, 0.3, 3}},
        {{ST_AUGMENT_SHEAR_Y, 0.8, 8}, {ST_AUGMENT_INVERT, 0.7, 0}},
        {{ST_AUGMENT_EQUALIZE, 0.9, 0}, {ST_AUGMENT_TRANSLATE_Y, 0.6, 6}},
        {{ST_AUGMENT_INVERT, 0.9, 0}, {ST_AUGMENT_EQUALIZE, 0.6, 0}},
        {{ST_AUGMENT_CONTRAST, 0.3, 3}, {ST_AUGMENT_ROTATE, 0.8, 4}},
        {{ST_AUGMENT_INVERT, 0.8, 0}, {ST_AUGMENT_TRANSLATE_Y, 0.0, 2}},
        {{ST_AUGMENT_SHEAR_Y, 0.7, 6}, {ST_AUGMENT_SOLARIZE, 0.4, 8}},
        {{ST_AUGMENT_INVERT, 0.6, 0}, {ST_AUGMENT_ROTATE, 0.8, 4}},
        {{ST_AUGMENT_SHEAR_Y, 0.3, 7}, {ST_AUGMENT_TRANSLATE_X, 0.9, 3}},
        {{ST_AUGMENT_SHEAR_X, 0.1, 6}, {ST_AUGMENT_INVERT, 0.6, 0}},
        {{ST_AUGMENT_SOLARIZE, 0.7, 2}, {ST_AUGMENT_TRANSLATE_Y, 0.6, 7}},
        {{ST_AUGMENT_SHEAR_Y, 0.8, 4}, {ST_AUGMENT_INVERT, 0.8, 0}},
        {{ST_AUGMENT_SHEAR_X, 0.7, 9}, {ST_AUGMENT_TRANSLATE_Y, 0.8, 3}},
        {{ST_AUGMENT_SHEAR_Y, 0.8, 5}, {ST_AUGMENT_AUTOCONTRAST, 0.7, 0}},
        {{ST_AUGMENT_SHEAR_X, 0.7, 2}, {ST_AUGMENT_INVERT, 0.1, 0}},
    },
};

struct auto_augment {
    int32_t policy;
    struct st_warp_params warp;
};

static const char *const policy_words[] = {"imagenet", "cifar10", "svhn", NULL};

static const struct st_param params[] = {
    {.name = "policy",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct auto_augment, policy),
     .words = policy_words,
     .help = "the dataset that the changes were learned on"},
    ST_WARP_PARAMS(struct auto_augment, ST_FILTER_NEAREST),
    {0},
};

static const char name[] = "auto_augment";

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    const struct auto_augment *a = self;
    const int rc = st_plan_picture(shape, name, err);
    return rc < 0 ? rc : st_warp_plan(&a->warp, shape, finish, name, err);
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    static const struct st_augment_most most = {.shear = 0.3, .rotate = 30, .blend = 0.9, .bits = 4};
    const struct auto_augment *a = self;
    const struct step *pair = policies[a->policy][st_rng_below(rng, PAIRS)];
    int rc = STOKER_OK;
    for (int k = 0; rc >= 0 && k < 2; k++)
        if (st_rng_f64(rng) < pair[k].p)
            rc = st_augment_run(pair[k].kind, pair[k].bin, BINS, &most, &a->warp, rng, image, name, err);
    return rc;
}

const struct st_op st_op_auto_augment = {
    .name = name,
    .help = "makes one of 25 learned pairs of changes (AutoAugment)",
    .self_size = sizeof(struct auto_augment),
    .params = params,
    .plan = plan,
    .run = run,
    .pending = true,
};
