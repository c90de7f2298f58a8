/* slot.c - the home of one batch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/slot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool is_ragged(const struct st_slot *slot) { return slot->shape.width < 0; }

static uint64_t row_bytes(const struct st_slot_shape *s)
{
    return (uint64_t)s->width * (uint64_t)s->height * (uint64_t)s->channels * s->finish->element;
}

uint64_t st_slot_bytes(const struct st_slot_shape *shape)
{
    return shape->width < 0 ? 0 : row_bytes(shape) * shape->rows;
}

/* Batches are large: whole pages, and huge ones where the system gives them, save thousands of faults. */
static uint8_t *pages_new(uint64_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    (void)madvise(pages, bytes, MADV_HUGEPAGE); /* advice: it may be refused */
    return pages;
}

struct st_slot *st_slot_new(const struct st_slot_shape *shape)
{
    struct st_slot *slot = st_calloc(1, sizeof *slot);
    if (!slot)
        return NULL;
    slot->shape = *shape;
    slot->labels = st_calloc(shape->rows, sizeof *slot->labels);
    slot->samples = st_calloc(shape->rows, sizeof *slot->samples);
    bool whole = slot->labels && slot->samples;
    if (is_ragged(slot)) {
        slot->item = st_calloc(shape->rows, sizeof *slot->item);
        slot->tensor = st_calloc(shape->rows, sizeof *slot->tensor);
        whole = whole && slot->item && slot->tensor;
    } else {
        slot->bytes = st_slot_bytes(shape);
        slot->pixels = pages_new(slot->bytes);
        whole = whole && slot->pixels;
    }
    if (!whole) {
        st_slot_free(slot);
        return NULL;
    }
    return slot;
}

void st_slot_free(struct st_slot *slot)
{
    if (slot->pixels)
        munmap(slot->pixels, st_slot_bytes(&slot->shape));
    for (uint32_t row = 0; slot->item && row < slot->shape.rows; row++)
        st_buffer_free(&slot->item[row]);
    st_buffer_free(&slot->stacked);
    st_slot_forget_failures(slot);
    free(slot->item);
    free(slot->tensor);
    free(slot->labels);
    free(slot->samples);
    free(slot);
}

void st_slot_forget_failures(struct st_slot *slot)
{
    while (slot->failures) {
        struct st_failure *next = slot->failures->next;
        free(slot->failures);
        slot->failures = next;
    }
}

/* [C, H, W] with the strides of the layout. */
static struct stoker_tensor describe(const struct st_finish *finish, void *data, int64_t width,
                                     int64_t height)
{
    const int64_t c = finish->channels;
    const bool nchw = finish->layout == STOKER_NCHW;
    return (struct stoker_tensor){.data = data,
                                  .dtype = finish->dtype,
                                  .ndim = 3,
                                  .shape = {c, height, width},
                                  .stride = {nchw ? height * width : 1, nchw ? width : width * c,
                                             nchw ? 1 : c}};
}

/* [N, C, H, W] of such. */
static struct stoker_tensor describe_batch(const struct st_finish *finish, void *data, uint32_t count,
                                           int64_t width, int64_t height)
{
    const struct stoker_tensor one = describe(finish, data, width, height);
    struct stoker_tensor all = {.data = data, .dtype = one.dtype, .ndim = 4};
    all.shape[0] = count;
    all.stride[0] = one.shape[0] * height * width;
    for (int k = 0; k < 3; k++) {
        all.shape[k + 1] = one.shape[k];
        all.stride[k + 1] = one.stride[k];
    }
    return all;
}

bool st_slot_place(struct st_slot *slot, uint32_t row, int32_t width, int32_t height,
                   struct st_place *out)
{
    *out = (struct st_place){.width = width, .height = height};
    if (!is_ragged(slot)) {
        out->data = slot->pixels + row * row_bytes(&slot->shape);
        return true;
    }
    const struct st_finish *finish = slot->shape.finish;
    const uint64_t bytes =
        (uint64_t)width * (uint64_t)height * (uint64_t)finish->channels * finish->element;
    if (!st_buffer_reserve(&slot->item[row], bytes))
        return false;
    slot->item[row].size = bytes;
    out->data = slot->item[row].data;
    slot->tensor[row] = describe(finish, out->data, width, height);
    return true;
}

bool st_slot_blank(struct st_slot *slot, uint32_t row)
{
    struct st_place place;
    const int32_t width = is_ragged(slot) ? 1 : slot->shape.width;
    const int32_t height = is_ragged(slot) ? 1 : slot->shape.height;
    if (!st_slot_place(slot, row, width, height, &place))
        return false;
    memset(place.data, 0, is_ragged(slot) ? slot->item[row].size : row_bytes(&slot->shape));
    return true;
}

/* Copies one image into the upper left corner of a larger one. */
static void copy_padded(const struct st_finish *finish, uint8_t *to, int64_t width, int64_t height,
                        const struct stoker_tensor *from)
{
    const int64_t c = finish->channels, e = (int64_t)finish->element;
    const int64_t planes = finish->layout == STOKER_NCHW ? c : 1;
    const int64_t pixel = finish->layout == STOKER_NCHW ? e : e * c;
    const int64_t h = from->shape[1], w = from->shape[2];
    for (int64_t p = 0; p < planes; p++)
        for (int64_t y = 0; y < h; y++)
            memcpy(to + (p * height + y) * width * pixel,
                   (const uint8_t *)from->data + (p * h + y) * w * pixel, (size_t)(w * pixel));
}

/* Samples of different sizes become one tensor where they turn out equal, or are padded. */
static bool stack(struct st_slot *slot, uint32_t count, int64_t width, int64_t height)
{
    const struct st_finish *finish = slot->shape.finish;
    const uint64_t each =
        (uint64_t)width * (uint64_t)height * (uint64_t)finish->channels * finish->element;
    if (!st_buffer_reserve(&slot->stacked, each * count))
        return false;
    for (uint32_t row = 0; row < count; row++) {
        const struct stoker_tensor *from = &slot->tensor[row];
        uint8_t *to = slot->stacked.data + row * each;
        if (from->shape[1] != height || from->shape[2] != width)
            memset(to, 0, each);
        copy_padded(finish, to, width, height, from);
    }
    slot->batch.images = describe_batch(finish, slot->stacked.data, count, width, height);
    return true;
}

static bool complete_ragged(struct st_slot *slot, uint32_t count)
{
    int64_t width = 0, height = 0;
    bool equal = true;
    for (uint32_t row = 0; row < count; row++) {
        const int64_t h = slot->tensor[row].shape[1], w = slot->tensor[row].shape[2];
        equal = equal && h == slot->tensor[0].shape[1] && w == slot->tensor[0].shape[2];
        height = h > height ? h : height;
        width = w > width ? w : width;
    }
    slot->batch.images = (struct stoker_tensor){0};
    slot->batch.items = NULL;
    slot->batch.ragged = !equal && slot->shape.ragged == STOKER_RAGGED_LIST;
    if (slot->batch.ragged)
        slot->batch.items = slot->tensor;
    const bool done = slot->batch.ragged || stack(slot, count, width, height);
    uint64_t bytes = slot->stacked.capacity;
    for (uint32_t row = 0; row < slot->shape.rows; row++)
        bytes += slot->item[row].capacity;
    slot->bytes = bytes;
    return done;
}

bool st_slot_complete(struct st_slot *slot, uint32_t count)
{
    struct stoker_batch *batch = &slot->batch;
    batch->count = count;
    batch->samples = slot->samples;
    batch->labels = (struct stoker_tensor){
        .data = slot->labels, .dtype = STOKER_I64, .ndim = 1, .shape = {count}, .stride = {1}};
    if (is_ragged(slot))
        return complete_ragged(slot, count);
    batch->images =
        describe_batch(slot->shape.finish, slot->pixels, count, slot->shape.width, slot->shape.height);
    return true;
}
