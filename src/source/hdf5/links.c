/* links.c - whether the library can be let loose on an HDF5 group's links
 *
 * Entries of the lowest nodes lead to "SNOD" blocks: the number of links (2 bytes at 6), and for each
 * the place of its name in the heap, the address of its object, what kind of note follows (1: of a
 * group; 2: a soft link, the place of whose path in the heap is the note), and the note.
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
    uint64_t size;   /* of the names */
    uint64_t ending; /* of them: the last byte that can end a name, and what is in front of it */
    uint8_t *block;  /* links of one node */
    uint64_t bytes;  /* of those so far: blocks do not overlap, so that all fit into the file */
};

static int damaged(const struct st_held *file, uint64_t at, const char *what, struct stoker_error *err)
{
    return st_fail(
        err, STOKER_ECORRUPT,
        "%s: a group is damaged: at byte %llu %s; fetch the file again, or copy what is left of it with "
        "h5repack",
        file->path, (unsigned long long)at, what);
}

/* Free parts of the heap name each other, and the last says 1; each has 16 bytes or more, so that there
 * are not more than that. The library goes round in a circle for ever. */
static bool free_parts_end(const struct group *group, uint64_t at)
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
        return damaged(file, at, "the names should stand, which is outside of the file", err);
    int rc = st_held_read(file, at, head, sizeof head, err);
    if (rc)
        return rc;
    group->size = st_u64(head + 8);
    if (memcmp(head, "HEAP", 4) || !st_add(st_u64(head + 24), base, &from) ||
        !st_add(from, group->size, &end) || end > file->size || group->size > HEAP_MAX)
        return damaged(file, at, "the names are said to lie outside of the file", err);
    group->names = malloc(group->size ? group->size : 1);
    rc = group->names ? st_held_read(file, from, group->names, group->size, err)
                      : st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
    for (group->ending = rc ? 0 : group->size; group->ending && group->names[group->ending - 1];)
        group->ending--;
    return rc || free_parts_end(group, st_u64(head + 16))
               ? rc
               : damaged(file, from, "the free parts of the heap of names have no end", err);
}

static int visit_block(void *context, const uint8_t *key, uint64_t entry, uint64_t at,
                       struct stoker_error *err)
{
    struct group *group = context;
    const struct st_held *file = group->file;
    uint8_t head[BLOCK_HEAD];
    (void)key;
    if (file->size - at < BLOCK_HEAD)
        return damaged(file, entry, "it leads outside of the file", err);
    int rc = st_held_read(file, at, head, sizeof head, err);
    const uint64_t count = rc ? 0 : st_u16(head + 6);
    group->bytes += BLOCK_HEAD + count * LINK;
    if (!rc && (memcmp(head, "SNOD", 4) || count * LINK > file->size - at - BLOCK_HEAD))
        rc = damaged(file, at, "links should stand, and do not", err);
    if (!rc && group->bytes > file->size)
        rc = damaged(file, entry, "it leads to links that it has led to before", err);
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
                                       : damaged(file, tree, "its links lie outside of the file", err);
    free(group.names);
    free(group.block);
    return rc;
}

/* ---- the newer kind ----------------------------------------------------------------------------- */

/* A hash or a number, and the place in the heap: a version, a kind, and what that takes. A link has more
 * bytes than the place itself could hold, and is too large for the heap's blocks (4 KiB) only by its
 * name; for the others the library opens a tree without a look at whether there is one. */
static int check_record(void *context, uint32_t kind, const uint8_t *record, uint32_t size, uint64_t at,
                        struct stoker_error *err)
{
    enum { IN_BLOCK = 0 };
    const uint32_t place = kind == ST_H5_TREE2_LINK_NAMES ? 4 : 8;
    if ((kind != ST_H5_TREE2_LINK_NAMES && kind != ST_H5_TREE2_LINK_ORDER) || size <= place ||
        record[place] >> 4 != IN_BLOCK)
        return damaged(context, at, "a link lies where links do not lie", err);
    return 0;
}

int st_h5_links_check_tree(const struct st_held *file, uint64_t base, uint64_t tree,
                           struct stoker_error *err)
{
    return st_h5_tree2_walk(file, base, tree, check_record, (void *)(uintptr_t)file, err);
}
