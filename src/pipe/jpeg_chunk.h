/* jpeg_chunk.h - makes a chunk of tickets: the hardware decodes what it can, this thread the rest
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_JPEG_CHUNK_H
#define ST_PIPE_JPEG_CHUNK_H

#include "pipe/jpeg_work.h"
#include "pipe/tickets.h"

/* Makes the chunk's samples, and counts in `self` what the hardware decoded. If the epoch is being
 * stopped, rows may stay unmade. */
void st_jpeg_chunk_make(struct st_jpeg_thread *self, const struct st_tickets *chunk);

#endif
