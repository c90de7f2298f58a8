/* npz.c - numpy arrays in a zip archive: row i of each is sample i
 *
 * Stored arrays (numpy.savez) are used in place in the mapped file. Deflated ones
 * (numpy.savez_compressed) do not allow access to single rows, so they are all inflated at open.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/arrays/arrays.h"
#include "source/kinds.h"
#include "source/text/names.h"
#include "source/zip/directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct npz {
    struct st_arrays arrays; /* must be first: st_arrays_* are called with this struct */
    struct st_zip zip;
    uint64_t inflated;
};

static const char *const npy_extension[] = {".npy", NULL};
static const char *const npz_extension[] = {".npz", NULL};

static bool npz_matches(const char *path, const uint8_t *head, size_t size)
{
    (void)head;
    return size && st_name_has_extension(path, strlen(path), npz_extension);
}

static const struct st_zip_member *member_of(const struct st_zip *zip, const char *field)
{
    const size_t size = strlen(field);
    for (uint64_t i = 0; i < zip->count; i++) {
        const char *name = st_zip_name(zip, &zip->members[i]);
        if (!strncmp(name, field, size) && (!name[size] || !strcmp(name + size, ".npy")))
            return &zip->members[i];
    }
    return NULL;
}

/* Requests all arrays of the archive in order; strips ".npy" from the member names. */
static int request_all(struct npz *npz, const char *path, struct stoker_error *err)
{
    struct st_field_list *list = &npz->arrays.requested;
    for (uint64_t i = 0; i < npz->zip.count; i++) {
        char *name = npz->zip.text + npz->zip.members[i].name;
        const size_t size = strlen(name);
        if (!st_name_has_extension(name, size, npy_extension))
            continue;
        if (list->count == ST_FIELDS_MAX)
            return st_fail(err, STOKER_EINVAL,
                           "%s: contains more than %d arrays; select some with fields=", path,
                           ST_FIELDS_MAX);
        name[size - 4] = '\0';
        list->items[list->count++].name = name;
    }
    if (!list->count)
        return st_fail(err, STOKER_EINVAL, "%s: contains no arrays", path);
    return 0;
}

static int inflate_array(struct npz *npz, const struct st_zip_member *member, struct st_bytes packed,
                         struct st_bytes *out, struct stoker_error *err)
{
    if (member->size > st_arrays_limit() || npz->inflated > st_arrays_limit() - member->size)
        return st_fail(
            err, STOKER_ELIMIT,
            "%s: would take %llu bytes decompressed, and all arrays together more than half of the "
            "memory; save it uncompressed (numpy.savez)",
            st_zip_name(&npz->zip, member), (unsigned long long)member->size);
    uint8_t *bytes = malloc(member->size ? member->size : 1);
    if (!bytes)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", st_zip_name(&npz->zip, member));
    npz->inflated += member->size;
    const int rc = st_zip_unpack(&npz->zip, member, packed, bytes, err);
    if (rc)
        free(bytes);
    else
        *out = (struct st_bytes){bytes, member->size};
    return rc;
}

static int no_array(const struct npz *npz, const char *name, struct stoker_error *err)
{
    struct st_name_list has = {0};
    for (uint64_t i = 0; i < npz->zip.count && i < sizeof has.text; i++) {
        const char *member = st_zip_name(&npz->zip, &npz->zip.members[i]);
        const size_t size = strlen(member);
        st_name_list_add(&has, member,
                         size - (st_name_has_extension(member, size, npy_extension) ? 4 : 0));
    }
    return st_fail(err, STOKER_EINVAL, "fields: there is no array %s; the file contains %s", name,
                   has.text);
}

static int add_array(struct npz *npz, const struct st_field_request *request, struct stoker_error *err)
{
    const struct st_held *file = &npz->arrays.file;
    const struct st_zip_member *member = member_of(&npz->zip, request->name);
    struct st_bytes npy;
    if (!member)
        return no_array(npz, request->name, err);
    int rc = st_zip_readable(&npz->zip, member, err);
    if (!rc)
        rc = st_zip_find(&npz->zip, member, (struct st_bytes){file->map + member->at, member->room},
                         &npy, err);
    uint8_t *memory = NULL;
    if (!rc && member->method == ST_ZIP_DEFLATED) {
        rc = inflate_array(npz, member, npy, &npy, err);
        memory = rc ? NULL : (uint8_t *)(uintptr_t)npy.data;
    }
    return rc ? rc : st_arrays_add(&npz->arrays, npy, memory, request, request->name, err);
}

static int npz_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                    struct stoker_error *err)
{
    struct npz *npz = self;
    struct st_field_list *list = &npz->arrays.requested;
    int rc = st_field_list_parse(list, opt->fields, err);
    if (!rc)
        rc = st_held_open_any(&npz->arrays.file, path, NULL, opt, err);
    if (!rc)
        rc = st_zip_open(&npz->zip, &npz->arrays.file, err);
    if (!rc)
        rc = st_held_map(&npz->arrays.file, err);
    if (!rc && !list->count)
        rc = request_all(npz, path, err);
    for (uint32_t k = 0; !rc && k < list->count; k++) {
        rc = add_array(npz, &list->items[k], err);
        if (rc)
            st_fail_in(err, rc, path);
    }
    return rc;
}

static void npz_close(void *self)
{
    struct npz *npz = self;
    st_zip_close(&npz->zip);
    st_arrays_close(&npz->arrays);
}

const struct st_source st_source_npz = {
    .scheme = "npz",
    .self_size = sizeof(struct npz),
    .matches = npz_matches,
    .open = npz_open,
    .count = st_arrays_count,
    .label = st_arrays_label,
    .name = st_arrays_name,
    .locate = st_arrays_locate,
    .fields = st_arrays_fields,
    .split = st_arrays_split,
    .close = npz_close,
};
