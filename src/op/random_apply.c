/* random_apply.c - runs the ops it contains with a given probability
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct random_apply {
    double p;
};

static const struct st_param params[] = {
    {.name = "p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_apply, p),
     .def = 0.5,
     .max = 1,
     .help = "probability"},
    {0},
};

static bool chosen(const void *self, struct st_rng *rng)
{
    const struct random_apply *r = self;
    return st_rng_f64(rng) < r->p;
}

const struct st_op st_op_random_apply = {
    .name = "random_apply",
    .help = "random_apply(p=0.5){...}: runs the ops in braces with probability p",
    .self_size = sizeof(struct random_apply),
    .params = params,
    .holds = true,
    .chosen = chosen,
};
