/* index.c - where the chunks of an HDF5 data set lie in its file
 *
 * The nodes of the tree hold keys (size, filter mask and coordinates of a chunk) and addresses in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/index.h"
#include "source/little.h"

#include <stdlib.h>
#include <string.h>

enum { LEVELS_MAX = 16, NODE_HEADER = 24 };
#define TABLE_MAX (1ull << 26)

bool st_h5_grid_init(struct st_h5_grid *grid)
{
    grid->total = 1;
    for (int32_t i = 0; i < grid->ndim; i++) {
        if (!grid->chunk[i])
            return false;
        grid->count[i] = grid->dims[i] / grid->chunk[i] + (grid->dims[i] % grid->chunk[i] != 0);
        if (!st_mul(grid->total, grid->count[i], &grid->total) || grid->total > TABLE_MAX)
            return false;
    }
    return true;
}

static int damaged(const struct st_held *file, const char *what, struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT, "%s: %s", file->path, what);
}

struct walk {
    struct st_h5_chunk *chunks;
    const struct st_h5_grid *grid;
    const struct st_held *file;
    uint64_t base, found;
    uint64_t nodes; /* read so far; no tree has more than chunks, and its branches */
    struct stoker_error *err;
};

static int put_chunk(struct walk *walk, const uint8_t *key, uint64_t at)
{
    const struct st_h5_grid *grid = walk->grid;
    uint64_t number = 0;
    for (int32_t i = 0; i < grid->ndim; i++) {
        const uint64_t place = st_u64(key + 8 + 8 * i);
        if (place % grid->chunk[i] || place / grid->chunk[i] >= grid->count[i])
            return 0; /* left over from when the data set was larger */
        number = number * grid->count[i] + place / grid->chunk[i];
    }
    struct st_h5_chunk *chunk = &walk->chunks[number];
    *chunk = (struct st_h5_chunk){.at = at, .size = st_u32(key), .mask = st_u32(key + 4)};
    if (at > walk->file->size || chunk->size > walk->file->size - at)
        return damaged(walk->file, "a chunk lies outside of the file; was it cut short?", walk->err);
    walk->found++;
    return 0;
}

/* `at` is a place in the file. */
static int walk_node(struct walk *walk, uint64_t at, uint32_t level_above);

static int walk_children(struct walk *walk, const uint8_t *body, uint32_t entries, uint32_t level)
{
    const uint64_t key_size = 8 + 8 * ((uint64_t)walk->grid->ndim + 1);
    int rc = 0;
    for (uint32_t i = 0; i < entries && !rc; i++) {
        const uint8_t *key = body + i * (key_size + 8);
        uint64_t child;
        if (!st_add(st_u64(key + key_size), walk->base, &child))
            return damaged(walk->file, "an index of chunks leads outside of the file", walk->err);
        rc = level ? walk_node(walk, child, level) : put_chunk(walk, key, child);
    }
    return rc;
}

static int walk_node(struct walk *walk, uint64_t at, uint32_t level_above)
{
    uint8_t head[NODE_HEADER];
    if (++walk->nodes > 2 * walk->grid->total + LEVELS_MAX)
        return damaged(walk->file, "an index of chunks without end", walk->err);
    int rc = st_held_read(walk->file, at, head, sizeof head, walk->err);
    if (rc)
        return rc;
    const uint32_t level = head[5], entries = st_u16(head + 6);
    if (memcmp(head, "TREE", 4) || head[4] != 1 || level >= level_above || level >= LEVELS_MAX)
        return damaged(walk->file, "an index of chunks is damaged", walk->err);
    const uint64_t size = entries * (16 + 8 * ((uint64_t)walk->grid->ndim + 1));
    uint8_t *body = malloc(size ? size : 1);
    if (!body)
        return st_fail(walk->err, STOKER_ENOMEM, "%s: out of memory", walk->file->path);
    rc = st_held_read(walk->file, at + NODE_HEADER, body, size, walk->err);
    if (!rc)
        rc = walk_children(walk, body, entries, level);
    free(body);
    return rc;
}

int st_h5_index(struct st_h5_chunk *chunks, const struct st_h5_grid *grid, const struct st_held *file,
                uint64_t base, const struct st_h5_layout *layout, uint64_t *found,
                struct stoker_error *err)
{
    struct walk walk = {.chunks = chunks, .grid = grid, .file = file, .base = base, .err = err};
    *found = 0;
    if (!layout->tree)
        return st_fail(err, STOKER_EUNSUPPORTED, "%s: an index of chunks of another kind", file->path);
    const int rc = layout->at == ST_H5_UNWRITTEN ? 0 : walk_node(&walk, layout->at, LEVELS_MAX);
    *found = walk.found;
    return rc;
}
