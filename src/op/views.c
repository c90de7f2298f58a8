/* views.c - several views of each sample: views and by_view
 *
 * A batch has all first views, then all second ones, and so on, each with draws of its own. What makes
 * this so is the order of samples (order/order.h), so that here little is left to do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct views {
    int32_t n;
};

static const struct st_param params[] = {
    {.name = "n",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct views, n),
     .min = 1,
     .max = ST_VIEWS_MAX,
     .required = true,
     .help = "how many"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)finish;
    const struct views *v = self;
    if (shape->views)
        return st_fail(err, STOKER_EINVAL, "views: there can be only one");
    shape->views = (uint32_t)v->n;
    return STOKER_OK;
}

const struct st_op st_op_views = {
    .name = "views",
    .help = "several views of each sample, each with draws of its own",
    .self_size = sizeof(struct views),
    .params = params,
    .plan = plan,
};

static const struct st_param no_params[] = {{0}};

static int plan_by_view(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                        struct stoker_error *err)
{
    (void)finish;
    struct views *v = self;
    v->n = (int32_t)shape->views;
    return shape->views ? STOKER_OK
                        : st_fail(err, STOKER_EINVAL, "by_view: there is no views before it");
}

static int held(const void *self, uint32_t count, struct stoker_error *err)
{
    const struct views *v = self;
    return count == (uint32_t)v->n ? STOKER_OK
                                   : st_fail(err, STOKER_EINVAL,
                                             "by_view: there are %u ops for %d views: one for each is "
                                             "needed",
                                             count, v->n);
}

const struct st_op st_op_by_view = {
    .name = "by_view",
    .help = "by_view{...}: each view has the op of its number among those in braces",
    .self_size = sizeof(struct views),
    .params = no_params,
    .plan = plan_by_view,
    .holds = ST_HOLDS_ONE,
    .held = held,
    .by_view = true,
};
