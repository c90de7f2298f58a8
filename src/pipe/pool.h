/* pool.h - the slots of a loader, as many as memory allows
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_POOL_H
#define ST_PIPE_POOL_H

#include "pipe/executor.h"

/* The number of slots in regular use. Needs no lock. */
uint32_t st_pool_wanted(const struct stoker_loader *loader);

/* All other functions are called with the lock held. */

/* A slot for the next batch: a free one, or a new one as far as memory allows; NULL if enough batches
 * are in progress. Releases the lock while it does something slow. */
struct st_slot *st_pool_take(struct stoker_loader *loader);
bool st_pool_can_give(const struct stoker_loader *loader);
/* Adds a slot unconditionally. */
int st_pool_add(struct stoker_loader *loader, struct stoker_error *err);
void st_pool_give(struct stoker_loader *loader, struct st_slot *slot); /* marks it as free */
/* The consumer returns a slot. */
void st_pool_return(struct stoker_loader *loader, struct st_slot *slot);
void st_pool_remove(struct stoker_loader *loader, struct st_slot *slot);
bool st_pool_has_room(const struct stoker_loader *loader); /* for another slot */
/* Memory is short: frees unused slots. */
void st_pool_shed(struct stoker_loader *loader);
/* Bytes of the slots in regular use; the same for every number of workers. */
uint64_t st_pool_regular(const struct stoker_loader *loader);
uint64_t st_pool_memory(const struct stoker_loader *loader);
uint64_t st_pool_pinned(const struct stoker_loader *loader); /* how much of that is pinned */

#endif
