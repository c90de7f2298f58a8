/* dataset.c - the public face of data sets
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/sized.h"
#include "source/source.h"

struct stoker_dataset_options stoker_dataset_defaults(void)
{
    return (struct stoker_dataset_options){.size = sizeof(struct stoker_dataset_options)};
}

int stoker_dataset_open(struct stoker_dataset **out, const char *uri,
                        const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct stoker_dataset_options own = stoker_dataset_defaults();
    if (!out || !uri)
        return st_fail(err, STOKER_EINVAL,
                       "stoker_dataset_open: no path given, or nowhere to put the handle");
    *out = NULL;
    const int rc = opt ? st_sized_take(&own, sizeof own, opt, "struct stoker_dataset_options", err) : 0;
    return rc ? rc : st_dataset_open(out, uri, &own, err);
}

int stoker_dataset_from_memory(struct stoker_dataset **out, const struct stoker_item *items,
                               uint64_t count, struct stoker_error *err)
{
    if (!out || (!items && count))
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_from_memory: no items given");
    *out = NULL;
    return st_dataset_from_memory(out, items, count, err);
}

int stoker_dataset_from_files(struct stoker_dataset **out, const char *const *paths,
                              const int64_t *labels, uint64_t count, struct stoker_error *err)
{
    if (!out || (!paths && count))
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_from_files: no paths given");
    *out = NULL;
    return st_dataset_from_files(out, paths, labels, count, err);
}

int stoker_dataset_from_callbacks(struct stoker_dataset **out, const struct stoker_callbacks *callbacks,
                                  void *cookie, struct stoker_error *err)
{
    struct stoker_callbacks own = {0};
    if (!out || !callbacks)
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_from_callbacks: no callbacks given");
    *out = NULL;
    const int rc = st_sized_take(&own, sizeof own, callbacks, "struct stoker_callbacks", err);
    return rc ? rc : st_dataset_from_callbacks(out, &own, cookie, err);
}

uint64_t stoker_dataset_count(const struct stoker_dataset *data) { return st_dataset_count(data); }

int64_t stoker_dataset_label(const struct stoker_dataset *data, uint64_t sample)
{
    return st_dataset_label(data, sample);
}

size_t stoker_dataset_name(const struct stoker_dataset *data, uint64_t sample, char *buffer, size_t size)
{
    return st_dataset_name(data, sample, buffer, size);
}

uint32_t stoker_dataset_class_count(const struct stoker_dataset *data)
{
    return data->source->class_count ? data->source->class_count(data->self) : 0;
}

const char *stoker_dataset_class_name(const struct stoker_dataset *data, uint32_t index)
{
    return index < stoker_dataset_class_count(data) ? data->source->class_name(data->self, index) : NULL;
}

void stoker_dataset_close(struct stoker_dataset *data) { st_dataset_drop(data); }
