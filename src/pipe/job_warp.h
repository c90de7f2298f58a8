/* job_warp.h - what a device has to know of a warp
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_JOB_WARP_H
#define ST_PIPE_JOB_WARP_H

#include "op/geometry/turn.h"
#include "pipe/device.h"

/* How the image is turned between the op before number `from` and the next warp, or the end, for which
 * `last` was recorded. */
struct st_turn st_job_turn(const struct st_pending *pending, uint32_t from, uint32_t count,
                           struct st_turn last);

/* Bytes of the warp and its lists, for an image of this size. */
uint64_t st_job_warp_bytes(const struct st_pending *op, int32_t width, int32_t height);
/* Writes them to `to`, which is `at` bytes into the host half and aligned for doubles. */
void st_job_warp_put(const struct st_pending *op, int32_t width, int32_t height, struct st_turn after,
                     uint8_t *to, uint64_t at);

#endif
