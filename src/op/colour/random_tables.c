/* random_tables.c - with a given probability: invert, posterize, solarize, autocontrast, equalize
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct random_table {
    double p, threshold;
    int32_t bits;
    struct st_pending op;
};

#define PROBABILITY                                                                                     \
    {                                                                                                   \
        .name = "p", .type = ST_PARAM_FLOAT, .offset = offsetof(struct random_table, p), .def = 0.5,    \
        .max = 1, .help = "probability"                                                                 \
    }

static const struct st_param plain_params[] = {PROBABILITY, {0}};

static const struct st_param posterize_params[] = {
    {.name = "bits",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct random_table, bits),
     .min = 1,
     .max = 8,
     .required = true,
     .help = "how many bits of each value are kept"},
    PROBABILITY,
    {0},
};

static const struct st_param solarize_params[] = {
    {.name = "threshold",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_table, threshold),
     .required = true,
     .help = "values from this one on are inverted"},
    PROBABILITY,
    {0},
};

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct random_table *t = self;
    return st_rng_f64(rng) < t->p ? st_image_do(image, t->op, err) : STOKER_OK;
}

static int plan_invert(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                       struct stoker_error *err)
{
    ((struct random_table *)self)->op = (struct st_pending){.kind = ST_PENDING_SOLARIZE, .level = 0};
    return st_plan_bytes(shape, finish, "random_invert", err);
}

static int plan_posterize(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                          struct stoker_error *err)
{
    struct random_table *t = self;
    t->op = (struct st_pending){.kind = ST_PENDING_POSTERIZE, .level = st_posterize_mask(t->bits)};
    return st_plan_bytes(shape, finish, "random_posterize", err);
}

static int plan_solarize(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                         struct stoker_error *err)
{
    struct random_table *t = self;
    t->op = (struct st_pending){.kind = ST_PENDING_SOLARIZE, .level = st_solarize_level(t->threshold)};
    return st_plan_bytes(shape, finish, "random_solarize", err);
}

static int plan_autocontrast(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                             struct stoker_error *err)
{
    (void)finish;
    ((struct random_table *)self)->op = (struct st_pending){.kind = ST_PENDING_AUTOCONTRAST};
    return st_plan_picture(shape, "random_autocontrast", err);
}

static int plan_equalize(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                         struct stoker_error *err)
{
    (void)finish;
    ((struct random_table *)self)->op = (struct st_pending){.kind = ST_PENDING_EQUALIZE};
    return st_plan_picture(shape, "random_equalize", err);
}

#define OP(title, with, made, what)                                                                     \
    const struct st_op st_op_##title = {.name = #title,                                                 \
                                        .help = what " with probability p",                             \
                                        .self_size = sizeof(struct random_table),                       \
                                        .params = with,                                                 \
                                        .plan = made,                                                   \
                                        .run = run,                                                     \
                                        .pending = true}

OP(random_invert, plain_params, plan_invert, "inverts all values");
OP(random_posterize, posterize_params, plan_posterize, "keeps only the highest bits of values");
OP(random_solarize, solarize_params, plan_solarize, "inverts high values");
OP(random_autocontrast, plain_params, plan_autocontrast,
   "spreads the values of each channel from 0 to 255");
OP(random_equalize, plain_params, plan_equalize, "makes the values of each channel equally frequent");
