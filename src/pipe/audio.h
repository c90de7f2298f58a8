/* audio.h - pipelines whose samples are sounds
 *
 * A pipeline whose first op works on sounds contains only such ops. Its rows are float32: [C, T], or [C,
 * F, T] for spectrograms. Sounds of varying length are zero-padded at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_AUDIO_H
#define ST_PIPE_AUDIO_H

#include "pipe/loader.h"

/* Determines the shapes of a pipeline on sounds. */
int st_audio_plan(struct stoker_pipeline *pipe, struct stoker_error *err);
/* Whether the loader's options are valid for sounds. */
int st_audio_check(const struct stoker_loader_options *opt, struct stoker_error *err);
/* Makes the slot's row from an encoded sound. `key` selects its random draws. */
int st_audio_make(struct st_worker *worker, struct st_bytes bytes, uint64_t key, struct st_slot *slot,
                  uint32_t row, struct stoker_error *err);

#endif
