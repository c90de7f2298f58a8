/* timm_augment.c - one of the changes of timm's RandAugment and AutoAugment, drawn with its magnitude
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/filter/pillow_blur.h"
#include "op/geometry/warp_op.h"

#include <math.h>
#include <string.h>

/* In the order of `words`. */
enum change {
    AUTO_CONTRAST, EQUALIZE, INVERT, ROTATE,
    POSTERIZE, POSTERIZE_INCREASING, POSTERIZE_ORIGINAL,
    SOLARIZE, SOLARIZE_INCREASING, SOLARIZE_ADD,
    COLOR, COLOR_INCREASING, CONTRAST, CONTRAST_INCREASING,
    BRIGHTNESS, BRIGHTNESS_INCREASING, SHARPNESS, SHARPNESS_INCREASING,
    SHEAR_X, SHEAR_Y, TRANSLATE_X, TRANSLATE_Y, TRANSLATE_X_REL, TRANSLATE_Y_REL,
    DESATURATE, GAUSSIAN_BLUR, GAUSSIAN_BLUR_RAND
};

static const char *const words[] = {
    "AutoContrast", "Equalize", "Invert", "Rotate",
    "Posterize", "PosterizeIncreasing", "PosterizeOriginal",
    "Solarize", "SolarizeIncreasing", "SolarizeAdd",
    "Color", "ColorIncreasing", "Contrast", "ContrastIncreasing",
    "Brightness", "BrightnessIncreasing", "Sharpness", "SharpnessIncreasing",
    "ShearX", "ShearY", "TranslateX", "TranslateY", "TranslateXRel", "TranslateYRel",
    "Desaturate", "GaussianBlur", "GaussianBlurRand", NULL};

enum { MAGNITUDE_MOST = 10, EVEN = -1, ANY_FILTER = ST_FILTERS };

static const char *const filter_words[] = {"nearest", "box",     "bilinear", "hamming",
                                           "bicubic", "lanczos", "random",   NULL};

struct timm_augment {
    int32_t change;
    double p, magnitude, spread, most, translate;
    struct st_warp_params warp; /* filter: or ANY_FILTER, bilinear or bicubic */
};

static const struct st_param params[] = {
    {.name = "change",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct timm_augment, change),
     .words = words,
     .required = true,
     .help = "the change, by timm's name"},
    {.name = "p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct timm_augment, p),
     .def = 0.5,
     .max = 1,
     .help = "probability"},
    {.name = "magnitude",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct timm_augment, magnitude),
     .def = MAGNITUDE_MOST,
     .min = -1e6,
     .max = 1e6,
     .help = "the magnitude, of which 10 is the full one"},
    {.name = "magnitude_std",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct timm_augment, spread),
     .min = EVEN,
     .max = 1e6,
     .help = "standard deviation of the magnitude; -1: anything from 0 to magnitude, equally likely"},
    {.name = "magnitude_max",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct timm_augment, most),
     .def = MAGNITUDE_MOST,
     .max = 1e6,
     .help = "what is drawn is limited to 0 and this"},
    {.name = "translate",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct timm_augment, translate),
     .min = -1e6,
     .max = 1e6,
     .help = "the full translation: in pixels, for TranslateXRel and TranslateYRel a part of the side"},
    {.name = "interpolation",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct timm_augment, warp.filter),
     .def = ANY_FILTER,
     .words = filter_words,
     .help = "nearest, bilinear, bicubic, or random: bilinear or bicubic"},
    {.name = "fill",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct timm_augment, warp.fill),
     .max = 255,
     .help = "value of pixels from outside the image, or one per channel"},
    {.name = "mask_fill",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct timm_augment, warp.mask_fill),
     .max = 255,
     .help = "value of such pixels of masks"},
    {0},
};

static const char name[] = "timm_augment";

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    const struct timm_augment *a = self;
    struct st_warp_params warp = a->warp;
    const int rc = st_plan_picture(shape, name, err);
    if (warp.filter == ANY_FILTER)
        warp.filter = ST_FILTER_BILINEAR;
    return rc < 0 ? rc : st_warp_plan(&warp, shape, finish, name, err);
}

/* The magnitude as a fraction of the full one. */
static double draw_level(const struct timm_augment *a, struct st_rng *rng)
{
    double magnitude = a->magnitude;
    if (a->spread == EVEN)
        magnitude *= st_rng_f64(rng);
    else if (a->spread > 0)
        magnitude += a->spread * st_rng_normal(rng);
    return fmax(0, fmin(magnitude, a->most)) / MAGNITUDE_MOST;
}

static double either_way(struct st_rng *rng, double x) { return st_rng_below(rng, 2) ? x : -x; }

/* ---- moving pixels ------------------------------------------------------------------------------ */

/* Sets one number of the identity: it shears or moves. */
static void set(struct st_warp *warp, int k, double to)
{
    warp->map[k] = to;
    warp->forward[k] = -to;
}

static int move(const struct timm_augment *a, double level, struct st_rng *rng, struct st_image *image,
                struct stoker_error *err)
{
    const int32_t width = st_image_width(image), height = st_image_height(image);
    struct st_warp warp = {.kind = ST_WARP_AFFINE,
                           .width = width,
                           .height = height,
                           .map = {1, 0, 0, 0, 1, 0},
                           .forward = {1, 0, 0, 0, 1, 0}};
    struct st_warp_params how = a->warp;
    int rc = STOKER_OK;
    if (how.filter == ANY_FILTER)
        how.filter = st_rng_below(rng, 2) ? ST_FILTER_BILINEAR : ST_FILTER_BICUBIC;
    switch (a->change) {
    case ROTATE:
        rc = st_warp_rotation(&warp, either_way(rng, level * 30), false, NULL, width, height, name, err);
        break;
    case SHEAR_X: set(&warp, 1, either_way(rng, level * 0.3)); break;
    case SHEAR_Y: set(&warp, 3, either_way(rng, level * 0.3)); break;
    case TRANSLATE_X: set(&warp, 2, either_way(rng, level * a->translate)); break;
    case TRANSLATE_Y: set(&warp, 5, either_way(rng, level * a->translate)); break;
    case TRANSLATE_X_REL: set(&warp, 2, either_way(rng, level * a->translate) * width); break;
    default: set(&warp, 5, either_way(rng, level * a->translate) * height);
    }
    return rc < 0 ? rc : st_warp_run(&how, &warp, image, name, err);
}

/* ---- changing values ---------------------------------------------------------------------------- */

/* The standard deviation of a blur, from `low` to 2. */
static double blurred_by(enum change change, double level, struct st_rng *rng)
{
    const double low = 0.1, high = 2;
    if (change == GAUSSIAN_BLUR)
        return fmax(low, fmin(high, low + (high - low) * level));
    return low + (high * fmin(1, level) - low) * st_rng_f64(rng);
}

static struct st_pending posterized(double bits)
{
    const int32_t kept = (int32_t)fmax(0, fmin(bits, 8));
    return (struct st_pending){.kind = ST_PENDING_POSTERIZE, .level = st_posterize_mask(kept)};
}

static struct st_pending solarized(double level)
{
    return (struct st_pending){.kind = ST_PENDING_SOLARIZE, .level = st_solarize_level(level)};
}

static struct st_pending blended(enum st_pending_kind kind, double factor)
{
    return (struct st_pending){.kind = kind, .factor = (float)factor};
}

/* The pending op for a magnitude; numbers are truncated where timm makes integers of them. */
static struct st_pending recorded(enum change change, double level, struct st_rng *rng)
{
    static const enum st_pending_kind blends[] = {
        [COLOR] = ST_PENDING_SATURATION,       [COLOR_INCREASING] = ST_PENDING_SATURATION,
        [CONTRAST] = ST_PENDING_CONTRAST,      [CONTRAST_INCREASING] = ST_PENDING_CONTRAST,
        [BRIGHTNESS] = ST_PENDING_BRIGHTNESS,  [BRIGHTNESS_INCREASING] = ST_PENDING_BRIGHTNESS,
        [SHARPNESS] = ST_PENDING_SHARPNESS,    [SHARPNESS_INCREASING] = ST_PENDING_SHARPNESS,
    };
    switch (change) {
    case AUTO_CONTRAST: return (struct st_pending){.kind = ST_PENDING_AUTOCONTRAST};
    case EQUALIZE: return (struct st_pending){.kind = ST_PENDING_EQUALIZE};
    case INVERT: return solarized(0);
    case POSTERIZE: return posterized(trunc(level * 4));
    case POSTERIZE_INCREASING: return posterized(4 - trunc(level * 4));
    case POSTERIZE_ORIGINAL: return posterized(trunc(level * 4) + 4);
    case SOLARIZE_ADD:
        return (struct st_pending){.kind = ST_PENDING_LIGHTEN,
                                   .level = (uint32_t)fmin(128, trunc(level * 110))};
    case SOLARIZE: return solarized(fmin(256, trunc(level * 256)));
    case SOLARIZE_INCREASING: return solarized(256 - fmin(256, trunc(level * 256)));
    case DESATURATE:
        return blended(ST_PENDING_SATURATION, 1 - fmax(0.5, fmin(1, 0.5 + 0.5 * level)));
    case COLOR:
    case CONTRAST:
    case BRIGHTNESS:
    case SHARPNESS: return blended(blends[change], level * 1.8 + 0.1);
    default: return blended(blends[change], fmax(0.1, 1 + either_way(rng, level * 0.9)));
    }
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct timm_augment *a = self;
    if (!(st_rng_f64(rng) < a->p))
        return STOKER_OK;
    const double level = draw_level(a, rng);
    switch (a->change) {
    case ROTATE:
    case SHEAR_X:
    case SHEAR_Y:
    case TRANSLATE_X:
    case TRANSLATE_Y:
    case TRANSLATE_X_REL:
    case TRANSLATE_Y_REL: return move(a, level, rng, image, err);
    case GAUSSIAN_BLUR:
    case GAUSSIAN_BLUR_RAND:
        return st_pillow_blur(image, blurred_by((enum change)a->change, level, rng), name, err);
    default: return st_image_do(image, recorded((enum change)a->change, level, rng), err);
    }
}

const struct st_op st_op_timm_augment = {
    .name = name,
    .help = "makes one of the changes of timm's RandAugment and AutoAugment with probability p",
    .self_size = sizeof(struct timm_augment),
    .params = params,
    .plan = plan,
    .run = run,
    .pending = true,
};
