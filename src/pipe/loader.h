/* loader.h - the executor: threads that turn tickets into rows of slots
 *
 * An epoch is a sequence of tickets, one per sample, in order. A worker takes the next ticket under the
 * lock (or several tickets of one batch where a sample takes only a few microseconds), makes the samples
 * without the lock, and takes the lock again to count the rows as done before it takes more. Since
 * tickets are taken in order, all workers work on the oldest unfinished batch first. The result does not
 * depend on which worker made a sample: its bytes are a function of (seed, epoch, sample, pipeline).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_LOADER_H
#define ST_PIPE_LOADER_H

#include "base/threads.h"
#include "order/order.h"
#include "pipe/gate.h"
#include "pipe/slot.h"
#include "pipe/spec.h"
#include "pipe/tune.h"
#include "source/reader/reader.h"

#include <pthread.h>
#include <sys/types.h>

enum {
    ST_LEDGER_SIZE = 1024,
    ST_SLOTS_MORE = 3, /* slots beyond the batches kept ready: in progress, lent, about to be lent */
};

/* Where batches may go; filled in by the floors above. All NULL: batches stay in plain CPU memory. */
struct st_devices {
    const struct st_device_kind *kind;   /* of the requested device */
    int32_t ordinal;                     /* index of the device; -1: the current or first one */
    const struct st_pinned_kind *pinned; /* for batches that stay on the CPU */
    const struct st_jpeg_engine_kind *engine; /* the device's JPEG engines */
};

struct st_worker {
    struct stoker_loader *loader;
    pthread_t thread;
    struct st_work work;
    struct st_audio_work sound;
    struct st_buffer bytes;  /* of a sample that was not read ahead */
    struct st_buffer pieces; /* what the source's split() makes of a sample's bytes */
    _Atomic uint64_t stage_ns[STOKER_STAGE_COUNT], samples, read_bytes;
    _Atomic uint64_t raw_rows, resized_rows;
    uint64_t sample_ns; /* recent time per sample; 0: unknown */
    /* gate.c */
    struct st_account memory; /* everything it holds */
    bool inside;              /* the gate: counted there */
    bool making;              /* a sample: it may hold memory of it; guarded by the lock */
    bool alone;               /* it has its turn, */
    uint64_t beside;          /* and holds so much beside its sample: files of a chunk */
    bool stopped, too_large;  /* why its sample was not made: epoch ended; its batch is too large; */
    bool again, wants_alone;  /* it is to be made again, alone */
    bool over_memory;         /* it failed because of max_memory: nobody else is to try */
    uint64_t waited_ns;       /* of its sample's time */
    _Atomic uint64_t memory_wait_ns;
    struct {                  /* where its current sample goes */
        struct st_slot *slot;
        uint32_t row;
    } target;
};

/* Adds to a counter that one thread writes and any thread may read, so no locked instruction is
 * needed. */
static inline void st_worker_count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

enum {
    ST_JPEG_THREADS = 2,
    ST_CONSUMERS = 1, /* threads of the training program at a time; they launch kernels */
};

/* The threads that drive a device's JPEG engines. (jpeg_engine.c) */
struct st_jpeg_engines {
    const struct st_jpeg_engine_kind *kind; /* NULL: engines are not used */
    struct st_jpeg_engine_worker *worker;
    uint32_t count, threads; /* threads: number actually started */
    pthread_mutex_t memory;  /* guards the slots' device memory for engines */
    pthread_cond_t work[ST_JPEG_THREADS]; /* each thread waits here, with the loader's lock */
    struct st_known *known;  /* the files that they may decode; NULL: all that they can */
    _Atomic uint32_t ready;  /* threads whose engine is open */
    /* guarded by the loader's lock: */
    bool engaged;            /* they do the work that there is, and some workers rest */
    uint64_t worked_ns;      /* when a thread last took tickets */
    uint64_t awaited_ns;     /* when the consumer last got a batch for which it had waited long */
    uint32_t share_least;    /* the least that an engine thread decodes itself (jpeg_share.c) */
    uint32_t calm;           /* batches in time since that grew, or one was late */
    uint32_t settling;       /* for so many more batches it does not shrink */
    bool was_late;           /* a batch came too late, at any time */
    bool under_way;          /* a batch of this epoch came in time */
    bool gpu_busy;           /* the consumer's stream had work when it last took a batch */
    uint64_t rest_until;     /* tickets before this one are left to the workers */
    uint64_t slow_until_ns;  /* and all until then, because the engines are slow */
    uint64_t shared_ns;      /* when what is known was last exchanged with other processes */
    bool sharing;
    uint64_t pinned_bytes;    /* host memory for files and planes */
    /* Written once each, because stats() hands out their messages. code != 0: */
    struct stoker_error note;  /* why fewer engines are used than possible */
    struct stoker_error ended; /* why a thread no longer uses them */
};

/* Tickets of one batch, taken by a worker. */
struct st_tickets {
    struct st_slot *slot;
    uint64_t ticket; /* the first */
    uint32_t row, count;
};

/* The current epoch; written only with the lock held and no worker busy. */
struct st_epoch_plan {
    bool running;
    uint64_t number, base;    /* base: the cursor at which it started */
    uint64_t tickets;         /* samples of this rank */
    uint64_t batches;
    uint64_t first_batch;     /* batches of this rank before base */
    uint32_t *sizes;          /* of each batch, counted from base; NULL: all equal except the last */
    uint64_t started_ns;
};

struct stoker_loader {
    struct stoker_dataset *data;
    struct stoker_pipeline *pipe;
    struct stoker_loader_options opt;
    struct stoker_order *order;
    struct st_reader *reader;
    struct st_finish finish;
    struct st_taps_kept *taps; /* of rows that a device resizes; NULL: none are kept */
    struct st_marks_kept *marks; /* of JPEG files; NULL: none are kept */
    struct st_slot_shape shape;
    struct st_device *device; /* NULL: none */
    struct st_columns_plan columns;
    int32_t sound_channels; /* of all sounds; -1: any; 0: could not be determined, so all are bad */
    pid_t owner;
    struct st_published *published; /* api/publish.h; NULL: nothing is published */
    uint64_t dataset_count;
    atomic_bool stopping; /* the epoch is being stopped: reads and pauses end early */

    pthread_mutex_t lock;
    pthread_cond_t work;  /* workers wait for tickets and slots */
    pthread_cond_t ready; /* the consumer waits for a batch; stop waits for idle workers */
    /* everything below is guarded by the lock */
    struct st_epoch_plan epoch;
    struct st_slot *slots;
    uint32_t slot_count, lent;
    uint64_t freed;          /* slots freed so far; the slot freed first is reused first */
    bool taking;             /* a worker is waiting for a slot's memory, without the lock */
    struct st_slot *filling; /* the batch of the next ticket; NULL: not begun */
    uint64_t next_ticket, next_batch;
    uint32_t next_row;
    uint64_t delivered, delivered_samples; /* in this epoch */
    uint64_t failed_samples;               /* of which: in a batch that next() has just failed for */
    uint32_t busy;                         /* workers that hold tickets or are taking a slot */
    struct st_flag closing; /* set with the lock held */
    bool closed, interrupted;
    struct stoker_error broken;  /* code != 0: no further samples can be made */
    struct stoker_error no_more; /* code != 0: why no slot can be added */
    struct {
        uint64_t batches, samples, bad, wait_ns, first_batch_ns;
        uint64_t epoch_bad, copied;
    } count;
    struct stoker_error pinned_note; /* code != 0: why memory that should be pinned is not */
    struct {
        stoker_failure_callback *callback; /* NULL: none; does not change during an epoch */
        void *context;
        struct st_rescue_request *first; /* of workers that wait for the thread in next */
        bool handing_over;               /* a worker copies what that thread has for it */
        pthread_cond_t answer;
    } rescue; /* rescue.c */
    struct stoker_bad_sample *ledger; /* a ring of ST_LEDGER_SIZE entries: no failure goes unnamed */

    struct st_gate gate;
    uint64_t batch_bytes; /* recent size of a batch, where it is known only once the batch is made */
    struct st_tuning tuning; /* numbers of active workers, batches kept ready and samples read ahead */
    uint32_t worker_count, threads; /* threads: number running */
    struct st_worker *worker;       /* at least one: without threads, the calling thread uses it */
    struct st_jpeg_engines engines;
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
void st_loader_on_failure(struct stoker_loader *loader, stoker_failure_callback *callback,
                          void *context);
void st_loader_close(struct stoker_loader *loader);
/* If `stream` is not NULL, the memory is reused only after the work now queued in that stream. */
void st_batch_release(const struct stoker_batch *batch, const uintptr_t *stream);
void st_batch_mark(const struct stoker_batch *batch, uintptr_t stream);
int st_batch_join(const struct stoker_batch *batch, uintptr_t stream, struct stoker_error *err);
int st_batch_sync(const struct stoker_batch *batch, struct stoker_error *err);

int st_loader_save(struct stoker_loader *loader, struct stoker_state *out, struct stoker_error *err);
int st_loader_restore(struct stoker_loader *loader, const struct stoker_state *state,
                      const struct stoker_epoch *epoch, struct stoker_error *err);

void st_loader_stats(struct stoker_loader *loader, struct stoker_stats *out);
/* The files that workers and engine threads have decoded on the CPU, by codec (its place in st_codecs)
 * and path. */
uint64_t st_loader_files(struct stoker_loader *loader, uint32_t codec, uint32_t path);
bool st_loader_bad(struct stoker_loader *loader, uint64_t k, struct stoker_bad_sample *out);

/* -- internal to this floor -- */

/* Divides the samples from `base` on into batches; the caller frees plan->sizes. (epoch.c) */
int st_epoch_plan(const struct stoker_loader *loader, const struct stoker_epoch *epoch, uint64_t base,
                  struct st_epoch_plan *plan, struct stoker_error *err);
/* Number of samples in batch `number` of the epoch. */
uint32_t st_epoch_batch_size(const struct stoker_loader *loader, uint64_t number);
/* Ends the current epoch: on return no worker holds a ticket and no read is in flight. */
void st_loader_stop(struct stoker_loader *loader);
/* STOKER_EFORK if the calling process is not the one that opened the loader. */
int st_loader_check_owner(const struct stoker_loader *loader, struct stoker_error *err);

/* Changes of state that other threads have to learn about; all with the lock held. (notify.c) */
/* Nothing more can be made in this epoch; the first error is kept. */
void st_loader_break(struct stoker_loader *loader, const struct stoker_error *err);
/* The worker is no longer busy. */
void st_worker_rests(struct stoker_loader *loader);
/* There may be work for the JPEG engines: tickets, and too few batches ready for them to rest. */
void st_jpeg_engines_wake(struct stoker_loader *loader);
/* Whether they leave the next tickets to the workers: the files are not known to be sound, or the
 * engines are slow. */
bool st_jpeg_engines_pass(const struct stoker_loader *loader);
/* Whether enough batches are ready for this engine thread to rest. */
bool st_jpeg_engines_ahead(const struct stoker_loader *loader, uint32_t thread);
/* Whether engine threads give way to the consumer, because they work on its CPU. */
bool st_jpeg_engines_yield(const struct stoker_loader *loader);
/* Whether an engine thread should take only a few tickets at a time. */
bool st_jpeg_engines_brief(const struct stoker_loader *loader);
/* Begins or ends a time in which the engines work and some workers rest. */
void st_jpeg_engines_engage(struct stoker_loader *loader, bool engaged);

/* Which files the JPEG engines are given. (jpeg_files.c) */
struct st_jpeg_frame;
/* Whether they can decode the file. Truncated files are left to the CPU, which reports them properly. */
bool st_jpeg_engines_take(const struct stoker_loader *loader, struct st_bytes file,
                          struct st_jpeg_frame *frame);
/* Whether the file is trusted not to be damaged. If it is another one than the dataset remembers, it is
 * unknown again. */
bool st_jpeg_engines_trust(const struct stoker_loader *loader, uint64_t sample, struct st_bytes file);
/* Whether a worker that makes this sample should decode the whole file, to find out whether the engines
 * can be trusted with it. */
bool st_jpeg_engines_want_check(const struct stoker_loader *loader, uint64_t sample,
                                struct st_bytes file);

/* Tickets. (tickets.c) */
/* Number of rows of the current batch that nobody has taken; begins the next batch if necessary. 0:
 * nothing to do now. Lock held; may be released for a while. */
uint32_t st_tickets_left(struct stoker_loader *loader);
/* Takes `count` of them; call right after st_tickets_left, with the lock still held. True: there may be
 * work for another worker, to be woken by st_tickets_share once the lock is released. */
bool st_tickets_take(struct stoker_loader *loader, uint32_t count, struct st_tickets *out);
void st_tickets_share(struct stoker_loader *loader, bool more);
/* Their rows are made. Lock held; released while a batch is submitted to the device. */
void st_tickets_done(struct stoker_loader *loader, const struct st_tickets *tickets);

/* Reads a ticket's bytes, with `own` as in st_reader_get_into; the caller calls st_reader_done. If this
 * fails, the caller only has to call st_worker_settle, unless the read was cancelled. */
int st_worker_fetch(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t ticket,
                    struct st_buffer *own, struct st_bytes *bytes, struct stoker_error *err);
/* Makes the sample from these bytes, releases them, and settles the row. */
void st_worker_make(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t ticket,
                    struct st_bytes bytes);
/* The row is made or, with rc != 0, it failed: it is made again, or the on_error policy is applied. */
void st_worker_settle(struct st_worker *worker, struct st_slot *slot, uint32_t row, int rc,
                      struct stoker_error *err);

/* Takes tickets and makes their samples. False: nothing to do now. Called with the lock held, and
 * returns with it held. */
bool st_worker_step(struct st_worker *worker);
void *st_worker_main(void *worker);
/* Initialises a zeroed worker. */
void st_worker_equip(struct st_worker *worker, struct stoker_loader *loader);
void st_worker_free(struct st_worker *worker);

/* Decides where images are finished and what slots look like; opens the device. (place.c) */
int st_loader_place(struct stoker_loader *loader, const struct st_devices *devices,
                    struct stoker_error *err);
uint32_t st_loader_slots_wanted(const struct stoker_loader *loader); /* slots in regular use */

/* Learns from the first readable sample what all samples of a batch must have in common, where neither
 * the dataset nor the pipeline says. Workers are equipped by then; no thread runs yet. (model.c) */
int st_model_learn(struct stoker_loader *loader, struct stoker_error *err);

/* Slots; all functions are called with the lock held. (pool.c) */
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

/* Runs the pipeline on the sample's bytes and writes its row and label. Its random draws depend on `key`
 * and the row's seed. (run.c) */
int st_run_sample(struct st_worker *worker, struct st_bytes bytes, uint64_t sample, uint64_t key,
                  struct st_slot *slot, uint32_t row, struct stoker_error *err);
/* Finds the encoded image in a sample's bytes, unless it lies in scratch memory; writes the other fields
 * to their columns. */
bool st_run_find(struct st_worker *worker, struct st_bytes bytes, struct st_slot *slot, uint32_t row,
                 struct st_bytes *file);
/* Makes the random draws for the image and records its pending ops. Fails if an op needs pixels: the
 * file is not decoded here, because whoever makes the sample would decode it again. */
int st_run_lazily(struct st_worker *worker, struct st_bytes bytes, const struct st_slot *slot,
                  uint32_t row, struct st_image *image, struct stoker_error *err);
/* Completes the row after the device has decoded the file; false if that is not possible for this
 * row. */
bool st_run_decoded(struct st_worker *worker, const struct st_image *image, uint64_t key,
                    struct st_slot *slot, uint32_t row, const struct st_jpeg_engine_image *decoded);
/* Puts the sample's name in front of the message. (failure.c) */
void st_bad_name(const struct stoker_loader *loader, uint64_t sample, struct stoker_error *err);
/* A read returned STOKER_ECANCELED: returns that code if the epoch is being stopped, else STOKER_EIO.
 * Only the loader knows whether it is being stopped; a source's return code is no evidence. */
int st_bad_cancelled(struct stoker_loader *loader, struct stoker_error *err);
/* Reads the sample synchronously and makes it for the row; `key` as above. Transient failures are
 * retried for a while and returned only if that did not help. If err->code is not 0, it is the outcome
 * of a first attempt. STOKER_ECANCELED: the epoch is being stopped. (retry.c) */
int st_retry_sample(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                    uint32_t row, struct stoker_error *err);
/* Asks the program about a sample that failed with *err, and makes it from the image that it has for it.
 * Returns 0, or the code of *err, which may be another error than before. (rescue.c) */
int st_rescue_sample(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                     uint32_t row, struct stoker_error *err);
/* Calls the program for all workers that wait for that. Lock held; true: it was released during the
 * calls. */
bool st_rescue_serve(struct stoker_loader *loader);
/* One attempt, which waits for memory as often as necessary. The error names the sample. */
int st_retry_once(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                  uint32_t row, struct stoker_error *err);
/* A sample failed with err: applies the policy to its row and records the failure in the slot. If the
 * sample is not to blame, retries it, and stops the epoch if that does not help. (bad.c) */
void st_bad_sample(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t sample,
                   const struct stoker_error *err);
/* The batch is due: writes its failures to the ledger and returns whether it can be delivered. Lock
 * held. */
int st_bad_deliver(struct stoker_loader *loader, struct st_slot *slot, struct stoker_error *err);
/* Whether the batch has a failure that no policy covers. Lock held. */
bool st_bad_is_fatal(const struct st_slot *slot);

#endif
