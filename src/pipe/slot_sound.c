/* slot_sound.c - sounds as the samples of a slot
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/slot.h"

#include <string.h>

uint8_t *st_slot_place_sound(struct st_slot *slot, uint32_t row, uint32_t channels, int32_t bins,
                             uint64_t frames)
{
    const uint64_t rows = bins ? (uint64_t)bins : 1;
    uint64_t bytes;
    if (!ST_PRODUCT(&bytes, channels, rows, frames, sizeof(float)))
        return NULL;
    if (slot->lengths)
        slot->lengths[row] = (int64_t)frames;
    if (slot->shape.width >= 0)
        return slot->host + row * bytes;
    if (!st_buffer_reserve(&slot->item[row],
                           bytes ? bytes : sizeof(float))) /* an empty sound needs an address, too */
        return NULL;
    slot->item[row].size = bytes;
    slot->tensor[row] = (struct stoker_tensor){.data = slot->item[row].data,
                                               .dtype = STOKER_DTYPE_F32,
                                               .ndim = 3,
                                               .shape = {channels, (int64_t)rows, (int64_t)frames},
                                               .stride = {(int64_t)(rows * frames), (int64_t)frames, 1}};
    return slot->item[row].data;
}

void st_slot_describe_sounds(struct st_slot *slot, uint32_t count)
{
    const struct st_audio_shape *sound = slot->shape.sound;
    struct stoker_tensor *t = &slot->batch.images;
    if (slot->shape.width >= 0) { /* described as the rows of an image so far */
        t->shape[1] = sound->channels;
        t->shape[2] = sound->bins ? sound->bins : 1;
        t->stride[1] = t->shape[2] * t->shape[3];
    }
    slot->batch.lengths = (struct stoker_tensor){0};
    if (slot->lengths)
        slot->batch.lengths = (struct stoker_tensor){.data = slot->lengths,
                                                     .dtype = STOKER_DTYPE_I64,
                                                     .ndim = 1,
                                                     .shape = {count},
                                                     .stride = {1}};
    if (sound->bins)
        return;
    t->ndim = 3; /* samples have no frequency axis */
    t->shape[2] = t->shape[3];
    t->stride[2] = t->stride[3];
}

/* The largest sizes. A blank sample has size 0; all others have the same number of channels. */
static void sizes(const struct st_slot *slot, uint32_t count, int64_t *channels, int64_t *rows,
                  int64_t *frames)
{
    *channels = *rows = *frames = 0;
    for (uint32_t row = 0; row < count; row++) {
        const int64_t *shape = slot->tensor[row].shape;
        *channels = shape[0] > *channels ? shape[0] : *channels;
        *rows = shape[1] > *rows ? shape[1] : *rows;
        *frames = shape[2] > *frames ? shape[2] : *frames;
    }
}

int st_slot_complete_sounds(struct st_slot *slot, uint32_t count, struct stoker_error *err)
{
    int64_t channels, rows, frames;
    uint64_t each, bytes;
    int rc;
    sizes(slot, count, &channels, &rows, &frames);
    const bool known =
        ST_PRODUCT(&each, (uint64_t)channels, (uint64_t)rows, (uint64_t)frames, sizeof(float)) &&
        st_mul(each, count, &bytes);
    if (known && (rc = st_slot_check_stack(slot, count, bytes, err)))
        return rc;
    if (!known || !st_buffer_reserve(&slot->stacked, bytes ? bytes : sizeof(float)))
        return st_fail(err, STOKER_ENOMEM, "no memory to stack %u sounds of up to %lld frames", count,
                       (long long)frames);
    for (uint32_t row = 0; row < count; row++) {
        const struct stoker_tensor *from = &slot->tensor[row];
        const int64_t own = from->shape[2], lines = from->shape[0] * from->shape[1];
        float *to = (float *)(void *)(slot->stacked.data + row * each);
        for (int64_t line = 0; line < channels * rows; line++) {
            const int64_t kept = line < lines ? own : 0;
            if (kept)
                memcpy(to + line * frames, (const float *)from->data + line * own,
                       (size_t)kept * sizeof *to);
            memset(to + line * frames + kept, 0, (size_t)(frames - kept) * sizeof *to);
        }
    }
    slot->batch.ragged = false;
    slot->batch.items = NULL;
    slot->batch.images = (struct stoker_tensor){
        .data = slot->stacked.data,
        .dtype = STOKER_DTYPE_F32,
        .ndim = 4,
        .shape = {count, channels, rows, frames},
        .stride = {channels * rows * frames, rows * frames, frames, 1},
    };
    st_slot_describe_sounds(slot, count);
    return 0;
}
