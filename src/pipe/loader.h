/* loader.h - the executor: threads that turn tickets into rows of slots
 *
 * An epoch is a row of tickets, one for each sample, in order. A worker takes the next one under the lock, or
 * several of one batch where samples are made in a few microseconds, makes them without it, and counts the rows
 * as done under it again, before it takes the next. Since tickets are taken in order, all workers work on the
 * oldest unfinished batch first. Nothing that a worker does depends on
 * which worker it is: the bytes are a function of (seed, epoch, sample, pipeline).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_LOADER_H
#define ST_PIPE_LOADER_H

#include "order/order.h"
#include "pipe/gate.h"
#include "pipe/slot.h"
#include "pipe/spec.h"
#include "pipe/tune.h"
#include "source/reader/reader.h"

#include <pthread.h>
#include <sys/types.h>

enum { ST_LEDGER_SIZE = 1024 };

/* What floors above bring along: where batches may go. All NULL: nowhere. */
struct st_devices {
    const struct st_device_kind *kind;   /* of the device that was asked for */
    int32_t ordinal;                     /* which of its kind; -1: the current or first one */
    const struct st_pinned_kind *pinned; /* for batches that stay on the CPU */
    const struct st_engine_kind *engine; /* that decode by themselves, of the same device */
};

struct st_worker {
    struct stoker_loader *loader;
    pthread_t thread;
    struct st_work work;
    struct st_audio_work sound;
    struct st_buffer bytes;  /* of a sample that nobody read ahead */
    struct st_buffer pieces; /* what a source makes of a sample's bytes */
    _Atomic uint64_t stage_ns[STOKER_STAGE_COUNT], samples, read_bytes;
    _Atomic uint64_t raw_rows, resized_rows;
    uint64_t sample_ns; /* what a sample takes lately; 0: not known */
    /* gate.c */
    struct st_account memory; /* all that it holds */
    bool inside;              /* the gate: counted there */
    bool stopped, too_large;  /* why its sample was not made: the epoch ended; it takes more than it may */
    uint64_t waited_ns;       /* of its sample's time */
    _Atomic uint64_t memory_wait_ns;
    struct {                  /* where its sample goes */
        struct st_slot *slot;
        uint32_t row;
    } target;
};

/* A counter that one thread writes and any may read: no bus lock is needed for it. */
static inline void st_worker_count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* Threads that decode by a device's engines. (engine.c) */
struct st_engines {
    const struct st_engine_kind *kind; /* NULL: none are used */
    struct st_engine_worker *worker;
    uint32_t count, threads; /* threads: those that were started */
    pthread_mutex_t memory;  /* held while a slot is given memory of the device */
    pthread_cond_t work;     /* its threads wait here, with the loader's lock */
    /* guarded by the loader's lock: */
    uint32_t ready;          /* threads whose engines are open */
    struct stoker_error note; /* code != 0: why there are fewer than there could be */
};

/* Tickets of one batch that someone has taken. */
struct st_tickets {
    struct st_slot *slot;
    uint64_t ticket; /* the first */
    uint32_t row, count;
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
    struct st_device *device; /* NULL: none */
    struct st_columns_plan columns;
    int32_t sound_channels; /* of all sounds; -1: any; 0: nobody knows, so that none is right */
    pid_t owner;
    struct st_published *published; /* api/publish.h; NULL: nothing is */
    uint64_t dataset_count;
    atomic_bool stopping; /* the epoch is being stopped: no read or pause goes on */

    pthread_mutex_t lock;
    pthread_cond_t work;  /* workers wait for tickets and slots */
    pthread_cond_t ready; /* the consumer waits for a batch; stop waits for idle workers */
    /* all below is guarded by the lock */
    struct st_epoch_plan epoch;
    struct st_slot *slots;
    uint32_t slot_count, lent;
    uint64_t freed;          /* slots that became free so far: the one that did so first is taken first */
    bool taking;             /* a worker waits for a slot's memory, without the lock */
    struct st_slot *filling; /* the batch that the next ticket belongs to; NULL: not begun */
    uint64_t next_ticket, next_batch;
    uint32_t next_row;
    uint64_t delivered, delivered_samples; /* in this epoch */
    uint64_t failed_samples;               /* of them those of the batch that the last next failed with */
    uint32_t busy;                         /* workers that hold a ticket, or take a slot */
    bool closing, closed, interrupted;
    struct stoker_error broken;  /* code != 0: nothing more can be made */
    struct stoker_error no_more; /* code != 0: why no slots can be added */
    struct {
        uint64_t batches, samples, bad, wait_ns, first_batch_ns;
        uint64_t epoch_bad, copied;
    } count;
    struct stoker_error pinned_note; /* code != 0: memory that should be pinned is not */
    struct stoker_bad_sample *ledger; /* a ring of ST_LEDGER_SIZE, made when first needed */

    struct st_gate gate;
    uint64_t batch_bytes; /* what a batch took lately, where that is known only when it is made */
    struct st_tuning tuning; /* how many workers work, batches are kept ready, and samples read ahead */
    uint32_t worker_count, threads; /* threads: those that run */
    struct st_worker *worker;       /* at least one: with no threads it is the caller's */
    struct st_engines engines;
};

/* `devices` may be NULL. */
int st_loader_open(struct stoker_loader **out, struct stoker_dataset *data, struct stoker_pipeline *pipe,
                   const struct stoker_loader_options *opt, const struct st_devices *devices,
                   struct stoker_error *err);
int st_loader_start(struct stoker_loader *loader, const struct stoker_epoch *epoch, uint64_t base,
                    struct stoker_error *err);
int st_loader_next(struct stoker_loader *loader, const struct stoker_batch **out,
                   struct stoker_error *err);
void st_loader_interrupt(struct stoker_loader *loader);
void st_loader_close(struct stoker_loader *loader);
/* With `stream` not NULL the memory is kept until what it holds now is done. */
void st_batch_release(const struct stoker_batch *batch, const uintptr_t *stream);
int st_batch_join(const struct stoker_batch *batch, uintptr_t stream, struct stoker_error *err);
int st_batch_sync(const struct stoker_batch *batch, struct stoker_error *err);

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
/* Nothing more can be made in this epoch; the first reason stays. Lock held. */
void st_loader_break(struct stoker_loader *loader, const struct stoker_error *err);
/* Ends the epoch under way: afterwards no worker holds a ticket and no read is in flight. */
void st_loader_stop(struct stoker_loader *loader);
/* EFORK when this is another process than the one that opened the loader. */
int st_loader_check_owner(const struct stoker_loader *loader, struct stoker_error *err);

/* Rows of the batch being filled that nobody has taken; begins the next batch if need be. 0: nothing to do now.
 * Lock held; it may be dropped for a while. */
uint32_t st_tickets_left(struct stoker_loader *loader);
/* Right after that, with the lock still held: `count` of them. True: there may be work for one more worker, who is
 * to be woken by st_tickets_share once the lock is free. */
bool st_tickets_take(struct stoker_loader *loader, uint32_t count, struct st_tickets *out);
void st_tickets_share(struct stoker_loader *loader, bool more);
/* Their rows are made. Lock held; dropped while a batch is sent off. */
void st_tickets_done(struct stoker_loader *loader, const struct st_tickets *tickets);

/* A ticket's bytes, with `own` as in st_reader_get_into; st_reader_done is the caller's. On failure st_worker_settle is what is left to do, unless it
 * was cancelled. */
int st_worker_fetch(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t ticket,
                    struct st_buffer *own, struct st_bytes *bytes, struct stoker_error *err);
/* Makes the sample of these bytes, gives them back, and settles the row. */
void st_worker_make(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t ticket,
                    struct st_bytes bytes);
/* The row is made, or with rc != 0 it failed: the policy. */
void st_worker_settle(struct st_worker *worker, struct st_slot *slot, uint32_t row, int rc,
                      const struct stoker_error *err);

/* Takes tickets and makes their samples. False: nothing to do now. Called with the lock held, and
 * returns with it held. */
bool st_worker_step(struct st_worker *worker);
void *st_worker_main(void *worker);
/* One worker less is busy. Lock held. */
void st_worker_rests(struct stoker_loader *loader);
void st_worker_equip(struct st_worker *worker, struct stoker_loader *loader); /* a zeroed one */
void st_worker_free(struct st_worker *worker);

/* Where images are finished, and what the slots are like: opens the device. (place.c) */
int st_loader_place(struct stoker_loader *loader, const struct st_devices *devices, struct stoker_error *err);
uint32_t st_loader_slots_wanted(const struct stoker_loader *loader); /* in regular use */

/* What all samples of a batch must have in common, and neither the data set nor the pipeline says: asks the first
 * sample that can be read. Workers are equipped, and no thread runs yet. (model.c) */
int st_model_learn(struct stoker_loader *loader, struct stoker_error *err);

/* Slots; all with the lock held. (pool.c) */
/* For the next batch: a free one, or a new one as far as memory allows; NULL when enough are under way. Drops
 * the lock where that may take long. */
struct st_slot *st_pool_take(struct stoker_loader *loader);
bool st_pool_can_give(const struct stoker_loader *loader);
/* One more, whatever is there already. */
int st_pool_add(struct stoker_loader *loader, struct stoker_error *err);
void st_pool_give(struct stoker_loader *loader, struct st_slot *slot); /* it is free now */
/* The consumer gives it back. */
void st_pool_return(struct stoker_loader *loader, struct st_slot *slot);
void st_pool_remove(struct stoker_loader *loader, struct st_slot *slot);
bool st_pool_has_room(const struct stoker_loader *loader); /* for one more slot */
/* Memory is short: free slots are given back. */
void st_pool_shed(struct stoker_loader *loader);
uint64_t st_pool_regular(const struct stoker_loader *loader); /* bytes of those in regular use */
uint64_t st_pool_memory(const struct stoker_loader *loader);
uint64_t st_pool_pinned(const struct stoker_loader *loader); /* of it */

/* Runs the pipeline on the sample's bytes, into its row, with its label. `key`, with the seed of the row, names its
 * chance. (run.c) */
int st_run_sample(struct st_worker *worker, struct st_bytes bytes, uint64_t sample, uint64_t key,
                  struct st_slot *slot, uint32_t row, struct stoker_error *err);
/* The encoded image in a sample's bytes, if it stays there; other fields are put into their columns. */
bool st_run_find(struct st_worker *worker, struct st_bytes bytes, struct st_slot *slot, uint32_t row,
                 struct st_bytes *file);
/* Draws what becomes of the image, as far as that needs no pixels. */
int st_run_lazily(struct st_worker *worker, struct st_bytes bytes, const struct st_slot *slot, uint32_t row,
                  struct st_image *image, struct stoker_error *err);
/* The rest of it, when the device has decoded the file; false where it cannot be done this way. */
bool st_run_decoded(struct st_worker *worker, const struct st_image *image, uint64_t key, struct st_slot *slot,
                    uint32_t row, const struct st_engine_image *decoded);
/* Whether a failure is the machine's or the network's, so that the same sample may be had a moment later. (retry.c) */
bool st_is_transient(int code);
/* Reads the sample here and now and makes it for the row; `key` as above. What is transient is tried again for a while:
 * it is the outcome only where that did not help. err->code, if it is not 0, is how a first try went.
 * STOKER_ECANCELED: the epoch is being stopped. */
int st_retry_sample(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot, uint32_t row,
                    struct stoker_error *err);
/* A sample failed with err: applies the policy to its row, and notes it in the slot; or, where the sample is not to
 * blame, tries again, and in the end stops the epoch. (bad.c) */
void st_bad_sample(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t sample,
                   const struct stoker_error *err);
/* The batch is due: writes its failures to the ledger, and says whether it can be delivered. Lock held. */
int st_bad_deliver(struct stoker_loader *loader, struct st_slot *slot, struct stoker_error *err);
void st_bad_name(const struct stoker_loader *loader, uint64_t sample, struct stoker_error *err);
/* A read ended with STOKER_ECANCELED: that it is, if the epoch is being stopped, and STOKER_EIO if it is not. Whether
 * it is stopped the loader knows itself; what a source answers is no evidence. */
int st_bad_cancelled(struct stoker_loader *loader, struct stoker_error *err);
/* Whether the batch has a failure that no policy covers. Lock held. */
bool st_bad_is_fatal(const struct st_slot *slot);

#endif
