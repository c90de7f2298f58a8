/* list.h - the indexes of many archives in one block, which is also the file it is kept in
 *
 * Ten thousand archives open by one read and one stat for each, instead of ten reads and a mapping each.
 * An archive is known by its file: inode, size, and when it was written and changed last. One that is
 * not found so is opened by the index of its own (keep.h). The file is not the only copy of anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_LIST_H
#define ST_SOURCE_SHARDS_LIST_H

#include "source/shards/shards.h"

#include <sys/stat.h>

/* So many archives are worth a list. */
enum { ST_SHARD_LIST_MIN = 32 };

struct st_shard_list;

/* Where the list is kept: beside its first archive, or in opt->index_dir. "": nowhere. */
void st_shard_list_path(char out[PATH_MAX], const struct st_shard_kind *kind, const char *first,
                        const struct stoker_dataset_options *opt);
/* The kept list, if there is a sound one for archives of this kind; NULL: none. */
struct st_shard_list *st_shard_list_load(const char *file, uint64_t kind);
/* The same out of a block that may hold anything, aligned to 8 bytes, which is the list's then, or
 * freed. */
struct st_shard_list *st_shard_list_take(uint8_t *bytes, uint64_t size, uint64_t kind);
void st_shard_list_free(struct st_shard_list *list); /* NULL is fine */

/* The index of the archive of which stat said this, lent by the list. Any thread. */
bool st_shard_list_find(const struct st_shard_list *list, const struct stat *info,
                        struct st_shard_index *out);
/* What stat said, as far as the list wants to know. False: it changed a moment ago, and may change once
 * more without its times showing it. */
bool st_shard_seen(struct st_shard_seen *out, const struct stat *info);

/* The indexes of all archives that were seen, in one block; with what was learned of their sums. NULL:
 * out of memory. */
struct st_shard_list *st_shard_list_join(const struct st_shards *shards);
/* The archives' indexes are the list's from now on, and what they had of their own is freed. */
void st_shard_list_lend(const struct st_shard_list *list, struct st_shards *shards);
/* Replaces the file in one step; one that cannot be written is no error. */
void st_shard_list_store(const struct st_shard_list *list, const char *file);

#endif
