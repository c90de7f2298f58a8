/* dataset.c - a source and its state, reference-counted
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/kinds.h"
#include "source/known/known.h"
#include "source/table/cells.h"

#include <stdio.h>
#include <stdlib.h>

struct stoker_dataset *st_dataset_new(const struct st_source *source)
{
    struct stoker_dataset *data = st_calloc(1, sizeof *data);
    if (!data)
        return NULL;
    data->source = source;
    data->self = st_calloc(1, source->self_size);
    atomic_init(&data->holders, 1);
    if (!data->self) {
        free(data);
        return NULL;
    }
    return data;
}

struct stoker_dataset *st_dataset_hold(struct stoker_dataset *data)
{
    atomic_fetch_add(&data->holders, 1);
    return data;
}

void st_dataset_drop(struct stoker_dataset *data)
{
    if (!data || atomic_fetch_sub(&data->holders, 1) != 1)
        return;
    st_known_drop(data);
    data->source->close(data->self);
    free(data->self);
    if (data->classes)
        st_cells_free(data->classes);
    free(data->classes);
    free(data->class_labels);
    free(data);
}

uint64_t st_dataset_count(const struct stoker_dataset *data) { return data->source->count(data->self); }

int64_t st_dataset_label(const struct stoker_dataset *data, uint64_t sample)
{
    return sample < st_dataset_count(data) ? data->source->label(data->self, sample) : 0;
}

size_t st_dataset_name(const struct stoker_dataset *data, uint64_t sample, char *buffer, size_t size)
{
    if (sample < st_dataset_count(data))
        return data->source->name(data->self, sample, buffer, size);
    return st_name_by_number(data->self, sample, buffer, size);
}

uint64_t st_dataset_memory(const struct stoker_dataset *data)
{
    return data->source->memory ? data->source->memory(data->self) : 0;
}

void st_dataset_keep(struct stoker_dataset *data, uint64_t bytes)
{
    if (data->source->keep)
        data->source->keep(data->self, bytes);
}

uint32_t st_dataset_class_count(const struct stoker_dataset *data)
{
    if (data->classes)
        return (uint32_t)data->classes->count;
    return data->source->class_count ? data->source->class_count(data->self) : 0;
}

const char *st_dataset_class_name(const struct stoker_dataset *data, uint32_t index)
{
    return data->classes ? st_cells_word(data->classes, index)
                         : data->source->class_name(data->self, index);
}

int64_t st_dataset_class_label(const struct stoker_dataset *data, uint32_t index)
{
    if (data->classes)
        return data->class_labels ? data->class_labels[index] : index;
    return data->source->class_label ? data->source->class_label(data->self, index) : index;
}

int64_t st_label_zero(const void *self, uint64_t sample)
{
    (void)self, (void)sample;
    return 0;
}

size_t st_name_by_number(const void *self, uint64_t sample, char *buffer, size_t size)
{
    (void)self;
    const int length = snprintf(buffer, size, "sample %llu", (unsigned long long)sample);
    return length > 0 ? (size_t)length : 0;
}
