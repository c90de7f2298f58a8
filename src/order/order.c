/* order.c - which sample comes next
 *
 * An order of any kind answers one question: which sample stands at global position g of the epoch. How
 * positions fall to ranks, and where a resumed epoch goes on, is the same for all kinds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "order/order.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "order/indices.h"
#include "order/shuffle.h"
#include "order/weighted.h"

struct stoker_order {
    struct stoker_order_options opt; /* `weights` is the caller's and only good while opening */
    uint64_t count;                  /* samples in the data set */
    uint64_t total;                  /* positions in the epoch */
    uint64_t epoch, base, length;
    struct st_shuffle shuffle;
    struct st_indices list; /* ORDER_TORCH and ORDER_GIVEN */
    struct st_weighted weighted;
};

static int check_options(const struct stoker_order_options *opt, uint64_t count,
                         struct stoker_error *err)
{
    const enum stoker_order_kind kind = opt->kind;
    if ((unsigned)kind > STOKER_ORDER_GIVEN)
        return st_fail(err, STOKER_EINVAL, "order: there is no kind %d", (int)kind);
    if (opt->rank > 0 && opt->rank >= opt->world)
        return st_fail(err, STOKER_EINVAL,
                       "order: rank %" PRIu32 " of %" PRIu32 " does not exist; ranks count from 0",
                       opt->rank, opt->world);
    if (opt->weights && kind != STOKER_ORDER_WEIGHTED)
        return st_fail(err, STOKER_EINVAL, "order: weights are for the weighted order only");
    if (!opt->weights && kind == STOKER_ORDER_WEIGHTED && count > 0)
        return st_fail(err, STOKER_EINVAL,
                       "order: the weighted order wants weights, one for each of %" PRIu64 " samples",
                       count);
    if (opt->draws && kind != STOKER_ORDER_WEIGHTED && kind != STOKER_ORDER_TORCH)
        return st_fail(err, STOKER_EINVAL,
                       "order: only the weighted and torch orders take a number of draws");
    if (opt->draws && count == 0)
        return st_fail(err, STOKER_EINVAL, "order: %" PRIu64 " draws from an empty data set",
                       opt->draws);
    return STOKER_OK;
}

int st_order_open(struct stoker_order **out, uint64_t count, const struct stoker_order_options *opt,
                  struct stoker_error *err)
{
    *out = NULL;
    int rc = check_options(opt, count, err);
    if (rc < 0)
        return rc;
    struct stoker_order *order = st_calloc(1, sizeof *order);
    if (!order)
        return st_fail(err, STOKER_ENOMEM, "order: out of memory");
    order->opt = *opt;
    order->opt.weights = NULL;
    if (order->opt.world == 0)
        order->opt.world = 1;
    order->count = count;
    order->total = opt->draws ? opt->draws : count;
    if (opt->kind == STOKER_ORDER_GIVEN)
        order->total = 0;
    if (opt->kind == STOKER_ORDER_WEIGHTED && count > 0)
        rc = st_weighted_open(&order->weighted, opt->weights, count, err);
    if (rc < 0)
        st_order_close(order);
    else
        *out = order;
    return rc;
}

static int start_torch(struct stoker_order *order, struct stoker_error *err)
{
    const uint64_t room = st_randperm_room(order->count, order->total);
    if (room < order->total || !st_indices_reserve(&order->list, room, order->count))
        return st_fail(err, STOKER_ENOMEM,
                       "order: no memory for torch's permutation of %" PRIu64
                       " numbers; shuffle needs none",
                       order->total);
    const uint64_t seed = order->opt.seed + (order->opt.epoch_fixed ? 0 : order->epoch);
    st_randperm(&order->list, order->count, order->total, seed);
    return STOKER_OK;
}

static int start_given(struct stoker_order *order, const uint64_t *indices, uint64_t index_count,
                       struct stoker_error *err)
{
    order->total = 0;
    for (uint64_t i = 0; i < index_count; i++)
        if (indices[i] >= order->count)
            return st_fail(err, STOKER_EINVAL,
                           "order: the index at position %" PRIu64 " is %" PRIu64
                           ", but the data set has %" PRIu64 " samples",
                           i, indices[i], order->count);
    if (!st_indices_reserve(&order->list, index_count, order->count))
        return st_fail(err, STOKER_ENOMEM, "order: no memory for %" PRIu64 " indices", index_count);
    for (uint64_t i = 0; i < index_count; i++)
        st_indices_set(&order->list, i, indices[i]);
    order->total = index_count;
    return STOKER_OK;
}

int st_order_start(struct stoker_order *order, uint64_t epoch, uint64_t base, const uint64_t *indices,
                   uint64_t index_count, struct stoker_error *err)
{
    const enum stoker_order_kind kind = order->opt.kind;
    int rc = STOKER_OK;

    order->length = 0; /* until all has gone well there is no epoch */
    order->epoch = epoch;
    order->base = base;
    if ((indices || index_count) && kind != STOKER_ORDER_GIVEN)
        return st_fail(err, STOKER_EINVAL, "order: indices are for the given order only");
    if (!indices && index_count)
        return st_fail(err, STOKER_EINVAL, "order: %" PRIu64 " indices are announced, none given",
                       index_count);

    if (kind == STOKER_ORDER_SHUFFLE)
        st_shuffle_init(&order->shuffle, order->count, order->opt.seed, epoch);
    else if (kind == STOKER_ORDER_TORCH)
        rc = start_torch(order, err);
    else if (kind == STOKER_ORDER_GIVEN)
        rc = start_given(order, indices, index_count, err);
    if (rc < 0)
        return rc;

    const uint64_t rest = base < order->total ? order->total - base : 0;
    const bool uneven = rest % order->opt.world != 0;
    order->length = rest / order->opt.world + (uneven && !order->opt.drop_uneven);
    return STOKER_OK;
}

uint64_t st_order_length(const struct stoker_order *order) { return order->length; }

uint64_t st_order_global(const struct stoker_order *order, uint64_t global)
{
    switch (order->opt.kind) {
    case STOKER_ORDER_SHUFFLE:
        return st_shuffle_at(&order->shuffle, global);
    case STOKER_ORDER_TORCH:
    case STOKER_ORDER_GIVEN:
        return st_indices_get(&order->list, global);
    case STOKER_ORDER_WEIGHTED:
        return st_weighted_at(&order->weighted, order->opt.seed, order->epoch, global);
    case STOKER_ORDER_SEQUENTIAL:
        break;
    }
    return global;
}

uint64_t st_order_at(const struct stoker_order *order, uint64_t position)
{
    assert(position < order->length);
    /* The first rank's position always lies inside the epoch, so nothing here overflows. */
    const uint64_t first = order->base + position * order->opt.world;
    const uint64_t left = order->total - first;
    if (order->opt.rank < left)
        return st_order_global(order, first + order->opt.rank);
    /* The padding begins the epoch's sequence again, as often as it takes. */
    return st_order_global(order, (order->opt.rank - left) % order->total);
}

uint64_t st_order_total(const struct stoker_order *order) { return order->total; }

uint32_t st_order_world(const struct stoker_order *order) { return order->opt.world; }

void st_order_close(struct stoker_order *order)
{
    if (!order)
        return;
    st_indices_free(&order->list);
    st_weighted_close(&order->weighted);
    free(order);
}
