/* jpeg_state.h - the threads that drive a device's JPEG hardware, as a loader's other threads see them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_JPEG_STATE_H
#define ST_PIPE_JPEG_STATE_H

#include "pipe/device.h"

#include <pthread.h>
#include <stdatomic.h>

struct st_known;

enum {
    ST_JPEG_THREADS = 2,
    ST_CONSUMERS = 1, /* threads of the training program at a time; they launch kernels */
};

/* The threads that drive a device's JPEG hardware. */
struct st_jpeg_threads {
    const struct st_jpeg_hw_kind *kind; /* NULL: it is not used */
    struct st_jpeg_thread *worker;
    uint32_t count, threads; /* threads: number actually started */
    pthread_mutex_t memory;  /* guards the slots' device memory for what it decodes */
    pthread_cond_t work[ST_JPEG_THREADS]; /* each thread waits here, with the loader's lock */
    struct st_known *known;  /* the files that they may decode; NULL: all that they can */
    _Atomic uint32_t ready;  /* threads that have opened it */
    /* guarded by the loader's lock: */
    bool engaged;            /* they do the work that there is, and some workers rest */
    uint64_t worked_ns;      /* when a thread last took tickets */
    uint64_t awaited_ns;     /* when the consumer last got a batch for which it had waited long */
    uint32_t share_least;    /* the least that a JPEG thread decodes itself (jpeg_share.c) */
    uint32_t calm;           /* batches in time since that grew, or one was late */
    uint32_t settling;       /* for so many more batches it does not shrink */
    bool was_late;           /* a batch came too late, at any time */
    bool under_way;          /* a batch of this epoch came in time */
    bool gpu_busy;           /* the consumer's stream had work when it last took a batch */
    uint64_t rest_until;     /* tickets before this one are left to the workers */
    uint64_t slow_until_ns;  /* and all until then, because the hardware is slow */
    uint64_t shared_ns;      /* when what is known was last exchanged with other processes */
    bool sharing;
    uint64_t pinned_bytes;    /* host memory for files and planes */
    /* Written once each, because stats() hands out their messages. code != 0: */
    struct stoker_error note;  /* why less of it is used than possible */
    struct stoker_error ended; /* why a thread no longer uses them */
};

#endif
