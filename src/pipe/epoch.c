/* epoch.c - divides the samples of an epoch into batches
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/epoch.h"

#include "base/mem.h"

uint32_t st_epoch_batch_size(const struct st_epoch_plan *plan, uint64_t number)
{
    if (plan->sizes)
        return plan->sizes[number];
    const uint64_t left = plan->tickets - number * plan->batch_size;
    return left < plan->batch_size ? (uint32_t)left : plan->batch_size;
}

/* The batches from `base` on, with the sizes given by the caller. */
static int plan_sizes(const struct stoker_epoch *epoch, uint64_t base, struct st_epoch_plan *plan,
                      struct stoker_error *err)
{
    uint64_t first = 0, skipped = 0, sum = 0;
    while (first < epoch->batch_count && skipped < base)
        skipped += epoch->batch_sizes[first++];
    if (skipped != base)
        return st_fail(err, STOKER_EINVAL,
                       "the saved position lies inside a batch: pass the batch sizes that were in use "
                       "when the state was saved");
    plan->batches = epoch->batch_count - first;
    plan->first_batch = epoch->first_batch + first;
    plan->sizes = st_calloc(plan->batches, sizeof *plan->sizes);
    if (!plan->sizes)
        return st_fail(err, STOKER_ENOMEM, "no memory for %llu batch sizes",
                       (unsigned long long)plan->batches);
    for (uint64_t k = 0; k < plan->batches; k++) {
        plan->sizes[k] = epoch->batch_sizes[first + k];
        sum += plan->sizes[k];
        if (plan->sizes[k] == 0 || plan->sizes[k] > plan->batch_size)
            return st_fail(err, STOKER_EINVAL,
                           "batch %llu has %u samples; allowed are 1 to batch_size (%u)",
                           (unsigned long long)(first + k), plan->sizes[k], plan->batch_size);
    }
    if (sum > plan->tickets)
        return st_fail(err, STOKER_EINVAL, "the batches need %llu samples, but the order has only %llu",
                       (unsigned long long)sum, (unsigned long long)plan->tickets);
    plan->tickets = sum;
    return 0;
}

int st_epoch_plan(const struct stoker_order *order, const struct stoker_loader_options *opt,
                  const struct stoker_epoch *epoch, uint64_t base, struct st_epoch_plan *plan,
                  struct stoker_error *err)
{
    const uint64_t size = opt->batch_size, length = st_order_length(order);
    plan->number = epoch->epoch;
    plan->base = base;
    plan->tickets = length;
    plan->batch_size = opt->batch_size;
    if (epoch->batch_sizes && st_order_views(order) > 1)
        return st_fail(err, STOKER_EINVAL, "views: all batches but the last have the same size");
    if (epoch->batch_sizes)
        return plan_sizes(epoch, base, plan, err);
    plan->batches = length / size + (!opt->drop_last && length % size);
    const uint64_t samples = size / st_order_views(order); /* of a batch */
    plan->first_batch = epoch->first_batch + base / (samples * st_order_world(order));
    if (opt->drop_last)
        plan->tickets = plan->batches * size;
    return 0;
}
