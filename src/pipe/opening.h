/* opening.h - what is decided while a loader is opened
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_OPENING_H
#define ST_PIPE_OPENING_H

#include "pipe/executor.h"

/* ---- where batches go (place.c) ------------------------------------------------------------------- */

/* Plans the slots, and opens the device. `devices` may be NULL. */
int st_loader_place(struct stoker_loader *loader, const struct st_devices *devices,
                    struct stoker_error *err);

/* ---- what samples have in common (model.c) -------------------------------------------------------- */

/* Learns from the first readable sample what all samples of a batch must have in common, where neither
 * the dataset nor the pipeline says. Workers are equipped by then; no thread runs yet. */
int st_model_learn(struct stoker_loader *loader, struct stoker_error *err);

#endif
