/* classes.h - the names of classes, as packs keep them
 *
 * One class is one JSON object: {"class": "cat"}; or {"class_hex": "ff"} where the name is no UTF-8, which
 * JSON cannot hold.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_PACKS_CLASSES_H
#define ST_SOURCE_PACKS_CLASSES_H

#include "source/source.h"
#include "source/table/cells.h"

#define ST_CLASS_LINE "{\"class"

/* The object of one class behind what is there; false when out of memory. */
bool st_class_write(struct st_buffer *text, const char *name);
/* Adds the class of one object. */
int st_class_read(struct st_cells *classes, const char *line, size_t size, struct stoker_error *err);

#endif
