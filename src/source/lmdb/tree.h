/* tree.h - where the keys and values of an LMDB database lie in its file
 *
 * liblmdb trusts what it maps: a damaged page, or a file that was cut short, ends the process. So the
 * tree is walked here, page by page, and every number in it is checked against the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LMDB_TREE_H
#define ST_SOURCE_LMDB_TREE_H

#include "source/field_list.h"
#include "source/held.h"

/* One state of the database, as one of the two pages at the file's beginning names it. */
struct st_lmdb_head {
    uint64_t transaction, root, entries, last_page;
    uint32_t page_size;
    uint16_t depth, flags;
};

struct st_lmdb_entry {
    uint64_t value, key; /* offsets in the file */
    uint32_t size;
    uint16_t key_size;
    uint8_t first; /* byte of the key */
};

/* A database of its own below a key of another. */
struct st_lmdb_named {
    uint64_t key; /* its name */
    uint64_t root, entries;
    uint16_t key_size, depth, flags;
};

struct st_lmdb_contents {
    struct st_lmdb_entry *entries; /* in the order of their keys */
    struct st_lmdb_named *named;
    uint64_t count, named_count;
};

/* The state that the transaction left, or the latest where `transaction` is UINT64_MAX. STOKER_END: it
 * is none of the two any more. */
int st_lmdb_head(struct st_lmdb_head *out, const struct st_held *file, uint64_t transaction,
                 struct stoker_error *err);
/* All entries of the head's database. */
int st_lmdb_walk(struct st_lmdb_contents *out, const struct st_lmdb_head *head,
                 const struct st_held *file, struct stoker_error *err);
void st_lmdb_contents_free(struct st_lmdb_contents *contents);
/* Makes the head that of the database of this name; STOKER_EINVAL, with the names that there are. */
int st_lmdb_select(struct st_lmdb_head *head, const struct st_lmdb_contents *contents,
                   const struct st_held *file, const char *name, struct stoker_error *err);
void st_lmdb_names(const struct st_lmdb_contents *contents, const struct st_held *file,
                   struct st_name_list *out);

#endif
