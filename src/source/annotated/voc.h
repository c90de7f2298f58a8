/* voc.h - reads annotations in the XML of Pascal VOC
 *
 * Boxes are as written: corners counted from 1, as torchvision's VOCDetection yields them, and also
 * where the right corner is left of the left one. Fractions, which some files have, are read, too, where
 * torchvision fails. Parts of objects, such as the head of a person, are left out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ANNOTATED_VOC_H
#define ST_SOURCE_ANNOTATED_VOC_H

#include "source/annotated/annotated.h"

/* VOC's own classes, ending with NULL. The first is the background, so that objects have labels from 1.
 */
extern const char *const st_voc_classes[];

/* Adds an image with its objects to a table, which is ST_BOX_XYXY. An object's label is the place of its
 * name among `classes`, which ends with NULL; another name is an error. `path` is for messages. On
 * failure the table may contain a part of the image, and is to be freed. */
int st_voc_add(struct st_annotated *table, struct st_bytes xml, const char *path,
               const char *const *classes, struct stoker_error *err);

#endif
