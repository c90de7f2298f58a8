/* stage.h - writes a row's remaining work into the slot's host half, for a device to do
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_STAGE_H
#define ST_PIPE_STAGE_H

#include "op/op.h"
#include "pipe/slot.h"

/* Boxes to be erased. */
struct st_erases {
    const struct st_erase *list;
    uint32_t count;
};

/* Heap bytes that are always enough for a row, in the worst case after its worker has resized and
 * coloured it; `values`: bytes of the values of its erased boxes. False on overflow. */
bool st_stage_reserve(const struct st_slot_shape *shape, uint32_t erases, uint64_t values,
                      uint64_t *out);

/* Writes a row whose file the device has decoded. False if it does not fit, or the decoded image is not
 * the one needed. */
bool st_stage_decoded(struct st_slot *slot, uint32_t row, const struct st_image *image,
                      struct st_erases erases, const struct st_jpeg_hw_image *decoded);

/* Writes the row. `*resized`: whether the worker had to resize it. */
int st_stage_row(struct st_slot *slot, uint32_t row, struct st_image *image, struct st_erases erases,
                 bool *resized, struct stoker_error *err);

#endif
