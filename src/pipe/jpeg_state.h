/* jpeg_state.h - the threads that drive a device's JPEG hardware, as a loader's other threads see them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_JPEG_STATE_H
#define ST_PIPE_JPEG_STATE_H

#include "pipe/device.h"
#include "pipe/jpeg_steer.h"

#include <pthread.h>
#include <stdatomic.h>

struct st_known;

enum { ST_JPEG_THREADS = 2 };

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
    struct st_steer steer;
    uint64_t shared_ns;      /* when what is known was last exchanged with other processes */
    bool sharing;
    uint64_t pinned_bytes;    /* host memory for files and planes */
    /* Written once each, because stats() hands out their messages. code != 0: */
    struct stoker_error note;  /* why less of it is used than possible */
    struct stoker_error ended; /* why a thread no longer uses them */
};

#endif
