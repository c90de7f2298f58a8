/* hdf5.c - datasets of an HDF5 file: row i of each is sample i, indexed as by h5py
 *
 * Fields are the names of datasets ("images", "train/labels"); the default is all datasets at the
 * root.
 *
 * A sample's raw bytes are a table of each field's offset and size, followed by the fields.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/chunk_cache.h"
#include "source/hdf5/heap.h"
#include "source/hdf5/library.h"
#include "source/kinds.h"
#include "source/text/names.h"

#include "base/cpu.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The cache of decoded chunks that contain several rows takes at most this, or a sixteenth of the
 * memory. */
#define CACHE_MAX (256ull << 20)

struct hdf5 {
    struct st_held file;
    struct st_h5_file h5;
    struct st_field_list requested;
    uint32_t count;
    struct st_h5_array arrays[ST_FIELDS_MAX];
    struct st_field fields[ST_FIELDS_MAX];
    struct st_chunk_cache *cache;
    char note[600];
};

struct place {
    uint64_t at, size;
};

static bool hdf5_matches(const char *path, const uint8_t *head, size_t size)
{
    static const char *const extensions[] = {".h5", ".hdf5", NULL};
    return (size >= 8 && !memcmp(head, "\x89HDF\r\n\x1a\n", 8)) ||
           (size && st_name_has_extension(path, strlen(path), extensions));
}

/* ---- opening ------------------------------------------------------------------------------------ */

static int choose_fields(struct hdf5 *hdf5, const char *text, struct stoker_error *err)
{
    char *all = NULL;
    int rc = text ? 0 : st_h5_file_list(&hdf5->h5, &hdf5->file, &all, err);
    if (!rc)
        rc = st_field_list_parse(&hdf5->requested, text ? text : all, err);
    free(all);
    return rc;
}

/* Notes what is read slowly and why, for stats(). */
static void add_note(struct hdf5 *hdf5, const struct st_h5_array *array)
{
    const size_t used = strlen(hdf5->note);
    if (array->way == ST_H5_LIBRARY)
        snprintf(hdf5->note + used, sizeof hdf5->note - used,
                 "%s%s: read through the HDF5 library, one row at a time (%s)", used ? "; " : "",
                 array->rows.field.name, array->reason);
}

static int open_arrays(struct hdf5 *hdf5, struct stoker_error *err)
{
    uint64_t chunks = 0;
    bool library = false;
    for (uint32_t k = 0; k < hdf5->requested.count; k++) {
        struct st_h5_array *array = &hdf5->arrays[hdf5->count++];
        const int rc = st_h5_array_open(array, &hdf5->h5, &hdf5->file, &hdf5->requested.items[k], err);
        if (rc)
            return rc;
        if (array->rows.count != hdf5->arrays[0].rows.count)
            return st_fail(
                err, STOKER_EINVAL,
                "%s: %s has %llu row%s, but %s has %llu; all fields must have the same number",
                hdf5->file.path, array->rows.field.name, (unsigned long long)array->rows.count,
                st_s(array->rows.count), hdf5->arrays[0].rows.field.name,
                (unsigned long long)hdf5->arrays[0].rows.count);
        hdf5->fields[k] = array->rows.field;
        array->cache_from = chunks;
        chunks += array->grid.total;
        library = library || array->way == ST_H5_LIBRARY;
        add_note(hdf5, array);
    }
    if (!library)
        st_h5_file_close(&hdf5->h5);
    return 0;
}

/* Whether byte sequences are encoded images, judged by the first that is not empty. Damaged ones do not
 * count, but a disk that fails is an error: the field would be another one. */
static int holds_images(const struct hdf5 *hdf5, const struct st_h5_array *array, bool *images,
                        struct stoker_error *err)
{
    enum { ROWS = 64, HEAD = 64 };
    struct st_h5_object object;
    struct stoker_error why;
    uint8_t head[HEAD];
    *images = false;
    if (!array->variable || array->rows.field.kind != ST_FIELD_ARRAY ||
        array->rows.field.dtype != STOKER_DTYPE_U8)
        return 0;
    for (uint64_t row = 0; row < array->rows.count && row < ROWS; row++) {
        int rc = st_h5_find_variable(array, &hdf5->file, hdf5->cache, row, &object, &why);
        if (!rc && !object.size)
            continue;
        const uint64_t size = object.size < HEAD ? object.size : HEAD;
        if (!rc)
            rc = st_held_read(&hdf5->file, object.at, head, size, &why);
        if (!rc)
            *images = st_looks_like_image((struct st_bytes){head, size});
        if (st_is_transient(rc) || rc == STOKER_ENOMEM)
            return st_fail(err, rc, "%s", why.message);
        if (!rc)
            break;
    }
    return 0;
}

static int find_images(struct hdf5 *hdf5, struct stoker_error *err)
{
    for (uint32_t k = 0; k < hdf5->count; k++) {
        struct st_field *field = &hdf5->arrays[k].rows.field;
        bool images = false;
        const int rc = hdf5->requested.items[k].typed
                           ? 0
                           : holds_images(hdf5, &hdf5->arrays[k], &images, err);
        if (rc)
            return rc;
        if (images) {
            field->kind = ST_FIELD_IMAGE;
            field->ndim = 0;
            hdf5->fields[k] = *field;
        }
    }
    return 0;
}

static int hdf5_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                     struct stoker_error *err)
{
    struct hdf5 *hdf5 = self;
    const uint64_t budget = st_memory_limit() / 16;
    int rc = st_held_open_copy(&hdf5->file, path, opt, err);
    if (!rc)
        rc = st_h5_file_open(&hdf5->h5, &hdf5->file, err);
    st_held_unlink(&hdf5->file);
    if (!rc)
        rc = choose_fields(hdf5, opt->fields, err);
    if (!rc)
        rc = open_arrays(hdf5, err);
    if (!rc && !(hdf5->cache = st_chunk_cache_open(budget < CACHE_MAX ? budget : CACHE_MAX)))
        rc = st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    return rc ? rc : find_images(hdf5, err);
}

static void hdf5_close(void *self)
{
    struct hdf5 *hdf5 = self;
    for (uint32_t k = 0; k < hdf5->count; k++)
        st_h5_array_close(&hdf5->arrays[k]);
    st_h5_file_close(&hdf5->h5);
    st_chunk_cache_close(hdf5->cache);
    st_field_list_free(&hdf5->requested);
    st_held_close(&hdf5->file);
}

/* ---- samples ------------------------------------------------------------------------------------ */

static uint64_t hdf5_count(const void *self)
{
    return ((const struct hdf5 *)self)->arrays[0].rows.count;
}

static size_t hdf5_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    const int length = snprintf(buffer, size, "%s: row %llu", ((const struct hdf5 *)self)->file.path,
                                (unsigned long long)sample);
    return length > 0 ? (size_t)length : 0;
}

static int in_row(const struct hdf5 *hdf5, uint64_t sample, int rc, struct stoker_error *err)
{
    char name[700];
    hdf5_name(hdf5, sample, name, sizeof name);
    return st_fail_in(err, rc, name);
}

static int find_places(const struct hdf5 *hdf5, uint64_t sample, struct st_h5_object *objects,
                       struct place *places, uint64_t *total, struct stoker_error *err)
{
    *total = hdf5->count * sizeof *places;
    for (uint32_t k = 0; k < hdf5->count; k++) {
        const struct st_h5_array *array = &hdf5->arrays[k];
        const int rc = array->variable ? st_h5_find_variable(array, &hdf5->file, hdf5->cache, sample,
                                                             &objects[k], err)
                                       : 0;
        if (rc)
            return rc;
        places[k].size = array->variable ? objects[k].size : array->rows.row_bytes;
        places[k].at = st_align(*total, 16);
        if (!st_add(places[k].at, places[k].size, total) || *total > INT64_MAX)
            return st_fail(err, STOKER_ELIMIT, "the sample is too large: its size overflows");
    }
    return 0;
}

static int read_field(const struct hdf5 *hdf5, uint32_t k, uint64_t sample,
                      const struct st_h5_object *object, struct place *place, uint8_t *to,
                      struct stoker_error *err)
{
    const struct st_h5_array *array = &hdf5->arrays[k];
    if (!array->variable)
        return st_h5_read_row(array, &hdf5->file, hdf5->cache, sample, to, err);
    const int rc = st_held_read(&hdf5->file, object->at, to, object->size, err);
    if (!rc && array->rows.element.type == 'S') /* a C string, as the library returns it */
        place->size = strnlen((const char *)to, place->size);
    return rc;
}

static int hdf5_read(void *self, uint64_t sample, struct st_buffer *into, struct stoker_error *err)
{
    const struct hdf5 *hdf5 = self;
    struct st_h5_object objects[ST_FIELDS_MAX] = {0};
    struct place places[ST_FIELDS_MAX] = {0};
    uint64_t total = 0;
    int rc = find_places(hdf5, sample, objects, places, &total, err);
    if (!rc && !st_buffer_reserve(into, total))
        rc = st_fail(err, STOKER_ENOMEM, "out of memory for %llu bytes", (unsigned long long)total);
    for (uint32_t k = 0; k < hdf5->count && !rc; k++)
        rc = read_field(hdf5, k, sample, &objects[k], &places[k], into->data + places[k].at, err);
    if (rc)
        return in_row(hdf5, sample, rc, err);
    memcpy(into->data, places, hdf5->count * sizeof *places);
    into->size = total;
    return 0;
}

static const struct st_field *hdf5_fields(const void *self, uint32_t *count)
{
    const struct hdf5 *hdf5 = self;
    *count = hdf5->count;
    return hdf5->fields;
}

static int hdf5_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                      struct st_piece *pieces, struct stoker_error *err)
{
    const struct hdf5 *hdf5 = self;
    struct place places[ST_FIELDS_MAX];
    struct st_rows rows[ST_FIELDS_MAX];
    const uint8_t *at[ST_FIELDS_MAX];
    memcpy(places, raw.data, hdf5->count * sizeof *places);
    for (uint32_t k = 0; k < hdf5->count; k++) {
        const struct st_h5_array *array = &hdf5->arrays[k];
        at[k] = raw.data + places[k].at;
        rows[k] = array->rows;
        if (array->variable) { /* the length differs per sample */
            rows[k].row_bytes = places[k].size;
            rows[k].field.shape[0] = (int64_t)(places[k].size / array->rows.element.size);
            rows[k].element.type = array->rows.element.type == 'S' ? 'V' : array->rows.element.type;
        }
    }
    const int rc = st_rows_split(rows, hdf5->count, at, scratch, pieces, err);
    return rc ? in_row(hdf5, sample, rc, err) : 0;
}

/* The first integer field. */
static int64_t hdf5_label(const void *self, uint64_t sample)
{
    const struct hdf5 *hdf5 = self;
    for (uint32_t k = 0; k < hdf5->count; k++) {
        const struct st_h5_array *array = &hdf5->arrays[k];
        uint8_t number[8];
        const uint8_t *at = number;
        struct st_buffer unused = {0};
        struct st_piece piece;
        if (hdf5->fields[k].kind == ST_FIELD_INT &&
            !st_h5_read_row(array, &hdf5->file, hdf5->cache, sample, number, NULL) &&
            !st_rows_split(&array->rows, 1, &at, &unused, &piece, NULL))
            return piece.whole;
    }
    return 0;
}

static const char *hdf5_note(const void *self)
{
    const struct hdf5 *hdf5 = self;
    return hdf5->note[0] ? hdf5->note : NULL;
}

static uint64_t hdf5_memory(const void *self)
{
    return st_chunk_cache_bytes(((const struct hdf5 *)self)->cache);
}

static void hdf5_keep(void *self, uint64_t bytes)
{
    st_chunk_cache_keep(((struct hdf5 *)self)->cache, bytes);
}

const struct st_source st_source_hdf5 = {
    .scheme = "hdf5",
    .self_size = sizeof(struct hdf5),
    .matches = hdf5_matches,
    .open = hdf5_open,
    .count = hdf5_count,
    .label = hdf5_label,
    .name = hdf5_name,
    .read = hdf5_read,
    .fields = hdf5_fields,
    .split = hdf5_split,
    .memory = hdf5_memory,
    .keep = hdf5_keep,
    .note = hdf5_note,
    .close = hdf5_close,
};
