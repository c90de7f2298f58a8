/* order.c - which sample comes next
 *
 * Every kind of order answers one question: which sample is at global position g of the epoch. The
 * assignment of positions to ranks, and resuming an epoch, are the same for all kinds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "order/order.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "order/indices.h"
#include "order/rng.h"
#include "order/shuffle.h"
#include "order/weighted.h"

struct stoker_order {
    struct stoker_order_options opt; /* `weights` is the caller's, valid only while opening */
    uint64_t count;                  /* samples in the dataset */
    uint64_t total;                  /* positions in the epoch */
    uint64_t epoch, base, length;
    struct st_shuffle shuffle;
    struct st_indices list; /* ORDER_TORCH and ORDER_GIVEN */
    uint8_t
        *repeated;   /* ORDER_GIVEN: per position, whether its sample occurred before; NULL: never */
    uint64_t before; /* positions of the epoch before the list */
    struct st_weighted weighted;
    uint32_t views, batch; /* several views of each sample, in batches of so many; views is at least 1 */
};

static int check_options(const struct stoker_order_options *opt, uint64_t count,
                         struct stoker_error *err)
{
    const enum stoker_order_kind kind = opt->kind;
    if ((unsigned)kind > STOKER_ORDER_GIVEN)
        return st_fail(err, STOKER_EINVAL, "order: kind is %d; allowed are 0 to %d", (int)kind,
                       STOKER_ORDER_GIVEN);
    if (opt->rank > 0 && opt->rank >= opt->world)
        return st_fail(err, STOKER_EINVAL,
                       "order: rank %" PRIu32 " is out of range for a world size of %" PRIu32
                       "; ranks count from 0",
                       opt->rank, opt->world);
    if (opt->weights && kind != STOKER_ORDER_WEIGHTED)
        return st_fail(err, STOKER_EINVAL, "order: weights are allowed only with the weighted order");
    if (!opt->weights && kind == STOKER_ORDER_WEIGHTED && count > 0)
        return st_fail(err, STOKER_EINVAL,
                       "order: the weighted order requires weights, one for each "
                       "of the %" PRIu64 " sample%s",
                       count, st_s(count));
    if (opt->draws && kind != STOKER_ORDER_WEIGHTED && kind != STOKER_ORDER_TORCH)
        return st_fail(err, STOKER_EINVAL,
                       "order: draws is allowed only with the weighted and torch orders");
    if (opt->draws && count == 0)
        return st_fail(err, STOKER_EINVAL, "order: cannot take %" PRIu64 " draws from an empty dataset",
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
    order->views = order->batch = 1;
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
                       " indices; the shuffle order needs none",
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
                           ", but the dataset has %" PRIu64 " sample%s",
                           i, indices[i], order->count, st_s(order->count));
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

    order->length = 0; /* no epoch is active until everything has succeeded */
    free(order->repeated);
    order->repeated = NULL;
    order->before = 0;
    order->epoch = epoch;
    order->base = base;
    if ((indices || index_count) && kind != STOKER_ORDER_GIVEN)
        return st_fail(err, STOKER_EINVAL, "order: indices are allowed only with the given order");
    if (!indices && index_count)
        return st_fail(err, STOKER_EINVAL, "order: index_count is %" PRIu64 ", but indices is NULL",
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
    const uint64_t length = rest / order->opt.world + (uneven && !order->opt.drop_uneven);
    if (length > UINT64_MAX / order->views)
        return st_fail(err, STOKER_ELIMIT,
                       "order: %" PRIu64 " samples with %" PRIu32 " views are too many", length,
                       order->views);
    order->length = length * order->views;
    return STOKER_OK;
}

void st_order_set_views(struct stoker_order *order, uint32_t views, uint32_t batch)
{
    order->views = views;
    order->batch = batch;
}

uint32_t st_order_views(const struct stoker_order *order) { return order->views; }

/* Marks the samples that occur a second time in the list; returns whether there are any. */
static bool find_repeats(const struct stoker_order *order, uint8_t *seen, uint8_t *repeated)
{
    bool any = false;
    for (uint64_t i = 0; i < order->total; i++) {
        const uint64_t sample = st_indices_get(&order->list, i);
        repeated[i] = seen[sample / 8] >> sample % 8 & 1;
        seen[sample / 8] |= (uint8_t)(1 << sample % 8);
        any = any || repeated[i];
    }
    return any;
}

int st_order_repeats(struct stoker_order *order, const uint8_t *repeated, uint64_t before,
                     struct stoker_error *err)
{
    if (order->opt.kind != STOKER_ORDER_GIVEN) {
        if (repeated || before)
            return st_fail(err, STOKER_EINVAL, "order: repeated is allowed only with the given order");
        return STOKER_OK;
    }
    uint8_t *seen = repeated ? NULL : st_calloc(order->count / 8 + 1, 1);
    uint8_t *marks = st_calloc(order->total + 1, 1);
    bool any = repeated != NULL;
    if (!marks || (!repeated && !seen)) {
        free(marks);
        free(seen);
        order->length = 0;
        return st_fail(err, STOKER_ENOMEM,
                       "order: no memory to record which of %" PRIu64 " samples are repeated",
                       order->total);
    }
    if (repeated)
        memcpy(marks, repeated, order->total);
    else
        any = find_repeats(order, seen, marks);
    free(seen);
    if (!any) {
        free(marks);
        marks = NULL;
    }
    order->repeated = marks;
    order->before = before;
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

/* Which of this rank's samples, and which view of it, is at a position among views. */
static uint64_t sample_of(const struct stoker_order *order, uint64_t position, uint32_t *view)
{
    *view = 0;
    if (order->views == 1)
        return position;
    const uint64_t rows = (uint64_t)order->batch * order->views; /* 32 + 7 bits */
    const uint64_t first = position / rows * order->batch, left = order->length / order->views - first;
    const uint64_t samples = left < order->batch ? left : order->batch;
    *view = (uint32_t)(position % rows / samples);
    return first + position % rows % samples;
}

/* The position in the epoch of this rank's `position`. */
static uint64_t global_of(const struct stoker_order *order, uint64_t position)
{
    uint32_t view;
    assert(position < order->length);
    position = sample_of(order, position, &view);
    /* The first rank's position always lies within the epoch, so nothing overflows. */
    const uint64_t first = order->base + position * order->opt.world;
    const uint64_t left = order->total - first;
    /* The padding repeats the epoch's sequence from its start, as often as necessary. */
    return order->opt.rank < left ? first + order->opt.rank : (order->opt.rank - left) % order->total;
}

uint64_t st_order_at(const struct stoker_order *order, uint64_t position)
{
    return st_order_global(order, global_of(order, position));
}

/* Whether the sample at a position of the epoch may have occurred before. No list of weighted draws is
 * kept, so there any draw but the first may be a repeat. */
static bool comes_again(const struct stoker_order *order, uint64_t global)
{
    switch (order->opt.kind) {
    case STOKER_ORDER_GIVEN:
        return order->repeated && order->repeated[global];
    case STOKER_ORDER_TORCH:
        return global >= order->count; /* the first permutation has no repeats */
    case STOKER_ORDER_WEIGHTED:
        return global > 0;
    case STOKER_ORDER_SEQUENTIAL:
    case STOKER_ORDER_SHUFFLE:
        break;
    }
    return false;
}

uint32_t st_order_view_at(const struct stoker_order *order, uint64_t position)
{
    uint32_t view;
    sample_of(order, position, &view);
    return view;
}

uint64_t st_order_seed_at(const struct stoker_order *order, uint64_t position)
{
    const uint64_t global = global_of(order, position);
    const uint32_t view = st_order_view_at(order, position);
    uint64_t seed = order->opt.seed;
    struct st_rng rng;
    if (comes_again(order, global)) {
        st_rng_init(&rng, seed, 0, order->before + global, ST_RNG_REPEAT);
        seed = st_rng_u64(&rng);
    }
    if (view) {
        st_rng_init(&rng, seed, 0, view, ST_RNG_VIEW);
        seed = st_rng_u64(&rng);
    }
    return seed;
}

uint64_t st_order_total(const struct stoker_order *order) { return order->total; }

uint32_t st_order_world(const struct stoker_order *order) { return order->opt.world; }

void st_order_close(struct stoker_order *order)
{
    if (!order)
        return;
    st_indices_free(&order->list);
    free(order->repeated);
    st_weighted_close(&order->weighted);
    free(order);
}
