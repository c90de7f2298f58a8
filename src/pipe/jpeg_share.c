/* jpeg_share.c - which of the files for the JPEG hardware its threads decode themselves
 *
 * How many is decided in jpeg_steer.c. Those that are cheapest for a CPU: the hardware takes about as
 * long for any.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/jpeg_share.h"

#include "codec/jpeg/headers.h"

enum { BYTE_PIXELS = 2 }; /* making so many pixels takes as long as parsing one byte of a file */

uint64_t st_jpeg_cpu_cost(const struct st_jpeg_frame *frame, struct st_bytes file,
                          struct st_region window)
{
    return file.size / frame->height * window.height +
           (uint64_t)window.width * window.height / BYTE_PIXELS;
}

/* How many of the items a CPU decodes in less time than this one. */
static uint32_t cheaper_than(const struct st_jpeg_thread *self, uint32_t item)
{
    const uint64_t cost = self->item[item].cost;
    uint32_t cheaper = 0;
    for (uint32_t k = 0; k < self->count; k++)
        cheaper += self->item[k].cost < cost || (self->item[k].cost == cost && k < item);
    return cheaper;
}

uint32_t st_jpeg_share_pick(const struct st_jpeg_thread *self, bool mine[ST_JPEG_CHUNK_MOST])
{
    const uint32_t share = st_steer_own(&self->steer, self->count);
    for (uint32_t k = 0; share && k < self->count; k++)
        mine[k] = cheaper_than(self, k) < share;
    return share;
}
