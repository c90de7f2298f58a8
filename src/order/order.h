/* order.h - which sample comes next
 *
 * The order of an epoch is one global sequence of positions; rank r of W takes the positions base + r,
 * base + r + W, base + r + 2W, ... like torch's DistributedSampler. `base` is the resume cursor: the
 * number of positions that all ranks together have consumed. It does not depend on the rank, so a run
 * saved with one world size can resume with any other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_ORDER_ORDER_H
#define ST_ORDER_ORDER_H

#include "base/err.h"

struct stoker_order; /* one thread starts epochs; then any number of threads may query it */

int st_order_open(struct stoker_order **out, uint64_t count, const struct stoker_order_options *opt,
                  struct stoker_error *err);
/* Several views of each sample: of each batch of `batch` samples all come once, then all again, and so
 * on. This rank's positions and length count views then; `base`, repeats and the global sequence count
 * samples. */
void st_order_set_views(struct stoker_order *order, uint32_t views, uint32_t batch);
/* Starts `epoch` at global position `base` (0: from its start). */
int st_order_start(struct stoker_order *order, uint64_t epoch, uint64_t base, const uint64_t *indices,
                   uint64_t index_count, struct stoker_error *err);
/* Called after st_order_start for a given order: which of its samples occurred before in the epoch (one
 * byte each, copied; NULL: those that occur earlier in the list), and how many positions of the epoch
 * precede the list. */
int st_order_repeats(struct stoker_order *order, const uint8_t *repeated, uint64_t before,
                     struct stoker_error *err);
/* The seed of the random draws for the sample at this rank's position: the seed of the order or, if the
 * sample is a repeat, one derived from its position in the epoch, so that it is not augmented
 * identically; each further view has one derived from that. O(1), any thread. */
uint64_t st_order_seed_at(const struct stoker_order *order, uint64_t position);
/* Number of samples that this rank still gets from `base` on: equal for all ranks (padded or
 * dropped). */
uint64_t st_order_length(const struct stoker_order *order);
/* The sample at this rank's position (< length), counted from `base`. O(1). */
uint64_t st_order_at(const struct stoker_order *order, uint64_t position);
/* Which view of its sample is at this rank's position. */
uint32_t st_order_view_at(const struct stoker_order *order, uint64_t position);
uint32_t st_order_views(const struct stoker_order *order); /* at least 1 */
/* The sample at a position of the whole epoch (< total), regardless of rank and cursor. O(1). */
uint64_t st_order_global(const struct stoker_order *order, uint64_t global);
/* Number of samples in the whole epoch, for all ranks, before padding. */
uint64_t st_order_total(const struct stoker_order *order);
uint32_t st_order_world(const struct stoker_order *order); /* at least 1 */
void st_order_close(struct stoker_order *order);

#endif
