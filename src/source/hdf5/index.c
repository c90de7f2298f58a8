/* index.c - where the chunks of an HDF5 data set lie in its file
 *
 * An object header is a list of messages, in one block or in several that continue each other. Version 1
 * has 8 bytes before each message; version 2 ("OHDR") has 4 or 6. The layout message names the root of
 * the tree, whose nodes hold keys (size, filter mask and coordinates of a chunk) and addresses in turn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/index.h"
#include "source/little.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_MAX = 64,
    BLOCK_MAX = 1 << 20,
    LEVELS_MAX = 16,
    NODE_HEADER = 24,
    MESSAGE_LAYOUT = 8,
    MESSAGE_CONTINUATION = 16,
    LAYOUT_CHUNKED = 2,
};
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

/* ---- the object header -------------------------------------------------------------------------- */

struct header {
    const struct st_held *file;
    uint64_t base;
    struct stoker_error *err;
    bool second;     /* version 2 */
    bool with_order; /* its messages have 2 bytes more */
    uint32_t blocks;
    uint64_t tree; /* what is looked for */
    bool found;
};

static int damaged(const struct st_held *file, const char *what, struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT, "%s: %s", file->path, what);
}

static int other_kind(struct header *header)
{
    return st_fail(header->err, STOKER_EUNSUPPORTED, "%s: an index of chunks of another kind",
                   header->file->path);
}

static int read_block(struct header *header, uint64_t at, uint64_t size);

/* One message's data. */
static int read_message(struct header *header, uint32_t type, const uint8_t *data, uint64_t size)
{
    if (type == MESSAGE_CONTINUATION && size >= 16)
        return read_block(header, st_u64(data), st_u64(data + 8));
    if (type != MESSAGE_LAYOUT)
        return 0;
    if (size < 11 || data[0] != 3 || data[1] != LAYOUT_CHUNKED)
        return other_kind(header);
    header->tree = st_u64(data + 3);
    header->found = true;
    return 0;
}

static int read_messages(struct header *header, const uint8_t *at, uint64_t left)
{
    const uint64_t head = header->second ? (header->with_order ? 6 : 4) : 8;
    while (left >= head && !header->found) {
        const uint32_t type = header->second ? at[0] : st_u16(at);
        const uint64_t size = header->second ? st_u16(at + 1) : st_u16(at + 2);
        if (size > left - head)
            return damaged(header->file, "a message of an object header is too long", header->err);
        const int rc = read_message(header, type, at + head, size);
        if (rc)
            return rc;
        at += head + size;
        left -= head + size;
    }
    return 0;
}

/* A block that continues a header; in version 2 it has a mark in front and a checksum behind. */
static int read_block(struct header *header, uint64_t at, uint64_t size)
{
    uint64_t from;
    if (++header->blocks > BLOCKS_MAX || size > BLOCK_MAX || !st_add(at, header->base, &from))
        return damaged(header->file, "an object header without end", header->err);
    uint8_t *block = malloc(size ? size : 1);
    if (!block)
        return st_fail(header->err, STOKER_ENOMEM, "%s: out of memory", header->file->path);
    int rc = st_held_read(header->file, from, block, size, header->err);
    if (!rc && header->second)
        rc = size >= 8 && !memcmp(block, "OCHK", 4)
                 ? read_messages(header, block + 4, size - 8)
                 : damaged(header->file, "a continued object header is damaged", header->err);
    else if (!rc)
        rc = read_messages(header, block, size);
    free(block);
    return rc;
}

/* Reads the first block, whose size stands in front of it. */
static int read_header(struct header *header, uint64_t at)
{
    uint8_t head[64] = {0}; /* the longest form of what is in front */
    uint64_t from;
    if (!st_add(at, header->base, &from) || from > header->file->size)
        return damaged(header->file, "an object header lies outside of the file", header->err);
    const uint64_t there =
        header->file->size - from < sizeof head ? header->file->size - from : sizeof head;
    int rc = st_held_read(header->file, from, head, there, header->err);
    if (rc)
        return rc;
    uint64_t skip = 16, size = st_u32(head + 8);
    if (!memcmp(head, "OHDR", 4)) {
        const uint8_t flags = head[5];
        const uint32_t width = 1u << (flags & 3);
        const uint32_t place = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
        header->second = true;
        header->with_order = (flags & 4) != 0;
        size = 0;
        for (uint32_t i = width; i > 0; i--)
            size = size << 8 | head[place + i - 1];
        skip = place + width;
    } else if (head[0] != 1) {
        return other_kind(header);
    }
    if (size > BLOCK_MAX)
        return damaged(header->file, "an object header is too large", header->err);
    uint8_t *block = malloc(size ? size : 1);
    if (!block)
        return st_fail(header->err, STOKER_ENOMEM, "%s: out of memory", header->file->path);
    rc = st_held_read(header->file, from + skip, block, size, header->err);
    if (!rc)
        rc = read_messages(header, block, size);
    free(block);
    return !rc && !header->found ? other_kind(header) : rc;
}

/* ---- the tree ----------------------------------------------------------------------------------- */

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
    *chunk = (struct st_h5_chunk){.size = st_u32(key), .mask = st_u32(key + 4)};
    if (!st_add(at, walk->base, &chunk->at) || chunk->at > walk->file->size ||
        chunk->size > walk->file->size - chunk->at)
        return damaged(walk->file, "a chunk lies outside of the file; was it cut short?", walk->err);
    walk->found++;
    return 0;
}

static int walk_node(struct walk *walk, uint64_t at, uint32_t level_above);

static int walk_children(struct walk *walk, const uint8_t *body, uint32_t entries, uint32_t level)
{
    const uint64_t key_size = 8 + 8 * ((uint64_t)walk->grid->ndim + 1);
    int rc = 0;
    for (uint32_t i = 0; i < entries && !rc; i++) {
        const uint8_t *key = body + i * (key_size + 8);
        const uint64_t child = st_u64(key + key_size);
        rc = level ? walk_node(walk, child, level) : put_chunk(walk, key, child);
    }
    return rc;
}

static int walk_node(struct walk *walk, uint64_t at, uint32_t level_above)
{
    uint8_t head[NODE_HEADER];
    uint64_t from;
    if (++walk->nodes > 2 * walk->grid->total + LEVELS_MAX || !st_add(at, walk->base, &from))
        return damaged(walk->file, "an index of chunks without end", walk->err);
    int rc = st_held_read(walk->file, from, head, sizeof head, walk->err);
    if (rc)
        return rc;
    const uint32_t level = head[5], entries = st_u16(head + 6);
    if (memcmp(head, "TREE", 4) || head[4] != 1 || level >= level_above || level >= LEVELS_MAX)
        return damaged(walk->file, "an index of chunks is damaged", walk->err);
    const uint64_t size = entries * (16 + 8 * ((uint64_t)walk->grid->ndim + 1));
    uint8_t *body = malloc(size ? size : 1);
    if (!body)
        return st_fail(walk->err, STOKER_ENOMEM, "%s: out of memory", walk->file->path);
    rc = st_held_read(walk->file, from + NODE_HEADER, body, size, walk->err);
    if (!rc)
        rc = walk_children(walk, body, entries, level);
    free(body);
    return rc;
}

int st_h5_index(struct st_h5_chunk *chunks, const struct st_h5_grid *grid, const struct st_held *file,
                uint64_t base, uint64_t header_at, uint64_t *found, struct stoker_error *err)
{
    struct header header = {.file = file, .base = base, .err = err};
    struct walk walk = {.chunks = chunks, .grid = grid, .file = file, .base = base, .err = err};
    int rc = read_header(&header, header_at);
    if (!rc && header.tree != UINT64_MAX) /* else nothing was ever written */
        rc = walk_node(&walk, header.tree, LEVELS_MAX);
    *found = walk.found;
    return rc;
}
