/* inside.h - the index that a tar file of `stoker pack` holds itself, as its last member
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_INSIDE_H
#define ST_SOURCE_TAR_INSIDE_H

#include "source/shards/index.h"
#include "source/shards/window.h"

/* False: there is none, or none that can be trusted. The index still has the stamp it was written with.
 */
bool st_tar_inside(struct st_window *window, struct st_shard_index *out);

#endif
