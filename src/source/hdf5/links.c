/* links.c - checks an HDF5 group's links before the library reads them
 *
 * Entries of the lowest nodes point to "SNOD" blocks: the number of links (2 bytes at offset 6), then
 * for each the offset of its name in the heap, the address of its object, the type of the cached data
 * that follow (1: of a group; 2: a soft link, whose data are the offset of its path in the heap), and
 * those data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/links.h"
#include "source/hdf5/tree.h"
#include "source/hdf5/tree2.h"
#include "source/little.h"

#include <stdlib.h>
#include <string.h>

enum { HEAP_HEAD = 32, BLOCK_HEAD = 8, LINK = 40, LINKS_MAX = 65535, NOTE_SOFT = 2 };
#define HEAP_MAX (1ull << 30)

struct group {
    const struct st_held *file;
    uint8_t *names;
    uint64_t size;   /* size of the names */
    uint64_t ending; /* size up to and including the last NUL byte: names must begin before it */
    uint8_t *block;  /* links of one node */
    uint64_t
        bytes; /* total size of blocks so far: they do not overlap, so it cannot exceed the file's */
};

static int damaged(const struct st_held *file, uint64_t at, const char *what, struct stoker_error *err)
{
    return st_fail(
        err, STOKER_ECORRUPT,
        "%s: a group is damaged: byte %llu: %s; download the file again, or recover what is left of it "
        "with h5repack",
        file->path, (unsigned long long)at, what);
}

/* Free blocks of the heap form a linked list that ends with 1; each has at least 16 bytes, which limits
 * their number. In a cycle the library would loop forever. */
static bool free_list_ends(const struct group *group, uint64_t at)
{
    for (uint64_t left = group->size / 16; at != 1; at = st_u64(group->names + at), left--)
        if (!left || at > group->size - 16)
            return false;
    return true;
}

static int read_names(struct group *group, uint64_t base, uint64_t heap, struct stoker_error *err)
{
    const struct st_held *file = group->file;
    uint8_t head[HEAP_HEAD];
    uint64_t at, from, end;
    if (!st_add(base, heap, &at) || at > file->size || file->size - at < HEAP_HEAD)
        return damaged(file, at, "the heap of names is outside the file", err);
    int rc = st_held_read(file, at, head, sizeof head, err);
    if (rc)
        return rc;
    group->size = st_u64(head + 8);
    if (memcmp(head, "HEAP", 4) || !st_add(st_u64(head + 24), base, &from) ||
        !st_add(from, group->size, &end) || end > file->size || group->size > HEAP_MAX)
        return damaged(file, at, "the heap of names extends past the file, or is invalid", err);
    group->names = malloc(group->size ? group->size : 1);
    rc = group->names ? st_held_read(file, from, group->names, group->size, err)
                      : st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
    for (group->ending = rc ? 0 : group->size; group->ending && group->names[group->ending - 1];)
        group->ending--;
    return rc || free_list_ends(group, st_u64(head + 16))
               ? rc
               : damaged(file, from, "the free list of the heap of names has a cycle", err);
}

static int visit_block(void *context, const uint8_t *key, uint64_t entry, uint64_t at,
                       struct stoker_error *err)
{
    struct group *group = context;
    const struct st_held *file = group->file;
    uint8_t head[BLOCK_HEAD];
    (void)key;
    if (file->size - at < BLOCK_HEAD)
        return damaged(file, entry, "points outside the file", err);
    int rc = st_held_read(file, at, head, sizeof head, err);
    const uint64_t count = rc ? 0 : st_u16(head + 6);
    group->bytes += BLOCK_HEAD + count * LINK;
    if (!rc && (memcmp(head, "SNOD", 4) || count * LINK > file->size - at - BLOCK_HEAD))
        rc = damaged(file, at, "expected a block of links", err);
    if (!rc && group->bytes > file->size)
        rc = damaged(file, entry, "points to links that were visited before", err);
    if (!rc)
        rc = st_held_read(file, at + BLOCK_HEAD, group->block, count * LINK, err);
    for (uint64_t i = 0; i < count && !rc; i++) {
        const uint8_t *link = group->block + i * LINK;
        if (st_u64(link) >= group->ending ||
            (st_u32(link + 16) == NOTE_SOFT && st_u32(link + 24) >= group->ending))
            rc = damaged(file, at + BLOCK_HEAD + i * LINK, "a link has no name", err);
    }
    return rc;
}

int st_h5_links_check(const struct st_held *file, uint64_t base, uint64_t tree, uint64_t heap,
                      struct stoker_error *err)
{
    struct group group = {.file = file, .block = malloc(LINKS_MAX * LINK)};
    const struct st_h5_tree walk = {.file = file,
                                    .base = base,
                                    .kind = ST_H5_TREE_LINKS,
                                    .key_size = 8,
                                    .leaf = visit_block,
                                    .context = &group};
    uint64_t root;
    int rc = group.block ? read_names(&group, base, heap, err)
                         : st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
    if (!rc)
        rc = st_add(base, tree, &root) ? st_h5_tree_walk(&walk, root, err)
                                       : damaged(file, tree, "its links are outside the file", err);
    free(group.names);
    free(group.block);
    return rc;
}

/* ---- the newer format --------------------------------------------------------------------------- */

/* A record is a hash or a number, and a heap ID: version and type, then data that depend on the type. A
 * link has more bytes than a heap ID could hold directly, and only a very long name makes it too large
 * for the heap's blocks (4 KiB); for the other types the library opens a tree without checking that it
 * exists. So only IDs of objects inside blocks are accepted. */
static int check_record(void *context, uint32_t kind, const uint8_t *record, uint32_t size, uint64_t at,
                        struct stoker_error *err)
{
    enum { IN_BLOCK = 0 };
    const uint32_t place = kind == ST_H5_TREE2_LINK_NAMES ? 4 : 8;
    if ((kind != ST_H5_TREE2_LINK_NAMES && kind != ST_H5_TREE2_LINK_ORDER) || size <= place ||
        record[place] >> 4 != IN_BLOCK)
        return damaged(context, at, "a link has an invalid heap ID", err);
    return 0;
}

int st_h5_links_check_tree(const struct st_held *file, uint64_t base, uint64_t tree,
                           struct stoker_error *err)
{
    return st_h5_tree2_walk(file, base, tree, check_record, (void *)(uintptr_t)file, err);
}
