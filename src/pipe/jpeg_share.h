/* jpeg_share.h - which of the files for the JPEG hardware its threads decode themselves
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_JPEG_SHARE_H
#define ST_PIPE_JPEG_SHARE_H

#include "pipe/jpeg_work.h"

struct st_jpeg_frame;

/* What it costs a CPU to decode the window, as a number of bytes to parse: all of its rows have to be
 * parsed, and its pixels made. */
uint64_t st_jpeg_cpu_cost(const struct st_jpeg_frame *frame, struct st_bytes file,
                          struct st_region window);
/* Picks the thread's share of the items, the cheapest ones, and returns how many these are. If there are
 * none, `mine` is not written. */
uint32_t st_jpeg_share_pick(const struct st_jpeg_thread *self, bool mine[ST_JPEG_CHUNK_MOST]);
/* Sets the share for the next chunk: by how far `ahead` of the consumer the work is, relative to the
 * batches that are to be ready, but not below the least share; or by what is fastest, if the consumer
 * waits (`awaited`). Lock held. */
void st_jpeg_share_set(struct st_jpeg_thread *self, double ahead, bool awaited);
/* Learns from how the chunk went. */
void st_jpeg_share_adapt(struct st_jpeg_thread *self, bool awaited);
/* The consumer is about to use its batch, in `stream`; NULL: on the CPU. The first time counts. Lock not
 * held. */
void st_jpeg_share_served(struct st_slot *slot, const uintptr_t *stream);

#endif
