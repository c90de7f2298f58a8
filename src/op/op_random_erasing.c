/* op_random_erasing.c - overwrites a random box of the finished tensor
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include <string.h>

struct random_erasing {
    double p;
    struct st_list scale, ratio, value;
    bool inplace;   /* there is nothing else */
    bool bytes;     /* the tensor is made of bytes at this point */
    uint32_t first; /* the first normalize step that comes after it */
};

static const char *const value_words[] = {"random", NULL};

static const struct st_param params[] = {
    {.name = "p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_erasing, p),
     .def = 0.5,
     .max = 1,
     .help = "how often"},
    {.name = "scale",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_erasing, scale),
     .max = 1,
     .help = "the box's area, as a share of the image's: low, high (0.02, 0.33)"},
    {.name = "ratio",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_erasing, ratio),
     .min = 1e-6,
     .max = 1e6,
     .help = "the box's height by its width: low, high (0.3, 3.3)"},
    {.name = "value",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_erasing, value),
     .min = -1e30,
     .max = 1e30,
     .words = value_words,
     .help = "a number, one for each channel, or random"},
    {.name = "inplace",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct random_erasing, inplace),
     .max = 1,
     .help = "accepted and ignored"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct random_erasing *e = self;
    if (!shape->tensor)
        return st_fail(err, STOKER_EINVAL,
                       "random_erasing: wants a tensor; move it behind to_tensor (or "
                       "pil_to_tensor)");
    int rc = st_param_range(&e->scale, "random_erasing", "scale", 0.02, 0.33, err);
    if (rc >= 0)
        rc = st_param_range(&e->ratio, "random_erasing", "ratio", 0.3, 3.3, err);
    if (rc < 0)
        return rc;
    if (e->value.count > 1 && e->value.count != (uint32_t)shape->channels)
        return st_fail(err, STOKER_EINVAL,
                       "random_erasing: value has %u numbers, but the image %d channels", e->value.count,
                       shape->channels);
    e->bytes = finish->dtype == STOKER_U8;
    e->first = finish->steps;
    shape->erased = true;
    return STOKER_OK;
}

/* The bits of a value that is written here and goes through what follows. */
static uint32_t final_bits(const struct random_erasing *e, const struct st_finish_spec *spec,
                           enum stoker_dtype dtype, int32_t channel, double value)
{
    float v = (float)value;
    if (e->bytes) {
        const double whole = v > -1e9f && v < 1e9f ? v : 0;
        v = (float)(uint8_t)(int64_t)whole;
        if (spec->scaled)
            v /= 255.0f;
    }
    return st_finish_value(spec, e->first, dtype, channel, v);
}

static void put(void *data, size_t element, size_t index, uint32_t bits)
{
    uint8_t *to = (uint8_t *)data + index * element;
    if (element == 4)
        memcpy(to, &bits, 4);
    else if (element == 2)
        memcpy(to, &(uint16_t){(uint16_t)bits}, 2);
    else
        *to = (uint8_t)bits;
}

static void erase(const struct random_erasing *e, struct st_rng *rng, const struct st_finish_spec *spec,
                  const struct st_finish *finish, const struct st_place *place, struct st_region box)
{
    const size_t width = (size_t)place->width, plane = width * (size_t)place->height;
    const size_t channels = (size_t)finish->channels;
    const bool planar = finish->layout == STOKER_NCHW;
    for (size_t c = 0; c < channels; c++) {
        const double given = e->value.count ? e->value.value[e->value.count > 1 ? c : 0] : 0;
        uint32_t bits = final_bits(e, spec, finish->dtype, (int32_t)c, given);
        for (size_t y = box.y; y < box.y + box.height; y++)
            for (size_t x = box.x; x < box.x + box.width; x++) {
                if (e->value.word)
                    bits = final_bits(e, spec, finish->dtype, (int32_t)c, st_rng_normal(rng));
                const size_t at = planar ? c * plane + y * width + x : (y * width + x) * channels + c;
                put(place->data, finish->element, at, bits);
            }
    }
}

static void late(const void *self, struct st_rng *rng, const struct st_finish_spec *spec,
                 const struct st_finish *finish, const struct st_place *place)
{
    const struct random_erasing *e = self;
    if (!(st_rng_f64(rng) < e->p))
        return;
    for (int tries = 0; tries < 10; tries++) {
        double h, w;
        st_draw_box(rng, (double)place->width * place->height, e->scale.value, e->ratio.value, &h, &w);
        if (!(h < place->height && w < place->width))
            continue;
        struct st_region box = {.width = (uint32_t)w, .height = (uint32_t)h};
        box.y = (uint32_t)st_rng_below(rng, (uint64_t)place->height - box.height + 1);
        box.x = (uint32_t)st_rng_below(rng, (uint64_t)place->width - box.width + 1);
        erase(e, rng, spec, finish, place, box);
        return;
    }
}

const struct st_op st_op_random_erasing = {
    .name = "random_erasing",
    .help = "overwrites a random box, now and then",
    .self_size = sizeof(struct random_erasing),
    .params = params,
    .plan = plan,
    .late = late,
};
