/* compound.c - datasets made of other datasets: shared by concat, subset and mix
 *
 * If all parts can locate their bytes, so can the compound, and the reader fetches them. Otherwise the
 * compound reads its samples itself. The reader requires all samples or none to be in memory, so a mix
 * of parts in memory and parts in files is read by the compound as well.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/compose/compound.h"
#include "base/text.h"
#include "source/fields/field_list.h"
#include "source/reader/reader.h"
#include "source/reader/ring.h"

#include <stdlib.h>
#include <string.h>

struct compound {
    struct stoker_dataset **parts;
    uint32_t part_count;
    uint64_t count;
    st_compound_find *find;
    void *map;
    uint32_t field_count;
    struct st_field fields[ST_FIELDS_MAX];
    bool classes; /* all parts have the same classes */
};

static const struct st_field image_and_label[] = {
    {.name = "image", .kind = ST_FIELD_IMAGE, .dtype = STOKER_DTYPE_U8},
    {.name = "label", .kind = ST_FIELD_INT},
};

static const struct stoker_dataset *part_of(const struct compound *whole, uint64_t sample,
                                            uint64_t *index)
{
    const struct st_found found = whole->find(whole->map, sample);
    *index = found.sample;
    return whole->parts[found.part];
}

/* ---- what all parts have in common -------------------------------------------------------------- */

static const struct st_field *fields_of(const struct stoker_dataset *part, uint32_t *count)
{
    if (part->source->fields)
        return part->source->fields(part->self, count);
    *count = 2;
    return image_and_label;
}

/* Generalizes `field` to cover both; false if that is impossible. */
static bool widen(struct st_field *field, const struct st_field *other)
{
    const bool numbers =
        field->kind == ST_FIELD_ARRAY || (field->kind == ST_FIELD_IMAGE && field->ndim > 0);
    if (field->kind != other->kind || (numbers && other->ndim > 0 && field->dtype != other->dtype))
        return false;
    if (field->ndim != other->ndim)
        field->ndim = -1;
    for (int32_t i = 0; i < field->ndim; i++)
        if (field->shape[i] != other->shape[i])
            field->shape[i] = -1;
    return true;
}

static int merge_fields(struct compound *whole, uint32_t part, struct stoker_error *err)
{
    uint32_t count;
    const struct st_field *fields = fields_of(whole->parts[part], &count);
    if (part == 0) {
        memcpy(whole->fields, fields, count * sizeof *fields);
        whole->field_count = count;
        return 0;
    }
    if (count != whole->field_count)
        return st_fail(err, STOKER_EINVAL,
                       "dataset %u has %u field%s, but dataset 0 has %u; all parts need "
                       "the same fields",
                       part, count, st_s(count), whole->field_count);
    for (uint32_t k = 0; k < count; k++)
        if (!widen(&whole->fields[k], &fields[k]))
            return st_fail(err, STOKER_EINVAL,
                           "dataset %u: field %u (%.200s) is %s, but in dataset 0 (%.200s) it is %s",
                           part, k, fields[k].name, st_field_kind_name(fields[k].kind),
                           whole->fields[k].name, st_field_kind_name(whole->fields[k].kind));
    return 0;
}

static bool same_classes(const struct stoker_dataset *a, const struct stoker_dataset *b)
{
    const uint32_t count = st_dataset_class_count(a);
    if (count != st_dataset_class_count(b))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(st_dataset_class_name(a, i), st_dataset_class_name(b, i)) ||
            st_dataset_class_label(a, i) != st_dataset_class_label(b, i))
            return false;
    return true;
}

/* Whether the reader can use the parts' locations: all parts have them, and all or none are in
 * memory. */
static bool can_locate(struct stoker_dataset *const *parts, uint32_t count)
{
    bool files = false, memory = false;
    for (uint32_t i = 0; i < count; i++) {
        struct st_extent extent;
        if (!parts[i]->source->locate)
            return false;
        if (!st_dataset_count(parts[i]))
            continue;
        if (!st_locate(parts[i], 0, &extent, NULL) && extent.memory)
            memory = true;
        else
            files = true;
    }
    return !(files && memory);
}

/* ---- the source --------------------------------------------------------------------------------- */

static uint64_t compound_count(const void *self) { return ((const struct compound *)self)->count; }

static int64_t compound_label(const void *self, uint64_t sample)
{
    uint64_t index;
    const struct stoker_dataset *part = part_of(self, sample, &index);
    return st_dataset_label(part, index);
}

static size_t compound_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    uint64_t index;
    const struct stoker_dataset *part = part_of(self, sample, &index);
    return st_dataset_name(part, index, buffer, size);
}

static int compound_locate(const void *self, uint64_t sample, struct st_extent *out,
                           struct stoker_error *err)
{
    uint64_t index;
    const struct stoker_dataset *part = part_of(self, sample, &index);
    return part->source->locate(part->self, index, out, err);
}

static int compound_read(void *self, uint64_t sample, struct st_buffer *into, struct stoker_error *err)
{
    const struct compound *whole = self;
    const struct st_found found = whole->find(whole->map, sample);
    struct st_bytes bytes;
    const int rc = st_read_sample(whole->parts[found.part], found.sample, into, &bytes, err);
    if (rc || bytes.data == into->data)
        return rc;
    if (!st_buffer_reserve(into, bytes.size))
        return st_fail(err, STOKER_ENOMEM, "out of memory for %zu bytes", bytes.size);
    if (bytes.size)
        memcpy(into->data, bytes.data, bytes.size);
    into->size = bytes.size;
    return 0;
}

static const struct st_field *compound_fields(const void *self, uint32_t *count)
{
    const struct compound *whole = self;
    *count = whole->field_count;
    return whole->fields;
}

static int compound_split(const void *self, uint64_t sample, struct st_bytes raw,
                          struct st_buffer *scratch, struct st_piece *pieces, struct stoker_error *err)
{
    uint64_t index;
    const struct stoker_dataset *part = part_of(self, sample, &index);
    if (part->source->split)
        return part->source->split(part->self, index, raw, scratch, pieces, err);
    pieces[0] = (struct st_piece){.bytes = raw};
    pieces[1] = (struct st_piece){.whole = st_dataset_label(part, index)};
    return 0;
}

static uint32_t compound_class_count(const void *self)
{
    const struct compound *whole = self;
    return whole->classes ? st_dataset_class_count(whole->parts[0]) : 0;
}

static const char *compound_class_name(const void *self, uint32_t index)
{
    const struct compound *whole = self;
    return st_dataset_class_name(whole->parts[0], index);
}

static int64_t compound_class_label(const void *self, uint32_t index)
{
    const struct compound *whole = self;
    return st_dataset_class_label(whole->parts[0], index);
}

static uint64_t compound_memory(const void *self)
{
    const struct compound *whole = self;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < whole->part_count; i++)
        sum += st_dataset_memory(whole->parts[i]);
    return sum;
}

static void compound_keep(void *self, uint64_t bytes)
{
    const struct compound *whole = self;
    for (uint32_t i = 0; i < whole->part_count; i++)
        st_dataset_keep(whole->parts[i], bytes / whole->part_count);
}

/* The note of the first part that has one. */
static const char *compound_note(const void *self)
{
    const struct compound *whole = self;
    const char *note = NULL;
    for (uint32_t i = 0; i < whole->part_count && !note; i++)
        if (whole->parts[i]->source->note)
            note = whole->parts[i]->source->note(whole->parts[i]->self);
    return note;
}

static void compound_close(void *self)
{
    struct compound *whole = self;
    for (uint32_t i = 0; i < whole->part_count; i++)
        st_dataset_drop(whole->parts[i]);
    free(whole->parts);
    free(whole->map);
}

#define COMPOUND(how_)                                                                                  \
    {                                                                                                   \
        .scheme = "compound", .self_size = sizeof(struct compound), .count = compound_count,            \
        .label = compound_label, .name = compound_name, how_, .fields = compound_fields,                \
        .split = compound_split, .class_count = compound_class_count,                                   \
        .class_name = compound_class_name, .class_label = compound_class_label,                         \
        .memory = compound_memory, .keep = compound_keep, .note = compound_note,                        \
        .close = compound_close,                                                                        \
    }

static const struct st_source located = COMPOUND(.locate = compound_locate);
static const struct st_source reads_itself = COMPOUND(.read = compound_read);

struct stoker_dataset *const *st_compound_parts(const struct stoker_dataset *data, uint32_t *count)
{
    const struct compound *whole = data->self;
    if (data->source != &located && data->source != &reads_itself)
        return NULL;
    *count = whole->part_count;
    return whole->parts;
}

bool st_compound_keep_encoded(struct stoker_dataset *data)
{
    struct compound *whole = data->self;
    for (uint32_t k = 0; k < whole->field_count; k++)
        if (whole->fields[k].kind == ST_FIELD_IMAGE) {
            if (whole->fields[k].ndim)
                return false;
            whole->fields[k].kind = ST_FIELD_BYTES;
            return true;
        }
    return false;
}

struct st_found st_compound_sample(const struct stoker_dataset *data, uint64_t sample)
{
    const struct compound *whole = data->self;
    return whole->find(whole->map, sample);
}

int st_compound_new(struct stoker_dataset **out, struct stoker_dataset *const *parts,
                    uint32_t part_count, uint64_t count, st_compound_find *find, void *map,
                    struct stoker_error *err)
{
    struct stoker_dataset *data =
        st_dataset_new(can_locate(parts, part_count) ? &located : &reads_itself);
    struct compound *whole = data ? data->self : NULL;
    struct stoker_dataset **held = whole ? st_calloc(part_count, sizeof *held) : NULL;
    if (!held) {
        st_dataset_drop(data);
        free(map);
        return st_fail(err, STOKER_ENOMEM, "out of memory for a dataset of %u parts", part_count);
    }
    *whole = (struct compound){.parts = held, .count = count, .find = find, .map = map, .classes = true};
    int rc = 0;
    for (uint32_t i = 0; i < part_count && !rc; i++) {
        held[whole->part_count++] = st_dataset_hold(parts[i]);
        whole->classes = whole->classes && same_classes(parts[0], parts[i]);
        rc = merge_fields(whole, i, err);
    }
    if (rc)
        st_dataset_drop(data);
    else
        *out = data;
    return rc;
}
