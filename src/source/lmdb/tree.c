/* tree.c - finds the keys and values of an LMDB database in its file
 *
 * The format is that of LMDB 0.9 (data version 1) on 64-bit little-endian machines. A page begins with
 * 16 bytes: its number, padding, flags, and where its free space begins and ends; then come the offsets
 * of its nodes, 2 bytes each. A node is 8 bytes, the key, and in a leaf the value or the number of the
 * first page that holds it. In a branch the 8 bytes contain the number of the child page.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/lmdb/tree.h"
#include "base/text.h"
#include "source/little.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAGE_HEADER = 16,
    NODE_HEADER = 8,
    HEAD_SIZE = PAGE_HEADER + 136,
    DEPTH_MAX = 32,
    PAGE_BRANCH = 1,
    PAGE_LEAF = 2,
    PAGE_META = 8,
    NODE_BIG = 1,
    NODE_DATABASE = 2,
    NODE_DUPLICATES = 4,
    DATABASE_DUPLICATES = 4,
    DATABASE_SIZE = 48,
};
#define MAGIC   0xbeefc0deu
#define NO_PAGE UINT64_MAX

static int damaged(const struct st_held *file, uint64_t page, const char *what, struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT, "%s: page %llu: %s", file->path, (unsigned long long)page,
                   what);
}

/* ---- the two heads ------------------------------------------------------------------------------ */

static int read_head(struct st_lmdb_head *out, const struct st_held *file, uint64_t at,
                     struct stoker_error *err)
{
    uint8_t bytes[HEAD_SIZE];
    if (file->size < HEAD_SIZE || at > file->size - HEAD_SIZE)
        return st_fail(err, STOKER_ECORRUPT, "%s: too short for an LMDB database", file->path);
    const int rc = st_held_read(file, at, bytes, sizeof bytes, err);
    if (rc)
        return rc;
    const uint8_t *meta = bytes + PAGE_HEADER, *main = meta + 24 + 48;
    if (!(st_u16(bytes + 10) & PAGE_META) || st_u32(meta) != MAGIC)
        return st_fail(err, STOKER_ECORRUPT,
                       "%s: not an LMDB database, or one from a machine with a different architecture",
                       file->path);
    if (st_u32(meta + 4) != 1)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "%s: LMDB data version %u; only version 1 is supported", file->path,
                       st_u32(meta + 4));
    *out = (struct st_lmdb_head){
        .page_size = st_u32(meta + 24),
        .flags = (uint16_t)st_u16(main + 4),
        .depth = (uint16_t)st_u16(main + 6),
        .entries = st_u64(main + 32),
        .root = st_u64(main + 40),
        .last_page = st_u64(meta + 120),
        .transaction = st_u64(meta + 128),
    };
    if (out->page_size < 256 || out->page_size > 65536 || out->page_size & (out->page_size - 1))
        return st_fail(err, STOKER_ECORRUPT, "%s: states an invalid page size of %u bytes", file->path,
                       out->page_size);
    return 0;
}

int st_lmdb_head(struct st_lmdb_head *out, const struct st_held *file, uint64_t transaction,
                 struct stoker_error *err)
{
    struct st_lmdb_head heads[2];
    int rc = read_head(&heads[0], file, 0, err);
    if (!rc)
        rc = read_head(&heads[1], file, heads[0].page_size, err);
    if (rc)
        return rc;
    if (transaction == UINT64_MAX)
        *out = heads[heads[1].transaction > heads[0].transaction];
    else if (heads[0].transaction == transaction || heads[1].transaction == transaction)
        *out = heads[heads[1].transaction == transaction];
    else
        return STOKER_END;
    if (out->last_page >= file->size / out->page_size)
        return st_fail(err, STOKER_ECORRUPT,
                       "%s: has %llu bytes, but states %llu pages of %u bytes: it is truncated",
                       file->path, (unsigned long long)file->size,
                       (unsigned long long)out->last_page + 1, out->page_size);
    return 0;
}

/* ---- the walk ----------------------------------------------------------------------------------- */

struct walk {
    const struct st_held *file;
    const struct st_lmdb_head *head;
    struct stoker_error *err;
    uint8_t *pages; /* one per level */
    struct {
        uint64_t number;
        uint32_t next, nodes;
    } level[DEPTH_MAX];
    uint64_t visited, nodes;
    struct st_lmdb_contents *out;
    uint64_t room, named_room;
};

/* Reads a page of the tree into its level, and determines its number of nodes. */
static int enter(struct walk *walk, uint32_t depth, uint64_t number)
{
    const uint32_t page_size = walk->head->page_size;
    uint8_t *page = walk->pages + (uint64_t)depth * page_size;
    if (number > walk->head->last_page || ++walk->visited > walk->head->last_page)
        return damaged(walk->file, number, "page number out of range, or the tree has a cycle",
                       walk->err);
    const int rc = st_held_read(walk->file, number * page_size, page, page_size, walk->err);
    if (rc)
        return rc;
    const bool leaf = depth + 1 == walk->head->depth;
    const uint32_t lower = st_u16(page + 12);
    if (st_u64(page) != number || (st_u16(page + 10) & ~16u) != (leaf ? PAGE_LEAF : PAGE_BRANCH))
        return damaged(walk->file, number, leaf ? "not a leaf page" : "not a branch page", walk->err);
    if (lower < PAGE_HEADER || lower > page_size || lower & 1 || (!leaf && lower == PAGE_HEADER))
        return damaged(walk->file, number, "its list of nodes is damaged", walk->err);
    walk->level[depth].number = number;
    walk->level[depth].next = 0;
    walk->level[depth].nodes = (lower - PAGE_HEADER) / 2;
    return 0;
}

/* Where the next node of the level's page begins; 0 if that is outside the page. */
static uint32_t next_node(struct walk *walk, uint32_t depth)
{
    const uint8_t *page = walk->pages + (uint64_t)depth * walk->head->page_size;
    const uint32_t at = st_u16(page + PAGE_HEADER + 2 * walk->level[depth].next++);
    if (at < PAGE_HEADER || at > walk->head->page_size - NODE_HEADER)
        return 0;
    return st_u16(page + at + 6) <= walk->head->page_size - NODE_HEADER - at ? at : 0;
}

static int no_memory(const struct walk *walk)
{
    return st_fail(walk->err, STOKER_ENOMEM, "%s: out of memory for its keys", walk->file->path);
}

static int add_entry(struct walk *walk, const struct st_lmdb_entry *entry)
{
    struct st_lmdb_contents *out = walk->out;
    if (out->count == walk->room) {
        const uint64_t room = walk->room * 2 + 1024;
        struct st_lmdb_entry *more = st_grow(out->entries, room, sizeof *more);
        if (!more)
            return no_memory(walk);
        out->entries = more;
        walk->room = room;
    }
    out->entries[out->count++] = *entry;
    return 0;
}

/* Adds a value that describes a database, in the format of the file's heads. */
static int add_named(struct walk *walk, const uint8_t *value, uint64_t key, uint32_t key_size)
{
    struct st_lmdb_contents *out = walk->out;
    if (out->named_count == walk->named_room) {
        const uint64_t room = walk->named_room * 2 + 8;
        struct st_lmdb_named *more = st_grow(out->named, room, sizeof *more);
        if (!more)
            return no_memory(walk);
        out->named = more;
        walk->named_room = room;
    }
    out->named[out->named_count++] = (struct st_lmdb_named){.key = key,
                                                            .key_size = (uint16_t)key_size,
                                                            .flags = (uint16_t)st_u16(value + 4),
                                                            .depth = (uint16_t)st_u16(value + 6),
                                                            .entries = st_u64(value + 32),
                                                            .root = st_u64(value + 40)};
    return 0;
}

/* Whether the pages of a large value are inside the file. Their content is not checked, since they may
 * be many and far apart. */
static bool is_inside(const struct walk *walk, uint64_t page, uint32_t size)
{
    const uint64_t page_size = walk->head->page_size, last = walk->head->last_page;
    return page <= last && (size + PAGE_HEADER + page_size - 1) / page_size <= last - page + 1;
}

static int add_node(struct walk *walk, uint32_t depth)
{
    const uint32_t page_size = walk->head->page_size, at = next_node(walk, depth);
    const uint64_t number = walk->level[depth].number;
    const uint8_t *node = walk->pages + (uint64_t)depth * page_size + at;
    if (!at)
        return damaged(walk->file, number, "a key extends past the page", walk->err);
    const uint32_t size = st_u32(node), flags = st_u16(node + 4), key_size = st_u16(node + 6);
    const uint32_t head = NODE_HEADER + key_size, left = page_size - at - head;
    walk->nodes++;
    if ((flags & NODE_BIG ? 8 : size) > left)
        return damaged(walk->file, number, "a value extends past the page", walk->err);
    if (flags & (NODE_DATABASE | NODE_DUPLICATES))
        return flags & NODE_DUPLICATES || size != DATABASE_SIZE
                   ? damaged(walk->file, number, "a value has an invalid kind", walk->err)
                   : add_named(walk, node + head, number * page_size + at + NODE_HEADER, key_size);
    struct st_lmdb_entry entry = {.key = number * page_size + at + NODE_HEADER,
                                  .size = size,
                                  .value = number * page_size + at + head,
                                  .key_size = (uint16_t)key_size,
                                  .first = key_size ? node[NODE_HEADER] : 0};
    if (flags & NODE_BIG) {
        const uint64_t first = st_u64(node + head);
        if (!is_inside(walk, first, size))
            return damaged(walk->file, number, "a value extends past the file", walk->err);
        entry.value = first * page_size + PAGE_HEADER;
    }
    return add_entry(walk, &entry);
}

static int descend(struct walk *walk, uint32_t depth)
{
    const uint32_t at = next_node(walk, depth);
    const uint8_t *node = walk->pages + (uint64_t)depth * walk->head->page_size + at;
    if (!at)
        return damaged(walk->file, walk->level[depth].number, "a branch node extends past the page",
                       walk->err);
    return enter(walk, depth + 1, st_u32(node) | (uint64_t)st_u16(node + 4) << 32);
}

static int walk_tree(struct walk *walk)
{
    const uint32_t leaf = walk->head->depth - 1u;
    uint32_t depth = 0;
    int rc = enter(walk, 0, walk->head->root);
    while (!rc) {
        if (walk->level[depth].next == walk->level[depth].nodes) {
            if (depth-- == 0)
                break;
        } else if (depth == leaf) {
            rc = add_node(walk, depth);
        } else {
            rc = descend(walk, depth++);
        }
    }
    return rc;
}

int st_lmdb_walk(struct st_lmdb_contents *out, const struct st_lmdb_head *head,
                 const struct st_held *file, struct stoker_error *err)
{
    struct walk walk = {.file = file, .head = head, .err = err, .out = out};
    *out = (struct st_lmdb_contents){0};
    if (head->flags & DATABASE_DUPLICATES)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "%s: keys with several values (MDB_DUPSORT) are not supported", file->path);
    if (head->root == NO_PAGE)
        return 0;
    if (head->depth < 1 || head->depth > DEPTH_MAX)
        return st_fail(err, STOKER_ECORRUPT, "%s: states a tree of %u levels: it is damaged", file->path,
                       head->depth);
    walk.pages = st_calloc(head->depth, head->page_size);
    int rc =
        walk.pages ? walk_tree(&walk) : st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
    free(walk.pages);
    if (!rc && walk.nodes != head->entries)
        rc = st_fail(err, STOKER_ECORRUPT, "%s: contains %llu key%s, but states %llu: it is damaged",
                     file->path, (unsigned long long)walk.nodes, st_s(walk.nodes),
                     (unsigned long long)head->entries);
    if (rc)
        st_lmdb_contents_free(out);
    return rc;
}

void st_lmdb_contents_free(struct st_lmdb_contents *contents)
{
    free(contents->entries);
    free(contents->named);
    *contents = (struct st_lmdb_contents){0};
}

/* ---- named databases --------------------------------------------------------------------------- */

void st_lmdb_names(const struct st_lmdb_contents *contents, const struct st_held *file,
                   struct st_name_list *out)
{
    for (uint64_t i = 0; i < contents->named_count && i < sizeof out->text; i++) {
        char name[64];
        const uint16_t size = contents->named[i].key_size,
                       shown = size < sizeof name ? size : sizeof name;
        if (!st_held_read(file, contents->named[i].key, name, shown, NULL))
            st_name_list_add(out, name, shown);
    }
}

int st_lmdb_select(struct st_lmdb_head *head, const struct st_lmdb_contents *contents,
                   const struct st_held *file, const char *name, struct stoker_error *err)
{
    char key[512];
    struct st_name_list names = {0};
    const size_t size = strlen(name);
    for (uint64_t i = 0; i < contents->named_count; i++) {
        const struct st_lmdb_named *named = &contents->named[i];
        const int rc = named->key_size == size && size <= sizeof key
                           ? st_held_read(file, named->key, key, size, err)
                           : STOKER_END;
        if (rc && rc != STOKER_END)
            return rc;
        if (!rc && !memcmp(key, name, size)) {
            head->root = named->root;
            head->entries = named->entries;
            head->depth = named->depth;
            head->flags = named->flags;
            return 0;
        }
    }
    st_lmdb_names(contents, file, &names);
    return st_fail(err, STOKER_EINVAL, "%s: db=%.100s: there is no such database; %s%s", file->path,
                   name, names.text[0] ? "it contains " : "it contains no named databases: omit db",
                   names.text);
}
