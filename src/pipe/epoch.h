/* epoch.h - divides the samples of an epoch into batches
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_EPOCH_H
#define ST_PIPE_EPOCH_H

#include "order/order.h"

/* An epoch, or its rest. */
struct st_epoch_plan {
    bool running;
    uint64_t number, base;    /* base: the cursor at which it started */
    uint64_t tickets;         /* samples of this rank */
    uint64_t batches;
    uint64_t first_batch;     /* batches of this rank before base */
    uint32_t batch_size;
    uint32_t *sizes;          /* of each batch, counted from base; NULL: all equal except the last */
    uint64_t started_ns;
};

/* Divides the samples from `base` on into batches; the caller frees plan->sizes. */
int st_epoch_plan(const struct stoker_order *order, const struct stoker_loader_options *opt,
                  const struct stoker_epoch *epoch, uint64_t base, struct st_epoch_plan *plan,
                  struct stoker_error *err);
/* Number of samples in batch `number` of the epoch. */
uint32_t st_epoch_batch_size(const struct st_epoch_plan *plan, uint64_t number);

#endif
