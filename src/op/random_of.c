/* random_of.c - ops that contain others: with a given probability, some of them, or all in random order
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include <stdlib.h>

struct random_of {
    double p;
    struct st_list weights;
    int32_t n;
    bool sorted;
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

#define WEIGHTS                                                                                         \
    {                                                                                                   \
        .name = "p", .type = ST_PARAM_LIST, .offset = offsetof(struct random_of, weights), .max = 1e9,  \
        .help = "a weight for each op; all are equally likely without them"                             \
    }

static const struct st_param choice_params[] = {WEIGHTS, {0}};

static const struct st_param some_params[] = {
    {.name = "n",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct random_of, n),
     .max = ST_HELD_MAX,
     .required = true,
     .help = "how many of the ops run"},
    {.name = "sorted",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct random_of, sorted),
     .max = 1,
     .help = "those that are chosen run in their order, not in the one in which they are drawn"},
    WEIGHTS,
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

static double weight_of(const struct st_list *weights, uint32_t k)
{
    return weights->count ? weights->value[k] : 1;
}

/* Chooses one of the ops that `order` lists from `from` on. */
static uint32_t pick(const struct st_list *weights, struct st_rng *rng, const uint8_t *order,
                     uint32_t from, uint32_t count)
{
    double sum = 0;
    if (!weights->count)
        return from + (uint32_t)st_rng_below(rng, count - from);
    for (uint32_t k = from; k < count; k++)
        sum += weight_of(weights, order[k]);
    double at = st_rng_range(rng, 0, sum);
    uint32_t k = from, last = from; /* last: with a weight, in case of rounding */
    for (; k < count && at >= weight_of(weights, order[k]); k++) {
        at -= weight_of(weights, order[k]);
        last = weight_of(weights, order[k]) > 0 ? k : last;
    }
    return k < count ? k : last;
}

static uint32_t choose_some(const struct random_of *r, struct st_rng *rng, uint32_t n,
                            uint32_t count, uint8_t order[ST_HELD_MAX])
{
    all(count, order);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t other = pick(&r->weights, rng, order, k, count);
        const uint8_t chosen = order[other];
        order[other] = order[k];
        order[k] = chosen;
    }
    return n;
}

static uint32_t choose(const void *self, struct st_rng *rng, uint32_t count, uint8_t order[ST_HELD_MAX])
{
    return choose_some(self, rng, 1, count, order);
}

static int compare(const void *a, const void *b)
{
    return *(const uint8_t *)a - *(const uint8_t *)b;
}

static uint32_t some(const void *self, struct st_rng *rng, uint32_t count, uint8_t order[ST_HELD_MAX])
{
    const struct random_of *r = self;
    choose_some(r, rng, (uint32_t)r->n, count, order);
    if (r->sorted)
        qsort(order, (size_t)r->n, sizeof *order, compare);
    return (uint32_t)r->n;
}

/* At least `n` ops can be chosen. */
static int check(const struct random_of *r, uint32_t n, uint32_t count, const char *op,
                 struct stoker_error *err)
{
    uint32_t likely = r->weights.count ? 0 : count;
    for (uint32_t k = 0; k < r->weights.count; k++)
        likely += r->weights.value[k] > 0;
    if (!count)
        return st_fail(err, STOKER_EINVAL, "%s: there is no op to choose", op);
    if (r->weights.count && r->weights.count != count)
        return st_fail(err, STOKER_EINVAL, "%s: p must be %u numbers for as many ops", op, count);
    if (likely < n)
        return st_fail(err, STOKER_EINVAL, "%s: of %u ops with a weight above 0, %u cannot be chosen",
                       op, likely, n);
    return STOKER_OK;
}

static int check_choice(const void *self, uint32_t count, struct stoker_error *err)
{
    return check(self, 1, count, "random_choice", err);
}

static int check_some(const void *self, uint32_t count, struct stoker_error *err)
{
    const struct random_of *r = self;
    return check(r, (uint32_t)r->n, count, "random_some", err);
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

const struct st_op st_op_random_some = {
    .name = "random_some",
    .help = "random_some(n=2, p=[3,1,1]){...}: runs n different ones of the ops in braces",
    .self_size = sizeof(struct random_of),
    .params = some_params,
    .holds = ST_HOLDS_SHUFFLED,
    .held = check_some,
    .choose = some,
};

const struct st_op st_op_random_order = {
    .name = "random_order",
    .help = "random_order{...}: runs the ops in braces in random order",
    .self_size = sizeof(struct random_of),
    .params = no_params,
    .holds = ST_HOLDS_SHUFFLED,
    .choose = shuffle,
};
