/* tuning.h - measures a loader for tune.h and applies its decisions
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_TUNING_H
#define ST_PIPE_TUNING_H

#include "pipe/executor.h"

/* Called while the loader is opened, without the lock: sets the ranges of the levers. The first is
 * called before there are slots; `moves`: the caller left the number of batches to the loader. */
void st_tuning_plan_prefetch(struct stoker_loader *loader, bool moves);
void st_tuning_plan(struct stoker_loader *loader, uint32_t depth, uint32_t depth_most);
/* The maximum size of all batches of fixed size, if tuning may add some; 0 if it may not, or if sizes
 * vary. */
uint64_t st_tuning_batches(const struct stoker_loader *loader);

/* What follows requires the loader's lock. */

/* Sets a lever, regardless of tuning. The caller informs the reader without the lock:
 * st_reader_limit. */
void st_tuning_set(struct stoker_loader *loader, enum st_lever_name name, uint32_t value);
/* An epoch starts: all workers work until enough batches are in progress. */
void st_tuning_hurry(struct stoker_loader *loader);
/* The consumer asks for a batch that is not ready: all workers work, as above. */
void st_tuning_late(struct stoker_loader *loader);
/* The batch is delivered. Not 0: the new read-ahead depth, which the caller passes to the reader without
 * the lock (st_reader_limit). */
uint32_t st_tuning_delivered(struct stoker_loader *loader, uint32_t samples);
/* How many workers are to work: fewer while a device's JPEG hardware needs the CPUs. */
uint32_t st_tuning_active(const struct stoker_loader *loader);
/* How many are to work where the hardware does not. */
uint32_t st_tuning_wanted(const struct stoker_loader *loader);
/* Whether the worker is currently not needed. */
bool st_tuning_rests(const struct st_worker *worker);
void st_tuning_stats(const struct stoker_loader *loader, struct stoker_stats *out);

#endif
