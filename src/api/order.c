/* order.c - the public face of an order by itself
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/sized.h"
#include "order/order.h"

ST_SIZED(options, stoker_order_options, draws);

static const struct stoker_order_options defaults = {.size = sizeof defaults};

void stoker_order_options_init(struct stoker_order_options *opt, size_t size)
{
    st_sized_init(&options, &defaults, opt, size);
}

int stoker_order_open(struct stoker_order **out, uint64_t count,
                      const struct stoker_order_options *given, struct stoker_error *err)
{
    struct stoker_order_options opt = defaults;
    if (!out)
        return st_fail(err, STOKER_EINVAL, "stoker_order_open: out must not be NULL");
    *out = NULL;
    const int rc = given ? st_sized_take(&options, &opt, given, err) : STOKER_OK;
    return rc ? rc : st_order_open(out, count, &opt, err);
}

int stoker_order_start(struct stoker_order *order, uint64_t epoch, const uint64_t *indices,
                       uint64_t index_count, struct stoker_error *err)
{
    return st_order_start(order, epoch, 0, indices, index_count, err);
}

uint64_t stoker_order_count(const struct stoker_order *order) { return st_order_length(order); }

uint64_t stoker_order_at(const struct stoker_order *order, uint64_t position)
{
    return position < st_order_length(order) ? st_order_at(order, position) : UINT64_MAX;
}

void stoker_order_close(struct stoker_order *order) { st_order_close(order); }
