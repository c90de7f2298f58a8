/* targets.h - what belongs to an image and moves with it: other images, masks, and boxes with what
 * belongs to these
 *
 * The random draws of a step follow from the sample and the step's number. So the steps are run once
 * more for each target, with the same numbers: for a mask on an image whose values never change, for
 * boxes on an image without pixels. Boxes come first, and then all else, because there are steps whose
 * crops follow from them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_TARGETS_H
#define ST_PIPE_TARGETS_H

#include "pipe/target.h"

/* Makes columns targets. `masks`: names of fields, separated by commas, "name=image" for an image that
 * becomes what the first one does, of the type `image_dtype`; `boxes`: likewise, each followed by the
 * names of fields with a value for each box, after plus signs: "boxes+labels,other"; "name=points" are
 * key points, alone or of boxes. NULL: none. */
int st_targets_plan(struct st_columns_plan *plan, const struct stoker_pipeline *pipe,
                    enum stoker_dtype image_dtype, const char *masks, const char *boxes,
                    struct stoker_error *err);

/* Replaces the pieces of targets by what becomes of them, allocated from the arena. */
int st_targets_make(struct st_targets *of, struct st_piece *pieces, struct stoker_error *err);

#endif
