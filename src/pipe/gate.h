/* gate.h - admits workers that need much memory, and lets others wait until memory is freed
 *
 * Small samples pass: part of the budget is set aside for them. A worker that is about to need more
 * enters the gate with its total. It waits while that total does not fit, unless nobody is inside and
 * its sample is the oldest one of the batch that is delivered next: such a worker always proceeds, so
 * that there is always progress. A worker inside waits again only before it decodes; to do so it leaves
 * and enters again. A waiting worker therefore holds at most the bytes of one sample.
 *
 * The gate changes when a sample is made, never its contents. The limit for one sample is fixed when the
 * loader is opened, so whether a sample is refused does not depend on other samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_GATE_H
#define ST_PIPE_GATE_H

#include "base/budget.h"
#include "base/err.h"

#include <pthread.h>

struct stoker_loader;
struct st_worker;
struct st_slot;

/* 1/8 of max_memory is for bytes that are read ahead. */
enum { ST_GATE_READ_PART = 8 };

struct st_gate {
    struct st_budget budget;
    uint32_t threads;              /* threads that make samples */
    uint64_t small;                /* bytes a worker may take without asking, and keep */
    uint64_t sample_limit;         /* bytes that one sample may take */
    uint64_t read_limit;           /* bytes that a buffer for one sample's bytes may take */
    uint64_t data_fixed;           /* held by the dataset when opened; not part of the budget */
    struct st_account read;        /* bytes read ahead */
    struct st_account data;        /* added by the dataset since it was opened; with the lock */
    _Atomic uint64_t largest_read; /* recent maximum of a sample's bytes; 0: nothing was read yet */
    _Atomic uint32_t inside, waiting;
    pthread_cond_t room;        /* with the loader's lock */
    struct st_gate_wait *queue; /* waiting workers */
};

/* To be called first: subtracts what the dataset holds from max_memory. */
int st_gate_data(struct stoker_loader *loader, struct stoker_error *err);
/* Divides max_memory; the slots must be planned. */
void st_gate_open(struct stoker_loader *loader);
void st_gate_look(struct stoker_loader *loader); /* counts what the dataset holds now; lock held */
void st_gate_stats(const struct stoker_loader *loader, struct stoker_stats *out);
void st_gate_equip(struct st_worker *worker); /* begins to count the worker's memory */

/* Before a worker reads a sample itself; its size is not known. */
int st_gate_read(struct st_worker *worker, const struct st_slot *slot, uint32_t row,
                 struct stoker_error *err);
void st_gate_was_read(struct st_worker *worker, uint64_t bytes);
/* Before it decodes, which takes about `bytes` more than the worker already holds of the sample. */
int st_gate_decode(struct st_worker *worker, const struct st_slot *slot, uint32_t row, uint64_t bytes,
                   struct stoker_error *err);
/* After a row of variable size is made: fails if the batch has become too large. */
int st_gate_batch(struct st_worker *worker, const struct st_slot *slot, struct stoker_error *err);
/* The sample is made, or was given up. */
void st_gate_leave(struct st_worker *worker);
/* If `rc` is ENOMEM because a limit refused memory, returns an error that says so instead. */
int st_gate_refused(struct st_worker *worker, int rc, struct stoker_error *err);
/* The same after a failed read; the error then names the sample. */
int st_gate_not_read(struct st_worker *worker, uint64_t sample, int rc, struct stoker_error *err);
/* Wakes waiting workers after memory was freed; lock held. */
void st_gate_wake(struct stoker_loader *loader);

#endif
