/* split.h - a side of an image in cells of nearly one length
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_SPLIT_H
#define ST_OP_GEOMETRY_SPLIT_H

#include "order/rng.h"

/* Where cells begin, and where the last one ends: cells + 1 numbers. All are of one length, but the
 * pixels that are left over go to cells that are drawn. */
void st_split_evenly(int32_t *begin, int32_t cells, int32_t length, struct st_rng *rng);

#endif
