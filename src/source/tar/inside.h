/* inside.h - the index that `stoker pack` stores as the last member of a tar file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_INSIDE_H
#define ST_SOURCE_TAR_INSIDE_H

#include "source/shards/index.h"
#include "source/shards/window.h"

/* Identifies tar files in saved indexes; must change when the indexing rules do. */
enum { ST_TAR_INDEX = 1 };

/* False: there is none, or it cannot be trusted. The index still has the stamp that it was written
 * with. */
bool st_tar_inside(struct st_window *window, struct st_shard_index *out);

#endif
