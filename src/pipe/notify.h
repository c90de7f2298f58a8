/* notify.h - changes of a loader's state that other threads have to learn about
 *
 * These are called from all over the layer and call nothing of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_NOTIFY_H
#define ST_PIPE_NOTIFY_H

#include "pipe/executor.h"

/* All functions are called with the lock held. */

/* Nothing more can be made in this epoch; the first error is kept. */
void st_loader_break(struct stoker_loader *loader, const struct stoker_error *err);
/* The worker is no longer busy. */
void st_worker_rests(struct stoker_loader *loader);
/* There may be work for the JPEG hardware: tickets, and too few batches ready for it to rest. */
void st_jpeg_threads_wake(struct stoker_loader *loader);
/* What this JPEG thread sees; not yet what the workers do (worker_rate, wanted). */
struct st_steer_seen st_jpeg_threads_see(const struct stoker_loader *loader, uint32_t thread);
/* Whether JPEG threads give way to the consumer, because they work on its CPU. */
bool st_jpeg_threads_yield(const struct stoker_loader *loader);
/* Begins or ends a time in which the hardware works and some workers rest. */
void st_jpeg_threads_engage(struct stoker_loader *loader, bool engages);

#endif
