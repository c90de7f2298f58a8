/* tree.h - walks a B-tree of version 1 of an HDF5 file: the index of a dataset's chunks, or a group's
 * links
 *
 * The library walks them too, but trusts what it finds: a node that points to an ancestor makes it loop
 * forever.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_TREE_H
#define ST_SOURCE_HDF5_TREE_H

#include "source/held.h"

enum st_h5_tree_kind { ST_H5_TREE_LINKS, ST_H5_TREE_CHUNKS }; /* the values in nodes */

struct st_h5_tree {
    const struct st_held *file;
    uint64_t base; /* addresses are relative to this */
    enum st_h5_tree_kind kind;
    uint32_t key_size;
    /* Called for each entry of the lowest nodes, in order: `at` is the offset that it points to, `entry`
     * the offset of its key. */
    int (*leaf)(void *context, const uint8_t *key, uint64_t entry, uint64_t at,
                struct stoker_error *err);
    void *context;
};

/* The root is at offset `at` in the file. STOKER_ECORRUPT if the tree is invalid; no node is read
 * twice. */
int st_h5_tree_walk(const struct st_h5_tree *tree, uint64_t at, struct stoker_error *err);

#endif
