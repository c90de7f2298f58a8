/* names.h - groups tar members into samples by name, as the Python package webdataset does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_NAMES_H
#define ST_SOURCE_TAR_NAMES_H

#include "base/pixels.h"

#include <stdbool.h>

/* Splits a name at the first dot of its last component: "a.b/000.seg.PNG" into "a.b/000" and "seg.PNG".
 * False: the name has no suffix, or is reserved for the archive itself ("__index__"); then the member is
 * ignored. */
bool st_tar_split_name(struct st_bytes name, struct st_bytes *key, struct st_bytes *suffix);

/* Whether the name splits into this key and this suffix, which is in lower case. */
bool st_tar_name_is(struct st_bytes name, const char *key, const char *suffix);

#endif
