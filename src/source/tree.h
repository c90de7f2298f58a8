/* tree.h - what the folder and the flat source share: samples that are the files of a tree
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TREE_H
#define ST_SOURCE_TREE_H

#include "source/index.h"
#include "source/source.h"

struct st_tree {
    char *prefix; /* the root as the user wrote it, with a '/' at its end */
    struct st_index index;
};

int st_tree_open(struct st_tree *tree, const char *root, bool classes,
                 const struct stoker_dataset_options *opt, struct stoker_error *err);
/* ".jpg, .png, ..." of the options, for messages. */
void st_tree_extensions(const struct stoker_dataset_options *opt, char *buffer, size_t size);

/* The functions of a source that do not depend on the kind. */
uint64_t st_tree_count(const void *self);
size_t st_tree_name(const void *self, uint64_t sample, char *buffer, size_t size);
int st_tree_locate(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err);
void st_tree_close(void *self);

#endif
