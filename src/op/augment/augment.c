/* augment.c - the changes that automatic augmentation chooses from, each with a magnitude
 *
 * Magnitudes are torchvision's, in the same type. Where torch.linspace rounds differently on different
 * CPUs, they are rounded correctly.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/augment/augment.h"

#include "base/functions.h"

#include <math.h>

/* Magnitude `bin` of those from 0 to `most`; there are at least two. */
static double part(double most, int32_t bin, int32_t bins)
{
    return (double)(float)(most * bin / (bins - 1));
}

/* The bits that posterize keeps. */
static int32_t bits_kept(int32_t removed, int32_t bin, int32_t bins)
{
    const float step = (float)((bins - 1) / (double)removed);
    return 8 - (int32_t)rintf((float)bin / step);
}

static double strongest(enum st_augment kind, const struct st_augment_most *most,
                        const struct st_image *image)
{
    const double fraction = 150.0 / 331.0;
    switch (kind) {
    case ST_AUGMENT_SHEAR_X:
    case ST_AUGMENT_SHEAR_Y: return most->shear;
    case ST_AUGMENT_TRANSLATE_X:
        return most->translate > 0 ? most->translate : fraction * st_image_width(image);
    case ST_AUGMENT_TRANSLATE_Y:
        return most->translate > 0 ? most->translate : fraction * st_image_height(image);
    case ST_AUGMENT_ROTATE: return most->rotate;
    default: return most->blend;
    }
}

/* The angle, in degrees, whose tangent is `x` of -1 to 1: by Newton's method, from a close estimate. */
static double arc_tangent(double x)
{
    double angle = x / (1 + 0.28 * x * x);
    for (int k = 0; k < 4; k++) {
        const double s = st_sin(angle), c = st_cos(angle);
        angle -= (s - x * c) / (c + x * s);
    }
    return angle * (180.0 / 3.14159265358979323846);
}

static int move(enum st_augment kind, double magnitude, const struct st_warp_params *params,
                struct st_image *image, const char *op, struct stoker_error *err)
{
    static const double corner[2] = {0, 0};
    const int32_t width = st_image_width(image), height = st_image_height(image);
    const bool shears = kind == ST_AUGMENT_SHEAR_X || kind == ST_AUGMENT_SHEAR_Y;
    struct st_affine affine = {.scale = 1};
    struct st_warp warp;
    int rc = STOKER_OK;
    if (kind == ST_AUGMENT_ROTATE) {
        rc = st_warp_rotation(&warp, magnitude, false, NULL, width, height, op, err);
    } else {
        const bool down = kind == ST_AUGMENT_SHEAR_Y || kind == ST_AUGMENT_TRANSLATE_Y;
        if (shears)
            affine.shear[down] = arc_tangent(magnitude);
        else
            affine.move[down] = trunc(magnitude);
        st_warp_affine(&warp, &affine, shears ? corner : NULL, width, height);
    }
    return rc < 0 ? rc : st_warp_run(params, &warp, image, op, err);
}

int st_augment_run(enum st_augment kind, int32_t bin, int32_t bins, const struct st_augment_most *most,
                   const struct st_warp_params *warp, struct st_rng *rng, struct st_image *image,
                   const char *op, struct stoker_error *err)
{
    static const enum st_pending_kind blends[] = {
        [ST_AUGMENT_BRIGHTNESS] = ST_PENDING_BRIGHTNESS,
        [ST_AUGMENT_COLOR] = ST_PENDING_SATURATION,
        [ST_AUGMENT_CONTRAST] = ST_PENDING_CONTRAST,
        [ST_AUGMENT_SHARPNESS] = ST_PENDING_SHARPNESS,
    };
    const double size = part(strongest(kind, most, image), bin, bins);
    const double magnitude = st_rng_below(rng, 2) ? size : -size;
    struct st_pending pending = {0};
    switch (kind) {
    case ST_AUGMENT_IDENTITY: return STOKER_OK;
    case ST_AUGMENT_SHEAR_X:
    case ST_AUGMENT_SHEAR_Y:
    case ST_AUGMENT_TRANSLATE_X:
    case ST_AUGMENT_TRANSLATE_Y:
    case ST_AUGMENT_ROTATE: return move(kind, magnitude, warp, image, op, err);
    case ST_AUGMENT_POSTERIZE:
        pending.kind = ST_PENDING_POSTERIZE;
        pending.level = st_posterize_mask(bits_kept(most->bits, bin, bins));
        break;
    case ST_AUGMENT_SOLARIZE:
        pending.kind = ST_PENDING_SOLARIZE;
        pending.level = st_solarize_level(part(255, bins - 1 - bin, bins));
        break;
    case ST_AUGMENT_AUTOCONTRAST: pending.kind = ST_PENDING_AUTOCONTRAST; break;
    case ST_AUGMENT_EQUALIZE: pending.kind = ST_PENDING_EQUALIZE; break;
    case ST_AUGMENT_INVERT: pending.kind = ST_PENDING_SOLARIZE; break;
    default:
        pending.kind = blends[kind];
        pending.factor = (float)(1 + magnitude);
    }
    return st_image_do(image, pending, err);
}
