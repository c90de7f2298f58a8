/* uring.c - one thread that has the kernel open, read and close many files at once
 *
 * A file is a chain of four requests: open into the ring's own file table, read as much as the buffer
 * holds, read one byte more to be sure that this was the end, close. What is in the page cache is done
 * by the time the submission returns; the rest is in flight, up to `depth` files. Anything unusual (an
 * error, a short read) is read again the plain way, which says exactly what is wrong.
 *
 * On stores whose open itself waits (network and FUSE file systems) the submission would wait for one
 * file after another. It starts with few files, and the first time that it sleeps, all that follow are
 * given to the kernel's own threads instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/reader/ring.h"
#include "base/threads.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { STEP_OPEN, STEP_READ, STEP_END, STEP_CLOSE, STEPS };
enum { BATCH = 32, ENTRIES = 256 };
static_assert(BATCH * STEPS < ENTRIES, "a batch of chains goes to the kernel in one piece");

/* A submission that sleeps and takes longer than this met a store that waits. */
#define SLOW_SUBMIT_NS 1000000u
/* Kernel threads for such a store: otherwise it has four for each CPU. */
#define KERNEL_THREADS 64u

/* Buffers begin with this, and double when a file fills them. */
#define FIRST_ROOM  (128ull << 10)
#define ASYNC_ROOM  (512ull << 20) /* larger files are read the plain way */
#define DATA_WAKE   UINT64_MAX     /* what a completion belongs to, where not to a chain */
#define DATA_CANCEL (UINT64_MAX - 1)

struct chain {
    int result[STEPS];
    uint32_t pending;
    uint64_t wanted; /* ST_WHOLE_FILE: up to the end */
    uint8_t beyond;
};

struct uring {
    struct io_uring ring;
    bool ring_open, thread_started, cancel_sent;
    bool sleeping;    /* under the reader's lock */
    bool store_waits; /* what is submitted is left to the kernel's threads */
    uint32_t batch_limit;
    int wake_fd;
    uint64_t wake_value;
    pthread_t thread;
    struct chain *chains;         /* one for each berth */
    struct st_extent *extents;    /* of one batch: the kernel has copied the paths when submit returns */
    uint32_t *again, again_count; /* berths whose file did not fit and whose buffer has grown */
};

static struct io_uring_sqe *next_entry(struct uring *u)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    while (!sqe) { /* full: the kernel takes what is there */
        io_uring_submit(&u->ring);
        sqe = io_uring_get_sqe(&u->ring);
    }
    return sqe;
}

static void add_step(struct uring *u, struct io_uring_sqe *sqe, uint32_t slot, int step, unsigned flags)
{
    u->chains[slot].pending++;
    u->chains[slot].result[step] = -ECANCELED;
    io_uring_sqe_set_flags(sqe, flags);
    io_uring_sqe_set_data64(sqe, (uint64_t)slot * STEPS + (uint64_t)step);
}

static void add_close(struct uring *u, uint32_t slot)
{
    struct io_uring_sqe *sqe = next_entry(u);
    io_uring_prep_close_direct(sqe, slot);
    add_step(u, sqe, slot, STEP_CLOSE, 0);
}

/* A file that the source holds open needs one request alone. */
static void add_read(struct uring *u, uint32_t slot, const struct st_extent *extent,
                     const struct st_buffer *buffer)
{
    struct io_uring_sqe *sqe = next_entry(u);
    u->chains[slot] = (struct chain){.wanted = extent->length};
    io_uring_prep_read(sqe, extent->fd, buffer->data, (unsigned)extent->length, extent->offset);
    add_step(u, sqe, slot, STEP_READ, u->store_waits ? IOSQE_ASYNC : 0);
}

/* From the read on the links are hard: whatever becomes of it, the file is closed. */
static void add_chain(struct uring *u, uint32_t slot, const struct st_extent *extent,
                      const struct st_buffer *buffer)
{
    struct chain *chain = &u->chains[slot];
    const bool whole = extent->length == ST_WHOLE_FILE;
    const unsigned fixed = IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK;
    struct io_uring_sqe *sqe = next_entry(u);
    *chain = (struct chain){.wanted = extent->length};
    io_uring_prep_openat_direct(sqe, AT_FDCWD, extent->path, O_RDONLY, 0, slot);
    add_step(u, sqe, slot, STEP_OPEN, IOSQE_IO_LINK | (u->store_waits ? IOSQE_ASYNC : 0));
    sqe = next_entry(u);
    io_uring_prep_read(sqe, (int)slot, buffer->data,
                       (unsigned)(whole ? buffer->capacity : extent->length),
                       whole ? (uint64_t)-1 : extent->offset); /* -1: where the last read ended */
    add_step(u, sqe, slot, STEP_READ, fixed);
    if (whole) {
        sqe = next_entry(u);
        io_uring_prep_read(sqe, (int)slot, &chain->beyond, 1, (uint64_t)-1);
        add_step(u, sqe, slot, STEP_END, fixed);
    }
    add_close(u, slot);
}

static void arm_wake(struct uring *u)
{
    struct io_uring_sqe *sqe = next_entry(u);
    io_uring_prep_read(sqe, u->wake_fd, &u->wake_value, sizeof u->wake_value, 0);
    io_uring_sqe_set_data64(sqe, DATA_WAKE);
}

/* ---- one berth --------------------------------------------------------------------------------- */

static void finish(struct st_reader *reader, struct st_berth *berth, int code)
{
    berth->bytes = (struct st_bytes){berth->buffer.data, berth->buffer.size};
    st_ring_put(reader, berth, code);
}

static bool stopped(struct st_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    const bool yes = reader->cancelled;
    pthread_mutex_unlock(&reader->lock);
    return yes;
}

/* Hands the berth's file to the kernel, or settles it at once where that cannot be done. */
static void begin(struct st_reader *reader, struct st_berth *berth, struct st_extent *extent)
{
    struct uring *u = reader->engine_state;
    const int rc = st_locate(reader->data, st_ring_sample(reader, berth), extent, &berth->err);
    if (rc) {
        finish(reader, berth, rc);
        return;
    }
    const bool whole = extent->length == ST_WHOLE_FILE;
    berth->slept = u->store_waits;
    if (extent->memory) {
        berth->bytes = (struct st_bytes){extent->memory, extent->length};
        st_ring_put(reader, berth, 0);
    } else if (extent->remote || extent->objects ||
               (whole ? extent->fd || extent->offset > 0 || berth->buffer.capacity > ASYNC_ROOM
                      : extent->length > ASYNC_ROOM) ||
               !st_buffer_reserve(&berth->buffer, whole ? FIRST_ROOM : extent->length)) {
        finish(reader, berth, st_fetch(extent, &berth->buffer, &berth->err));
    } else if (extent->fd) {
        add_read(u, (uint32_t)(berth - reader->berths), extent, &berth->buffer);
    } else {
        add_chain(u, (uint32_t)(berth - reader->berths), extent, &berth->buffer);
    }
}

/* The plain way: for whatever the chain could not settle. */
static void read_plainly(struct st_reader *reader, struct st_berth *berth)
{
    struct uring *u = reader->engine_state;
    const uint64_t sample = st_ring_sample(reader, berth);
    int rc = st_locate(reader->data, sample, &u->extents[0], &berth->err);
    if (!rc)
        rc = st_fetch(&u->extents[0], &berth->buffer, &berth->err);
    finish(reader, berth, rc);
}

/* All requests of the chain have completed. */
static void end_chain(struct st_reader *reader, uint32_t slot)
{
    struct uring *u = reader->engine_state;
    struct chain *chain = &u->chains[slot];
    struct st_berth *berth = &reader->berths[slot];
    struct st_buffer *buffer = &berth->buffer;
    const int *result = chain->result;
    if (result[STEP_OPEN] >= 0 && result[STEP_CLOSE] < 0) { /* cancelled before its turn */
        chain->result[STEP_OPEN] = -ECANCELED;
        add_close(u, slot);
        return;
    }
    const int got = result[STEP_READ];
    const bool whole = chain->wanted == ST_WHOLE_FILE;
    if (got >= 0 && (whole ? result[STEP_END] == 0 : (uint64_t)got == chain->wanted)) {
        buffer->size = (uint64_t)got;
        finish(reader, berth, 0);
    } else if (stopped(reader)) {
        finish(reader, berth, STOKER_ECANCELED);
    } else if (whole && got >= 0 && (uint64_t)got == buffer->capacity && result[STEP_END] > 0 &&
               st_buffer_reserve(buffer, buffer->capacity * 2)) {
        u->again[u->again_count++] = slot;
    } else {
        read_plainly(reader, berth);
    }
}

/* ---- the thread -------------------------------------------------------------------------------- */

/* What there is to begin now; false when the reader closes. */
static bool collect(struct st_reader *reader, struct st_berth **batch, uint32_t *count, bool *cancel)
{
    struct uring *u = reader->engine_state;
    *count = 0;
    pthread_mutex_lock(&reader->lock);
    u->sleeping = false;
    if (!reader->cancelled)
        u->cancel_sent = false;
    *cancel = reader->cancelled && reader->in_flight && !u->cancel_sent;
    while (*count < u->batch_limit && u->again_count)
        batch[(*count)++] = &reader->berths[u->again[--u->again_count]];
    while (*count < u->batch_limit && (batch[*count] = st_ring_take(reader)) != NULL)
        ++*count;
    u->sleeping = *count == 0 && !*cancel;
    const bool open = !reader->closing;
    pthread_mutex_unlock(&reader->lock);
    return open;
}

static void cancel_all(struct uring *u)
{
    struct io_uring_sqe *sqe = next_entry(u);
    io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
    io_uring_sqe_set_data64(sqe, DATA_CANCEL); /* an older kernel refuses it: then the reads just end */
    u->cancel_sent = true;
}

/* Until the kernel has taken every request, the paths they point to must stay. */
static void submit_all(struct uring *u)
{
    while (io_uring_sq_ready(&u->ring))
        if (io_uring_submit(&u->ring) < 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* the kernel is short of memory */
}

/* Submits a batch, and watches whether that made this thread sleep (not just lose its turn). */
static void submit_batch(struct uring *u)
{
    const long slept = st_times_slept();
    const uint64_t began = st_now_ns();
    submit_all(u);
    u->batch_limit = u->batch_limit * 4 < BATCH ? u->batch_limit * 4 : BATCH;
    if (st_now_ns() - began > SLOW_SUBMIT_NS && st_times_slept() > slept)
        u->store_waits = true;
}

static void reap(struct st_reader *reader)
{
    struct uring *u = reader->engine_state;
    struct io_uring_cqe *cqe;
    while (!io_uring_peek_cqe(&u->ring, &cqe)) {
        const uint64_t data = io_uring_cqe_get_data64(cqe);
        const int result = cqe->res;
        io_uring_cqe_seen(&u->ring, cqe);
        if (data == DATA_WAKE) {
            arm_wake(u);
        } else if (data != DATA_CANCEL) {
            const uint32_t slot = (uint32_t)(data / STEPS);
            u->chains[slot].result[data % STEPS] = result;
            if (--u->chains[slot].pending == 0)
                end_chain(reader, slot);
        }
    }
}

static void *uring_thread(void *argument)
{
    struct st_reader *reader = argument;
    struct uring *u = reader->engine_state;
    struct st_berth *batch[BATCH];
    uint32_t count;
    bool cancel;
    arm_wake(u);
    while (collect(reader, batch, &count, &cancel)) {
        if (cancel)
            cancel_all(u);
        for (uint32_t i = 0; i < count; i++)
            begin(reader, batch[i], &u->extents[i]);
        if (count && !u->store_waits)
            submit_batch(u);
        else
            submit_all(u);
        if (count == 0) {
            struct io_uring_cqe *cqe;
            io_uring_wait_cqe(&u->ring, &cqe);
        }
        reap(reader);
    }
    return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------------- */

/* Runs a chain, to see whether this kernel has all that it needs (5.15 or newer has). */
static bool chain_works(struct st_reader *reader)
{
    struct uring *u = reader->engine_state;
    struct chain *chain = &u->chains[0];
    struct io_uring_cqe *cqe;
    u->extents[0] = (struct st_extent){.length = ST_WHOLE_FILE, .path = "/dev/null"};
    add_chain(u, 0, &u->extents[0], &reader->berths[0].buffer);
    if (io_uring_submit(&u->ring) != STEPS)
        return false;
    for (; chain->pending; chain->pending--) {
        if (io_uring_wait_cqe(&u->ring, &cqe))
            return false;
        chain->result[io_uring_cqe_get_data64(cqe) % STEPS] = cqe->res;
        io_uring_cqe_seen(&u->ring, cqe);
    }
    return chain->result[STEP_OPEN] >= 0 && chain->result[STEP_READ] == 0 &&
           chain->result[STEP_END] == 0 && chain->result[STEP_CLOSE] == 0;
}

static int register_table(struct uring *u, uint32_t count)
{
    int *none = st_calloc(count, sizeof *none);
    if (!none)
        return -ENOMEM;
    memset(none, -1, count * sizeof *none);
    const int rc = io_uring_register_files(&u->ring, none, count);
    free(none);
    return rc;
}

static int uring_open(struct st_reader *reader, struct stoker_error *err)
{
    struct uring *u = st_calloc(1, sizeof *u);
    if (!u)
        return st_fail(err, STOKER_ENOMEM, "out of memory for io_uring");
    reader->engine_state = u;
    u->batch_limit = 1;
    u->wake_fd = eventfd(0, EFD_CLOEXEC);
    u->chains = st_calloc(reader->depth, sizeof *u->chains);
    u->again = st_calloc(reader->depth, sizeof *u->again);
    u->extents = st_calloc(BATCH, sizeof *u->extents);
    if (u->wake_fd < 0 || !u->chains || !u->again || !u->extents ||
        !st_buffer_reserve(&reader->berths[0].buffer, FIRST_ROOM))
        return st_fail(err, STOKER_ENOMEM, "out of memory or handles for io_uring");
    const uint32_t completions = reader->depth * STEPS + 8; /* all that can come at once */
    struct io_uring_params params = {.flags = IORING_SETUP_CQSIZE,
                                     .cq_entries = completions > ENTRIES ? completions : ENTRIES};
    int rc = io_uring_queue_init_params(ENTRIES, &u->ring, &params);
    u->ring_open = rc == 0;
    if (!rc)
        rc = register_table(u, reader->depth);
    if (rc < 0)
        return st_fail_errno(err, -rc, "io_uring cannot be used here");
    /* An older kernel refuses this, and keeps its own number. */
    io_uring_register_iowq_max_workers(&u->ring, (unsigned[2]){KERNEL_THREADS, 0});
    if (!chain_works(reader))
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "io_uring: this kernel is too old for reading by chains");
    rc = st_thread_start(&u->thread, uring_thread, reader, "stoker-read");
    u->thread_started = rc == 0;
    return rc ? st_fail_errno(err, rc, "cannot start a thread for reading") : 0;
}

static void uring_wake(struct st_reader *reader)
{
    struct uring *u = reader->engine_state;
    const uint64_t one = 1;
    if (!u->sleeping)
        return;
    u->sleeping = false;
    while (write(u->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* In a child these are the child's own copies of the handles: the parent's ring goes on. */
static void uring_forget(struct st_reader *reader)
{
    struct uring *u = reader->engine_state;
    if (u->ring_open)
        io_uring_queue_exit(&u->ring);
    if (u->wake_fd >= 0)
        close(u->wake_fd);
    free(u->chains);
    free(u->again);
    free(u->extents);
    free(u);
    reader->engine_state = NULL;
}

static void uring_close(struct st_reader *reader)
{
    struct uring *u = reader->engine_state;
    if (!u)
        return;
    if (u->thread_started) {
        pthread_mutex_lock(&reader->lock);
        reader->closing = true;
        uring_wake(reader);
        pthread_mutex_unlock(&reader->lock);
        pthread_join(u->thread, NULL);
        reader->closing = false;
    }
    uring_forget(reader);
}

const struct st_engine st_engine_uring = {
    .name = "io_uring",
    .open = uring_open,
    .wake = uring_wake,
    .close = uring_close,
    .forget = uring_forget,
};
