/* executor.h - what the threads of a loader share: they turn tickets into rows of slots
 *
 * An epoch is a sequence of tickets, one per sample, in order. A worker takes the next ticket under the
 * lock (or several tickets of one batch where a sample takes only a few microseconds), makes the samples
 * without the lock, and takes the lock again to count the rows as done before it takes more. Since
 * tickets are taken in order, all workers work on the oldest unfinished batch first. The result does not
 * depend on which worker made a sample: its bytes are a function of (seed, epoch, sample, pipeline).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_EXECUTOR_H
#define ST_PIPE_EXECUTOR_H

#include "base/threads.h"
#include "op/op.h"
#include "order/order.h"
#include "pipe/epoch.h"
#include "pipe/jpeg_state.h"
#include "pipe/memory.h"
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
    struct st_epoch_plan epoch; /* the current one; written only while no worker is busy, too */
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
    struct st_jpeg_threads jpeg;
};

#endif
