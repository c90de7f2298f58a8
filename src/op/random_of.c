/* random_of.c - ops that contain others: with a given probability, one of them, or all in random order
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct random_of {
    double p;
    struct st_list weights;
};

static const struct st_param apply_params[] = {
    {.name = "p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_of, p),
     .def = 0.5,
     .max = 1,
     .help = "probability"},
    {0},
};

static const struct st_param choice_params[] = {
    {.name = "p",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_of, weights),
     .max = 1e9,
     .help = "a weight for each op; all are equally likely without them"},
    {0},
};

static const struct st_param no_params[] = {{0}};

static uint32_t all(uint32_t count, uint8_t *order)
{
    for (uint32_t k = 0; k < count; k++)
        order[k] = (uint8_t)k;
    return count;
}

static uint32_t apply(const void *self, struct st_rng *rng, uint32_t count, uint8_t order[ST_HELD_MAX])
{
    const struct random_of *r = self;
    return st_rng_f64(rng) < r->p ? all(count, order) : 0;
}

static uint32_t shuffle(const void *self, struct st_rng *rng, uint32_t count, uint8_t order[ST_HELD_MAX])
{
    (void)self;
    all(count, order);
    for (uint32_t k = count; k > 1; k--) {
        const uint64_t other = st_rng_below(rng, k);
        const uint8_t kept = order[k - 1];
        order[k - 1] = order[other];
        order[other] = kept;
    }
    return count;
}

static double sum_of(const struct st_list *weights)
{
    double sum = 0;
    for (uint32_t k = 0; k < weights->count; k++)
        sum += weights->value[k];
    return sum;
}

static uint32_t choose(const void *self, struct st_rng *rng, uint32_t count, uint8_t order[ST_HELD_MAX])
{
    const struct st_list *weights = &((const struct random_of *)self)->weights;
    if (!weights->count) {
        order[0] = (uint8_t)st_rng_below(rng, count);
        return 1;
    }
    double at = st_rng_range(rng, 0, sum_of(weights));
    uint32_t k = 0, last = 0; /* last: with a weight, in case of rounding */
    for (; k < count && at >= weights->value[k]; k++) {
        at -= weights->value[k];
        last = weights->value[k] > 0 ? k : last;
    }
    order[0] = (uint8_t)(k < count ? k : last);
    return 1;
}

static int check_choice(const void *self, uint32_t count, struct stoker_error *err)
{
    const struct st_list *weights = &((const struct random_of *)self)->weights;
    if (!count)
        return st_fail(err, STOKER_EINVAL, "random_choice: there is no op to choose");
    if (weights->count && (weights->count != count || sum_of(weights) <= 0))
        return st_fail(err, STOKER_EINVAL,
                       "random_choice: p must be %u numbers for as many ops, not all 0", count);
    return STOKER_OK;
}

const struct st_op st_op_random_apply = {
    .name = "random_apply",
    .help = "random_apply(p=0.5){...}: runs the ops in braces with probability p",
    .self_size = sizeof(struct random_of),
    .params = apply_params,
    .holds = ST_HOLDS_ROW,
    .choose = apply,
};

const struct st_op st_op_random_choice = {
    .name = "random_choice",
    .help = "random_choice(p=[0.9,0.1]){...}: runs one of the ops in braces",
    .self_size = sizeof(struct random_of),
    .params = choice_params,
    .holds = ST_HOLDS_ONE,
    .held = check_choice,
    .choose = choose,
};

const struct st_op st_op_random_order = {
    .name = "random_order",
    .help = "random_order{...}: runs the ops in braces in random order",
    .self_size = sizeof(struct random_of),
    .params = no_params,
    .holds = ST_HOLDS_SHUFFLED,
    .choose = shuffle,
};
