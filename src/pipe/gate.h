/* gate.h - admits workers that need much memory, and lets others wait until memory is freed
 *
 * Small samples pass: part of the budget is set aside for them. A worker that is about to need more
 * enters the gate with its total, and waits while that total does not fit. A worker inside waits again
 * only before it decodes; to do so it leaves and enters again. A waiting worker therefore holds at most
 * the bytes of one sample.
 *
 * What does not fit beside others gets its turn alone (alone.c): the worker puts everything down, waits
 * until all other workers have done the same, and makes the sample from its start. This happens to a
 * sample that was refused memory, to one that is too large to be made beside others, and to the oldest
 * one of the batch that is delivered next if nobody is inside, so that there is always progress. Only a
 * sample that is refused memory alone is too large. Its worker then holds nothing else, and the limit is
 * fixed when the loader is opened: whether a sample is refused depends on the sample and the options,
 * and neither on other samples nor on the number of workers.
 *
 * The gate changes when a sample is made, never its contents.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_GATE_H
#define ST_PIPE_GATE_H

#include "pipe/executor.h"

/* To be called first: subtracts what the dataset holds from max_memory. */
int st_gate_data(struct stoker_loader *loader, struct stoker_error *err);
/* Divides max_memory; the slots must be planned. */
void st_gate_open(struct stoker_loader *loader);
void st_gate_look(struct stoker_loader *loader); /* counts what the dataset holds now; lock held */
void st_gate_stats(const struct stoker_loader *loader, struct stoker_stats *out);
void st_gate_equip(struct st_worker *worker); /* begins to count the worker's memory */

/* Before a worker reads a sample itself; its size is not known. If this or st_gate_decode fails and
 * worker->again is set, the sample is to be made again, after st_alone_take if worker->wants_alone;
 * otherwise the epoch is being stopped. */
int st_gate_read(struct st_worker *worker, const struct st_slot *slot, uint32_t row,
                 struct stoker_error *err);
void st_gate_was_read(struct st_worker *worker, uint64_t bytes);
/* Before it decodes, which takes about `bytes` more than the worker already holds of the sample. */
int st_gate_decode(struct st_worker *worker, const struct st_slot *slot, uint32_t row, uint64_t bytes,
                   struct stoker_error *err);
/* Before memory for a row of any size is taken. */
int st_gate_row(struct st_worker *worker, uint64_t bytes, struct stoker_error *err);
/* After a row is made: fails if it, or with it its batch (worker->too_large), is too large. */
int st_gate_batch(struct st_worker *worker, struct st_slot *slot, uint32_t row,
                  struct stoker_error *err);
/* The sample is made, or was given up. */
void st_gate_leave(struct st_worker *worker);
/* The memory that the sample may take is what its worker may have, less the bytes of the sample if the
 * reader holds them: where they lie is a matter of chance. */
void st_gate_charge(struct st_worker *worker, struct st_bytes bytes);
/* If `rc` is ENOMEM: the sample is to be made again, alone. If it was, and a limit refused it memory,
 * returns an error that says so instead. */
int st_gate_refused(struct st_worker *worker, int rc, struct stoker_error *err);
/* The same after a failed read; the error then names the sample. */
int st_gate_not_read(struct st_worker *worker, uint64_t sample, int rc, struct stoker_error *err);
/* Wakes waiting workers after memory was freed; lock held. */
void st_gate_wake(struct stoker_loader *loader);

#endif
