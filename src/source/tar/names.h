/* names.h - which members of a tar file make one sample, as the Python package webdataset decides it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_NAMES_H
#define ST_SOURCE_TAR_NAMES_H

#include "base/pixels.h"

#include <stdbool.h>

/* Splits a name at the first dot of its last part: "a.b/000.seg.PNG" into "a.b/000" and "seg.PNG".
 * False: the name has no suffix, or belongs to the archive itself ("__index__"), and the member is
 * passed over. */
bool st_tar_split_name(struct st_bytes name, struct st_bytes *key, struct st_bytes *suffix);

/* Whether a name splits into this key and, in lower case, this suffix. */
bool st_tar_name_is(struct st_bytes name, const char *key, const char *suffix);

/* Whether `suffix` in lower case (A to Z) is `wanted`, which is in lower case. */
bool st_tar_suffix_is(struct st_bytes suffix, const char *wanted, size_t size);

#endif
