/* jpeg_threads.c - a device's JPEG hardware as another kind of worker
 *
 * Tickets are taken in order by whoever is free, so the hardware and CPUs share the work according to
 * their actual speed. A chunk is as large as suits the hardware, but at most its share of half of the
 * work in progress, by the rates measured lately. Hardware that other processes keep busy may be so slow
 * that a chunk would delay its batch: then it only gets one from time to time, to see whether it
 * still is.
 *
 * Submitting an image takes an eighth of the CPU time of decoding it (100 of 800 us). So while the
 * hardware is at work, enough workers rest for each JPEG thread and the consumer to have a CPU of their
 * own; with few CPUs, all of them. Not before a JPEG thread is known to make more samples than a worker.
 *
 * The hardware does not notice damaged data. So by default a file goes to it only if our own decoder has
 * once decoded all of it: workers read new files to their end, and the dataset remembers
 * (source/known/known.h). While too few of the coming samples are known, or after a chunk without a file
 * for it, the hardware leaves the next tickets to the workers.
 *
 * The GPU should not decode what nobody is waiting for: the hardware rests while half of the prefetched
 * batches are ready, so that a training run that the CPUs can feed alone has the whole GPU. In short
 * rests the workers that made room for it do not take over: they would need eight times the CPU time,
 * which the consumer may lack. What time a JPEG thread has left, it spends on decoding files itself
 * (jpeg_share.c).
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
    CHUNK_LEAST = 16,       /* smaller chunks leave the hardware idle */
    CHUNK_BRIEF = 14,       /* the hardware takes so many at once: handing over more means waiting */
    IMAGE_ROOM = 640 << 10, /* pinned memory per image: ImageNet's take 543 KB on average, */
    ROW_ROOM = 320 << 10,   /* but 270 KB of them are needed for random crops */
    FILE_ROOM = 256 << 10,  /* pinned memory per file of a chunk; most files are smaller */
    MEMORY_PART = 32,       /* fraction of max_memory that a thread may pin, */
    PINNED_PART = 8,        /* and of pinned_limit, which batches need more */
    GIVE_UP = 4,            /* failed chunks in a row */
    /* left to the workers after a chunk without a file for the hardware: */
    PAUSE_TICKETS = 4 * ST_JPEG_CHUNK_MOST,
    RECENT_ROWS = 1024, /* rates are of about this many rows */
    PROBE_TIMES = 20,   /* slow hardware rests this many times as long as it works, */
    PAUSE_SECONDS = 30, /* but at most so long */
};
#define KNOWN_NS   3000000000u /* between exchanges of what is known with other processes */
#define AWAITED_NS 250000000u  /* a consumer that has waited long is given priority for so long */

/* ---- how many at once ---------------------------------------------------------------------------- */

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

/* Rows per second of the hardware with this thread lately; 0: not known yet. */
static double own_rate(const struct st_jpeg_thread *self)
{
    return self->busy_ns ? (double)self->busy_rows / (double)self->busy_ns * 1e9 : 0;
}

/* Rows of batches that may be in progress or ready at the same time. */
static double rows_ahead(const struct stoker_loader *loader)
{
    return loader->opt.batch_size * (st_tuned(&loader->tuning, ST_TUNE_PREFETCH) + 1.0);
}

/* How far ahead of the consumer the tickets are, relative to the batches that are to be ready. */
static double work_ahead(const struct stoker_loader *loader)
{
    const double batches = (double)(loader->next_batch - loader->delivered) +
                           (double)loader->next_row / loader->opt.batch_size;
    return batches / st_tuned(&loader->tuning, ST_TUNE_PREFETCH);
}

/* Whether the consumer waits, or lately spent most of its time on that. */
static bool is_awaited(const struct stoker_loader *loader)
{
    return loader->tuning.late_ns ||
           (loader->jpeg.awaited_ns && st_now_ns() - loader->jpeg.awaited_ns < AWAITED_NS);
}

/* This thread's share of the work in progress. Batches are delivered in order, so a chunk must not take
 * longer than the workers need for the other batches that may be begun meanwhile. */
static uint32_t chunk_size(const struct st_jpeg_thread *self, uint32_t left)
{
    const struct stoker_loader *loader = self->worker.loader;
    const double cpus = worker_rate(loader) * st_tuning_active(loader), mine = own_rate(self);
    uint32_t most = st_jpeg_threads_brief(loader) ? CHUNK_BRIEF : ST_JPEG_CHUNK_MOST;
    if (cpus > 0 && mine > 0) {
        const double share = rows_ahead(loader) / 2 * mine / (mine * loader->jpeg.ready + cpus);
        if (share < most)
            most = share > CHUNK_LEAST ? (uint32_t)share : CHUNK_LEAST;
    }
    return most < left ? most : left;
}

/* Leaves the work to the workers for a while if they would make all other rows in progress, twice over,
 * while this thread makes its smallest chunk. Lock held. */
static bool too_slow(struct st_jpeg_thread *self, uint32_t left)
{
    struct stoker_loader *loader = self->worker.loader;
    const double cpus = worker_rate(loader) * loader->worker_count, mine = own_rate(self);
    const double rows = left < CHUNK_LEAST ? left : CHUNK_LEAST, others = rows_ahead(loader) - rows;
    if (!(cpus > 0) || !(mine > 0) || rows / mine <= 2 * others / cpus || self->tries)
        return false;
    self->tries = true; /* with the next chunk */
    const double pause = PROBE_TIMES * rows / mine;
    loader->jpeg.slow_until_ns =
        st_now_ns() + (uint64_t)((pause < PAUSE_SECONDS ? pause : PAUSE_SECONDS) * 1e9);
    return true;
}

/* Tells how the chunk went, for these estimates. The first one says little: the hardware's library still
 * allocates memory and loads code. */
static void note_rate(struct st_jpeg_thread *self)
{
    self->tries = false;
    if (!self->started)
        self->busy_ns = self->busy_rows = 0;
    self->started = true;
    if (self->busy_rows > RECENT_ROWS) {
        self->busy_rows /= 2;
        self->busy_ns /= 2;
    }
}

/* ---- threads ------------------------------------------------------------------------------------- */

/* Whether at least half of the next tickets can go to the hardware; otherwise the workers have them.
 * Lock held. */
static bool enough_known(struct stoker_loader *loader, uint32_t left)
{
    const struct st_known *known = loader->jpeg.known;
    const uint32_t most = left < ST_JPEG_CHUNK_MOST ? left : ST_JPEG_CHUNK_MOST;
    uint32_t count = 0;
    for (uint32_t k = 0; known && k < most; k++)
        count += st_known_any(known, st_order_at(loader->order, loader->next_ticket + k));
    if (!known || 2 * count >= most)
        return true;
    loader->jpeg.rest_until = loader->next_ticket + most;
    return false;
}

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
           : most >= CHUNK_LEAST * each      ? most
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

/* How many tickets this thread may take from the current batch; 0: it has to wait. Lock held. */
static uint32_t tickets_for(struct st_jpeg_thread *self)
{
    struct stoker_loader *loader = self->worker.loader;
    const uint32_t number = (uint32_t)(self - loader->jpeg.worker);
    const bool pass = st_jpeg_threads_pass(loader);
    const uint32_t left = pass || st_jpeg_threads_ahead(loader, number) ? 0 : st_tickets_left(loader);
    if (left && enough_known(loader, left) && !too_slow(self, left))
        return left;
    if (pass || left)
        st_jpeg_threads_engage(loader, false); /* the workers have the next ones */
    return 0;
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
        const uint32_t left = tickets_for(self);
        if (!left) {
            pthread_cond_wait(&loader->jpeg.work[self - loader->jpeg.worker], &loader->lock);
            continue;
        }
        const double mine = own_rate(self), theirs = worker_rate(loader);
        st_jpeg_threads_engage(loader, theirs > 0 && mine >= theirs);
        const bool awaited = is_awaited(loader);
        st_jpeg_share_set(self, work_ahead(loader), awaited);
        const bool more = st_tickets_take(loader, chunk_size(self, left), &chunk);
        if (self->tries) /* only this chunk says how fast they are now */
            self->busy_ns = self->busy_rows = 0;
        pthread_mutex_unlock(&loader->lock);
        st_tickets_share(loader, more);
        st_jpeg_chunk_make(self, &chunk);
        pthread_mutex_lock(&loader->lock);
        st_tickets_done(loader, &chunk);
        note_rate(self);
        st_jpeg_share_adapt(self, awaited);
        if (self->lost >= GIVE_UP) {
            give_up(loader);
            break;
        }
        /* Taking more would only make this thread another worker, with a worker resting for it. */
        if (!self->given)
            loader->jpeg.rest_until = loader->next_ticket + PAUSE_TICKETS;
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
        /* A thread that is still opening the hardware stops after the current call of nvJPEG, which may
         * take most of a second, and this waits for it. The library's call cannot be cancelled, and uses
         * the device's context and this loader until it returns, so nothing could be freed before. Nor
         * may the thread outlive the close, detached or joined by a later call: the program may exit
         * next, and CUDA's exit handlers must not run while a thread is in nvJPEG; or fork; or unload
         * this library. */
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
