/* keep.h - an archive's index in a file, used again while the archive is what it was
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_KEEP_H
#define ST_SOURCE_SHARDS_KEEP_H

#include "source/shards/shards.h"

/* Where the index of the archive is kept: beside it, or in opt->index_dir. */
int st_shard_keep_path(char out[PATH_MAX], const struct st_shard_kind *kind, const char *archive,
                       const struct stoker_dataset_options *opt, struct stoker_error *err);
int st_shard_stamp_of(const struct st_held *archive, struct st_shard_stamp *out,
                      struct stoker_error *err);
/* The kept index, if there is a sound one for an archive of this stamp. */
bool st_shard_keep_load(struct st_shard_index *out, const char *file, uint64_t kind,
                        const struct st_shard_stamp *stamp);
/* Replaces the file in one step. A file that cannot be written is no error: the next open scans again.
 * An archive that changed a moment ago may change once more without its time showing it: its index is
 * not kept. */
bool st_shard_keep_store(struct st_shard_index *index, const char *file); /* whether it is kept now */

/* Takes another program's index of the archive (DALI's .idx) if there is one that holds true. */
bool st_shard_import(const struct st_shard_kind *kind, struct st_window *window,
                     struct st_shard_builder *into);

#endif
