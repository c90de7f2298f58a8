/* uring.c - one thread that opens, reads and closes many files at once through io_uring
 *
 * A file takes three requests: open, read, close. In between the thread checks what it has opened: its
 * type (a pipe or a device could block forever) and its size; one extra byte is requested, to be sure
 * that this was the end. Files in the page cache are complete when the submission returns; the rest is
 * in flight, up to `depth` files. Anything unusual (an error, a short read) is read again synchronously,
 * which gives an exact error message.
 *
 * On stores where open itself blocks (network and FUSE file systems) the submission would block for one
 * file after another. Each time reading ahead starts, it begins with few files, and once a submission
 * sleeps, the following ones are handed to the kernel's worker threads instead.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/reader/ring.h"
#include "base/clock.h"
#include "base/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 32, ENTRIES = 256, FILES_LEAST = 8 };
/* The user data of a request: its kind in the upper half, a berth or a descriptor in the lower half. */
enum request { REQUEST_OPEN, REQUEST_READ, REQUEST_CLOSE, REQUEST_WAKE, REQUEST_CANCEL };

/* A submission that sleeps and takes longer than this means that the store blocks. */
#define SLOW_SUBMIT_NS 1000000u
/* Kernel worker threads for such a store; the default is four per CPU. */
#define KERNEL_THREADS 64u
#define ASYNC_ROOM     (512ull << 20) /* larger files are read synchronously */

/* A berth's file. */
struct job {
    int fd;          /* -1: the source keeps it open */
    uint32_t round;  /* in which the current request was submitted */
    bool to_the_end; /* `length` is the reported file size, and the file must end there */
    uint64_t offset, length;
};

struct uring {
    struct io_uring ring;
    bool ring_open, thread_started, cancel_sent;
    bool sleeping;    /* guarded by the reader's lock */
    bool store_waits; /* submit to the kernel's worker threads */
    uint32_t batch_limit, round;
    uint32_t files, files_max; /* open or about to be opened */
    uint64_t beginnings;       /* the reader's, when reading ahead last started */
    int wake_fd;
    uint64_t wake_value;
    pthread_t thread;
    struct job *jobs;          /* one per berth */
    struct st_extent *extents; /* of one batch: the kernel has copied the paths when submit returns */
};

static struct io_uring_sqe *next_entry(struct uring *u)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    while (!sqe) { /* full: submit what is there */
        io_uring_submit(&u->ring);
        sqe = io_uring_get_sqe(&u->ring);
    }
    return sqe;
}

static void mark(struct io_uring_sqe *sqe, enum request request, uint32_t which)
{
    io_uring_sqe_set_data64(sqe, (uint64_t)request << 32 | which);
}

static void add_open(struct uring *u, uint32_t slot, const struct st_extent *extent)
{
    struct io_uring_sqe *sqe = next_entry(u);
    const bool whole = extent->length == ST_WHOLE_FILE;
    u->jobs[slot] = (struct job){-1, u->round + 1, whole, extent->offset, whole ? 0 : extent->length};
    u->files++;
    io_uring_prep_openat(sqe, AT_FDCWD, extent->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    mark(sqe, REQUEST_OPEN, slot);
    io_uring_sqe_set_flags(sqe, u->store_waits ? IOSQE_ASYNC : 0);
}

static void add_read(struct uring *u, uint32_t slot, int fd, const struct st_buffer *buffer)
{
    struct job *job = &u->jobs[slot];
    struct io_uring_sqe *sqe = next_entry(u);
    job->round = u->round + 1;
    io_uring_prep_read(sqe, fd, buffer->data, (unsigned)(job->length + job->to_the_end), job->offset);
    mark(sqe, REQUEST_READ, slot);
    io_uring_sqe_set_flags(sqe, u->store_waits ? IOSQE_ASYNC : 0);
}

static void add_close(struct uring *u, int fd)
{
    struct io_uring_sqe *sqe = next_entry(u);
    io_uring_prep_close(sqe, fd);
    mark(sqe, REQUEST_CLOSE, (uint32_t)fd);
}

static void arm_wake(struct uring *u)
{
    struct io_uring_sqe *sqe = next_entry(u);
    io_uring_prep_read(sqe, u->wake_fd, &u->wake_value, sizeof u->wake_value, 0);
    mark(sqe, REQUEST_WAKE, 0);
}

/* ---- one berth --------------------------------------------------------------------------------- */

static void finish(struct st_reader *reader, struct st_berth *berth, int code)
{
    berth->bytes = (struct st_bytes){berth->buffer.data, berth->buffer.size};
    st_ring_put(reader, berth, code);
}

static void give_up(struct st_reader *reader, struct st_berth *berth)
{
    finish(reader, berth, st_fail(&berth->err, STOKER_ECANCELED, "reading was cancelled"));
}

/* Reads synchronously in this thread, if io_uring did not succeed. */
static void read_synchronously(struct st_reader *reader, struct st_berth *berth)
{
    const uint64_t ticket = st_turn_ticket(berth->turn);
    bool slept;
    const int rc = st_ring_read(reader, ticket, &berth->buffer, &berth->bytes, &slept, &berth->err);
    berth->slept = berth->slept || slept;
    st_ring_put(reader, berth, rc);
}

/* Submits the berth's file, or handles it at once if that is impossible. */
static void begin(struct st_reader *reader, struct st_berth *berth, struct st_extent *extent)
{
    struct uring *u = reader->backend_state;
    const uint32_t slot = (uint32_t)(berth - reader->berths);
    berth->slept = false;
    const int rc = st_locate(reader->data, st_ring_sample(reader, berth), extent, &berth->err);
    const bool whole = extent->length == ST_WHOLE_FILE;
    if (rc) {
        finish(reader, berth, rc);
    } else if (extent->memory || extent->remote || extent->objects ||
               (whole ? extent->fd != 0
                      : extent->length > ASYNC_ROOM ||
                            !st_buffer_reserve(&berth->buffer, extent->length))) {
        read_synchronously(reader, berth);
    } else if (extent->fd) {
        u->jobs[slot] = (struct job){.fd = -1, .offset = extent->offset, .length = extent->length};
        add_read(u, slot, extent->fd, &berth->buffer);
    } else {
        add_open(u, slot, extent);
    }
}

/* Whether the opened file is a regular file of a size that can be read this way. AT_STATX_DONT_SYNC
 * avoids another request to a file server. */
static bool can_read(struct job *job, int fd, struct st_buffer *buffer)
{
    struct statx info;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &info) ||
        !S_ISREG(info.stx_mode))
        return false;
    if (job->to_the_end)
        job->length = info.stx_size > job->offset ? info.stx_size - job->offset : 0;
    /* On some file systems nonblocking reads of regular files fail instead of blocking. */
    return job->length <= ASYNC_ROOM && st_buffer_reserve(buffer, job->length + 1) &&
           fcntl(fd, F_SETFL, 0) == 0;
}

static void opened(struct st_reader *reader, uint32_t slot, int fd)
{
    struct uring *u = reader->backend_state;
    struct job *job = &u->jobs[slot];
    struct st_berth *berth = &reader->berths[slot];
    berth->slept = job->round != u->round;
    if (fd < 0)
        u->files--;
    if (reader->cancelled) {
        if (fd >= 0)
            add_close(u, fd);
        give_up(reader, berth);
    } else if (fd >= 0 && can_read(job, fd, &berth->buffer)) {
        job->fd = fd;
        add_read(u, slot, fd, &berth->buffer);
    } else {
        if (fd >= 0)
            add_close(u, fd);
        read_synchronously(reader, berth);
    }
}

static void was_read(struct st_reader *reader, uint32_t slot, int got)
{
    struct uring *u = reader->backend_state;
    const struct job *job = &u->jobs[slot];
    struct st_berth *berth = &reader->berths[slot];
    berth->slept = berth->slept || job->round != u->round;
    if (job->fd >= 0)
        add_close(u, job->fd);
    if (got >= 0 && (uint64_t)got == job->length) {
        berth->buffer.size = job->length;
        finish(reader, berth, 0);
    } else if (reader->cancelled) {
        give_up(reader, berth);
    } else {
        read_synchronously(reader, berth);
    }
}

/* ---- the thread -------------------------------------------------------------------------------- */

/* Takes the berths to start now; false if the reader is closing. */
static bool collect(struct st_reader *reader, struct st_berth **batch, uint32_t *count, bool *cancel)
{
    struct uring *u = reader->backend_state;
    *count = 0;
    pthread_mutex_lock(&reader->lock);
    if (u->beginnings != reader->beginnings) { /* the store may behave differently now */
        u->beginnings = reader->beginnings;
        u->store_waits = false;
        u->batch_limit = 1;
    }
    if (!reader->cancelled)
        u->cancel_sent = false;
    *cancel = reader->cancelled && reader->in_flight && !u->cancel_sent;
    while (*count < u->batch_limit && u->files + *count < u->files_max &&
           (batch[*count] = st_ring_take(reader)) != NULL)
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
    mark(sqe, REQUEST_CANCEL, 0); /* older kernels reject this: then the reads simply finish */
    u->cancel_sent = true;
}

/* The paths must stay valid until the kernel has taken every request. */
static void submit_all(struct uring *u)
{
    u->round++;
    while (io_uring_sq_ready(&u->ring))
        if (io_uring_submit(&u->ring) < 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* the kernel is out of memory */
}

/* Submits a batch, and observes whether that made this thread sleep (rather than being preempted). */
static void submit_batch(struct uring *u)
{
    const long slept = st_times_slept();
    const uint64_t began = st_now_ns();
    submit_all(u);
    u->batch_limit = u->batch_limit * 4 < BATCH ? u->batch_limit * 4 : BATCH;
    if (st_now_ns() - began > SLOW_SUBMIT_NS && st_times_slept() > slept)
        u->store_waits = true;
}

/* Handles completions; false if there are none. */
static bool reap(struct st_reader *reader)
{
    struct uring *u = reader->backend_state;
    struct io_uring_cqe *cqe;
    bool any = false;
    for (; !io_uring_peek_cqe(&u->ring, &cqe); any = true) {
        const uint64_t data = io_uring_cqe_get_data64(cqe);
        const uint32_t which = (uint32_t)data;
        const int result = cqe->res;
        io_uring_cqe_seen(&u->ring, cqe);
        switch ((enum request)(data >> 32)) {
        case REQUEST_OPEN:
            opened(reader, which, result);
            break;
        case REQUEST_READ:
            was_read(reader, which, result);
            break;
        case REQUEST_CLOSE:
            u->files--;
            if (result == -ECANCELED)
                close((int)which);
            break;
        case REQUEST_WAKE:
            arm_wake(u);
            break;
        case REQUEST_CANCEL:
            break;
        }
    }
    return any;
}

static void await_any(struct uring *u)
{
    struct io_uring_cqe *cqe;
    io_uring_wait_cqe(&u->ring, &cqe);
}

static void *uring_thread(void *argument)
{
    struct st_reader *reader = argument;
    struct uring *u = reader->backend_state;
    struct st_berth *batch[BATCH];
    uint32_t count;
    bool cancel;
    st_thread_lower_priority(); /* like the workers that it serves */
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
        /* Files in memory are complete by now; those that complete later have blocked. */
        if (!reap(reader) && count == 0 && !cancel)
            await_any(u);
    }
    while (u->files) {
        submit_all(u);
        if (!reap(reader))
            await_any(u);
    }
    return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------------- */

static bool kernel_can(struct uring *u)
{
    struct io_uring_probe *probe = io_uring_get_probe_ring(&u->ring);
    const bool can = probe && io_uring_opcode_supported(probe, IORING_OP_OPENAT) &&
                     io_uring_opcode_supported(probe, IORING_OP_READ) &&
                     io_uring_opcode_supported(probe, IORING_OP_CLOSE);
    io_uring_free_probe(probe);
    return can;
}

/* How many descriptors the files in flight may take: the host program needs most of them. */
static uint32_t descriptors_for(uint32_t depth)
{
    struct rlimit limit;
    const rlim_t share = getrlimit(RLIMIT_NOFILE, &limit) ? FILES_LEAST : limit.rlim_cur / 4;
    return share > depth ? depth : share < FILES_LEAST ? FILES_LEAST : (uint32_t)share;
}

static int uring_open(struct st_reader *reader, struct stoker_error *err)
{
    struct uring *u = st_calloc(1, sizeof *u);
    if (!u)
        return st_fail(err, STOKER_ENOMEM, "out of memory for io_uring");
    reader->backend_state = u;
    u->files_max = descriptors_for(reader->depth);
    u->wake_fd = eventfd(0, EFD_CLOEXEC);
    u->jobs = st_calloc(reader->depth, sizeof *u->jobs);
    u->extents = st_calloc(BATCH, sizeof *u->extents);
    if (u->wake_fd < 0 || !u->jobs || !u->extents)
        return st_fail(err, STOKER_ENOMEM, "out of memory or descriptors for io_uring");
    const uint32_t completions = reader->depth * 2 + 8; /* the most that can be pending */
    struct io_uring_params params = {.flags = IORING_SETUP_CQSIZE,
                                     .cq_entries = completions > ENTRIES ? completions : ENTRIES};
    int rc = io_uring_queue_init_params(ENTRIES, &u->ring, &params);
    u->ring_open = rc == 0;
    if (rc < 0)
        return st_fail_errno(err, -rc,
                             "io_uring cannot be used here, so a pool of threads reads instead");
    /* Older kernels reject this and keep their default. */
    io_uring_register_iowq_max_workers(&u->ring, (unsigned[2]){KERNEL_THREADS, 0});
    if (!kernel_can(u))
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "io_uring: this kernel cannot open files with it (5.6 or newer can), so a pool of "
            "threads reads instead");
    return 0;
}

static void uring_wake(struct st_reader *reader)
{
    struct uring *u = reader->backend_state;
    const uint64_t one = 1;
    if (!u->thread_started && !reader->cancelled) /* if no thread can be started, the callers read */
        u->thread_started = !st_thread_start(&u->thread, uring_thread, reader, "stoker-read");
    if (!u->sleeping)
        return;
    u->sleeping = false;
    while (write(u->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* In a forked child these are its own copies of the descriptors: the parent's ring is not affected. */
static void uring_forget(struct st_reader *reader)
{
    struct uring *u = reader->backend_state;
    if (u->ring_open)
        io_uring_queue_exit(&u->ring);
    if (u->wake_fd >= 0)
        close(u->wake_fd);
    free(u->jobs);
    free(u->extents);
    free(u);
    reader->backend_state = NULL;
}

static void uring_close(struct st_reader *reader)
{
    struct uring *u = reader->backend_state;
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

const struct st_backend st_backend_uring = {
    .name = "io_uring",
    .open = uring_open,
    .wake = uring_wake,
    .close = uring_close,
    .forget = uring_forget,
};
