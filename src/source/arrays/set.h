/* set.h - the npy files of a pack as one dataset: row i of each is sample i
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ARRAYS_SET_H
#define ST_SOURCE_ARRAYS_SET_H

#include "source/packs/manifest.h"

/* `fields` are file names without their extension; NULL: all. */
int st_arrays_open_set(struct stoker_dataset **out, const char *folder, const struct st_pack *manifest,
                       const char *fields, struct stoker_error *err);

#endif
