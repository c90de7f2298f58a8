/* classes.h - class names as stored in packs
 *
 * One class is one JSON object: {"class": "cat"}, or {"class_hex": "ff"} if the name is not valid UTF-8,
 * which JSON cannot represent.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_PACKS_CLASSES_H
#define ST_SOURCE_PACKS_CLASSES_H

#include "source/source.h"
#include "source/table/cells.h"

#define ST_CLASS_LINE "{\"class"

/* Appends the object of one class; false if out of memory. */
bool st_class_write(struct st_buffer *text, const char *name);
/* Adds the class of one object. */
int st_class_read(struct st_cells *classes, const char *line, size_t size, struct stoker_error *err);

#endif
