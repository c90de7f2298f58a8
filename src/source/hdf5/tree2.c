/* tree2.c - walks a B-tree of version 2 of an HDF5 file
 *
 * A node has a header of 6 bytes ("BTIN", or "BTLF" at depth 0; version; kind), its records, and above
 * depth 0 one more child than records: an address, the child's number of records, and above depth 1 the
 * number in its whole subtree. These numbers take as many bytes as the largest possible one, which
 * follows from the node size. Checksums are left to the library, which verifies them first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/tree2.h"
#include "source/little.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD = 38, NODE_HEAD = 6, SUM = 4, NODE_LEAST = 64, NODE_MOST = 1 << 24, DEPTH_MAX = 16 };

struct walk {
    const struct st_held *file;
    uint64_t base;
    st_h5_record *visit;
    void *context;
    uint32_t kind, record, count_width;
    uint64_t node, bytes; /* the size of a node, and the total so far: nodes do not overlap */
    uint32_t total_width[DEPTH_MAX + 1], most[DEPTH_MAX + 1]; /* per depth; most: records that fit */
    struct stoker_error *err;
};

static int damaged(const struct walk *walk, uint64_t at, const char *what)
{
    return st_fail(walk->err, STOKER_ECORRUPT,
                   "%s: an index of links or chunks is damaged: byte %llu: %s; download the file again, "
                   "or recover what is left of it with h5repack",
                   walk->file->path, (unsigned long long)at, what);
}

static uint32_t width_of(uint64_t most)
{
    uint32_t width = 1;
    while (width < 8 && most >> (8 * width))
        width++;
    return width;
}

/* Computes how many records fit into a node of each depth; false if none. */
static bool plan(struct walk *walk, uint32_t depth)
{
    uint64_t total = walk->most[0] = (uint32_t)((walk->node - NODE_HEAD - SUM) / walk->record);
    walk->count_width = width_of(total);
    for (uint32_t d = 1; d <= depth; d++) {
        const uint64_t child = 8 + walk->count_width + walk->total_width[d - 1];
        if (walk->node < NODE_HEAD + SUM + child)
            return false;
        walk->most[d] = (uint32_t)((walk->node - NODE_HEAD - SUM - child) / (walk->record + child));
        if (!st_mul(total, walk->most[d] + 1ull, &total) || !st_add(total, walk->most[d], &total))
            return false;
        walk->total_width[d] = width_of(total);
    }
    return walk->most[depth] > 0;
}

static int walk_node(struct walk *walk, uint64_t address, uint64_t count, uint32_t depth);

static int walk_children(struct walk *walk, const uint8_t *children, uint64_t count, uint32_t depth)
{
    const uint32_t step = 8 + walk->count_width + walk->total_width[depth - 1];
    int rc = 0;
    for (uint64_t i = 0; i <= count && !rc; i++) {
        const uint8_t *child = children + i * step;
        uint64_t records = 0;
        for (uint32_t k = walk->count_width; k > 0; k--)
            records = records << 8 | child[8 + k - 1];
        rc = walk_node(walk, st_u64(child), records, depth - 1);
    }
    return rc;
}

static int walk_body(struct walk *walk, const uint8_t *body, uint64_t at, uint64_t count, uint32_t depth)
{
    int rc = 0;
    if (memcmp(body, depth ? "BTIN" : "BTLF", 4) || body[5] != walk->kind)
        return damaged(walk, at, "expected a tree node");
    for (uint64_t i = 0; i < count && !rc; i++) {
        const uint64_t place = NODE_HEAD + i * walk->record;
        rc = walk->visit(walk->context, walk->kind, body + place, walk->record, at + place, walk->err);
    }
    return rc || !depth ? rc
                        : walk_children(walk, body + NODE_HEAD + count * walk->record, count, depth);
}

static int walk_node(struct walk *walk, uint64_t address, uint64_t count, uint32_t depth)
{
    const struct st_held *file = walk->file;
    uint64_t at;
    if (!st_add(walk->base, address, &at) || at > file->size || file->size - at < walk->node)
        return damaged(walk, at, "a node is outside the file");
    walk->bytes += walk->node;
    if (count > walk->most[depth] || walk->bytes > file->size)
        return damaged(walk, at, "a node states more records than fit, or was visited before");
    uint8_t *body = malloc(walk->node);
    int rc = body ? st_held_read(file, at, body, walk->node, walk->err)
                  : st_fail(walk->err, STOKER_ENOMEM, "%s: out of memory", file->path);
    if (!rc)
        rc = walk_body(walk, body, at, count, depth);
    free(body);
    return rc;
}

int st_h5_tree2_walk(const struct st_held *file, uint64_t base, uint64_t address, st_h5_record *visit,
                     void *context, struct stoker_error *err)
{
    struct walk walk = {.file = file, .base = base, .visit = visit, .context = context, .err = err};
    uint8_t head[HEAD];
    uint64_t at;
    if (!st_add(base, address, &at) || at > file->size || file->size - at < HEAD)
        return damaged(&walk, at, "the tree's header is outside the file");
    const int rc = st_held_read(file, at, head, sizeof head, err);
    if (rc)
        return rc;
    const uint32_t depth = st_u16(head + 12), count = st_u16(head + 24);
    const uint64_t root = st_u64(head + 16);
    walk.kind = head[5];
    walk.node = st_u32(head + 6);
    walk.record = st_u16(head + 10);
    if (memcmp(head, "BTHD", 4) || walk.node < NODE_LEAST || walk.node > NODE_MOST || !walk.record ||
        depth > DEPTH_MAX || !plan(&walk, depth))
        return damaged(&walk, at, "the tree's header is invalid");
    return root == UINT64_MAX && !count ? 0 : walk_node(&walk, root, count, depth);
}
