/* stage.h - one row for a device: what is left to do, written into the slot's host half
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_STAGE_H
#define ST_PIPE_STAGE_H

#include "op/op.h"
#include "pipe/slot.h"

/* Boxes that will be overwritten. */
struct st_erases {
    const struct st_erase *list;
    uint32_t count;
};

/* Bytes of the heap with which a row can always be written, in the worst case after its worker has resized
 * and coloured it: `values` bytes are those of its erased boxes. False where that is too much to count. */
bool st_stage_reserve(const struct st_slot_shape *shape, uint32_t erases, uint64_t values, uint64_t *out);

/* Writes a row whose file the device has decoded by itself. False where it does not fit, or the device has decoded
 * what is not wanted. */
bool st_stage_decoded(struct st_slot *slot, uint32_t row, const struct st_image *image, struct st_erases erases,
                      const struct st_engine_image *decoded);

/* Writes the row. `*resized` says whether it was the worker that resized it. */
int st_stage_row(struct st_slot *slot, uint32_t row, struct st_image *image, struct st_erases erases,
                 bool *resized, struct stoker_error *err);

#endif
