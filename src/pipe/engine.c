/* engine.c - a device's JPEG engines as one more kind of worker
 *
 * Tickets are taken in order by whoever is free, so engines and CPUs share every batch by their real
 * rates. A chunk is as large as the engines like, but no more of what is left of a batch than would be
 * theirs by the rates measured so far: then both sides are through with it at about the same time.
 *
 * The GPU has better things to do than to decode what nobody waits for: engines rest while half of the
 * batches that are kept ahead lie ready, so that a training run which the CPUs can feed alone gets all of
 * it.
 *
 * The engines write to the slot's own part of the device's memory. They heed no order of streams, so a
 * chunk begins only when the slot's last batch is done; and a row counts as done only when its pixels
 * are there, so the slot's kernels need not wait for anything either.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/engine.h"

#include "base/clock.h"
#include "base/threads.h"
#include "codec/jpeg/headers.h"
#include "codec/jpeg_markers.h"

#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 2,      /* while one waits for its chunk the other prepares the next */
    CHUNK_LEAST = 16, /* fewer leave engines idle */
    CHUNK_MOST = 64,
    ROW_ROOM = 512 << 10, /* device memory for each row of a batch; not every one is decoded there */
    STRIDE_ALIGN = 64,
    IMAGE_ALIGN = 512,
    IMAGE_MOST = 16 << 20, /* bytes of a decoded image; larger ones are for the CPU, which decodes the
                              region alone */
};

/* A ticket that the engines decode. */
struct item {
    uint64_t ticket;
    uint32_t row;
    struct st_bytes bytes; /* of the sample, in which the file is */
    struct st_image image; /* what is to become of it */
};

/* One that is left to this thread. */
struct left {
    uint64_t ticket;
    uint32_t row;
    struct st_bytes bytes;
};

struct st_engine_worker {
    struct st_worker worker; /* what it does itself it does like the others */
    struct st_engine *engine;
    uint32_t count;
    struct item item[CHUNK_MOST];
    struct st_engine_image decoded[CHUNK_MOST];
    uint32_t left_count;
    struct left left[CHUNK_MOST];
    _Atomic uint64_t rows, failed; /* decoded by the engines; those they failed at */
    uint64_t busy_ns, busy_rows;   /* of this thread: what its rate follows from */
};

/* ---- which files --------------------------------------------------------------------------------- */

/* Of a file that is cut off the CPU knows what to say. */
static bool is_taken(const struct stoker_loader *loader, struct st_bytes file)
{
    struct st_jpeg_frame frame;
    return st_jpeg_headers(file, &frame) == ST_JPEG_OURS && st_jpeg_has_end(frame.scan) &&
           loader->engines.kind->takes(&frame);
}

/* A place in the slot's memory for an image of this size. */
static bool find_room(struct st_slot *slot, struct st_engine_image *image)
{
    const uint64_t stride = st_align(3 * (uint64_t)image->width, STRIDE_ALIGN);
    const uint64_t bytes = st_align(stride * (uint64_t)image->height, IMAGE_ALIGN);
    if (bytes > IMAGE_MOST)
        return false;
    const uint64_t at = atomic_fetch_add_explicit(&slot->engine_used, bytes, memory_order_relaxed);
    if (at + bytes > slot->shape.engine_bytes)
        return false; /* the rest of this batch is too late as well */
    image->pixels = slot->engine_memory + at;
    image->stride = (uint32_t)stride;
    return true;
}

/* Draws what becomes of the sample, if the engines are to decode it. */
static bool plan_row(struct st_engine_worker *self, struct st_slot *slot, uint32_t row, uint64_t ticket,
                     struct st_bytes bytes)
{
    struct item *item = &self->item[self->count];
    struct st_engine_image *decoded = &self->decoded[self->count];
    struct st_region window;
    struct st_resize resize;
    struct st_bytes file;
    bool resized;
    item->ticket = ticket;
    item->row = row;
    item->bytes = bytes;
    /* What fails here is left to the CPU, who finds the same and says so. */
    if (!st_run_find(&self->worker, bytes, slot, row, &file) || !is_taken(self->worker.loader, file) ||
        st_run_lazily(&self->worker, file, slot, row, &item->image, NULL) ||
        !st_image_window(&item->image, &window, &resized, &resize))
        return false;
    *decoded = (struct st_engine_image){.bytes = file,
                                        .width = (int32_t)item->image.header.width,
                                        .height = (int32_t)item->image.header.height};
    if (!find_room(slot, decoded))
        return false;
    self->count++;
    return true;
}

/* ---- a chunk ------------------------------------------------------------------------------------- */

/* Reads the chunk's files: those for the engines become items, the others are left to this thread. False
 * when cancelled. */
static bool plan_chunk(struct st_engine_worker *self, const struct st_tickets *chunk, bool usable)
{
    struct stoker_error err;
    struct st_bytes bytes;
    self->count = self->left_count = 0;
    for (uint32_t k = 0; k < chunk->count; k++) {
        const uint32_t row = chunk->row + k;
        const int rc =
            st_worker_fetch(&self->worker, chunk->slot, row, chunk->ticket + k, NULL, &bytes, &err);
        if (rc == STOKER_ECANCELED)
            return false;
        if (rc)
            st_worker_settle(&self->worker, chunk->slot, row, rc, &err);
        else if (!usable || !plan_row(self, chunk->slot, row, chunk->ticket + k, bytes))
            self->left[self->left_count++] = (struct left){chunk->ticket + k, row, bytes};
    }
    return true;
}

static void make_left(struct st_engine_worker *self, struct st_slot *slot)
{
    for (uint32_t k = 0; k < self->left_count; k++)
        st_worker_make(&self->worker, slot, self->left[k].row, self->left[k].ticket,
                       self->left[k].bytes);
}

/* Jobs for the images that are there; the others are made as if the engines had never seen them. */
static void finish_items(struct st_engine_worker *self, struct st_slot *slot)
{
    struct st_worker *worker = &self->worker;
    uint32_t there = 0;
    for (uint32_t k = 0; k < self->count; k++) {
        const struct item *item = &self->item[k];
        const struct st_engine_image *decoded = &self->decoded[k];
        if (!decoded->there ||
            !st_run_decoded(worker, &item->image, slot->samples[item->row], slot, item->row, decoded)) {
            st_worker_make(worker, slot, item->row, item->ticket, item->bytes);
            continue;
        }
        st_reader_done(worker->loader->reader, item->ticket);
        st_worker_settle(worker, slot, item->row, STOKER_OK, NULL);
        there++;
    }
    atomic_fetch_add_explicit(&self->rows, there, memory_order_relaxed);
    atomic_fetch_add_explicit(&worker->raw_rows, there, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->failed, self->count - there, memory_order_relaxed);
}

static void note_no_memory(struct stoker_loader *loader, uint64_t bytes)
{
    pthread_mutex_lock(&loader->lock);
    if (!loader->engines.note.code)
        st_fail(&loader->engines.note, STOKER_ENOMEM,
                "the JPEG engines decode less than they could: the device has no %.0f MB for the images "
                "of a batch",
                (double)bytes / 1e6);
    pthread_mutex_unlock(&loader->lock);
}

/* The slot's part of the device's memory, idle; taken when the slot is first used. */
static bool has_memory(struct stoker_loader *loader, struct st_slot *slot)
{
    pthread_mutex_lock(&loader->engines.memory);
    if (!slot->engine_memory && !slot->engine_full) {
        slot->engine_memory = loader->engines.kind->take(loader->device, slot->shape.engine_bytes);
        slot->engine_full = !slot->engine_memory;
        if (slot->engine_full)
            note_no_memory(loader, slot->shape.engine_bytes);
    }
    const bool has = slot->engine_memory != 0;
    pthread_mutex_unlock(&loader->engines.memory);
    return has && !loader->device->kind->sync(loader->device, slot->on_device, NULL);
}

static void make_chunk(struct st_engine_worker *self, const struct st_tickets *chunk)
{
    struct stoker_loader *loader = self->worker.loader;
    const struct st_engine_kind *kind = loader->engines.kind;
    struct st_slot *slot = chunk->slot;
    const bool usable = has_memory(loader, slot);
    const uint64_t began = st_now_ns();

    if (!plan_chunk(self, chunk, usable))
        return;
    if (self->count)
        kind->start(self->engine, self->decoded, self->count);
    make_left(self, slot);
    if (self->count)
        kind->finish(self->engine, self->decoded, self->count);
    finish_items(self, slot);
    self->busy_ns += st_now_ns() - began;
    self->busy_rows += chunk->count;
}

/* ---- how many at once ---------------------------------------------------------------------------- */

/* Rows a second of all workers together, by the time that each row took so far; 0: not known yet. */
static double workers_rate(const struct stoker_loader *loader)
{
    uint64_t ns = 0, samples = 0;
    for (uint32_t k = 0; k < loader->worker_count; k++) {
        const struct st_worker *worker = &loader->worker[k];
        samples += atomic_load_explicit(&worker->samples, memory_order_relaxed);
        for (int stage = 0; stage < STOKER_STAGE_SLOT; stage++)
            ns += atomic_load_explicit(&worker->stage_ns[stage], memory_order_relaxed);
    }
    return ns ? (double)samples / (double)ns * st_tuned(&loader->tuning, ST_TUNE_WORKERS) * 1e9 : 0;
}

/* What of the rows that are left is this thread's share. */
static uint32_t chunk_size(const struct st_engine_worker *self, uint32_t left)
{
    const struct stoker_loader *loader = self->worker.loader;
    const double cpus = workers_rate(loader);
    const double mine = self->busy_ns ? (double)self->busy_rows / (double)self->busy_ns * 1e9 : 0;
    uint32_t most = left < CHUNK_MOST ? left : CHUNK_MOST;
    if (cpus > 0 && mine > 0) {
        const double share = left * mine / (mine * loader->engines.ready + cpus);
        if (share < most)
            most = share > CHUNK_LEAST ? (uint32_t)share : CHUNK_LEAST;
    }
    return most < left ? most : left;
}

/* ---- threads ------------------------------------------------------------------------------------- */

static bool open_engine(struct st_engine_worker *self)
{
    struct stoker_loader *loader = self->worker.loader;
    struct stoker_error err;
    const int rc = loader->engines.kind->open(&self->engine, loader->device, CHUNK_MOST, &err);
    pthread_mutex_lock(&loader->lock);
    loader->engines.ready += !rc;
    if (rc && !loader->engines.note.code)
        loader->engines.note = err;
    pthread_mutex_unlock(&loader->lock);
    return !rc;
}

static bool is_well_ahead(const struct stoker_loader *loader)
{
    uint32_t ready = 0;
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        ready += slot->state == ST_SLOT_READY;
    return ready && 2 * ready >= st_tuned(&loader->tuning, ST_TUNE_PREFETCH);
}

void st_engines_wake(struct stoker_loader *loader)
{
    if (loader->engines.kind && !is_well_ahead(loader))
        pthread_cond_broadcast(&loader->engines.work);
}

static void *engine_main(void *argument)
{
    struct st_engine_worker *self = argument;
    struct stoker_loader *loader = self->worker.loader;
    struct st_tickets chunk;

    if (!open_engine(self))
        return NULL;
    pthread_mutex_lock(&loader->lock);
    while (!loader->closing) {
        const uint32_t left = is_well_ahead(loader) ? 0 : st_tickets_left(loader);
        if (!left) {
            pthread_cond_wait(&loader->engines.work, &loader->lock);
            continue;
        }
        const bool more = st_tickets_take(loader, chunk_size(self, left), &chunk);
        pthread_mutex_unlock(&loader->lock);
        st_tickets_share(loader, more);
        make_chunk(self, &chunk);
        pthread_mutex_lock(&loader->lock);
        st_tickets_done(loader, &chunk);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

int st_engines_open(struct stoker_loader *loader, const struct st_engine_kind *kind,
                    struct stoker_error *err)
{
    struct st_engines *engines = &loader->engines;
    if (!kind || loader->opt.fidelity != STOKER_FIDELITY_FAST || !loader->shape.raw ||
        loader->shape.channels != 3)
        return STOKER_OK;
    engines->worker = st_calloc(THREADS, sizeof *engines->worker);
    if (!engines->worker || pthread_mutex_init(&engines->memory, NULL) ||
        pthread_cond_init(&engines->work, NULL)) {
        free(engines->worker);
        engines->worker = NULL;
        return st_fail(err, STOKER_ENOMEM, "no memory for the threads of the JPEG engines");
    }
    engines->kind = kind;
    engines->count = THREADS;
    loader->shape.engine = kind;
    loader->shape.engine_bytes = loader->shape.rows * (uint64_t)ROW_ROOM;
    return STOKER_OK;
}

void st_engines_start(struct stoker_loader *loader)
{
    struct st_engines *engines = &loader->engines;
    int failed = 0;
    for (; !failed && loader->worker_count && engines->threads < engines->count;
         engines->threads += !failed) {
        struct st_engine_worker *self = &engines->worker[engines->threads];
        st_worker_equip(&self->worker, loader);
        failed = st_thread_start(&self->worker.thread, engine_main, self, "stoker-engine");
    }
    pthread_mutex_lock(&loader->lock);
    if (failed)
        st_fail_errno(&engines->note, failed, "no thread for the JPEG engines could be started");
    else if (engines->count && !loader->worker_count)
        st_fail(&engines->note, STOKER_EUNSUPPORTED,
                "a loader without threads does not use the JPEG engines");
    pthread_mutex_unlock(&loader->lock);
}

void st_engines_close(struct stoker_loader *loader)
{
    struct st_engines *engines = &loader->engines;
    for (uint32_t k = 0; k < engines->threads; k++) {
        struct st_engine_worker *self = &engines->worker[k];
        pthread_join(self->worker.thread, NULL);
        if (self->engine)
            engines->kind->close(self->engine);
        st_worker_free(&self->worker);
    }
    /* A batch may be released at any time, which wakes the engines: with the lock, and as long as there is a kind. */
    pthread_mutex_lock(&loader->lock);
    const bool had = engines->kind != NULL;
    struct st_engine_worker *workers = engines->worker;
    engines->kind = NULL;
    engines->worker = NULL;
    engines->count = engines->threads = engines->ready = 0;
    pthread_mutex_unlock(&loader->lock);
    if (had) {
        pthread_mutex_destroy(&engines->memory);
        pthread_cond_destroy(&engines->work);
    }
    free(workers);
}

uint32_t st_engines_tickets(const struct stoker_loader *loader)
{
    return loader->engines.count * CHUNK_MOST;
}

void st_engines_stats(const struct stoker_loader *loader, struct stoker_stats *out)
{
    const struct st_engines *engines = &loader->engines;
    for (uint32_t k = 0; k < engines->count; k++) {
        const struct st_engine_worker *self = &engines->worker[k];
        out->engine_rows += atomic_load_explicit(&self->rows, memory_order_relaxed);
        out->engine_failures += atomic_load_explicit(&self->failed, memory_order_relaxed);
        out->bytes += atomic_load_explicit(&self->worker.read_bytes, memory_order_relaxed);
        out->raw_rows += atomic_load_explicit(&self->worker.raw_rows, memory_order_relaxed);
        out->resized_rows += atomic_load_explicit(&self->worker.resized_rows, memory_order_relaxed);
    }
    out->engine_note = engines->note.code ? engines->note.message : NULL;
}
