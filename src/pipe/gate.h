/* gate.h - who may take much memory now, and who waits until others have given theirs back
 *
 * Small samples pass: a part of the budget is set aside for them. A worker that is about to need more
 * enters the gate with what it needs in all. It waits while that does not fit, unless nobody else is
 * inside and its sample is the oldest of the batch that is due next: that one always proceeds, so that
 * something always does. Whoever is inside never waits again but for its own decode, which it enters
 * anew for, outside meanwhile. So what a worker that waits may hold is the bytes of one sample.
 *
 * It changes when a sample is made, never what it is. What one sample may take at all is a number of the
 * loader's alone, so that whether it is refused depends on nothing else either.
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

/* What of max_memory is for bytes that are read ahead: one part in so many. */
enum { ST_GATE_READ_PART = 8 };

struct st_gate {
    struct st_budget budget;
    uint32_t threads;              /* that make samples */
    uint64_t small;                /* bytes a worker may take without asking, and keep */
    uint64_t sample_limit;         /* bytes that one sample may take */
    uint64_t read_limit;           /* bytes that a buffer for one sample's bytes may take */
    uint64_t data_fixed;           /* held by the data set when opened; not part of the budget */
    struct st_account read;        /* what is read ahead */
    struct st_account data;        /* and what it has come to hold since; with the lock */
    _Atomic uint64_t largest_read; /* of a sample's bytes, lately; 0: nothing was read yet */
    _Atomic uint32_t inside, waiting;
    pthread_cond_t room;        /* with the loader's lock */
    struct st_gate_wait *queue; /* those that wait */
};

/* First of all: takes what the data set holds off max_memory, which from then on is what is left. */
int st_gate_data(struct stoker_loader *loader, struct stoker_error *err);
/* Shares that out; with the slots planned. */
void st_gate_open(struct stoker_loader *loader);
void st_gate_look(struct stoker_loader *loader); /* what the data set holds now: lock held */
void st_gate_stats(const struct stoker_loader *loader, struct stoker_stats *out);
void st_gate_equip(struct st_worker *worker); /* its memory is counted from now on */

/* Before a worker reads a sample's bytes itself: how many is not known. */
int st_gate_read(struct st_worker *worker, const struct st_slot *slot, uint32_t row,
                 struct stoker_error *err);
void st_gate_was_read(struct st_worker *worker, uint64_t bytes);
/* Before it decodes: about this much beside what it holds of the sample already. */
int st_gate_decode(struct st_worker *worker, const struct st_slot *slot, uint32_t row, uint64_t bytes,
                   struct stoker_error *err);
/* After its row is made, where rows take what they need: whether the batch may go on with it. */
int st_gate_batch(struct st_worker *worker, const struct st_slot *slot, struct stoker_error *err);
/* The sample is made, or not to be. */
void st_gate_leave(struct st_worker *worker);
/* Memory was refused to the worker's sample: the error that says so, in place of that it was out of
 * memory. */
int st_gate_refused(struct st_worker *worker, int rc, struct stoker_error *err);
/* The same after a failed read; the error then names the sample. */
int st_gate_not_read(struct st_worker *worker, uint64_t sample, int rc, struct stoker_error *err);
/* Something changed that who waits may wait for: lock held. */
void st_gate_wake(struct stoker_loader *loader);

#endif
