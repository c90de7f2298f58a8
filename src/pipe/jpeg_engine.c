/* jpeg_engine.c - a device's JPEG engines as another kind of worker
 *
 * Tickets are taken in order by whoever is free, so engines and CPUs share the work according to their
 * actual speed. A chunk is as large as suits the engines, but at most their share of half of the work in
 * progress, by the rates measured so far.
 *
 * Submitting an image takes an eighth of the CPU time of decoding it (100 of 800 us). So while engines
 * are at work, enough workers rest for each engine thread to have a CPU of its own.
 *
 * Engines do not notice damaged data. So by default a file goes to them only if our own decoder has once
 * decoded all of it: workers read new files to their end, and the data set remembers (source/known.h).
 * While too few of the coming samples are known, or after a chunk without a file for them, the engines
 * leave the next tickets to the workers.
 *
 * The GPU should not decode what nobody is waiting for: engines rest while half of the prefetched
 * batches are ready, so that a training run that the CPUs can feed alone has the whole GPU.
 *
 * The engines write to the slot's own part of the device's memory. They are not ordered by streams, so a
 * chunk starts only when the slot's previous batch is done; and a row counts as done only when its
 * pixels are there, so the slot's kernels do not have to wait either.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/jpeg_engine.h"

#include "base/clock.h"
#include "base/threads.h"
#include "codec/jpeg/headers.h"
#include "source/known.h"

#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 2,      /* one prepares the next chunk while the other waits for its own */
    CHUNK_LEAST = 16, /* smaller chunks leave engines idle */
    CHUNK_MOST = 64,
    ROW_ROOM = 512 << 10, /* device memory per row of a batch; not every row is decoded there */
    STRIDE_ALIGN = 64,
    PLANE_ALIGN = 512,
    IMAGE_MOST = 16 << 20, /* bytes of a decoded image; the CPU decodes (the region of) larger ones */
    BLOCK = 8,
    GIVE_UP = 4,                /* failed chunks in a row */
    PAUSE_TICKETS = 4 * CHUNK_MOST, /* left to the workers after a chunk without a file for the engines */
    SLOTS_TIMES = 2, /* at most this many times the slots in regular use have device memory */
    FILES_PART = 64, /* fraction of max_memory for the files that a thread holds at once */
};
#define SHARE_NS 3000000000u /* between exchanges of what is known with other processes */

/* A ticket whose file the engines decode. */
struct item {
    uint64_t ticket;
    uint32_t row;
    struct st_bytes bytes; /* of the sample; they contain the file */
    struct st_image image; /* with its pending ops */
};

/* A ticket that this thread processes itself. */
struct left {
    uint64_t ticket;
    uint32_t row;
    struct st_bytes bytes;
};

struct st_jpeg_engine_worker {
    struct st_worker worker; /* for the samples that it makes itself */
    struct st_jpeg_engine *engine;
    uint32_t count;
    struct item item[CHUNK_MOST];
    struct st_jpeg_engine_image decoded[CHUNK_MOST];
    uint32_t left_count;
    struct left left[CHUNK_MOST];
    uint32_t given; /* to the engines, of the whole chunk */
    _Atomic uint64_t rows, failed; /* decoded by the engines; rejected by them */
    uint64_t busy_ns, busy_rows;   /* of this thread, to compute its rate */
    uint32_t lost;                 /* failed chunks in a row: no memory, or nothing was decoded */
};

/* ---- one image ------------------------------------------------------------------------------------ */

/* Allocates a part of the slot's device memory for the planes of an image, with room for whole MCUs. */
static bool find_room(struct st_slot *slot, const struct st_jpeg_frame *frame,
                      struct st_jpeg_engine_image *image)
{
    uint64_t start[3], bytes = 0;
    for (int c = 0; c < 3; c++) {
        const struct st_jpeg_component *component = &frame->component[c];
        const uint64_t stride =
            st_align((uint64_t)frame->mcus_across * component->h * BLOCK, STRIDE_ALIGN);
        start[c] = bytes;
        bytes += st_align(stride * frame->mcus_down * component->v * BLOCK, PLANE_ALIGN);
        image->plane[c] = (struct st_jpeg_engine_plane){.stride = (uint32_t)stride,
                                                        .width = (int32_t)component->width,
                                                        .height = (int32_t)component->height};
    }
    if (bytes > IMAGE_MOST)
        return false;
    const uint64_t at = atomic_fetch_add_explicit(&slot->engine_used, bytes, memory_order_relaxed);
    if (at + bytes > slot->shape.engine_bytes)
        return false; /* and no more room for the rest of this batch */
    for (int c = 0; c < 3; c++)
        image->plane[c].at = slot->engine_memory + at + start[c];
    return true;
}

/* Makes the sample's random draws, if the engines are to decode it. */
static bool plan_row(struct st_jpeg_engine_worker *self, struct st_slot *slot, uint32_t row, uint64_t ticket,
                     struct st_bytes bytes)
{
    struct item *item = &self->item[self->count];
    struct st_jpeg_engine_image *decoded = &self->decoded[self->count];
    struct st_region window;
    struct st_resize resize;
    struct st_jpeg_frame frame;
    struct st_bytes file;
    bool resized;
    item->ticket = ticket;
    item->row = row;
    item->bytes = bytes;
    /* Whatever fails here is left to the CPU, which fails in the same way and reports it. */
    if (!st_run_find(&self->worker, bytes, slot, row, &file) ||
        !st_jpeg_engines_take(self->worker.loader, file, &frame) ||
        !st_jpeg_engines_trust(self->worker.loader, slot->samples[row], file) ||
        st_run_lazily(&self->worker, file, slot, row, &item->image, NULL) ||
        !st_image_window(&item->image, &window, &resized, &resize))
        return false;
    *decoded = (struct st_jpeg_engine_image){.bytes = file, .h = frame.h, .v = frame.v};
    if (!find_room(slot, &frame, decoded))
        return false;
    self->count++;
    return true;
}

/* ---- a chunk ------------------------------------------------------------------------------------- */

/* Reads files of the chunk, of which `rest` is left, and divides them into items for the engines and
 * tickets for this thread: all of them, unless that is too much to hold at once. False if cancelled. */
static bool plan_part(struct st_jpeg_engine_worker *self, struct st_tickets *rest, bool usable)
{
    const struct stoker_loader *loader = self->worker.loader;
    const bool in_memory = st_reader_in_memory(loader->reader);
    const uint64_t most = loader->opt.max_memory / FILES_PART;
    struct stoker_error err;
    struct st_bytes bytes;
    self->count = self->left_count = 0;
    for (uint64_t held = 0; rest->count && held <= most; rest->row++, rest->ticket++, rest->count--) {
        const int rc =
            st_worker_fetch(&self->worker, rest->slot, rest->row, rest->ticket, NULL, &bytes, &err);
        if (rc == STOKER_ECANCELED)
            return false;
        if (rc) {
            st_worker_settle(&self->worker, rest->slot, rest->row, rc, &err);
            continue;
        }
        if (!usable || !plan_row(self, rest->slot, rest->row, rest->ticket, bytes))
            self->left[self->left_count++] = (struct left){rest->ticket, rest->row, bytes};
        held += in_memory ? 0 : bytes.size;
    }
    return true;
}

/* Makes a sample without the engines. Not if the epoch is being stopped, which would have to wait for
 * the whole chunk: the row stays unmade, and its batch is dropped. */
static void make_here(struct st_jpeg_engine_worker *self, struct st_slot *slot, uint32_t row,
                      uint64_t ticket, struct st_bytes bytes)
{
    if (!atomic_load(&self->worker.loader->stopping))
        st_worker_make(&self->worker, slot, row, ticket, bytes);
}

static void make_left(struct st_jpeg_engine_worker *self, struct st_slot *slot)
{
    for (uint32_t k = 0; k < self->left_count; k++)
        make_here(self, slot, self->left[k].row, self->left[k].ticket, self->left[k].bytes);
}

/* Writes jobs for the decoded images; the others are made as if the engines had never seen them. */
static void finish_items(struct st_jpeg_engine_worker *self, struct st_slot *slot)
{
    struct st_worker *worker = &self->worker;
    uint32_t there = 0;
    for (uint32_t k = 0; k < self->count; k++) {
        const struct item *item = &self->item[k];
        const struct st_jpeg_engine_image *decoded = &self->decoded[k];
        if (!decoded->there ||
            !st_run_decoded(worker, &item->image, slot->samples[item->row], slot, item->row, decoded)) {
            make_here(self, slot, item->row, item->ticket, item->bytes);
            continue;
        }
        st_reader_done(worker->loader->reader, item->ticket);
        st_worker_settle(worker, slot, item->row, STOKER_OK, NULL);
        there++;
    }
    atomic_fetch_add_explicit(&self->rows, there, memory_order_relaxed);
    atomic_fetch_add_explicit(&worker->raw_rows, there, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->failed, self->count - there, memory_order_relaxed);
    if (self->count)
        self->lost = there ? 0 : self->lost + 1;
}

static void note_no_memory(struct stoker_loader *loader, uint64_t bytes)
{
    pthread_mutex_lock(&loader->lock);
    if (!loader->engines.note.code)
        st_fail(&loader->engines.note, STOKER_ENOMEM,
                "the JPEG engines decode fewer images than they could: %.0f MB of device memory for the images "
                "of a batch could not be allocated, or would leave too little to the training program",
                (double)bytes / 1e6);
    pthread_mutex_unlock(&loader->lock);
}

/* Whether another slot may have device memory. A consumer may keep any number of batches, and the engines'
 * memory must not grow with them. */
static bool may_have_memory(struct stoker_loader *loader)
{
    uint32_t have = 0;
    pthread_mutex_lock(&loader->lock);
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        have += slot->engine_memory != 0;
    pthread_mutex_unlock(&loader->lock);
    return have < SLOTS_TIMES * st_loader_slots_wanted(loader);
}

/* Makes sure that the slot has device memory and that it is idle; allocated when the slot is first
 * used. */
static bool has_memory(struct st_jpeg_engine_worker *self, struct st_slot *slot)
{
    struct stoker_loader *loader = self->worker.loader;
    pthread_mutex_lock(&loader->engines.memory);
    const bool may = slot->engine_memory || slot->engine_full || may_have_memory(loader);
    if (may && !slot->engine_memory && !slot->engine_full) {
        slot->engine_memory = loader->engines.kind->take(loader->device, slot->shape.engine_bytes);
        slot->engine_full = !slot->engine_memory;
        if (slot->engine_full)
            note_no_memory(loader, slot->shape.engine_bytes);
    }
    bool has = slot->engine_memory != 0;
    pthread_mutex_unlock(&loader->engines.memory);
    has = has && !loader->device->kind->sync(loader->device, slot->on_device, NULL);
    self->lost += may && !has;
    return has;
}

/* False if cancelled. */
static bool make_part(struct st_jpeg_engine_worker *self, struct st_tickets *rest, bool usable)
{
    const struct st_jpeg_engine_kind *kind = self->worker.loader->engines.kind;
    if (!plan_part(self, rest, usable))
        return false;
    if (self->count)
        kind->start(self->engine, self->decoded, self->count);
    make_left(self, rest->slot);
    if (self->count)
        kind->finish(self->engine, self->decoded, self->count);
    finish_items(self, rest->slot);
    self->given += self->count;
    return true;
}

static void make_chunk(struct st_jpeg_engine_worker *self, const struct st_tickets *chunk)
{
    const bool usable = has_memory(self, chunk->slot);
    const uint64_t began = st_now_ns();
    struct st_tickets rest = *chunk;

    self->given = 0;
    while (rest.count && make_part(self, &rest, usable))
        ;
    self->busy_ns += st_now_ns() - began;
    self->busy_rows += chunk->count - rest.count;
}

/* ---- how many at once ---------------------------------------------------------------------------- */

/* Rows per second of all workers together, measured over their run so far; 0: not known yet. */
static double workers_rate(const struct stoker_loader *loader)
{
    uint64_t ns = 0, samples = 0;
    for (uint32_t k = 0; k < loader->worker_count; k++) {
        const struct st_worker *worker = &loader->worker[k];
        samples += atomic_load_explicit(&worker->samples, memory_order_relaxed);
        for (int stage = 0; stage < STOKER_STAGE_SLOT; stage++)
            ns += atomic_load_explicit(&worker->stage_ns[stage], memory_order_relaxed);
    }
    return ns ? (double)samples / (double)ns * st_tuning_active(loader) * 1e9 : 0;
}

/* This thread's share of the work in progress. Batches are delivered in order, so a chunk must not take
 * longer than the workers need for the other batches that may be begun meanwhile. */
static uint32_t chunk_size(const struct st_jpeg_engine_worker *self, uint32_t left)
{
    const struct stoker_loader *loader = self->worker.loader;
    const double cpus = workers_rate(loader);
    const double mine = self->busy_ns ? (double)self->busy_rows / (double)self->busy_ns * 1e9 : 0;
    uint32_t most = left < CHUNK_MOST ? left : CHUNK_MOST;
    if (cpus > 0 && mine > 0) {
        const double ahead = st_tuned(&loader->tuning, ST_TUNE_PREFETCH) + 1.0;
        const double share =
            loader->opt.batch_size * ahead / 2 * mine / (mine * loader->engines.ready + cpus);
        if (share < most)
            most = share > CHUNK_LEAST ? (uint32_t)share : CHUNK_LEAST;
    }
    return most < left ? most : left;
}

/* ---- threads ------------------------------------------------------------------------------------- */

/* Whether at least half of the next tickets can go to the engines; otherwise the workers have them. Lock
 * held. */
static bool enough_known(struct stoker_loader *loader, uint32_t left)
{
    const struct st_known *known = loader->engines.known;
    const uint32_t most = left < CHUNK_MOST ? left : CHUNK_MOST;
    uint32_t count = 0;
    for (uint32_t k = 0; known && k < most; k++)
        count += st_known_any(known, st_order_at(loader->order, loader->next_ticket + k));
    if (!known || 2 * count >= most)
        return true;
    loader->engines.rest_until = loader->next_ticket + most;
    return false;
}

/* Exchanges what is known with other processes. Lock held; released meanwhile. */
static void share_known(struct stoker_loader *loader)
{
    struct st_jpeg_engines *engines = &loader->engines;
    const uint64_t now = st_now_ns();
    if (!engines->known || engines->sharing || now - engines->shared_ns < SHARE_NS)
        return;
    engines->shared_ns = now;
    engines->sharing = true;
    pthread_mutex_unlock(&loader->lock);
    st_known_share(engines->known);
    pthread_mutex_lock(&loader->lock);
    engines->sharing = false;
}

/* Engines start or stop working; some workers rest meanwhile. Lock held. */
static void engage(struct stoker_loader *loader, bool engaged)
{
    if (loader->engines.engaged && !engaged)
        pthread_cond_broadcast(&loader->tuning.rest);
    loader->engines.engaged = engaged;
}

static bool open_engine(struct st_jpeg_engine_worker *self)
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

/* This thread ends, and the workers have its CPU. Lock held. */
static void give_up(struct stoker_loader *loader)
{
    loader->engines.ready--;
    engage(loader, false);
    if (!loader->engines.note.code)
        st_fail(&loader->engines.note, STOKER_EIO,
                "the JPEG engines failed %d times in a row and are no longer used: the CPU decodes all files",
                GIVE_UP);
}

static void *engine_main(void *argument)
{
    struct st_jpeg_engine_worker *self = argument;
    struct stoker_loader *loader = self->worker.loader;
    struct st_tickets chunk;

    if (!open_engine(self))
        return NULL;
    pthread_mutex_lock(&loader->lock);
    /* Shares first, because that releases the lock: `closing` may have been announced meanwhile. */
    for (share_known(loader); !loader->closing; share_known(loader)) {
        const bool rests = st_jpeg_engines_may_rest(loader);
        const uint32_t left = rests ? 0 : st_tickets_left(loader);
        if (!left || !enough_known(loader, left)) {
            if (rests || left)
                engage(loader, false);
            pthread_cond_wait(&loader->engines.work, &loader->lock);
            continue;
        }
        engage(loader, true);
        const bool more = st_tickets_take(loader, chunk_size(self, left), &chunk);
        pthread_mutex_unlock(&loader->lock);
        st_tickets_share(loader, more);
        make_chunk(self, &chunk);
        pthread_mutex_lock(&loader->lock);
        st_tickets_done(loader, &chunk);
        if (self->lost >= GIVE_UP) {
            give_up(loader);
            break;
        }
        /* Taking more would only make this thread another worker, with a worker resting for it. */
        if (!self->given)
            loader->engines.rest_until = loader->next_ticket + PAUSE_TICKETS;
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

int st_jpeg_engines_open(struct stoker_loader *loader, const struct st_jpeg_engine_kind *kind,
                    struct stoker_error *err)
{
    struct st_jpeg_engines *engines = &loader->engines;
    const bool all = loader->opt.engines == STOKER_ENGINES_ALL || loader->opt.fidelity == STOKER_FIDELITY_FAST;
    const char *why;
    if (!kind || loader->opt.engines == STOKER_ENGINES_OFF || !loader->shape.raw ||
        loader->shape.channels != 3)
        return STOKER_OK;
    if (!all && !(engines->known = st_known_of(loader->data, &why))) {
        st_fail(&engines->note, STOKER_EUNSUPPORTED, "%s; engines=\"all\" uses the JPEG engines for every file",
                why);
        return STOKER_OK;
    }
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

void st_jpeg_engines_start(struct stoker_loader *loader)
{
    struct st_jpeg_engines *engines = &loader->engines;
    int failed = 0;
    for (; !failed && loader->worker_count && engines->threads < engines->count;
         engines->threads += !failed) {
        struct st_jpeg_engine_worker *self = &engines->worker[engines->threads];
        st_worker_equip(&self->worker, loader);
        failed = st_thread_start(&self->worker.thread, engine_main, self, "stoker-engine");
    }
    pthread_mutex_lock(&loader->lock);
    if (failed)
        st_fail_errno(&engines->note, failed, "the thread for the JPEG engines could not be started");
    else if (engines->count && !loader->worker_count)
        st_fail(&engines->note, STOKER_EUNSUPPORTED,
                "a loader without worker threads (workers=0) does not use the JPEG engines");
    pthread_mutex_unlock(&loader->lock);
}

void st_jpeg_engines_close(struct stoker_loader *loader)
{
    struct st_jpeg_engines *engines = &loader->engines;
    for (uint32_t k = 0; k < engines->threads; k++) {
        struct st_jpeg_engine_worker *self = &engines->worker[k];
        pthread_join(self->worker.thread, NULL);
        if (self->engine)
            engines->kind->close(self->engine);
        st_worker_free(&self->worker);
    }
    if (engines->known)
        st_known_share(engines->known);
    /* A batch may be released at any time, which wakes the engines: under the lock, while `kind` is
     * set. */
    pthread_mutex_lock(&loader->lock);
    const bool had = engines->kind != NULL;
    struct st_jpeg_engine_worker *workers = engines->worker;
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

uint32_t st_jpeg_engines_tickets(const struct stoker_loader *loader)
{
    return loader->engines.count * CHUNK_MOST;
}

void st_jpeg_engines_stats(const struct stoker_loader *loader, struct stoker_stats *out)
{
    const struct st_jpeg_engines *engines = &loader->engines;
    for (uint32_t k = 0; k < engines->count; k++) {
        const struct st_jpeg_engine_worker *self = &engines->worker[k];
        out->engine_rows += atomic_load_explicit(&self->rows, memory_order_relaxed);
        out->engine_failures += atomic_load_explicit(&self->failed, memory_order_relaxed);
        out->bytes += atomic_load_explicit(&self->worker.read_bytes, memory_order_relaxed);
        out->raw_rows += atomic_load_explicit(&self->worker.raw_rows, memory_order_relaxed);
        out->resized_rows += atomic_load_explicit(&self->worker.resized_rows, memory_order_relaxed);
    }
    out->engine_note = engines->note.code ? engines->note.message : NULL;
}
