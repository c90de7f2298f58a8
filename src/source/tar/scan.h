/* scan.h - the samples of a tar file, found by its members or in the index that is stored inside
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_SCAN_H
#define ST_SOURCE_TAR_SCAN_H

#include "source/shards/shards.h"

extern const struct st_shard_kind st_shard_kind_tar;

/* Identifies tar files in saved indexes; must change when the indexing rules do. */
enum { ST_TAR_INDEX = 1 };

/* The index that `stoker pack` stores as the last member (inside.c). False: there is none, or it cannot
 * be trusted. The index still has the stamp that it was written with. */
bool st_tar_inside(struct st_window *window, struct st_shard_index *out);

#endif
