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

#endif
