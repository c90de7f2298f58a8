/* keep.h - an archive's index saved to a file, and reused as long as the archive has not changed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_KEEP_H
#define ST_SOURCE_SHARDS_KEEP_H

#include "source/shards/shards.h"

/* The path of the archive's index: next to the archive, or in opt->index_dir; "": it is not saved. */
int st_shard_keep_path(char out[PATH_MAX], const struct st_shard_kind *kind, const char *archive,
                       const struct stoker_dataset_options *opt, struct stoker_error *err);
int st_shard_stamp_of(const struct st_held *archive, struct st_shard_stamp *out,
                      struct stoker_error *err);
/* Loads the saved index, if it is valid and for an archive with this stamp. */
bool st_shard_keep_load(struct st_shard_index *out, const char *file, uint64_t kind,
                        const struct st_shard_stamp *stamp);
/* Replaces the file atomically. Failing to write is not an error: the next open scans again. The index
 * of an archive that changed moments ago is not saved, because another change might leave its time the
 * same. Returns whether it is saved. */
bool st_shard_keep_store(struct st_shard_index *index, const char *file);

/* Uses another program's index of the archive (DALI's .idx), if there is one that passes a check. */
bool st_shard_import(const struct st_shard_kind *kind, struct st_window *window,
                     struct st_shard_builder *into);

#endif
