/* index.c - finds the chunks of an HDF5 dataset in its file
 *
 * A key of the tree contains the size, the filter mask and the coordinates of a chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/index.h"
#include "source/hdf5/tree.h"
#include "source/little.h"

#include <string.h>

/* What filters may add to an incompressible chunk, besides doubling its size. */
enum { FILTER_EXTRA = 65536 };
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

struct walk {
    struct st_h5_chunk *chunks; /* NULL: only check the tree */
    const struct st_h5_grid *grid;
    const struct st_h5_layout *layout;
    const struct st_held *file;
    uint64_t bytes;                   /* size of an unfiltered chunk */
    uint64_t before[ST_DIMS_MAX + 1]; /* the coordinates of the previous chunk */
    uint64_t seen;
};

static int damaged(const struct walk *walk, uint64_t entry, const char *what, struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT,
                   "%s: the chunk index is damaged: byte %llu: %s; download the file again, or recover "
                   "what is left of it with h5repack",
                   walk->file->path, (unsigned long long)entry, what);
}

/* Keys must ascend: among equal ones the library would find any. */
static int check_coordinates(struct walk *walk, const uint8_t *key, uint64_t entry,
                             struct stoker_error *err)
{
    int order = walk->seen ? 0 : 1;
    for (int32_t i = 0; i < walk->layout->ndim; i++) {
        const uint64_t place = st_u64(key + 8 + 8 * i);
        if (place % walk->layout->chunk[i])
            return damaged(walk, entry, "a chunk overlaps another", err);
        if (!order)
            order = (place > walk->before[i]) - (place < walk->before[i]);
        walk->before[i] = place;
    }
    return order > 0 ? 0 : damaged(walk, entry, "a chunk is out of order", err);
}

/* The library allocates as much memory as the key states, and may read past it, up to the size of a
 * chunk. */
static int check_size(const struct walk *walk, const struct st_h5_chunk *chunk, uint64_t entry,
                      struct stoker_error *err)
{
    const struct st_h5_layout *layout = walk->layout;
    const uint32_t all = layout->filter_count < 32 ? (1u << layout->filter_count) - 1 : UINT32_MAX;
    const bool plain = !layout->filters_unknown && (chunk->mask & all) == all;
    if (chunk->at > walk->file->size || chunk->size > walk->file->size - chunk->at)
        return damaged(walk, entry, "a chunk is outside the file, which may be truncated", err);
    if (plain ? chunk->size != walk->bytes : chunk->size > 2 * walk->bytes + FILTER_EXTRA)
        return damaged(walk, entry, "a chunk has an impossible size", err);
    return 0;
}

static int visit_chunk(void *context, const uint8_t *key, uint64_t entry, uint64_t at,
                       struct stoker_error *err)
{
    struct walk *walk = context;
    const struct st_h5_grid *grid = walk->grid;
    const struct st_h5_chunk chunk = {.at = at, .size = st_u32(key), .mask = st_u32(key + 4)};
    int rc = check_coordinates(walk, key, entry, err);
    if (!rc)
        rc = check_size(walk, &chunk, entry, err);
    walk->seen++;
    uint64_t number = 0;
    for (int32_t i = 0; walk->chunks && i < grid->ndim; i++) {
        const uint64_t place = walk->before[i] / grid->chunk[i];
        if (rc || place >= grid->count[i])
            return rc; /* left over from when the dataset was larger */
        number = number * grid->count[i] + place;
    }
    if (!rc && walk->chunks)
        walk->chunks[number] = chunk;
    return rc;
}

int st_h5_index(struct st_h5_chunk *chunks, const struct st_h5_grid *grid, const struct st_held *file,
                uint64_t base, const struct st_h5_layout *layout, struct stoker_error *err)
{
    struct walk walk = {
        .chunks = chunks, .grid = grid, .layout = layout, .file = file, .bytes = layout->unit};
    const struct st_h5_tree tree = {.file = file,
                                    .base = base,
                                    .kind = ST_H5_TREE_CHUNKS,
                                    .key_size = 8 + 8 * ((uint32_t)layout->ndim + 1),
                                    .leaf = visit_chunk,
                                    .context = &walk};
    for (int32_t i = 0; i < layout->ndim; i++)
        if (!st_mul(walk.bytes, layout->chunk[i], &walk.bytes) || walk.bytes > UINT32_MAX)
            return st_fail(
                err, STOKER_ECORRUPT,
                "%s: states chunks of more than 4 GiB, which HDF5 does not allow: it is damaged",
                file->path);
    return layout->at == ST_H5_UNWRITTEN ? 0 : st_h5_tree_walk(&tree, layout->at, err);
}
