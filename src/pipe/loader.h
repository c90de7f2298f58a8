/* loader.h - the executor: threads that turn tickets into rows of slots
 *
 * An epoch is a row of tickets, one for each sample, in order. A worker takes the next ticket under the
 * lock, makes the sample without it, and counts the row as done under it again. Since tickets are taken
 * in order, all workers work on the oldest unfinished batch first. Nothing that a worker does depends on
 * which worker it is: the bytes are a function of (seed, epoch, sample, pipeline).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_LOADER_H
#define ST_PIPE_LOADER_H

#include "order/order.h"
#include "pipe/slot.h"
#include "pipe/spec.h"
#include "source/reader.h"

#include <pthread.h>
#include <sys/types.h>

enum { ST_LEDGER_SIZE = 1024 };

struct st_worker {
    struct stoker_loader *loader;
    pthread_t thread;
    struct st_work work;
    struct st_buffer bytes; /* of a substitute, which nobody read ahead */
    _Atomic uint64_t stage_ns[STOKER_STAGES], samples, scratch;
};

/* The epoch under way; written with the lock held and no worker busy. */
struct st_epoch_plan {
    bool running;
    uint64_t number, base;    /* base: the cursor it began at */
    uint64_t tickets;         /* samples of this rank */
    uint64_t batches;
    uint64_t first_batch;     /* batches of this rank before base */
    uint32_t *sizes;          /* of each batch from base on; NULL: all alike, but the last */
    uint64_t started_ns;
};

struct stoker_loader {
    struct stoker_dataset *data;
    struct stoker_pipeline *pipe;
    struct stoker_loader_options opt;
    struct stoker_order *order;
    struct st_reader *reader;
    struct st_finish finish;
    struct st_slot_shape shape;
    pid_t owner;
    uint64_t dataset_count;

    pthread_mutex_t lock;
    pthread_cond_t work;  /* workers wait for tickets and slots */
    pthread_cond_t ready; /* the consumer waits for a batch; stop waits for idle workers */
    /* all below is guarded by the lock */
    struct st_epoch_plan epoch;
    struct st_slot *slots;
    uint32_t slot_count, lent;
    struct st_slot *filling; /* the batch that the next ticket belongs to; NULL: not begun */
    uint64_t next_ticket, next_batch;
    uint32_t next_row;
    uint64_t delivered, delivered_samples; /* in this epoch */
    uint32_t busy;                         /* workers that hold a ticket */
    bool closing, closed, interrupted;
    struct stoker_error broken; /* code != 0: nothing more can be made */
    struct {
        uint64_t batches, samples, bad, wait_ns, first_batch_ns;
        uint64_t epoch_bad;
    } count;
    struct stoker_bad_sample *ledger; /* a ring of ST_LEDGER_SIZE, made when first needed */

    uint32_t worker_count, threads; /* threads: those that run */
    struct st_worker *worker;       /* at least one: with no threads it is the caller's */
};

int st_loader_open(struct stoker_loader **out, struct stoker_dataset *data, struct stoker_pipeline *pipe,
                   const struct stoker_loader_options *opt, struct stoker_error *err);
int st_loader_start(struct stoker_loader *loader, const struct stoker_epoch *epoch, uint64_t base,
                    struct stoker_error *err);
int st_loader_next(struct stoker_loader *loader, const struct stoker_batch **out,
                   struct stoker_error *err);
void st_loader_interrupt(struct stoker_loader *loader);
void st_loader_close(struct stoker_loader *loader);
void st_batch_release(const struct stoker_batch *batch);

int st_loader_save(struct stoker_loader *loader, struct stoker_state *out, struct stoker_error *err);
int st_loader_restore(struct stoker_loader *loader, const struct stoker_state *state,
                      const struct stoker_epoch *epoch, struct stoker_error *err);

void st_loader_stats(struct stoker_loader *loader, struct stoker_stats *out);
bool st_loader_bad(struct stoker_loader *loader, uint64_t k, struct stoker_bad_sample *out);

/* -- inside the floor -- */

/* How the samples from `base` on fall into batches; plan->sizes is the caller's to free. (epoch.c) */
int st_epoch_plan(const struct stoker_loader *loader, const struct stoker_epoch *epoch, uint64_t base,
                  struct st_epoch_plan *plan, struct stoker_error *err);
/* Samples in batch `number` of the epoch. */
uint32_t st_epoch_batch_size(const struct stoker_loader *loader, uint64_t number);
/* Ends the epoch under way: afterwards no worker holds a ticket and no read is in flight. */
void st_loader_stop(struct stoker_loader *loader);
/* EFORK when this is another process than the one that opened the loader. */
int st_loader_check_owner(const struct stoker_loader *loader, struct stoker_error *err);

/* Takes one ticket and makes its sample. False: nothing to do now. Called with the lock held, and
 * returns with it held. */
bool st_worker_step(struct st_worker *worker);
void *st_worker_main(void *worker);
void st_worker_free(struct st_worker *worker);

/* Slots; all with the lock held. (pool.c) */
/* For the next batch: a free one, or a new one as far as memory allows; NULL when enough are under way. */
struct st_slot *st_pool_take(struct stoker_loader *loader);
bool st_pool_can_give(const struct stoker_loader *loader);
/* One more, whatever is there already; NULL when out of memory. */
struct st_slot *st_pool_add(struct stoker_loader *loader);
void st_pool_remove(struct stoker_loader *loader, struct st_slot *slot);
bool st_pool_has_room(const struct stoker_loader *loader); /* for one more within max_memory */
bool st_pool_has_surplus(const struct stoker_loader *loader);
uint64_t st_pool_memory(const struct stoker_loader *loader);

/* Runs the pipeline on one sample's bytes, into its row. `key` names its chance. (run.c) */
int st_run_sample(struct st_worker *worker, struct st_bytes bytes, uint64_t key, struct st_slot *slot,
                  uint32_t row, struct stoker_error *err);
/* A sample failed with err: applies the policy to its row, and notes it in the slot. (bad.c) */
void st_bad_sample(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t sample,
                   const struct stoker_error *err);
/* The batch is due: writes its failures to the ledger, and says whether it can be delivered. Lock held. */
int st_bad_deliver(struct stoker_loader *loader, struct st_slot *slot, struct stoker_error *err);
void st_bad_name(const struct stoker_loader *loader, uint64_t sample, struct stoker_error *err);

#endif
