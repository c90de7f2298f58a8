/* jpeg_threads.c - a device's JPEG hardware as another kind of worker
 *
 * How many tickets a thread takes, and when, is decided in jpeg_steer.c; here are the threads that see
 * and do it.
 *
 * The hardware does not notice damaged data. So by default a file goes to it only if our own decoder
 * has once decoded all of it: workers read new files to their end, and the dataset remembers
 * (source/known/known.h). While too few of the coming samples are known, or after a chunk without a
 * file for it, the hardware leaves the next tickets to the workers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/jpeg_threads.h"

#include "base/clock.h"
#include "base/threads.h"
#include "pipe/jpeg_chunk.h"
#include "pipe/jpeg_share.h"
#include "pipe/notify.h"
#include "pipe/pool.h"
#include "pipe/tickets.h"
#include "pipe/tuning.h"
#include "pipe/worker.h"
#include "source/known/known.h"

#include <stdlib.h>

enum {
    IMAGE_ROOM = 640 << 10, /* pinned memory per image: ImageNet's take 543 KB on average, */
    ROW_ROOM = 320 << 10,   /* but 270 KB of them are needed for random crops */
    FILE_ROOM = 256 << 10,  /* pinned memory per file of a chunk; most files are smaller */
    FILES_LEAST = 16,       /* of a chunk: with room for fewer, none is pinned */
    MEMORY_PART = 32,       /* fraction of max_memory that a thread may pin, */
    PINNED_PART = 8,        /* and of pinned_limit, which batches need more */
    GIVE_UP = 4,            /* failed chunks in a row */
};
#define KNOWN_NS 3000000000u /* between exchanges of what is known with other processes */

/* ---- what a thread sees ---------------------------------------------------------------------- */

/* Rows per second of one worker, measured over the workers' run so far; 0: not known yet. */
static double worker_rate(const struct stoker_loader *loader)
{
    uint64_t ns = 0, samples = 0;
    for (uint32_t k = 0; k < loader->worker_count; k++) {
        const struct st_worker *worker = &loader->worker[k];
        samples += atomic_load_explicit(&worker->samples, memory_order_relaxed);
        for (int stage = 0; stage < STOKER_STAGE_SLOT; stage++)
            ns += atomic_load_explicit(&worker->stage_ns[stage], memory_order_relaxed);
    }
    return ns ? (double)samples / (double)ns * 1e9 : 0;
}

/* How many of the `left` next tickets, up to a chunk of them, have files that may be decoded. Lock
 * held. */
static uint32_t known_next(const struct stoker_loader *loader, uint32_t left)
{
    const struct st_known *known = loader->jpeg.known;
    const uint32_t most = left < ST_JPEG_CHUNK_MOST ? left : ST_JPEG_CHUNK_MOST;
    uint32_t count = 0;
    if (!known)
        return most;
    for (uint32_t k = 0; k < most; k++)
        count += st_known_any(known, st_order_at(loader->order, loader->next_ticket + k));
    return count;
}

/* How many tickets this thread takes from the current batch; 0: it has to wait. Lock held; may be
 * released for a while. */
static uint32_t tickets_for(struct st_jpeg_thread *self)
{
    struct stoker_loader *loader = self->worker.loader;
    const uint32_t number = (uint32_t)(self - loader->jpeg.worker);
    struct st_steer_seen seen = st_jpeg_threads_see(loader, number);
    if (st_steer_passes(&loader->jpeg.steer, seen.next_ticket, seen.now_ns)) {
        st_jpeg_threads_engage(loader, false); /* the workers have the next ones */
        return 0;
    }
    const uint32_t left = st_steer_is_ahead(&seen) ? 0 : st_tickets_left(loader);
    if (!left)
        return 0;
    seen = st_jpeg_threads_see(loader, number);
    seen.worker_rate = worker_rate(loader);
    seen.wanted = st_tuning_wanted(loader);
    const struct st_steer_choice choice =
        st_steer_choose(&loader->jpeg.steer, &self->steer, &seen, left, known_next(loader, left));
    st_jpeg_threads_engage(loader, choice.engages);
    return choice.tickets;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Exchanges what is known with other processes. Lock held; released meanwhile. */
static void share_known(struct stoker_loader *loader)
{
    struct st_jpeg_threads *jpeg = &loader->jpeg;
    const uint64_t now = st_now_ns();
    if (!jpeg->known || jpeg->sharing || now - jpeg->shared_ns < KNOWN_NS)
        return;
    jpeg->shared_ns = now;
    jpeg->sharing = true;
    pthread_mutex_unlock(&loader->lock);
    st_known_share(jpeg->known);
    pthread_mutex_lock(&loader->lock);
    jpeg->sharing = false;
}

/* How much memory a thread pins for the files and images of a chunk. Not less than for the smallest: it
 * would be decoded in parts. */
static uint64_t pinned_wanted(const struct stoker_loader_options *opt)
{
    const uint64_t each = FILE_ROOM + IMAGE_ROOM, memory = opt->max_memory / MEMORY_PART,
                   pinned = opt->pinned_limit / PINNED_PART, most = memory < pinned ? memory : pinned;
    return most >= ST_JPEG_CHUNK_MOST * each ? ST_JPEG_CHUNK_MOST * each
           : most >= FILES_LEAST * each      ? most
                                             : 0;
}

static bool open_hardware(struct st_jpeg_thread *self)
{
    struct stoker_loader *loader = self->worker.loader;
    struct st_jpeg_threads *jpeg = &loader->jpeg;
    const uint64_t wanted = pinned_wanted(&loader->opt);
    struct stoker_error err;
    pthread_mutex_lock(&loader->lock);
    const uint64_t claimed = st_pool_pinned(loader) + wanted <= loader->opt.pinned_limit ? wanted : 0;
    jpeg->pinned_bytes += claimed;
    pthread_mutex_unlock(&loader->lock);
    struct st_jpeg_pinned pinned = {.bytes = claimed};
    const int rc =
        jpeg->kind->open(&self->hw, loader->device, ST_JPEG_CHUNK_MOST, &pinned, &loader->closing, &err);
    pthread_mutex_lock(&loader->lock);
    self->pinned = rc ? (struct st_jpeg_pinned){0} : pinned;
    jpeg->pinned_bytes -= claimed - self->pinned.bytes;
    jpeg->ready += !rc;
    if (rc && !jpeg->note.code)
        jpeg->note = err;
    pthread_mutex_unlock(&loader->lock);
    return !rc;
}

/* This thread ends, and the workers have its CPU. Lock held. */
static void give_up(struct stoker_loader *loader)
{
    loader->jpeg.ready--;
    st_jpeg_threads_engage(loader, false);
    if (!loader->jpeg.ended.code)
        st_fail(&loader->jpeg.ended, STOKER_EIO,
                "the JPEG hardware failed %d times in a row and is no longer used: the CPU decodes all "
                "files",
                GIVE_UP);
}

static void *thread_main(void *argument)
{
    struct st_jpeg_thread *self = argument;
    struct stoker_loader *loader = self->worker.loader;
    struct st_tickets chunk;

    if (st_jpeg_threads_yield(loader))
        st_thread_lower_priority();
    if (!open_hardware(self))
        return NULL;
    pthread_mutex_lock(&loader->lock);
    /* Shares first, because that releases the lock: `closing` may have been announced meanwhile. */
    for (share_known(loader); !loader->closing.set; share_known(loader)) {
        const uint32_t count = tickets_for(self);
        if (!count) {
            pthread_cond_wait(&loader->jpeg.work[self - loader->jpeg.worker], &loader->lock);
            continue;
        }
        const bool more = st_tickets_take(loader, count, &chunk);
        pthread_mutex_unlock(&loader->lock);
        st_tickets_share(loader, more);
        st_jpeg_chunk_make(self, &chunk);
        pthread_mutex_lock(&loader->lock);
        st_tickets_done(loader, &chunk);
        if (self->lost >= GIVE_UP) {
            give_up(loader);
            break;
        }
        st_steer_made(&loader->jpeg.steer, &self->steer, &self->times, self->given, loader->next_ticket);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

int st_jpeg_threads_open(struct stoker_loader *loader, const struct st_jpeg_hw_kind *kind,
                         struct stoker_error *err)
{
    struct st_jpeg_threads *jpeg = &loader->jpeg;
    const bool all = loader->opt.jpeg_hardware == STOKER_JPEG_HARDWARE_ALL ||
                     loader->opt.fidelity == STOKER_FIDELITY_FAST;
    const char *why;
    if (!kind || loader->opt.jpeg_hardware == STOKER_JPEG_HARDWARE_OFF || !loader->shape.raw ||
        loader->shape.channels != 3)
        return STOKER_OK;
    if (!all && !(jpeg->known = st_known_of(loader->data, &why))) {
        st_fail(&jpeg->note, STOKER_EUNSUPPORTED,
                "%s; jpeg_hardware=\"all\" uses the JPEG hardware for every file", why);
        return STOKER_OK;
    }
    jpeg->worker = st_calloc(ST_JPEG_THREADS, sizeof *jpeg->worker);
    int failed = pthread_mutex_init(&jpeg->memory, NULL);
    for (uint32_t k = 0; k < ST_JPEG_THREADS; k++)
        failed |= pthread_cond_init(&jpeg->work[k], NULL);
    if (!jpeg->worker || failed) {
        free(jpeg->worker);
        jpeg->worker = NULL;
        return st_fail(err, STOKER_ENOMEM, "no memory for the threads of the JPEG hardware");
    }
    jpeg->kind = kind;
    jpeg->count = ST_JPEG_THREADS;
    loader->shape.jpeg_hw = kind;
    loader->shape.hw_bytes = loader->shape.rows * (uint64_t)ROW_ROOM;
    if (loader->shape.hw_bytes < ST_JPEG_IMAGE_MOST)
        loader->shape.hw_bytes = ST_JPEG_IMAGE_MOST; /* any image fits into a block */
    return STOKER_OK;
}

void st_jpeg_threads_start(struct stoker_loader *loader)
{
    struct st_jpeg_threads *jpeg = &loader->jpeg;
    int failed = 0;
    for (; !failed && loader->worker_count && jpeg->threads < jpeg->count; jpeg->threads += !failed) {
        struct st_jpeg_thread *self = &jpeg->worker[jpeg->threads];
        st_worker_equip(&self->worker, loader);
        failed = st_thread_start(&self->worker.thread, thread_main, self, "stoker-jpeg");
    }
    pthread_mutex_lock(&loader->lock);
    if (failed)
        st_fail_errno(&jpeg->note, failed, "the thread for the JPEG hardware could not be started");
    else if (jpeg->count && !loader->worker_count)
        st_fail(&jpeg->note, STOKER_EUNSUPPORTED,
                "a loader without worker threads (workers=0) does not use the JPEG hardware");
    pthread_mutex_unlock(&loader->lock);
}

void st_jpeg_threads_close(struct stoker_loader *loader)
{
    struct st_jpeg_threads *jpeg = &loader->jpeg;
    for (uint32_t k = 0; k < jpeg->threads; k++) {
        struct st_jpeg_thread *self = &jpeg->worker[k];
        /* A thread that is still opening the hardware stops after the current call of nvJPEG, which
         * may take most of a second, and this waits for it. The library's call cannot be cancelled,
         * and uses the device's context and this loader until it returns, so nothing could be freed
         * before. Nor may the thread outlive the close, detached or joined by a later call: the
         * program may exit next, and CUDA's exit handlers must not run while a thread is in nvJPEG; or
         * fork; or unload this library. */
        pthread_join(self->worker.thread, NULL);
        for (uint32_t file = 0; file < ST_JPEG_CHUNK_MOST; file++)
            st_buffer_free(&self->file[file]);
        if (self->hw)
            jpeg->kind->close(self->hw);
        st_worker_free(&self->worker);
    }
    if (jpeg->known)
        st_known_share(jpeg->known);
    /* A batch may be released at any time, which wakes the hardware: under the lock, while `kind` is
     * set. */
    pthread_mutex_lock(&loader->lock);
    const bool had = jpeg->kind != NULL;
    struct st_jpeg_thread *workers = jpeg->worker;
    jpeg->kind = NULL;
    jpeg->worker = NULL;
    jpeg->count = jpeg->threads = jpeg->ready = 0;
    jpeg->pinned_bytes = 0;
    pthread_mutex_unlock(&loader->lock);
    if (had) {
        pthread_mutex_destroy(&jpeg->memory);
        for (uint32_t k = 0; k < ST_JPEG_THREADS; k++)
            pthread_cond_destroy(&jpeg->work[k]);
    }
    free(workers);
}

uint32_t st_jpeg_threads_tickets(const struct stoker_loader *loader)
{
    return loader->jpeg.count * ST_JPEG_CHUNK_MOST;
}

uint64_t st_jpeg_threads_files(const struct stoker_loader *loader, uint32_t codec, uint32_t path)
{
    uint64_t files = 0;
    for (uint32_t k = 0; k < loader->jpeg.count; k++)
        files += atomic_load_explicit(&loader->jpeg.worker[k].worker.work.decoder.files[codec][path],
                                      memory_order_relaxed);
    return files;
}

void st_jpeg_threads_stats(const struct stoker_loader *loader, struct stoker_stats *out)
{
    const struct st_jpeg_threads *jpeg = &loader->jpeg;
    for (uint32_t k = 0; k < jpeg->count; k++) {
        const struct st_jpeg_thread *self = &jpeg->worker[k];
        out->jpeg_hardware_rows += atomic_load_explicit(&self->rows, memory_order_relaxed);
        out->jpeg_hardware_failures += atomic_load_explicit(&self->failed, memory_order_relaxed);
        out->bytes += atomic_load_explicit(&self->worker.read_bytes, memory_order_relaxed);
        out->raw_rows += atomic_load_explicit(&self->worker.raw_rows, memory_order_relaxed);
        out->resized_rows += atomic_load_explicit(&self->worker.resized_rows, memory_order_relaxed);
    }
    out->jpeg_hardware_note = jpeg->ended.code  ? jpeg->ended.message
                              : jpeg->note.code ? jpeg->note.message
                                                : NULL;
}
