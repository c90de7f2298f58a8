/* jpeg_chunk.c - makes a chunk of tickets: the hardware decodes what it can, this thread the rest
 *
 * The hardware writes to the slot's own part of the device's memory. It is not ordered by streams, so a
 * chunk starts only when the slot's previous batch is done; and a row counts as done only when its
 * pixels are there, so the slot's kernels do not have to wait either.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/jpeg_chunk.h"

#include "base/clock.h"
#include "codec/jpeg/headers.h"
#include "pipe/jpeg_files.h"
#include "pipe/jpeg_share.h"
#include "pipe/pool.h"
#include "pipe/run.h"
#include "pipe/worker.h"

enum {
    STRIDE_ALIGN = 64,
    PLANE_ALIGN = 512,
    BLOCK = 8,
    /* Pixels around a region that are decoded with it: chroma is interpolated from the samples next to
     * it, and devices read words of four samples. */
    MARGIN = 8,
    SLOTS_TIMES = 2,       /* at most this many times the slots in regular use have device memory */
    FILE_LEAST = 64 << 10, /* room for a file in pinned memory: with less, it is not tried; */
    FILE_MOST = 1 << 20,   /* it gets no more */
    LARGE_FILES = 64,      /* how many are not tried after one that did not fit */
};
#define RETRY_NS 2000000000u /* between attempts to allocate device memory for a slot */

/* ---- one image ------------------------------------------------------------------------------------ */

/* Widens one side of a region by the margin, to MCUs of `mcu` pixels. */
static void widen(uint32_t *first, uint32_t *count, uint32_t all, uint32_t mcu)
{
    const uint32_t from = *first > MARGIN ? (*first - MARGIN) / mcu * mcu : 0;
    const uint64_t to = st_align((uint64_t)*first + *count + MARGIN, mcu);
    *first = from;
    *count = (to < all ? (uint32_t)to : all) - from;
}

/* What the hardware has to decode for the window. */
static struct st_region decoded_region(const struct st_jpeg_thread *self,
                                       const struct st_jpeg_frame *frame, struct st_region window)
{
    if (!self->worker.loader->jpeg.kind->regions(self->hw))
        return (struct st_region){0, 0, frame->width, frame->height};
    widen(&window.x, &window.width, frame->width, frame->h * BLOCK);
    widen(&window.y, &window.height, frame->height, frame->v * BLOCK);
    return window;
}

static uint64_t image_bytes(const struct st_jpeg_frame *frame)
{
    return (uint64_t)frame->mcus_across * frame->mcus_down * frame->mcu_blocks * BLOCK * BLOCK;
}

/* Arranges the planes of an image's region, with room for whole MCUs. Addresses are relative to the
 * image's. */
static void arrange(const struct st_jpeg_frame *frame, struct st_jpeg_hw_image *image)
{
    const struct st_region *region = &image->region;
    const uint32_t mcu_width = frame->h * BLOCK, mcu_height = frame->v * BLOCK;
    const uint64_t across = (region->width + mcu_width - 1) / mcu_width,
                   down = (region->height + mcu_height - 1) / mcu_height;
    for (uint32_t c = 0; c < frame->components; c++) {
        const struct st_jpeg_component *component = &frame->component[c];
        const uint32_t width = component->h * BLOCK, height = component->v * BLOCK; /* of an MCU */
        const uint64_t stride = st_align(across * width, STRIDE_ALIGN);
        image->plane[c] = (struct st_jpeg_hw_plane){.at = image->size,
                                                    .x = (int32_t)(region->x / mcu_width * width),
                                                    .y = (int32_t)(region->y / mcu_height * height),
                                                    .stride = (uint32_t)stride,
                                                    .width = (int32_t)component->width,
                                                    .height = (int32_t)component->height};
        image->size += st_align(stride * down * height, PLANE_ALIGN);
    }
}

/* Makes the sample's random draws, if the hardware is to decode it. */
static bool plan_row(struct st_jpeg_thread *self, struct st_slot *slot, uint32_t row, uint64_t ticket,
                     struct st_bytes bytes)
{
    struct st_jpeg_item *item = &self->item[self->count];
    struct st_jpeg_hw_image *decoded = &self->decoded[self->count];
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
        !st_jpeg_files_take(self->worker.loader, file, &frame) ||
        image_bytes(&frame) > ST_JPEG_IMAGE_MOST ||
        !st_jpeg_files_trust(self->worker.loader, slot->samples[row], file) ||
        st_run_lazily(&self->worker, file, slot, row, &item->image, NULL) ||
        !st_image_window(&item->image, &window, &resized, &resize))
        return false;
    *decoded = (struct st_jpeg_hw_image){.bytes = file,
                                         .region = decoded_region(self, &frame, window),
                                         .components = frame.components,
                                         .h = frame.h,
                                         .v = frame.v};
    arrange(&frame, decoded);
    if (decoded->size > ST_JPEG_IMAGE_MOST) /* by its padding: every item has to fit into a block */
        return false;
    item->cost = st_jpeg_cpu_cost(&frame, file, window);
    self->count++;
    return true;
}

/* ---- device memory ------------------------------------------------------------------------------- */

static void note_no_memory(struct stoker_loader *loader, uint64_t bytes)
{
    pthread_mutex_lock(&loader->lock);
    if (!loader->jpeg.note.code)
        st_fail(&loader->jpeg.note, STOKER_ENOMEM,
                "the JPEG hardware decodes fewer images than it could: %.0f MB of device memory for the "
                "images of a batch could not be allocated, or would leave too little to the training "
                "program",
                (double)bytes / 1e6);
    pthread_mutex_unlock(&loader->lock);
}

/* Whether another slot may have device memory. A consumer may keep any number of batches, and the
 * hardware's memory must not grow with them. */
static bool may_have_memory(struct stoker_loader *loader)
{
    uint32_t have = 0;
    pthread_mutex_lock(&loader->lock);
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        have += slot->hw_memory.block[0] != 0;
    pthread_mutex_unlock(&loader->lock);
    return have < SLOTS_TIMES * st_pool_wanted(loader);
}

/* Allocates the block, if it is not there. If that fails, it is tried again later, because a training
 * step may need much memory only at its start. Memory lock held. */
static bool has_block(struct stoker_loader *loader, struct st_slot *slot, uint32_t block)
{
    struct st_jpeg_hw_memory *memory = &slot->hw_memory;
    const uint64_t now = st_now_ns();
    if (memory->block[block])
        return true;
    if ((memory->refused_ns && now - memory->refused_ns < RETRY_NS) ||
        (!block && !may_have_memory(loader)))
        return false;
    memory->block[block] = loader->jpeg.kind->take(loader->device, slot->shape.hw_bytes);
    memory->refused_ns = memory->block[block] ? 0 : now;
    if (!memory->block[block])
        note_no_memory(loader, slot->shape.hw_bytes);
    return memory->block[block];
}

/* Whether the hardware can write to the slot: it has memory, and its previous batch is done. */
static bool is_usable(struct st_jpeg_thread *self, struct st_slot *slot)
{
    struct stoker_loader *loader = self->worker.loader;
    pthread_mutex_lock(&loader->jpeg.memory);
    const bool has = has_block(loader, slot, 0);
    pthread_mutex_unlock(&loader->jpeg.memory);
    if (!has || !loader->device->kind->sync(loader->device, slot->on_device, NULL))
        return has;
    self->lost++;
    return false;
}

/* An address in the slot's memory; 0: there is no room. Memory lock held. */
static uint64_t take_memory(struct stoker_loader *loader, struct st_slot *slot, uint64_t bytes)
{
    struct st_jpeg_hw_memory *memory = &slot->hw_memory;
    const uint64_t all = slot->shape.hw_bytes;
    if (bytes > all - memory->used) {
        if (bytes > all || memory->now + 1 == ST_JPEG_HW_BLOCKS ||
            !has_block(loader, slot, memory->now + 1))
            return 0;
        memory->now++;
        memory->used = 0;
    }
    memory->used += bytes;
    return memory->block[memory->now] + memory->used - bytes;
}

/* ---- a chunk ------------------------------------------------------------------------------------- */

/* As many files of a chunk as are held at once, in bytes. */
struct part {
    uint64_t files;  /* in pinned memory, from its start */
    uint64_t held;   /* elsewhere, but for those that the dataset has in memory anyway */
    uint64_t images; /* of the hardware */
    uint64_t staged; /* images and their files, wherever they are: this much pinned memory they need */
};

static void leave(struct st_jpeg_thread *self, uint64_t ticket, uint32_t row, struct st_bytes bytes)
{
    self->left[self->left_count++] = (struct st_jpeg_left){ticket, row, bytes};
}

static void leave_share(struct st_jpeg_thread *self)
{
    bool mine[ST_JPEG_CHUNK_MOST];
    uint32_t kept = 0;
    if (!st_jpeg_share_pick(self, mine))
        return;
    for (uint32_t k = 0; k < self->count; k++) {
        if (mine[k]) {
            leave(self, self->item[k].ticket, self->item[k].row, self->item[k].bytes);
            continue;
        }
        self->item[kept] = self->item[k];
        self->decoded[kept++] = self->decoded[k];
    }
    self->count = kept;
}

static void place(struct st_jpeg_hw_image *image, uint64_t at)
{
    image->at = at;
    for (uint32_t c = 0; c < image->components; c++)
        image->plane[c].at += at;
}

/* Gives the items parts of the slot's device memory, mostly one behind the other, so that they can be
 * copied there at once. Those for which there is no room are left to this thread. */
static void place_items(struct st_jpeg_thread *self, struct st_slot *slot)
{
    struct stoker_loader *loader = self->worker.loader;
    uint32_t placed = 0;
    pthread_mutex_lock(&loader->jpeg.memory);
    while (placed < self->count) {
        const uint64_t at = take_memory(loader, slot, self->decoded[placed].size);
        if (!at)
            break;
        place(&self->decoded[placed++], at);
    }
    pthread_mutex_unlock(&loader->jpeg.memory);
    while (self->count > placed) {
        const struct st_jpeg_item *last = &self->item[--self->count];
        leave(self, last->ticket, last->row, last->bytes);
    }
}

/* The buffer for the next file: the pinned memory behind those that are there, without the part that the
 * images so far will need. NULL: the reader should have its own. */
static struct st_buffer *file_buffer(struct st_jpeg_thread *self, const struct part *part)
{
    struct st_buffer *file = &self->file[self->count + self->left_count];
    const uint64_t taken = part->files + part->images,
                   room = taken < self->pinned.bytes ? self->pinned.bytes - taken : 0;
    if (self->large) {
        self->large--;
        return NULL;
    }
    if (room < FILE_LEAST)
        return NULL;
    st_buffer_lend(file, self->pinned.memory + part->files, room < FILE_MOST ? room : FILE_MOST);
    file->limit = self->worker.bytes.limit;
    return file;
}

/* Counts the file that was read, to `own` or to wherever it already was. */
static void count_file(struct st_jpeg_thread *self, struct part *part, struct st_buffer *own,
                       struct st_bytes bytes)
{
    const bool here = own && bytes.data == own->data;
    if (here && own->borrowed) {
        part->files = st_align(part->files + bytes.size, ST_CACHE_LINE);
        return;
    }
    if (here) { /* it did not fit */
        st_buffer_count(own, self->worker.bytes.account, 0);
        self->large = LARGE_FILES;
    }
    part->held += st_reader_in_memory(self->worker.loader->reader) ? 0 : bytes.size;
}

/* Whether the part may have another file: of the usual size, it and its image fit into what is left. */
static bool has_room(const struct st_jpeg_thread *self, const struct part *part)
{
    const uint64_t most = self->worker.loader->opt.max_memory / ST_JPEG_FILES_PART;
    const uint64_t staged = part->staged;
    return part->held <= most &&
           (!self->pinned.bytes || !staged || staged + staged / self->count <= self->pinned.bytes);
}

/* Reads files of the chunk, of which `rest` is left, and divides them into items for the hardware and
 * tickets for this thread: all of them, unless that is too much to hold at once. False if cancelled. */
static bool plan_part(struct st_jpeg_thread *self, struct part *part, struct st_tickets *rest,
                      bool usable)
{
    struct stoker_error err;
    struct st_bytes bytes;
    self->count = self->left_count = 0;
    for (; rest->count && has_room(self, part); rest->row++, rest->ticket++, rest->count--) {
        struct st_buffer *own = usable ? file_buffer(self, part) : NULL;
        const int rc =
            st_worker_fetch(&self->worker, rest->slot, rest->row, rest->ticket, own, &bytes, &err);
        if (rc == STOKER_ECANCELED)
            return false;
        if (rc) {
            st_worker_settle(&self->worker, rest->slot, rest->row, rc, &err);
            continue;
        }
        count_file(self, part, own, bytes);
        if (!usable || !plan_row(self, rest->slot, rest->row, rest->ticket, bytes)) {
            leave(self, rest->ticket, rest->row, bytes);
        } else {
            part->images += self->decoded[self->count - 1].size;
            part->staged += self->decoded[self->count - 1].size + bytes.size;
        }
    }
    leave_share(self);
    place_items(self, rest->slot);
    return true;
}

/* Makes a sample without the hardware. Not if the epoch is being stopped, which would have to wait for
 * the whole chunk: the row stays unmade, and its batch is dropped. */
static void make_here(struct st_jpeg_thread *self, struct st_slot *slot, uint32_t row, uint64_t ticket,
                      struct st_bytes bytes)
{
    if (!atomic_load(&self->worker.loader->stopping))
        st_worker_make(&self->worker, slot, row, ticket, bytes);
}

static void make_left(struct st_jpeg_thread *self, struct st_slot *slot)
{
    const uint64_t began = st_now_ns();
    for (uint32_t k = 0; k < self->left_count; k++)
        make_here(self, slot, self->left[k].row, self->left[k].ticket, self->left[k].bytes);
    self->times.here += st_now_ns() - began;
}

/* Writes jobs for the decoded images; the others are made as if the hardware had never seen them. */
static void finish_items(struct st_jpeg_thread *self, struct st_slot *slot)
{
    struct st_worker *worker = &self->worker;
    uint32_t there = 0, used = 0;
    for (uint32_t k = 0; k < self->count; k++) {
        const struct st_jpeg_item *item = &self->item[k];
        const struct st_jpeg_hw_image *decoded = &self->decoded[k];
        there += decoded->there;
        if (!decoded->there ||
            !st_run_decoded(worker, &item->image, slot->samples[item->row], slot, item->row, decoded)) {
            make_here(self, slot, item->row, item->ticket, item->bytes);
            continue;
        }
        st_reader_done(worker->loader->reader, item->ticket);
        st_worker_settle(worker, slot, item->row, STOKER_OK, NULL);
        used++;
    }
    atomic_fetch_add_explicit(&self->rows, used, memory_order_relaxed);
    atomic_fetch_add_explicit(&worker->raw_rows, used, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->failed, self->count - there, memory_order_relaxed);
    if (self->count)
        self->lost = there ? 0 : self->lost + 1;
}

/* False if cancelled. */
static bool make_part(struct st_jpeg_thread *self, struct st_tickets *rest, bool usable)
{
    const struct st_jpeg_hw_kind *kind = self->worker.loader->jpeg.kind;
    struct part part = {0};
    if (!plan_part(self, &part, rest, usable))
        return false;
    if (self->count)
        kind->start(self->hw, self->decoded, self->count, part.files);
    make_left(self, rest->slot);
    if (self->count)
        kind->finish(self->hw, self->decoded, self->count);
    finish_items(self, rest->slot);
    for (uint32_t k = 0; k < ST_JPEG_CHUNK_MOST; k++)
        if (!self->file[k].borrowed)
            st_buffer_free(&self->file[k]);
    self->given += self->count;
    return true;
}

void st_jpeg_chunk_make(struct st_jpeg_thread *self, const struct st_tickets *chunk)
{
    const bool usable = is_usable(self, chunk->slot);
    const uint64_t began = st_now_ns(), cpu = st_thread_cpu_ns();
    struct st_tickets rest = *chunk;

    self->given = 0;
    self->times = (struct st_steer_times){0};
    while (rest.count && make_part(self, &rest, usable))
        ;
    self->times.all = st_now_ns() - began;
    self->times.all_cpu = st_thread_cpu_ns() - cpu;
}
