/* random_erasing.c - overwrites a random box of the finished tensor
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include "base/text.h"

struct random_erasing {
    double p;
    struct st_list scale, ratio, value;
    bool inplace;   /* ignored: the op always works in place */
    bool bytes;     /* the tensor consists of bytes at this point */
    uint32_t first; /* the first normalize step after it */
};

enum { EACH_VALUE = 1, EACH_CHANNEL }; /* what is random */
static const char *const value_words[] = {"random", "random_color", NULL};

static const struct st_param params[] = {
    {.name = "p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_erasing, p),
     .def = 0.5,
     .max = 1,
     .help = "probability"},
    {.name = "scale",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_erasing, scale),
     .max = 1,
     .help = "the box's area as a fraction of the image: low, high (0.02, 0.33)"},
    {.name = "ratio",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_erasing, ratio),
     .min = 1e-6,
     .max = 1e6,
     .help = "the box's height divided by its width: low, high (0.3, 3.3)"},
    {.name = "value",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_erasing, value),
     .min = -1e30,
     .max = 1e30,
     .words = value_words,
     .help = "one number, one per channel, random, or random_color: random, one per channel"},
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
                       "random_erasing: requires a tensor; move it after to_tensor (or "
                       "pil_to_tensor)");
    int rc = st_param_range(&e->scale, "random_erasing", "scale", 0.02, 0.33, err);
    if (rc >= 0)
        rc = st_param_range(&e->ratio, "random_erasing", "ratio", 0.3, 3.3, err);
    if (rc < 0)
        return rc;
    if (e->value.count > 1 && e->value.count != (uint32_t)shape->channels)
        return st_fail(err, STOKER_EINVAL,
                       "random_erasing: value has %u numbers, but the image has %d channel%s",
                       e->value.count, shape->channels, st_s((uint64_t)shape->channels));
    e->bytes = finish->dtype == STOKER_DTYPE_U8;
    e->first = finish->steps;
    shape->erased = true;
    return STOKER_OK;
}

/* The bits of a value that is written at this point and then goes through the remaining steps. */
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

static uint64_t value_bytes(const struct st_erase_into *into, uint64_t width, uint64_t height)
{
    uint64_t bytes; /* on overflow, more than any memory */
    return ST_PRODUCT(&bytes, width, height, (uint64_t)into->finish->channels, into->finish->element)
               ? bytes
               : UINT64_MAX;
}

static uint64_t erase_most(const void *self, const struct st_erase_into *into)
{
    const struct random_erasing *e = self;
    return e->value.word == EACH_VALUE
               ? value_bytes(into, (uint64_t)into->width, (uint64_t)into->height)
               : 0;
}

/* Draws each value of the box separately. */
static int draw_values(const struct random_erasing *e, struct st_rng *rng,
                       const struct st_erase_into *into, struct st_erase *out, struct stoker_error *err)
{
    const struct st_finish *finish = into->finish;
    const size_t plane = (size_t)out->box.width * out->box.height;
    out->bytes = value_bytes(into, out->box.width, out->box.height);
    uint8_t *values = st_arena_take(into->arena, out->bytes), *to = values;
    if (!values)
        return st_fail(err, STOKER_ENOMEM, "no memory for the values of a random box");
    for (int32_t c = 0; c < finish->channels; c++)
        for (size_t k = 0; k < plane; k++, to += finish->element) {
            const uint32_t bits = final_bits(e, into->spec, finish->dtype, c, st_rng_normal(rng));
            st_put_bits(to, finish->element, bits);
        }
    out->values = values;
    return STOKER_OK;
}

static int fill(const struct random_erasing *e, struct st_rng *rng, const struct st_erase_into *into,
                struct st_erase *out, struct stoker_error *err)
{
    if (e->value.word == EACH_VALUE)
        return draw_values(e, rng, into, out, err);
    for (int32_t c = 0; c < into->finish->channels; c++) {
        double given = e->value.count ? e->value.value[e->value.count > 1 ? c : 0] : 0;
        if (e->value.word == EACH_CHANNEL)
            given = st_rng_normal(rng);
        out->bits[c] = final_bits(e, into->spec, into->finish->dtype, c, given);
    }
    return STOKER_OK;
}

static int erase(const void *self, struct st_rng *rng, const struct st_erase_into *into,
                 struct st_erase *out, struct stoker_error *err)
{
    const struct random_erasing *e = self;
    *out = (struct st_erase){0};
    if (!(st_rng_f64(rng) < e->p))
        return STOKER_OK;
    for (int tries = 0; tries < 10; tries++) {
        double h, w;
        st_draw_box(rng, (double)into->width * into->height, e->scale.value, e->ratio.value, &h, &w);
        if (!(h < into->height && w < into->width))
            continue;
        struct st_region *box = &out->box;
        box->width = (uint32_t)w;
        box->height = (uint32_t)h;
        box->y = (uint32_t)st_rng_below(rng, (uint64_t)into->height - box->height + 1);
        box->x = (uint32_t)st_rng_below(rng, (uint64_t)into->width - box->width + 1);
        if (box->width && box->height)
            return fill(e, rng, into, out, err);
        break;
    }
    *out = (struct st_erase){0};
    return STOKER_OK;
}

const struct st_op st_op_random_erasing = {
    .name = "random_erasing",
    .help = "overwrites a random box with probability p",
    .self_size = sizeof(struct random_erasing),
    .params = params,
    .plan = plan,
    .erase = erase,
    .erase_most = erase_most,
};
