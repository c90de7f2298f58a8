/* engine.h - a device's JPEG engines as one more kind of worker
 *
 * An engine thread takes tickets like any worker, only several at once: it draws what becomes of each
 * image, lets the engines decode whole files into the device's memory, and writes jobs that begin there.
 * What the engines do not take, or fail at, it makes like any worker.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_ENGINE_H
#define ST_PIPE_ENGINE_H

#include "pipe/loader.h"

/* Settles whether the loader may use engines: `kind` may be NULL. Before the slots are made. */
int st_engines_open(struct stoker_loader *loader, const struct st_engine_kind *kind,
                    struct stoker_error *err);
/* Starts the threads, after the workers and the reader. They open the engines, which takes a while;
 * where that fails or a thread does not start, fewer decode: this is noted, and no error. */
void st_engines_start(struct stoker_loader *loader);
/* The loader is closing: waits for the threads and gives everything back. */
void st_engines_close(struct stoker_loader *loader);
/* There may be work for engines: tickets, and fewer batches ready than they rest at. Lock held. */
void st_engines_wake(struct stoker_loader *loader);
/* Tickets that engine threads may hold at once, all together. */
uint32_t st_engines_tickets(const struct stoker_loader *loader);
void st_engines_stats(const struct stoker_loader *loader, struct stoker_stats *out); /* lock held */

#endif
