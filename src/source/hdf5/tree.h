/* tree.h - walks a B-tree of version 1 of an HDF5 file: the index of a data set's chunks, or a group's
 * links
 *
 * The library walks them too, but it trusts what it finds: a node that names one above it never ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_TREE_H
#define ST_SOURCE_HDF5_TREE_H

#include "source/held.h"

enum st_h5_tree_kind { ST_H5_TREE_LINKS, ST_H5_TREE_CHUNKS }; /* as nodes say it */

struct st_h5_tree {
    const struct st_held *file;
    uint64_t base; /* what addresses count from */
    enum st_h5_tree_kind kind;
    uint32_t key_size;
    /* Called for what the lowest nodes name, in their order: `at` is a place in the file. `entry` is
     * where the key stands. */
    int (*leaf)(void *context, const uint8_t *key, uint64_t entry, uint64_t at,
                struct stoker_error *err);
    void *context;
};

/* The root is at `at`, a place in the file. STOKER_ECORRUPT where it is no sound tree; no node is read
 * twice. */
int st_h5_tree_walk(const struct st_h5_tree *tree, uint64_t at, struct stoker_error *err);

#endif
