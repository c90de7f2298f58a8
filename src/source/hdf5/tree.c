/* tree.c - walks a B-tree of version 1 of an HDF5 file
 *
 * A node is a header ("TREE", its kind, its level, the number of entries, two siblings), followed by
 * alternating keys and addresses, with one more key than addresses. Addresses point to nodes of the
 * level below and, at level 0, to the indexed objects.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/tree.h"
#include "source/little.h"

#include <stdlib.h>
#include <string.h>

enum { LEVELS_MAX = 16, HEAD = 24 };

struct walk {
    const struct st_h5_tree *tree;
    uint64_t bytes; /* total size of nodes so far: they do not overlap, so it cannot exceed the file's */
    struct stoker_error *err;
};

static int damaged(const struct walk *walk, uint64_t at, const char *what)
{
    return st_fail(
        walk->err, STOKER_ECORRUPT,
        "%s: the index of %s is damaged: the node at byte %llu %s; download the file again, or recover "
        "what is left of it with h5repack",
        walk->tree->file->path, walk->tree->kind == ST_H5_TREE_CHUNKS ? "chunks" : "links",
        (unsigned long long)at, what);
}

/* level -1: the root, whose level is not known beforehand. */
static int walk_node(struct walk *walk, uint64_t at, int32_t level);

static int walk_entries(struct walk *walk, const uint8_t *body, uint64_t at, uint32_t entries,
                        int32_t level)
{
    const struct st_h5_tree *tree = walk->tree;
    const uint64_t step = (uint64_t)tree->key_size + 8;
    int rc = 0;
    for (uint32_t i = 0; i < entries && !rc; i++) {
        const uint8_t *key = body + i * step;
        uint64_t child;
        if (!st_add(st_u64(key + tree->key_size), tree->base, &child) || child >= tree->file->size)
            return damaged(walk, at, "points outside the file");
        rc = level ? walk_node(walk, child, level - 1)
                   : tree->leaf(tree->context, key, at + HEAD + i * step, child, walk->err);
    }
    return rc;
}

/* Reads the body of a node whose header is at `at`. */
static int read_body(struct walk *walk, uint64_t at, uint32_t entries, uint8_t **out)
{
    const struct st_held *file = walk->tree->file;
    const uint64_t size = entries * ((uint64_t)walk->tree->key_size + 8) + walk->tree->key_size;
    walk->bytes += HEAD + size;
    if (size > file->size - at - HEAD)
        return damaged(walk, at, "has more entries than fit into the file");
    if (walk->bytes > file->size)
        return damaged(walk, at, "was visited before, or there are more nodes than fit into the file");
    *out = malloc(size ? size : 1);
    return *out ? st_held_read(file, at + HEAD, *out, size, walk->err)
                : st_fail(walk->err, STOKER_ENOMEM, "%s: out of memory", file->path);
}

static int walk_node(struct walk *walk, uint64_t at, int32_t level)
{
    const struct st_held *file = walk->tree->file;
    uint8_t head[HEAD], *body = NULL;
    if (at > file->size || file->size - at < HEAD)
        return damaged(walk, at, "is outside the file");
    int rc = st_held_read(file, at, head, sizeof head, walk->err);
    if (rc)
        return rc;
    if (memcmp(head, "TREE", 4) || head[4] != walk->tree->kind)
        return damaged(walk, at, "is not a node of such a tree");
    if (level < 0 ? head[5] >= LEVELS_MAX : head[5] != level)
        return damaged(walk, at, "has an invalid level");
    const uint32_t entries = st_u16(head + 6);
    rc = read_body(walk, at, entries, &body);
    if (!rc)
        rc = walk_entries(walk, body, at, entries, head[5]);
    free(body);
    return rc;
}

int st_h5_tree_walk(const struct st_h5_tree *tree, uint64_t at, struct stoker_error *err)
{
    struct walk walk = {.tree = tree, .err = err};
    return walk_node(&walk, at, -1);
}
