/* classes.h - the names of classes that a tar file of `stoker pack` holds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_CLASSES_H
#define ST_SOURCE_TAR_CLASSES_H

#include "source/held.h"
#include "source/table/cells.h"

/* How the comment begins that they stand in, one object a line (packs/classes.h). */
#define ST_TAR_CLASSES "stoker classes"

/* Those of a local archive; none where it holds none, or damaged ones. */
void st_tar_classes(struct st_cells *out, const struct st_held *file);

#endif
