/* slot.c - the memory of one batch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/slot.h"

#include <stdlib.h>
#include <string.h>

static bool is_ragged(const struct st_slot *slot) { return slot->shape.width < 0; }

static uint64_t row_bytes(const struct st_slot_shape *s)
{
    return (uint64_t)s->width * (uint64_t)s->height * (uint64_t)s->channels * s->finish->element;
}

uint64_t st_slot_host_bytes(const struct st_slot_shape *s)
{
    if (s->raw)
        return st_host_heap(s->rows) + s->rows * s->reserve + s->share;
    return st_host_finished_labels(s->rows, row_bytes(s)) + s->rows * sizeof(int64_t);
}

uint64_t st_slot_bytes(const struct st_slot_shape *shape)
{
    if (shape->width < 0)
        return 0;
    return shape->device ? st_slot_host_bytes(shape) : row_bytes(shape) * shape->rows;
}

/* ---- memory -------------------------------------------------------------------------------------- */

static void note_budget(struct stoker_error *note)
{
    st_fail(note, STOKER_ELIMIT, "pinned_limit is used up: further slots use pageable memory");
}

/* Allocates memory for rows of equal size: on the device, pinned, or plain. */
static int host_new(struct st_slot *slot, bool pin, struct stoker_error *note, struct stoker_error *err)
{
    const struct st_slot_shape *shape = &slot->shape;
    struct st_device *device = shape->device;
    const uint64_t bytes = st_slot_host_bytes(shape);
    void *host = NULL;
    if (device) {
        slot->pinned = pin;
        const int rc = device->kind->slot_new(device, &slot->on_device, &host, &slot->pinned, err);
        if (rc)
            return rc;
        if (pin && !slot->pinned)
            st_fail(note, STOKER_ENOMEM,
                    "no pinned memory could be allocated for a slot of %.1f MB; it is pageable, and "
                    "copies are slower",
                    (double)bytes / 1e6);
    } else if (shape->pinned && pin) {
        host = shape->pinned->take(bytes, note);
        slot->pinned = host != NULL;
    }
    if ((device || shape->pinned) && !pin)
        note_budget(note);
    slot->host = host ? host : st_pages_new(bytes, true); /* huge pages save faults */
    if (!slot->host)
        return st_fail(err, STOKER_ENOMEM, "no memory for a batch of %.1f MB", (double)bytes / 1e6);
    slot->labels =
        (int64_t *)(void *)(slot->host + (shape->raw
                                              ? st_host_raw_labels(shape->rows)
                                              : st_host_finished_labels(shape->rows, row_bytes(shape))));
    return 0;
}

static void host_free(struct st_slot *slot)
{
    const struct st_slot_shape *shape = &slot->shape;
    if (slot->on_device) {
        shape->device->kind->slot_free(shape->device, slot->on_device);
        for (int k = 0; k < ST_JPEG_HW_BLOCKS; k++)
            if (slot->hw_memory.block[k])
                shape->jpeg_hw->give(shape->device, slot->hw_memory.block[k]);
    } else if (slot->host && slot->pinned) {
        st_slot_wait(slot);
        shape->pinned->give(slot->host);
    } else if (slot->host)
        st_pages_free(slot->host, st_slot_host_bytes(shape));
    if (slot->mark)
        shape->pinned->mark_free(slot->mark);
}

int st_slot_new(struct st_slot **out, const struct st_slot_shape *shape, bool pin,
                struct stoker_error *pinned_note, struct stoker_error *err)
{
    struct st_slot *slot = st_calloc(1, sizeof *slot);
    *out = NULL;
    if (!slot)
        return st_fail(err, STOKER_ENOMEM, "no memory for a slot");
    slot->shape = *shape;
    slot->memory = (struct st_account){.budget = shape->budget, .kind = ST_MEMORY_BATCHES};
    slot->stacked.account = &slot->memory;
    st_account_add(&slot->memory, st_slot_bytes(shape));
    slot->samples = st_calloc(shape->rows, sizeof *slot->samples);
    slot->seeds = st_calloc(shape->rows, sizeof *slot->seeds);
    slot->views = st_calloc(shape->rows, sizeof *slot->views);
    slot->made = st_calloc(shape->rows, sizeof *slot->made);
    int rc = slot->samples && slot->seeds && slot->views && slot->made
                 ? 0
                 : st_fail(err, STOKER_ENOMEM, "no memory for %u sample numbers", shape->rows);
    if (!rc && !is_ragged(slot)) {
        rc = host_new(slot, pin, pinned_note, err);
    } else if (!rc) {
        slot->labels = st_calloc(shape->rows, sizeof *slot->labels);
        slot->item = st_calloc(shape->rows, sizeof *slot->item);
        slot->tensor = st_calloc(shape->rows, sizeof *slot->tensor);
        if (!slot->labels || !slot->item || !slot->tensor)
            rc = st_fail(err, STOKER_ENOMEM, "no memory for %u tensors", shape->rows);
        for (uint32_t row = 0; !rc && row < shape->rows; row++)
            slot->item[row].account = &slot->memory;
    }
    if (!rc && shape->sound && shape->sound->frames < 0 &&
        !(slot->lengths = st_calloc(shape->rows, sizeof *slot->lengths)))
        rc = st_fail(err, STOKER_ENOMEM, "no memory for %u lengths", shape->rows);
    if (!rc && shape->crops &&
        !(slot->crops = st_calloc((uint64_t)shape->rows * shape->crops, sizeof *slot->crops)))
        rc = st_fail(err, STOKER_ENOMEM, "no memory for %u crops", shape->rows);
    if (!rc && shape->columns &&
        !(slot->columns = st_columns_new(shape->columns, shape->rows, &slot->memory)))
        rc = st_fail(err, STOKER_ENOMEM, "no memory for the columns of %u samples", shape->rows);
    if (rc) {
        st_slot_free(slot);
        return rc;
    }
    *out = slot;
    return 0;
}

void st_slot_free(struct st_slot *slot)
{
    st_slot_shrink(slot);
    st_columns_free(slot->columns);
    st_slot_forget_failures(slot);
    st_account_sub(&slot->memory, st_slot_bytes(&slot->shape));
    if (is_ragged(slot))
        free(slot->labels);
    else
        host_free(slot);
    free(slot->item);
    free(slot->tensor);
    free(slot->lengths);
    free(slot->samples);
    free(slot->seeds);
    free(slot->views);
    free(slot->crops);
    free(slot->made);
    free(slot);
}

bool st_slot_grows(const struct st_slot *slot)
{
    return (is_ragged(slot) && !slot->shape.imageless) ||
           (slot->columns && st_columns_grow(slot->columns));
}

uint64_t st_slot_row_bytes(const struct st_slot *slot, uint32_t row)
{
    return (slot->item ? slot->item[row].size : 0) +
           (slot->columns ? st_columns_row_bytes(slot->columns, row) : 0);
}

void st_slot_shrink(struct st_slot *slot)
{
    for (uint32_t row = 0; slot->item && row < slot->shape.rows; row++)
        st_buffer_free(&slot->item[row]);
    st_buffer_free(&slot->stacked);
    if (slot->columns)
        st_columns_shrink(slot->columns);
}

/* ---- waiting for readers ------------------------------------------------------------------------- */

void st_slot_wait(struct st_slot *slot)
{
    struct st_device *device = slot->shape.device;
    if (device)
        (void)device->kind->idle(device, slot->on_device, true);
    else if (slot->marked)
        (void)slot->shape.pinned->marked_done(slot->mark, true);
    slot->marked = false;
}

void st_slot_release(struct st_slot *slot, const uintptr_t *stream)
{
    struct st_device *device = slot->shape.device;
    if (device) {
        if (stream)
            (void)device->kind->join(device, slot->on_device, *stream, NULL);
        device->kind->release(device, slot->on_device);
    } else if (slot->pinned && stream) {
        slot->shape.pinned->mark(&slot->mark, 0);
        if (*stream)
            slot->shape.pinned->mark(&slot->mark, *stream);
        slot->marked = slot->mark != NULL;
    }
}

void st_slot_mark(struct st_slot *slot, uintptr_t stream)
{
    struct st_device *device = slot->shape.device;
    if (device) {
        device->kind->mark(device, slot->on_device, stream);
    } else if (slot->pinned) {
        slot->shape.pinned->mark(&slot->mark, stream);
        slot->marked = slot->mark != NULL;
    }
}

void st_slot_forget_failures(struct st_slot *slot)
{
    while (slot->failures) {
        struct st_failure *next = slot->failures->next;
        free(slot->failures);
        slot->failures = next;
    }
}

bool st_slot_place(struct st_slot *slot, uint32_t row, int32_t width, int32_t height,
                   struct st_place *out)
{
    *out = (struct st_place){.width = width, .height = height};
    if (!is_ragged(slot)) {
        out->data = slot->host + row * row_bytes(&slot->shape);
        return true;
    }
    const struct st_finish *finish = slot->shape.finish;
    uint64_t bytes;
    if (!ST_PRODUCT(&bytes, (uint64_t)width, (uint64_t)height, (uint64_t)finish->channels,
                    finish->element) ||
        !st_buffer_reserve(&slot->item[row], bytes))
        return false;
    slot->item[row].size = bytes;
    out->data = slot->item[row].data;
    slot->tensor[row] = st_slot_describe_image(finish, out->data, width, height);
    return true;
}

struct st_job *st_slot_job(struct st_slot *slot, uint32_t row)
{
    return (struct st_job *)(void *)slot->host + row;
}

static bool blank(struct st_slot *slot, uint32_t row)
{
    enum { LABEL_IGNORED = -100 };
    struct st_place place;
    slot->labels[row] = LABEL_IGNORED;
    if (slot->columns)
        st_columns_blank(slot->columns, row, LABEL_IGNORED);
    if (slot->shape.imageless)
        return true;
    if (slot->shape.raw) {
        *st_slot_job(slot, row) = (struct st_job){.from = ST_JOB_BLANK,
                                                  .width = slot->shape.width,
                                                  .height = slot->shape.height,
                                                  .channels = slot->shape.channels};
        return true;
    }
    if (slot->shape.sound && is_ragged(slot))
        return st_slot_place_sound(slot, row, 0, slot->shape.sound->bins, 0) != NULL;
    const int32_t width = is_ragged(slot) ? 1 : slot->shape.width;
    const int32_t height = is_ragged(slot) ? 1 : slot->shape.height;
    if (!st_slot_place(slot, row, width, height, &place))
        return false;
    memset(place.data, 0, is_ragged(slot) ? slot->item[row].size : row_bytes(&slot->shape));
    return true;
}

bool st_slot_blank(struct st_slot *slot, uint32_t row)
{
    slot->made[row] = blank(slot, row);
    return slot->made[row];
}

void st_slot_begin(struct st_slot *slot)
{
    memset(slot->made, 0, slot->shape.rows);
    atomic_store_explicit(&slot->rows_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->heap_used, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->front_used, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->heap_share, slot->shape.share, memory_order_relaxed);
    slot->hw_memory.now = 0;
    slot->hw_memory.used = 0;
}

/* Submits the batch to the device; the consumer is told where it will be. */
static int send(struct st_slot *slot, uint32_t count, uint64_t *copied, struct stoker_error *err)
{
    const struct st_slot_shape *shape = &slot->shape;
    struct st_device *device = shape->device;
    const uint64_t used = shape->raw ? st_host_heap(shape->rows) + atomic_load(&slot->heap_used)
                                     : st_slot_host_bytes(shape);
    void *images, *labels;
    device->kind->where(slot->on_device, &images, &labels);
    slot->batch.images.data = images;
    slot->batch.labels.data = labels;
    *copied = used;
    return device->kind->submit(device, slot->on_device, count, used, err);
}

static int check_made(const struct st_slot *slot, uint32_t count, struct stoker_error *err)
{
    const uint8_t *unmade = memchr(slot->made, 0, count);
    if (!unmade)
        return 0;
    return st_fail(
        err, STOKER_EINTERNAL, "sample %llu, row %u of its batch, was not made: this is a bug in stoker",
        (unsigned long long)slot->samples[unmade - slot->made], (uint32_t)(unmade - slot->made));
}

int st_slot_complete(struct st_slot *slot, uint32_t count, uint64_t *copied, struct stoker_error *err)
{
    enum { DLPACK_CPU = 1, DLPACK_CUDA_HOST = 3 };
    const struct st_slot_shape *shape = &slot->shape;
    struct stoker_batch *batch = &slot->batch;
    *copied = 0;
    int rc = check_made(slot, count, err);
    if (rc)
        return rc;
    batch->size = sizeof *batch;
    batch->count = count;
    batch->samples = slot->samples;
    batch->device_type = shape->device  ? shape->device->kind->type
                         : slot->pinned ? DLPACK_CUDA_HOST
                                        : DLPACK_CPU;
    batch->device_id = shape->device ? shape->device->ordinal : 0;
    batch->labels = (struct stoker_tensor){
        .data = slot->labels, .dtype = STOKER_DTYPE_I64, .ndim = 1, .shape = {count}, .stride = {1}};
    rc = slot->columns ? st_columns_complete(slot->columns, count, batch, err) : 0;
    if (rc || shape->imageless)
        return rc;
    if (shape->sound && is_ragged(slot))
        return st_slot_complete_sounds(slot, count, err);
    if (is_ragged(slot))
        return st_slot_complete_images(slot, count, err);
    batch->images =
        st_slot_describe_images(shape->finish, slot->host, count, shape->width, shape->height);
    if (shape->sound)
        st_slot_describe_sounds(slot, count);
    return shape->device ? send(slot, count, copied, err) : 0;
}
