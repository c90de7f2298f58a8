/* tree.h - shared by the folder and flat sources: samples that are the files of a tree
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TREE_TREE_H
#define ST_SOURCE_TREE_TREE_H

#include "source/index/index.h"
#include "source/source.h"

struct st_tree {
    char *prefix; /* the root as the user gave it, ending in '/' */
    struct st_index index;
};

int st_tree_open(struct st_tree *tree, const char *root, bool classes,
                 const struct stoker_dataset_options *opt, struct stoker_error *err);
/* The extensions in effect, for messages: ".jpg, .png, ...". */
void st_tree_extensions(const struct stoker_dataset_options *opt, char *buffer, size_t size);

/* Functions of st_source that both kinds share. */
uint64_t st_tree_count(const void *self);
size_t st_tree_name(const void *self, uint64_t sample, char *buffer, size_t size);
int st_tree_locate(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err);
void st_tree_close(void *self);

#endif
