/* npy.c - one numpy array; its rows are the samples
 *
 * The file is mapped; one that is compressed with gzip or zstd is decompressed into memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/arrays/arrays.h"
#include "source/kinds.h"
#include "source/load.h"
#include "source/text/names.h"

#include <string.h>

static const char *const extensions[] = {".npy", ".npy.gz", ".npy.zst", NULL};

static bool npy_matches(const char *path, const uint8_t *head, size_t size)
{
    return (size >= 6 && !memcmp(head, "\x93NUMPY", 6)) ||
           (size && st_name_has_extension(path, strlen(path), extensions));
}

/* The whole file, mapped or decompressed. */
static int load_file(struct st_arrays *arrays, struct st_bytes *out, uint8_t **memory,
                 struct stoker_error *err)
{
    struct st_held *file = &arrays->file;
    struct st_buffer unpacked = {0};
    *memory = NULL;
    if (!file->size)
        return st_fail(err, STOKER_ECORRUPT, "%s: the file is empty", file->path);
    if (!st_load_is_packed(file)) {
        const int rc = st_held_map(file, err);
        *out = (struct st_bytes){file->map, file->size};
        return rc;
    }
    const int rc = st_load(&unpacked, file, st_arrays_limit(), err);
    if (rc)
        st_buffer_free(&unpacked);
    *memory = unpacked.data;
    *out = (struct st_bytes){unpacked.data, unpacked.size};
    return rc;
}

static int npy_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                    struct stoker_error *err)
{
    struct st_arrays *arrays = self;
    int rc = st_field_list_parse(&arrays->requested, opt->fields ? opt->fields : "row", err);
    if (!rc && arrays->requested.count != 1)
        rc = st_fail(err, STOKER_EINVAL,
                     "%s: fields=%s: an npy file has exactly one field, whose name is arbitrary", path,
                     opt->fields);
    if (!rc)
        rc = st_held_open_any(&arrays->file, path, NULL, opt, err);
    struct st_bytes whole;
    uint8_t *memory;
    if (!rc)
        rc = load_file(arrays, &whole, &memory, err);
    return rc ? rc : st_arrays_add(arrays, whole, memory, &arrays->requested.items[0], path, err);
}

const struct st_source st_source_npy = {
    .scheme = "npy",
    .self_size = sizeof(struct st_arrays),
    .matches = npy_matches,
    .open = npy_open,
    .count = st_arrays_count,
    .label = st_arrays_label,
    .name = st_arrays_name,
    .locate = st_arrays_locate,
    .fields = st_arrays_fields,
    .split = st_arrays_split,
    .close = st_arrays_close,
};
