/* notify.h - changes of a loader's state that other threads have to learn about
 *
 * These are called from all over the floor and call nothing of it.
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
/* There may be work for the JPEG engines: tickets, and too few batches ready for them to rest. */
void st_jpeg_engines_wake(struct stoker_loader *loader);
/* Whether they leave the next tickets to the workers: the files are not known to be sound, or the
 * engines are slow. */
bool st_jpeg_engines_pass(const struct stoker_loader *loader);
/* Whether enough batches are ready for this engine thread to rest. */
bool st_jpeg_engines_ahead(const struct stoker_loader *loader, uint32_t thread);
/* Whether engine threads give way to the consumer, because they work on its CPU. */
bool st_jpeg_engines_yield(const struct stoker_loader *loader);
/* Whether an engine thread should take only a few tickets at a time. */
bool st_jpeg_engines_brief(const struct stoker_loader *loader);
/* Begins or ends a time in which the engines work and some workers rest. */
void st_jpeg_engines_engage(struct stoker_loader *loader, bool engaged);

#endif
