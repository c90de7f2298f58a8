/* files.c - files listed one by one by the caller
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/kinds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct files {
    uint64_t count;
    char *text;        /* the paths, one after another, each NUL-terminated */
    uint64_t *offsets; /* where each begins */
    int64_t *labels;   /* NULL: all 0 */
};

static uint64_t files_count(const void *self) { return ((const struct files *)self)->count; }

static int64_t files_label(const void *self, uint64_t sample)
{
    const struct files *files = self;
    return files->labels ? files->labels[sample] : 0;
}

static size_t files_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    const struct files *files = self;
    const int length = snprintf(buffer, size, "%s", files->text + files->offsets[sample]);
    return length > 0 ? (size_t)length : 0;
}

static int files_locate(const void *self, uint64_t sample, struct st_extent *out,
                        struct stoker_error *err)
{
    const struct files *files = self;
    const char *path = files->text + files->offsets[sample];
    const size_t size = strlen(path);
    if (size >= sizeof out->path)
        return st_fail_errno(err, ENAMETOOLONG, "%s", path);
    memcpy(out->path, path, size + 1);
    out->memory = NULL;
    out->offset = 0;
    out->length = ST_WHOLE_FILE;
    return 0;
}

static void files_close(void *self)
{
    struct files *files = self;
    free(files->text);
    free(files->offsets);
    free(files->labels);
}

static const struct st_source st_source_files = {
    .scheme = "files",
    .self_size = sizeof(struct files),
    .count = files_count,
    .label = files_label,
    .name = files_name,
    .locate = files_locate,
    .close = files_close,
};

static bool copy_paths(struct files *files, const char *const *paths, uint64_t count)
{
    uint64_t size = 0;
    for (uint64_t i = 0; i < count; i++)
        size += strlen(paths[i]) + 1;
    files->text = st_calloc(size, 1);
    files->offsets = st_calloc(count, sizeof *files->offsets);
    if (!files->text || !files->offsets)
        return false;
    uint64_t at = 0;
    for (uint64_t i = 0; i < count; i++) {
        const size_t bytes = strlen(paths[i]) + 1;
        memcpy(files->text + at, paths[i], bytes);
        files->offsets[i] = at;
        at += bytes;
    }
    files->count = count;
    return true;
}

int st_dataset_from_files(struct stoker_dataset **out, const char *const *paths, const int64_t *labels,
                          uint64_t count, struct stoker_error *err)
{
    for (uint64_t i = 0; i < count; i++)
        if (!paths[i])
            return st_fail(err, STOKER_EINVAL, "sample %llu: its path is NULL", (unsigned long long)i);
    struct stoker_dataset *data = st_dataset_new(&st_source_files);
    struct files *files = data ? data->self : NULL;
    bool copied = data && copy_paths(files, paths, count);
    if (copied && labels && count) {
        files->labels = st_calloc(count, sizeof *labels);
        copied = files->labels != NULL;
        if (copied)
            memcpy(files->labels, labels, count * sizeof *labels);
    }
    if (!copied) {
        st_dataset_drop(data);
        return st_fail(err, STOKER_ENOMEM, "out of memory for a list of %llu files",
                       (unsigned long long)count);
    }
    *out = data;
    return 0;
}
