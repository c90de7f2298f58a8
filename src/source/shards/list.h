/* list.h - the indexes of many archives in one block, which is also the file format
 *
 * With it ten thousand archives open with one read and one stat per archive, instead of ten reads and a
 * mapping each. An archive is identified by its file: inode, size, and modification and change times.
 * One that is not found in the list is opened by its own index (keep.h). The file is never the only copy
 * of anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_LIST_H
#define ST_SOURCE_SHARDS_LIST_H

#include "source/shards/shards.h"

#include <sys/stat.h>

/* From this many archives on a list is used. */
enum { ST_SHARD_LIST_MIN = 32 };

struct st_shard_list;

/* The path of the list: next to its first archive, or in opt->index_dir. "": it is not saved. */
void st_shard_list_path(char out[PATH_MAX], const struct st_shard_kind *kind, const char *first,
                        const struct stoker_dataset_options *opt);
/* Loads the saved list for archives of this kind; NULL: there is no valid one. */
struct st_shard_list *st_shard_list_load(const char *file, uint64_t kind);
/* The same for an untrusted block, aligned to 8 bytes. Takes ownership of the block, also on failure. */
struct st_shard_list *st_shard_list_take(uint8_t *bytes, uint64_t size, uint64_t kind);
void st_shard_list_free(struct st_shard_list *list); /* NULL is allowed */

/* Finds the index of the archive with this stat; the list keeps owning it. Any thread. */
bool st_shard_list_find(const struct st_shard_list *list, const struct stat *info,
                        struct st_shard_index *out);
/* The part of stat that identifies the file. Returns false if the file changed moments ago: another
 * change might leave its times the same. */
bool st_shard_file_id(struct st_shard_file_id *out, const struct stat *info);

/* Joins the indexes of all opened archives, with the checksums learned so far, into one block. NULL: out
 * of memory. */
struct st_shard_list *st_shard_list_join(const struct st_shards *shards);
/* Makes the archives use the list's copies of their indexes, and frees their own. */
void st_shard_list_lend(const struct st_shard_list *list, struct st_shards *shards);
/* Replaces the file atomically; failing to write is not an error. */
void st_shard_list_store(const struct st_shard_list *list, const char *file);

#endif
