/* tree.h - finds the keys and values of an LMDB database in its file
 *
 * liblmdb trusts what it maps: a damaged page or a truncated file crashes the process. So the tree is
 * walked here page by page, and every number in it is checked against the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LMDB_TREE_H
#define ST_SOURCE_LMDB_TREE_H

#include "source/fields/field_list.h"
#include "source/held.h"

/* One snapshot of the database, as described by one of the two meta pages at the file's beginning. */
struct st_lmdb_head {
    uint64_t transaction, root, entries, last_page;
    uint32_t page_size;
    uint16_t depth, flags;
};

struct st_lmdb_entry {
    uint64_t value, key; /* offsets in the file */
    uint32_t size;
    uint16_t key_size;
    uint8_t first; /* first byte of the key */
};

/* A named database, stored under a key of the main one. */
struct st_lmdb_named {
    uint64_t key; /* its name */
    uint64_t root, entries;
    uint16_t key_size, depth, flags;
};

struct st_lmdb_contents {
    struct st_lmdb_entry *entries; /* sorted by key */
    struct st_lmdb_named *named;
    uint64_t count, named_count;
};

/* The snapshot of this transaction, or the latest if `transaction` is UINT64_MAX. STOKER_END: neither of
 * the two is of that transaction any more. */
int st_lmdb_head(struct st_lmdb_head *out, const struct st_held *file, uint64_t transaction,
                 struct stoker_error *err);
/* Finds all entries of the head's database. */
int st_lmdb_walk(struct st_lmdb_contents *out, const struct st_lmdb_head *head,
                 const struct st_held *file, struct stoker_error *err);
void st_lmdb_contents_free(struct st_lmdb_contents *contents);
/* Changes the head to the database of this name; STOKER_EINVAL if there is none; the message lists the
 * names. */
int st_lmdb_select(struct st_lmdb_head *head, const struct st_lmdb_contents *contents,
                   const struct st_held *file, const char *name, struct stoker_error *err);
void st_lmdb_names(const struct st_lmdb_contents *contents, const struct st_held *file,
                   struct st_name_list *out);

#endif
