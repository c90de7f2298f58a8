/* events.h - the events of a watched process: one file per process, fixed-size records, one writer
 *
 * RUN/events/PID holds a header of DR_EVENTS_HEADER bytes and then `capacity` records of 32 bytes, a
 * ring: record n is at index n % capacity. The writer (doctor/inject/watch.py) maps the file, writes
 * the record, then the count. Numbers are in native byte order. Times are CLOCK_MONOTONIC, which all
 * processes of a machine share. The file is hostile input: a reader checks every length.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_EVENTS_H
#define ST_DOCTOR_EVENTS_H

#include <stdint.h>

#define DR_EVENTS_MAGIC "stkrev1" /* 8 bytes with the terminator */
enum { DR_EVENTS_HEADER = 4096 };

struct dr_events_header {
    char magic[8];
    uint32_t record_size; /* 32 */
    uint32_t pid;
    uint64_t capacity; /* records */
    uint64_t written;  /* records in total; the last min(written, capacity) of them are available */
    uint64_t spent_ns; /* time that watching has cost this process so far */
};

enum dr_event_kind {
    /* in the training process */
    DR_NEXT = 1, /* __next__ of a loader's iterator. batch: index within the iterator; a: batches ready
                    at entry, or DR_UNKNOWN; b: DR_NEXT_* flags, and microseconds of the calling
                    thread's CPU time << 8 */
    DR_STALL,    /* idle time of the GPU in that call, by CUDA events: dur; batch as in DR_NEXT */
    DR_STEP,     /* optimizer.step(); a: number of the optimizer */
    DR_ITER,     /* iter(loader); a: workers started in it (0: none) */
    DR_PIN,      /* pinning of one batch, in any thread; a: KiB */
    DR_COPY,     /* a copy from host to device, sampled; a: KiB; b: DR_COPY_* flags. dur: host time */
    DR_SYNC,  /* the host waited for the GPU (item, cpu, synchronize, ...); a: number N of the place in
                 the program, described by "sync.N.where" in RUN/process/PID; b: the number of waits in
                 this  step that it stands for, from the first one on, dur being their sum; 0: one */
    DR_SAVE,  /* torch.save, numpy.save and the like */
    DR_GC,    /* a collection by the garbage collector; a: generation */
    DR_EPOCH, /* StopIteration: an epoch of this loader ended */
    DR_LOG,   /* a record was logged */
    DR_SAMPLE, /* the sampler drew the indices of a batch */
    DR_TRIED_TORCH, /* at the end of the program, with --try-stoker: samples of the run made once more,
                       as torch's loader makes them in a worker; batch: number of the measurement; a:
                       samples; b: microseconds of CPU time */
    DR_TRIED_STOKER, /* the same samples, as Stoker's makes them */
    /* in the process that makes batches: a worker, the training process without workers,
     * Stoker's engine */
    DR_FETCH =
        16,  /* making of one whole batch. batch: its index; a: samples; b: microseconds of CPU time */
    DR_READ, /* parts of it, each without nested parts. dur: sum over the batch; a: calls; b: CPU us */
    DR_NETWORK,
    DR_DECOMPRESS,
    DR_DECODE,
    DR_TRANSFORM,
    DR_COLLATE,
    DR_PUT,       /* transfer of the batch: pickling, shared memory, the queue */
    DR_OPENED,    /* a: files opened for the batch; b: their size in KiB, if known */
    DR_SLOWEST,   /* the slowest sample of the batch: dur; a: its index in the dataset, or DR_UNKNOWN */
    DR_DISCARDED, /* part of DR_DECODE or DR_TRANSFORM (a: which one) spent on elements that the samples
                     do not contain in the end, because they are cropped away or resized: dur */
    DR_SHARED, /* part of DR_COLLATE in a worker: allocating shared memory for the batch. dur; a: calls;
                  b: CPU us */
    DR_HELPERS, /* CPU time of the other threads of the training process while it made the batch: dur */
    DR_ARCHIVE, /* opening archives and databases for the batch, part of whatever stages that is. dur; a:
                   calls; b: CPU us */
    DR_REDUCED, /* part of DR_TRANSFORM spent on making images smaller: dur */
    DR_KINDS
};
#define DR_UNKNOWN UINT32_MAX
enum {
    DR_NEXT_READY = 1,    /* the next batch was ready */
    DR_NEXT_BEHIND = 2,   /* it was not ready, but later ones were: head-of-line blocking */
    DR_NEXT_FIRST = 4,    /* first of an iterator */
    DR_NEXT_TRAINING = 8, /* gradients are enabled */
    DR_COPY_PINNED = 1,
    DR_COPY_NON_BLOCKING = 2,
};

struct dr_event {
    uint64_t start_ns, dur_ns;
    uint32_t batch;
    uint16_t kind;
    uint16_t loader; /* number of the loader in the training process; a worker uses that of its parent */
    uint32_t a, b;
};
_Static_assert(sizeof(struct dr_event) == 32, "the size of a record is part of the format");

#endif
