/* classes.h - the class names stored in a tar file that `stoker pack` wrote
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_CLASSES_H
#define ST_SOURCE_TAR_CLASSES_H

#include "source/held.h"
#include "source/table/cells.h"

/* How the comment begins that holds them, one JSON object per line (packs/classes.h). */
#define ST_TAR_CLASSES "stoker classes"

/* Reads those of a local archive; leaves `out` empty if there are none or they are damaged. */
int st_tar_classes(struct st_cells *out, const struct st_held *file, struct stoker_error *err);

#endif
