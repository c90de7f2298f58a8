/* folder.c - a folder of class folders, as torchvision's ImageFolder reads it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/kinds.h"
#include "source/tree/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists the classes without a sample, as far as they fit: "a, b and 7 more". */
static void list_empty(const struct st_index *index, const bool *used, char *buffer, size_t size)
{
    const size_t reserve = 32; /* for "and 4294967295 more" */
    size_t at = 0;
    uint64_t left_out = 0;
    buffer[0] = '\0';
    for (uint64_t i = 0; i < index->class_count; i++) {
        const char *name = index->text + index->classes[i];
        if (used[i])
            continue;
        if (left_out || at + strlen(name) + 2 + reserve > size)
            left_out++;
        else
            at += (size_t)sprintf(buffer + at, "%s%s", at ? ", " : "", name);
    }
    if (left_out)
        snprintf(buffer + at, size - at, "%s%llu more", at ? " and " : "", (unsigned long long)left_out);
}

static int refuse_empty(const struct st_tree *tree, const struct stoker_dataset_options *opt,
                        struct stoker_error *err)
{
    const struct st_index *index = &tree->index;
    bool *used = st_calloc(index->class_count, sizeof *used);
    if (!used)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", tree->prefix);
    for (uint64_t i = 0; i < index->sample_count; i++)
        used[index->dirs[index->sample_dirs[i] & ~ST_INDEX_SPECIAL].label] = true;
    int rc = 0;
    for (uint64_t i = 0; i < index->class_count && !rc; i++)
        rc = used[i] ? 0 : STOKER_EINVAL;
    if (rc) {
        char empty[500], extensions[200];
        list_empty(index, used, empty, sizeof empty);
        st_tree_extensions(opt, extensions, sizeof extensions);
        st_fail(err, rc, "%.200s: found no valid file for the classes %s. Supported extensions are: %s",
                tree->prefix, empty, extensions);
    }
    free(used);
    return rc;
}

static int folder_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                       struct stoker_error *err)
{
    const int rc = st_tree_open(self, path, true, opt, err);
    return rc || opt->allow_empty ? rc : refuse_empty(self, opt, err);
}

static int64_t folder_label(const void *self, uint64_t sample)
{
    const struct st_index *index = &((const struct st_tree *)self)->index;
    return index->dirs[index->sample_dirs[sample] & ~ST_INDEX_SPECIAL].label;
}

static uint32_t folder_class_count(const void *self)
{
    return (uint32_t)((const struct st_tree *)self)->index.class_count;
}

static const char *folder_class_name(const void *self, uint32_t class)
{
    const struct st_index *index = &((const struct st_tree *)self)->index;
    return index->text + index->classes[class];
}

const struct st_source st_source_folder = {
    .scheme = "folder",
    .self_size = sizeof(struct st_tree),
    .open = folder_open,
    .count = st_tree_count,
    .label = folder_label,
    .name = st_tree_name,
    .locate = st_tree_locate,
    .class_count = folder_class_count,
    .class_name = folder_class_name,
    .close = st_tree_close,
};
