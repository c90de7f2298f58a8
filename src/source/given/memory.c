/* memory.c - encoded images in the caller's memory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/kinds.h"

#include <stdlib.h>
#include <string.h>

struct memory {
    struct stoker_item *items;
    uint64_t count;
};

static uint64_t memory_count(const void *self) { return ((const struct memory *)self)->count; }

static int64_t memory_label(const void *self, uint64_t sample)
{
    return ((const struct memory *)self)->items[sample].label;
}

static int memory_locate(const void *self, uint64_t sample, struct st_extent *out,
                         struct stoker_error *err)
{
    static const uint8_t nothing[1];
    const struct stoker_item *item = &((const struct memory *)self)->items[sample];
    (void)err;
    out->memory = item->size ? item->data : nothing;
    out->offset = 0;
    out->length = item->size;
    return 0;
}

static void memory_close(void *self) { free(((struct memory *)self)->items); }

static const struct st_source st_source_memory = {
    .scheme = "memory",
    .self_size = sizeof(struct memory),
    .count = memory_count,
    .label = memory_label,
    .name = st_name_by_number,
    .locate = memory_locate,
    .close = memory_close,
};

int st_dataset_from_memory(struct stoker_dataset **out, const struct stoker_item *items, uint64_t count,
                           struct stoker_error *err)
{
    for (uint64_t i = 0; i < count; i++)
        if (!items[i].data && items[i].size)
            return st_fail(err, STOKER_EINVAL, "sample %llu: data is NULL, but size is %zu",
                           (unsigned long long)i, items[i].size);
    struct stoker_dataset *data = st_dataset_new(&st_source_memory);
    struct stoker_item *copy = data ? st_calloc(count, sizeof *copy) : NULL;
    if (!copy) {
        st_dataset_drop(data);
        return st_fail(err, STOKER_ENOMEM, "out of memory for a list of %llu samples",
                       (unsigned long long)count);
    }
    if (count)
        memcpy(copy, items, count * sizeof *copy);
    *(struct memory *)data->self = (struct memory){copy, count};
    *out = data;
    return 0;
}
