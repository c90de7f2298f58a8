/* tensor_augment.c - one of the changes of torchvision's AugMix, which makes them to tensors
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "base/text.h"
#include "op/augment/tensor_changes.h"
#include "op/op.h"

#include <math.h>

enum change {
    SHEAR_X, SHEAR_Y, TRANSLATE_X, TRANSLATE_Y, ROTATE,
    BRIGHTNESS, COLOR, CONTRAST, SHARPNESS,
    POSTERIZE, SOLARIZE, AUTO_CONTRAST, EQUALIZE
};

static const char *const words[] = {
    "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color",
    "Contrast", "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize", NULL};

struct tensor_augment {
    int32_t change;
    struct st_list magnitudes, fill;
    bool either_way, fused;
};

static const struct st_param params[] = {
    {.name = "change",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct tensor_augment, change),
     .words = words,
     .required = true,
     .help = "the change, by torchvision's name"},
    {.name = "magnitudes",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct tensor_augment, magnitudes),
     .min = 0,
     .max = 360,
     .help = "of which one is drawn (0); of translations, parts of the side"},
    {.name = "either_way",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct tensor_augment, either_way),
     .max = 1,
     .help = "half of the magnitudes become negative"},
    {.name = "fused",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct tensor_augment, fused),
     .max = 1,
     .help = "with the arithmetic of torchvision's v2"},
    {.name = "fill",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct tensor_augment, fill),
     .max = 255,
     .help = "value of pixels from outside the image, or one per channel; without it they are black, "
             "and not mixed with a border"},
    {0},
};

static const char name[] = "tensor_augment";

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    const struct tensor_augment *a = self;
    if (!shape->mixed)
        return st_fail(err, STOKER_EINVAL, "%s: it has to be inside of augment_and_mix", name);
    if (a->fill.count > 1 && a->fill.count != (uint32_t)shape->channels)
        return st_fail(err, STOKER_EINVAL, "%s: fill has %u values, but the image has %d channel%s",
                       name, a->fill.count, shape->channels, st_s((uint64_t)shape->channels));
    return st_plan_bytes(shape, finish, name, err);
}

static double draw(const struct tensor_augment *a, struct st_rng *rng)
{
    const struct st_list *list = &a->magnitudes;
    const double size = list->count ? list->value[st_rng_below(rng, list->count)] : 0;
    return a->either_way && st_rng_below(rng, 2) ? -size : size;
}

static int no_memory(const struct st_view *view, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: no memory for an image of %d x %d pixels", name, view->width,
                   view->height);
}

/* The map, counted from the middle of the image. */
static void map_of(enum change change, double magnitude, const struct st_view *in, double map[6])
{
    const double radians = magnitude * (3.14159265358979323846 / 180);
    const double identity[6] = {1, 0, 0, 0, 1, 0};
    for (int k = 0; k < 6; k++)
        map[k] = identity[k];
    switch (change) {
    case SHEAR_X:
        map[1] = magnitude;
        map[2] = magnitude * in->height * 0.5; /* the upper left corner stays */
        break;
    case SHEAR_Y:
        map[3] = magnitude;
        map[5] = magnitude * in->width * 0.5;
        break;
    case TRANSLATE_X: map[2] = -truncf((float)(magnitude * in->width)); break;
    case TRANSLATE_Y: map[5] = -truncf((float)(magnitude * in->height)); break;
    default:
        map[0] = map[4] = st_cos(radians);
        map[3] = st_sin(radians);
        map[1] = -map[3];
    }
}

static int move(const struct tensor_augment *a, double magnitude, struct st_image *image,
                struct stoker_error *err)
{
    struct st_view in, out;
    double map[6];
    float fill[4];
    const int rc = st_image_pixels(image, false, false, &in, err);
    if (rc < 0)
        return rc;
    if (!st_view_take(&out, &image->work->arena, in.width, in.height, in.channels))
        return no_memory(&in, err);
    for (uint32_t c = 0; c < 4; c++)
        fill[c] = (float)a->fill.value[c < a->fill.count ? c : 0];
    map_of((enum change)a->change, magnitude, &in, map);
    st_tensor_affine(&in, map, a->fill.count ? fill : NULL, a->fused, &out);
    st_image_set(image, out, false);
    return STOKER_OK;
}

static int change_values(const struct tensor_augment *a, double magnitude, struct st_image *image,
                         struct stoker_error *err)
{
    struct st_view pixels;
    const int rc = st_image_pixels(image, true, false, &pixels, err);
    const double factor = 1 + magnitude;
    if (rc < 0)
        return rc;
    switch (a->change) {
    case BRIGHTNESS: st_tensor_brightness(&pixels, factor); break;
    case COLOR: st_tensor_saturation(&pixels, factor, a->fused); break;
    case CONTRAST: st_tensor_contrast(&pixels, factor, a->fused); break;
    case AUTO_CONTRAST: st_tensor_autocontrast(&pixels, a->fused); break;
    default:
        if (!st_tensor_sharpness(&pixels, factor, a->fused, &image->work->arena))
            return no_memory(&pixels, err);
    }
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct tensor_augment *a = self;
    const double magnitude = draw(a, rng);
    switch (a->change) {
    case SHEAR_X:
    case SHEAR_Y:
    case TRANSLATE_X:
    case TRANSLATE_Y:
    case ROTATE: return move(a, magnitude, image, err);
    case POSTERIZE:
        return st_image_do(image,
                           (struct st_pending){.kind = ST_PENDING_POSTERIZE,
                                               .level = st_posterize_mask((int32_t)fmin(magnitude, 8))},
                           err);
    case SOLARIZE:
        return st_image_do(image,
                           (struct st_pending){.kind = ST_PENDING_SOLARIZE,
                                               .level = st_solarize_level(magnitude)},
                           err);
    case EQUALIZE: return st_image_do(image, (struct st_pending){.kind = ST_PENDING_EQUALIZE}, err);
    default: return change_values(a, magnitude, image, err);
    }
}

const struct st_op st_op_tensor_augment = {
    .name = name,
    .help = "makes one of the changes of torchvision's AugMix, with its arithmetic for tensors",
    .self_size = sizeof(struct tensor_augment),
    .params = params,
    .plan = plan,
    .run = run,
};
