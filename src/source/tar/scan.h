/* scan.h - the samples of a tar file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_SCAN_H
#define ST_SOURCE_TAR_SCAN_H

#include "source/shards/shards.h"

extern const struct st_shard_kind st_shard_kind_tar;

#endif
