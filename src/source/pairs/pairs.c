/* pairs.c - images and the files that belong to them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/pairs.h"

#include <stdio.h>
#include <stdlib.h>

/* Where the path begins in the text; UINT64_MAX: out of memory. */
static uint64_t add_path(struct st_buffer *text, struct st_path_parts path)
{
    const char *const parts[] = {path.folder, path.name, path.ending};
    const uint64_t from = text->size;
    uint64_t size = 1;
    for (int i = 0; i < 3 && path.name; i++)
        size += strlen(parts[i]);
    if (!st_buffer_keep(text, from + size))
        return UINT64_MAX;
    char *to = (char *)text->data + from;
    *to = '\0';
    for (int i = 0; i < 3 && path.name; i++)
        to = stpcpy(to, parts[i]);
    text->size += size;
    return from;
}

struct st_pair *st_pairs_add(struct st_pairs *pairs, struct st_path_parts image,
                             struct st_path_parts target)
{
    if (pairs->count == pairs->room) {
        const uint64_t room = pairs->room + pairs->room / 2 + 64;
        struct st_pair *grown = st_grow(pairs->list, room, sizeof *grown);
        if (!grown)
            return NULL;
        pairs->list = grown;
        pairs->room = room;
    }
    struct st_pair *pair = &pairs->list[pairs->count];
    *pair = (struct st_pair){add_path(&pairs->text, image), 0, 0, 0};
    if (pair->image != UINT64_MAX)
        pair->target = add_path(&pairs->text, target);
    if (pair->image == UINT64_MAX || pair->target == UINT64_MAX)
        return NULL;
    pairs->count++;
    return pair;
}

char *st_pairs_folder(const char *root, const char *folder)
{
    char *path;
    const size_t size = strlen(root);
    const char *slash = size && root[size - 1] == '/' ? "" : "/";
    return asprintf(&path, "%s%s%s%s", root, slash, folder ? folder : "", folder ? "/" : "") < 0 ? NULL
                                                                                                 : path;
}

int st_pairs_files(struct stoker_dataset **out, const struct st_pairs *pairs, bool targets,
                   struct stoker_error *err)
{
    const char **paths = st_calloc(pairs->count, sizeof *paths);
    int64_t *labels = st_calloc(pairs->count, sizeof *labels);
    int rc = 0;
    if (!paths || !labels)
        rc = st_fail(err, STOKER_ENOMEM, "no memory for %llu paths", (unsigned long long)pairs->count);
    for (uint64_t k = 0; !rc && k < pairs->count; k++) {
        paths[k] = targets ? st_pairs_target(pairs, k) : st_pairs_image(pairs, k);
        labels[k] = pairs->list[k].label;
    }
    if (!rc)
        rc = st_dataset_from_files(out, paths, labels, pairs->count, err);
    free(paths);
    free(labels);
    return rc;
}

int st_pairs_keep_classes(struct stoker_dataset *data, struct st_cells *classes,
                          struct stoker_error *err)
{
    data->classes = st_calloc(1, sizeof *data->classes);
    if (!data->classes)
        return st_fail(err, STOKER_ENOMEM, "no memory for the names of classes");
    *data->classes = *classes;
    *classes = (struct st_cells){0};
    return 0;
}

void st_pairs_free(struct st_pairs *pairs)
{
    free(pairs->list);
    st_buffer_free(&pairs->text);
    st_cells_free(&pairs->classes);
    *pairs = (struct st_pairs){0};
}
