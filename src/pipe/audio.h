/* audio.h - pipelines whose samples are sounds
 *
 * A pipeline whose first op is one on sounds has only such ops. Its rows are float32: [C, T], or [C, F,
 * T] of spectrograms. Sounds whose lengths differ are padded with zeros behind their ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_AUDIO_H
#define ST_PIPE_AUDIO_H

#include "pipe/loader.h"

/* Settles the shapes of a pipeline on sounds. */
int st_audio_plan(struct stoker_pipeline *pipe, struct stoker_error *err);
/* Whether the loader's options suit sounds. */
int st_audio_check(const struct stoker_loader_options *opt, struct stoker_error *err);
/* From the encoded sound to its row of the slot. `key`: whose chance it is. */
int st_audio_make(struct st_worker *worker, struct st_bytes bytes, uint64_t key, struct st_slot *slot,
                  uint32_t row, struct stoker_error *err);

#endif
