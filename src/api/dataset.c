/* dataset.c - the public face of datasets
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/sized.h"
#include "source/fields/field_list.h"

ST_SIZED(options, stoker_dataset_options, connections);
ST_SIZED(pixel_sets, stoker_pixels, stride);
ST_SIZED(pair_sets, stoker_pairs, names);
ST_SIZED(callback_sets, stoker_callbacks, close);
ST_SIZED(fields, stoker_field, type);

static const struct stoker_dataset_options defaults = {.size = sizeof defaults};

void stoker_dataset_options_init(struct stoker_dataset_options *opt, size_t size)
{
    st_sized_init(&options, &defaults, opt, size);
}

int stoker_dataset_open(struct stoker_dataset **out, const char *uri,
                        const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct stoker_dataset_options own = defaults;
    if (!out || !uri)
        return st_fail(err, STOKER_EINVAL,
                       "stoker_dataset_open: no path given, or nowhere to put the handle");
    *out = NULL;
    const int rc = opt ? st_sized_take(&options, &own, opt, err) : 0;
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

int stoker_dataset_from_pixels(struct stoker_dataset **out, const struct stoker_pixels *pixels,
                               struct stoker_error *err)
{
    struct stoker_pixels own = {0};
    if (!out || !pixels)
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_from_pixels: no pixels given");
    *out = NULL;
    const int rc = st_sized_take(&pixel_sets, &own, pixels, err);
    return rc ? rc : st_dataset_from_pixels(out, &own, err);
}

int stoker_dataset_from_files(struct stoker_dataset **out, const char *const *paths,
                              const int64_t *labels, uint64_t count, struct stoker_error *err)
{
    if (!out || (!paths && count))
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_from_files: no paths given");
    *out = NULL;
    return st_dataset_from_files(out, paths, labels, count, err);
}

int stoker_dataset_from_pairs(struct stoker_dataset **out, const struct stoker_pairs *pairs,
                              const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct stoker_dataset_options own = defaults;
    struct stoker_pairs how = {0};
    if (!out || !pairs)
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_from_pairs: no pairs given");
    *out = NULL;
    int rc = st_sized_take(&pair_sets, &how, pairs, err);
    if (!rc && opt)
        rc = st_sized_take(&options, &own, opt, err);
    return rc ? rc : st_dataset_from_pairs(out, &how, &own, err);
}

int stoker_dataset_from_callbacks(struct stoker_dataset **out, const struct stoker_callbacks *callbacks,
                                  void *cookie, struct stoker_error *err)
{
    struct stoker_callbacks own = {0};
    if (!out || !callbacks)
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_from_callbacks: no callbacks given");
    *out = NULL;
    const int rc = st_sized_take(&callback_sets, &own, callbacks, err);
    return rc ? rc : st_dataset_from_callbacks(out, &own, cookie, err);
}

static bool all_given(struct stoker_dataset *const *parts, uint32_t count)
{
    uint32_t i = 0;
    while (parts && i < count && parts[i])
        i++;
    return i == count;
}

int stoker_dataset_concat(struct stoker_dataset **out, struct stoker_dataset *const *parts,
                          uint32_t count, struct stoker_error *err)
{
    if (!out || !all_given(parts, count))
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_concat: a dataset is missing");
    *out = NULL;
    return st_dataset_concat(out, parts, count, err);
}

int stoker_dataset_subset(struct stoker_dataset **out, struct stoker_dataset *data,
                          const uint64_t *indices, uint64_t count, struct stoker_error *err)
{
    if (!out || !data || (!indices && count))
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_subset: no dataset or no indices given");
    *out = NULL;
    return st_dataset_subset(out, data, indices, count, err);
}

int stoker_dataset_paired(struct stoker_dataset **out, struct stoker_dataset *images,
                          struct stoker_dataset *masks, struct stoker_error *err)
{
    if (!out || !images || !masks)
        return st_fail(err, STOKER_EINVAL, "stoker_dataset_paired: a dataset is missing");
    *out = NULL;
    return st_dataset_paired(out, images, masks, false, err);
}

int stoker_dataset_mix(struct stoker_dataset **out, struct stoker_dataset *const *parts,
                       const double *weights, uint32_t count, uint64_t samples, uint64_t seed,
                       struct stoker_error *err)
{
    if (!out || !all_given(parts, count) || (!weights && count))
        return st_fail(err, STOKER_EINVAL,
                       "stoker_dataset_mix: a dataset is missing, or no weights are given");
    *out = NULL;
    return st_dataset_mix(out, parts, weights, count, samples, seed, err);
}

const char *stoker_dataset_kind(const struct stoker_dataset *data) { return data->kind; }

bool stoker_dataset_field_at(const struct stoker_dataset *data, uint32_t index, struct stoker_field *out)
{
    static const struct st_field image_and_label[] = {{.name = "image", .kind = ST_FIELD_IMAGE},
                                                      {.name = "label", .kind = ST_FIELD_INT}};
    uint32_t count = 2;
    const struct st_field *field =
        data->source->fields ? data->source->fields(data->self, &count) : image_and_label;
    if (index >= count)
        return false;
    const struct stoker_field found = {sizeof found, field[index].name,
                                       st_field_kind_name(field[index].kind)};
    return !st_sized_give(&fields, &found, out, NULL);
}

const char *stoker_dataset_note(const struct stoker_dataset *data)
{
    return data->source->note ? data->source->note(data->self) : NULL;
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
    return st_dataset_class_count(data);
}

const char *stoker_dataset_class_name(const struct stoker_dataset *data, uint32_t index)
{
    return index < stoker_dataset_class_count(data) ? st_dataset_class_name(data, index) : NULL;
}

int64_t stoker_dataset_class_label(const struct stoker_dataset *data, uint32_t index)
{
    return index < stoker_dataset_class_count(data) ? st_dataset_class_label(data, index) : -1;
}

void stoker_dataset_close(struct stoker_dataset *data) { st_dataset_drop(data); }
