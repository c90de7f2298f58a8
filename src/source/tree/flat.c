/* flat.c - all images below a folder, sorted by path, without classes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/kinds.h"
#include "source/tree/tree.h"

static int flat_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                     struct stoker_error *err)
{
    const int rc = st_tree_open(self, path, false, opt, err);
    if (rc || opt->allow_empty || st_tree_count(self))
        return rc;
    char extensions[200];
    st_tree_extensions(opt, extensions, sizeof extensions);
    return st_fail(err, STOKER_EINVAL, "%s: found no valid file in it. Supported extensions are: %s",
                   path, extensions);
}

const struct st_source st_source_flat = {
    .scheme = "flat",
    .self_size = sizeof(struct st_tree),
    .open = flat_open,
    .count = st_tree_count,
    .label = st_label_zero,
    .name = st_tree_name,
    .locate = st_tree_locate,
    .close = st_tree_close,
};
