/* slot_image.c - images as the samples of a slot: their tensors, and stacking those of varying size
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/slot.h"

#include "base/text.h"

#include <string.h>

struct stoker_tensor st_slot_describe_image(const struct st_finish *finish, void *data, int64_t width,
                                            int64_t height)
{
    const int64_t c = finish->channels;
    const bool nchw = finish->layout == STOKER_LAYOUT_NCHW;
    if (finish->array)
        return (struct stoker_tensor){.data = data,
                                      .dtype = finish->dtype,
                                      .ndim = 3,
                                      .shape = {height, width, c},
                                      .stride = {width * c, c, 1}};
    return (struct stoker_tensor){
        .data = data,
        .dtype = finish->dtype,
        .ndim = 3,
        .shape = {c, height, width},
        .stride = {nchw ? height * width : 1, nchw ? width : width * c, nchw ? 1 : c}};
}

struct stoker_tensor st_slot_describe_images(const struct st_finish *finish, void *data, uint32_t count,
                                             int64_t width, int64_t height)
{
    const struct stoker_tensor one = st_slot_describe_image(finish, data, width, height);
    struct stoker_tensor all = {.data = data, .dtype = one.dtype, .ndim = 4};
    all.shape[0] = count;
    all.stride[0] = finish->channels * height * width;
    for (int k = 0; k < 3; k++) {
        all.shape[k + 1] = one.shape[k];
        all.stride[k + 1] = one.stride[k];
    }
    return all;
}

static int64_t height_of(const struct st_finish *finish, const struct stoker_tensor *image)
{
    return image->shape[finish->array ? 0 : 1];
}

static int64_t width_of(const struct st_finish *finish, const struct stoker_tensor *image)
{
    return image->shape[finish->array ? 1 : 2];
}

/* Copies one image into the upper left corner of a larger one. */
static void copy_padded(const struct st_finish *finish, uint8_t *to, int64_t width, int64_t height,
                        const struct stoker_tensor *from)
{
    const int64_t c = finish->channels, e = (int64_t)finish->element;
    const int64_t planes = finish->layout == STOKER_LAYOUT_NCHW ? c : 1;
    const int64_t pixel = finish->layout == STOKER_LAYOUT_NCHW ? e : e * c;
    const int64_t h = height_of(finish, from), w = width_of(finish, from);
    for (int64_t p = 0; p < planes; p++)
        for (int64_t y = 0; y < h; y++)
            memcpy(to + (p * height + y) * width * pixel,
                   (const uint8_t *)from->data + (p * h + y) * w * pixel, (size_t)(w * pixel));
}

static int too_large(uint32_t count, int64_t width, int64_t height, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM,
                   "no memory for a batch of %u image%s padded to %lld x %lld: end the pipeline with a "
                   "fixed size, use smaller batches, or return lists instead of padding",
                   count, st_s(count), (long long)width, (long long)height);
}

/* Whether its budget is so far used that memory matters more than the time to get it. */
static bool is_short(const struct st_slot *slot)
{
    const struct st_budget *budget = slot->shape.budget;
    return budget && atomic_load_explicit(&budget->held, memory_order_relaxed) > budget->limit / 2;
}

int st_slot_check_stack(const struct st_slot *slot, uint32_t count, uint64_t bytes,
                        struct stoker_error *err)
{
    const struct st_budget *budget = slot->shape.budget;
    if (!budget || bytes <= budget->limit / 4)
        return 0;
    return st_fail(
        err, STOKER_ELIMIT,
        "a batch of %u sample%s, each as large as the largest, takes %.1f MB, more than a quarter of "
        "max_memory (%.1f MB), which is what a batch of samples of different sizes may take: raise it, "
        "take smaller batches, or end the pipeline with a fixed size",
        count, st_s(count), (double)bytes / 1e6, (double)budget->limit / 1e6);
}

/* The budget counts no batch twice: while memory is short, the copy of a row counts once its pages are
 * written, and those of the row itself are free by then. */
static bool reserve_uncounted(struct st_slot *slot, uint64_t bytes)
{
    st_buffer_free(&slot->stacked);
    slot->stacked.account = NULL;
    const bool reserved = st_buffer_resize(&slot->stacked, bytes);
    if (!reserved)
        slot->stacked.account = &slot->memory;
    return reserved;
}

/* Samples of different sizes become one tensor where they turn out equal, or are padded. */
static int stack(struct st_slot *slot, uint32_t count, int64_t width, int64_t height,
                 struct stoker_error *err)
{
    const struct st_finish *finish = slot->shape.finish;
    uint64_t each, bytes;
    if (!ST_PRODUCT(&each, (uint64_t)width, (uint64_t)height, (uint64_t)finish->channels,
                    finish->element) ||
        !st_mul(each, count, &bytes))
        return too_large(count, width, height, err);
    const int rc = st_slot_check_stack(slot, count, bytes, err);
    if (rc)
        return rc;
    const bool scarce = is_short(slot);
    if (!(scarce ? reserve_uncounted(slot, bytes) : st_buffer_reserve(&slot->stacked, bytes)))
        return too_large(count, width, height, err);
    for (uint32_t row = 0; row < count; row++) {
        const struct stoker_tensor *from = &slot->tensor[row];
        uint8_t *to = slot->stacked.data + row * each;
        if (height_of(finish, from) != height || width_of(finish, from) != width)
            memset(to, 0, each);
        copy_padded(finish, to, width, height, from);
        if (scarce) {
            st_buffer_free(&slot->item[row]);
            st_account_add(&slot->memory, each);
        }
    }
    if (scarce)
        st_buffer_count(&slot->stacked, &slot->memory, bytes);
    slot->batch.images = st_slot_describe_images(finish, slot->stacked.data, count, width, height);
    return 0;
}

int st_slot_complete_images(struct st_slot *slot, uint32_t count, struct stoker_error *err)
{
    const struct st_finish *finish = slot->shape.finish;
    int64_t width = 0, height = 0;
    bool equal = true;
    for (uint32_t row = 0; row < count; row++) {
        const struct stoker_tensor *image = &slot->tensor[row];
        const int64_t h = height_of(finish, image), w = width_of(finish, image);
        equal = equal && (row == 0 || (h == height && w == width));
        height = h > height ? h : height;
        width = w > width ? w : width;
    }
    slot->batch.images = (struct stoker_tensor){0};
    slot->batch.items = NULL;
    slot->batch.ragged = !equal && slot->shape.ragged == STOKER_RAGGED_LIST;
    if (slot->batch.ragged)
        slot->batch.items = slot->tensor;
    return slot->batch.ragged ? 0 : stack(slot, count, width, height, err);
}
