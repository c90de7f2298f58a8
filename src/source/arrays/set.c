/* set.c - the npy files of a pack as one dataset: row i of each is sample i
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/arrays/arrays.h"
#include "source/index/scan.h"
#include "source/kinds.h"
#include "source/packs/manifest.h"

#include <stdio.h>
#include <string.h>

struct array_set {
    struct st_arrays
        arrays; /* must be first: st_arrays_* are called with this struct. Has the first file */
    struct st_held others[ST_FIELDS_MAX];
    uint64_t ends[ST_FIELDS_MAX]; /* samples use the other files up to here */
};

static int set_locate(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err)
{
    const struct array_set *set = self;
    int rc = STOKER_OK;
    for (uint32_t i = 1; i < set->arrays.count && !rc; i++)
        rc = st_held_check(&set->others[i], set->ends[i], err);
    return rc ? rc : st_arrays_locate(&set->arrays, sample, out, err);
}

static void set_close(void *self)
{
    struct array_set *set = self;
    for (uint32_t i = 0; i < ST_FIELDS_MAX; i++)
        st_held_close(&set->others[i]);
    st_arrays_close(&set->arrays);
}

static const struct st_source array_set_source = {
    .scheme = "npy",
    .self_size = sizeof(struct array_set),
    .count = st_arrays_count,
    .label = st_arrays_label,
    .name = st_arrays_name,
    .locate = set_locate,
    .fields = st_arrays_fields,
    .split = st_arrays_split,
    .close = set_close,
};

static int add_file(struct array_set *set, const char *folder, const struct st_field_request *request,
                    struct stoker_error *err)
{
    char path[PATH_MAX], name[NAME_MAX];
    struct st_arrays *arrays = &set->arrays;
    const uint32_t index = arrays->count;
    struct st_held *file = index ? &set->others[index] : &arrays->file;
    const uint64_t end =
        arrays->mapped_end; /* of the first file only: the others are checked by `ends` */
    snprintf(name, sizeof name, "%.200s.npy", request->name);
    int rc = st_path_join(path, folder, "/", name)
                 ? st_held_open(file, path, err)
                 : st_fail(err, STOKER_EINVAL, "%.200s...: path too long", folder);
    if (!rc && !file->size)
        rc = st_fail(err, STOKER_ECORRUPT, "%s: the file is empty", path);
    if (!rc)
        rc = st_held_map(file, err);
    if (!rc)
        rc = st_arrays_add(arrays, (struct st_bytes){file->map, file->size}, NULL, request, path, err);
    if (index)
        arrays->mapped_end = end;
    set->ends[index] = file->size;
    return rc;
}

/* The names of all files without ".npy": "image,label". */
static int all_fields(const struct st_pack *manifest, char *out, size_t size,
                      struct stoker_error *err)
{
    int used =
        snprintf(out, size, "%.*s", (int)strlen(manifest->shards[0].name) - 4, manifest->shards[0].name);
    for (uint32_t i = 0; i < manifest->beside.count && used < (int)size; i++) {
        const char *name = manifest->beside.files[i].name;
        if (strlen(name) < 5)
            return st_fail(err, STOKER_ECORRUPT, "the manifest lists '%s', which is not an npy file",
                           name);
        used += snprintf(out + used, size - (size_t)used, ",%.*s", (int)strlen(name) - 4, name);
    }
    return STOKER_OK;
}

int st_arrays_open_set(struct stoker_dataset **out, const char *folder,
                       const struct st_pack *manifest, const char *fields,
                       struct stoker_error *err)
{
    char all[ST_FIELDS_MAX * 64];
    int rc = fields ? STOKER_OK : all_fields(manifest, all, sizeof all, err);
    if (rc)
        return rc;
    *out = st_dataset_new(&array_set_source);
    if (!*out)
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    struct array_set *set = (*out)->self;
    rc = st_field_list_parse(&set->arrays.requested, fields ? fields : all, err);
    for (uint32_t i = 0; i < set->arrays.requested.count && !rc; i++)
        rc = add_file(set, folder, &set->arrays.requested.items[i], err);
    if (rc) {
        st_dataset_drop(*out);
        *out = NULL;
    }
    return rc;
}
