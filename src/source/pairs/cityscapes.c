/* cityscapes.c - the images of Cityscapes, a folder for each city, with their masks or annotations
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/pairs.h"
#include "source/pairs/partners.h"
#include "source/tree/tree.h"

#include <stdio.h>
#include <stdlib.h>

/* city/NAME_leftImg8bit.png belongs to city/NAME_SUFFIX. */
static int add_image(struct st_pairs *out, const struct st_tree *tree, uint64_t image,
                     struct st_partners *partners, const char *suffix, struct stoker_error *err)
{
    const struct st_index *index = &tree->index;
    const char *folder = index->text + index->dirs[index->sample_dirs[image] & ~ST_INDEX_SPECIAL].path;
    const char *name = index->text + index->names[image], *mark = strstr(name, "_leftImg8bit");
    char *path = NULL, *target = NULL;
    if (name[0] == '.')
        return 0;
    const int stem = (int)(mark ? (size_t)(mark - name) : strlen(name));
    bool good = asprintf(&path, "%s%s", folder, name) >= 0;
    path = good ? path : NULL;
    good = good && asprintf(&target, "%s%.*s_%s", folder, stem, name, suffix) >= 0;
    target = good ? target : NULL;
    good = good && st_pairs_add(out, (struct st_path_parts){tree->prefix, path, ""},
                                (struct st_path_parts){partners->folder, target, ""});
    free(path);
    free(target);
    if (!good)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", tree->prefix);
    st_partners_has(partners, st_pairs_target(out, out->count - 1));
    return 0;
}

int st_pairs_cityscapes(struct st_pairs *out, const char *root, const char *split, const char *mode,
                        const char *suffix, const struct stoker_dataset_options *opt,
                        struct stoker_error *err)
{
    static const char *const any[] = {"", NULL};
    struct stoker_dataset_options all = {
        .size = sizeof all, .threads = opt ? opt->threads : 0, .extensions = any};
    struct st_partners partners = {0};
    struct st_tree tree = {0};
    char *images = NULL, *targets = NULL;
    if (asprintf(&images, "%s/leftImg8bit/%s", root, split) < 0)
        images = NULL;
    if (asprintf(&targets, "%s/%s/%s", root, mode, split) < 0)
        targets = NULL;
    int rc = images && targets ? 0 : st_fail(err, STOKER_ENOMEM, "%s: out of memory", root);
    if (!rc)
        rc = st_tree_open(&tree, images, true, &all, err);
    if (!rc)
        rc = st_partners_open(&partners, targets, NULL, false, opt, err);
    for (uint64_t i = 0; i < tree.index.sample_count && !rc; i++)
        rc = add_image(out, &tree, i, &partners, suffix, err);
    if (!rc)
        rc = st_partners_check(&partners, "file of an image is missing", "files of images are missing",
                               "", err);
    st_partners_close(&partners);
    st_tree_close(&tree);
    free(images);
    free(targets);
    return rc;
}
