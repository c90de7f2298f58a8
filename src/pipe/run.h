/* run.h - runs the pipeline on one sample: from its bytes to its row of the slot
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_RUN_H
#define ST_PIPE_RUN_H

#include "pipe/executor.h"

/* Runs the pipeline on the sample's bytes and writes its row and label. Its random draws depend on `key`
 * and the row's seed. */
int st_run_sample(struct st_worker *worker, struct st_bytes bytes, uint64_t sample, uint64_t key,
                  struct st_slot *slot, uint32_t row, struct stoker_error *err);
/* Finds the encoded image in a sample's bytes, unless it lies in scratch memory; writes the other fields
 * to their columns. */
bool st_run_find(struct st_worker *worker, struct st_bytes bytes, struct st_slot *slot, uint32_t row,
                 struct st_bytes *file);
/* Makes the random draws for the image and records its pending ops. Fails if an op needs pixels: the
 * file is not decoded here, because whoever makes the sample would decode it again. */
int st_run_lazily(struct st_worker *worker, struct st_bytes bytes, const struct st_slot *slot,
                  uint32_t row, struct st_image *image, struct stoker_error *err);
/* Completes the row after the device has decoded the file; false if that is not possible for this
 * row. */
bool st_run_decoded(struct st_worker *worker, const struct st_image *image, uint64_t key,
                    struct st_slot *slot, uint32_t row, const struct st_jpeg_hw_image *decoded);
/* Makes the slot's row from an encoded sound. `key` selects its random draws. (run_sound.c) */
int st_run_sound(struct st_worker *worker, struct st_bytes bytes, uint64_t key, struct st_slot *slot,
                 uint32_t row, struct stoker_error *err);

#endif
