/* stems.c - images and targets in two folders, with the same names but for the extension
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/pairs.h"
#include "source/pairs/partners.h"
#include "source/tree/tree.h"

#include <stdio.h>
#include <stdlib.h>

/* The key of the image's target: its path without the extension, with the suffix. */
static bool make_key(struct st_buffer *out, const char *image, const char *suffix)
{
    const char *slash = strrchr(image, '/'), *name = slash ? slash + 1 : image,
               *dot = strrchr(name, '.');
    const size_t size = dot && dot > name ? (size_t)(dot - image) : strlen(image);
    if (!st_buffer_reserve(out, size + strlen(suffix) + 1))
        return false;
    memcpy(out->data, image, size);
    strcpy((char *)out->data + size, suffix);
    return true;
}

static int add_image(struct st_pairs *out, const struct st_tree *tree, uint64_t image,
                     struct st_partners *partners, const struct st_stem_options *how,
                     struct st_buffer *key, struct stoker_error *err)
{
    const struct st_index *index = &tree->index;
    const char *folder = index->text + index->dirs[index->sample_dirs[image] & ~ST_INDEX_SPECIAL].path;
    char path[PATH_MAX];
    bool more = false;
    if (!st_path_join(path, folder, index->text + index->names[image], ""))
        return st_fail(err, STOKER_EIO, "%s%.300s...: the path is too long", tree->prefix, folder);
    if (!make_key(key, path, how->suffix ? how->suffix : ""))
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", tree->prefix);
    const char *target = st_partners_find(partners, (const char *)key->data, &more);
    if (more)
        return st_fail(err, STOKER_EINVAL,
                       "%.300s: several files belong to the image %.300s: %.300s and others",
                       partners->folder, path, target);
    if (!target && !how->optional)
        st_partners_miss(partners, path);
    if (!st_pairs_add(out, (struct st_path_parts){tree->prefix, path, ""},
                      (struct st_path_parts){partners->folder, target, ""}))
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", tree->prefix);
    return 0;
}

int st_pairs_stems(struct st_pairs *out, const char *images, const char *targets,
                   const struct st_stem_options *how, const struct stoker_dataset_options *opt,
                   struct stoker_error *err)
{
    struct stoker_dataset_options plain = {.size = sizeof plain};
    struct st_partners partners = {0};
    struct st_tree tree = {0};
    struct st_buffer key = {0};
    int rc = st_tree_open(&tree, images, false, opt ? opt : &plain, err);
    if (!rc)
        rc = st_partners_open(&partners, targets, how->extensions, true, opt, err);
    for (uint64_t i = 0; i < tree.index.sample_count && !rc; i++)
        rc = add_image(out, &tree, i, &partners, how, &key, err);
    if (!rc && !out->count)
        rc = st_fail(err, STOKER_EINVAL, "%s: found no images in it", images);
    if (!rc)
        rc = st_partners_check(&partners, "image has no file here", "images have no file here",
                               "Names must be the same but for the extension", err);
    st_buffer_free(&key);
    st_partners_close(&partners);
    st_tree_close(&tree);
    return rc;
}
