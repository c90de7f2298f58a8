/* job_warp.c - what a device has to know of a warp
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/job_warp.h"

#include "op/geometry/warp_nearest.h"

#include <string.h>

struct st_turn st_job_turn(const struct st_pending *pending, uint32_t from, uint32_t count,
                           struct st_turn last)
{
    for (uint32_t k = from; k < count; k++)
        if (pending[k].kind == ST_PENDING_WARP)
            return (struct st_turn){.mirror = pending[k].mirror, .flip = pending[k].flip};
    return last;
}

static enum st_job_warp_how how_of(const struct st_pixel_map *by, int32_t width, int32_t height)
{
    if (by->mix == ST_MIX_BICUBIC)
        return ST_JOB_WARP_BICUBIC;
    if (by->mix == ST_MIX_BILINEAR)
        return ST_JOB_WARP_BILINEAR;
    if (by->perspective)
        return ST_JOB_WARP_NEAREST;
    return st_warp_nearest_way(by->map, width, height) == ST_NEAREST_PLACES ? ST_JOB_WARP_PLACES
                                                                           : ST_JOB_WARP_FIXED;
}

uint64_t st_job_warp_bytes(const struct st_pending *op, int32_t width, int32_t height)
{
    const bool places = how_of(&op->warp, width, height) == ST_JOB_WARP_PLACES;
    const uint64_t list = places ? ((uint64_t)width + (uint64_t)height) * sizeof(int32_t) : 0;
    return st_align(sizeof(struct st_job_warp) + list, sizeof(double));
}

void st_job_warp_put(const struct st_pending *op, int32_t width, int32_t height, struct st_turn after,
                     uint8_t *to, uint64_t at)
{
    const struct st_pixel_map *by = &op->warp;
    struct st_job_warp *warp = (struct st_job_warp *)(void *)to;
    *warp = (struct st_job_warp){.how = how_of(by, width, height),
                                 .perspective = by->perspective,
                                 .mirror = after.mirror,
                                 .flip = after.flip};
    memcpy(warp->map, by->map, (by->perspective ? 8 : 6) * sizeof *by->map);
    for (uint32_t c = 0; c < sizeof by->fill; c++)
        warp->fill |= (uint32_t)by->fill[c] << (8 * c);
    if (warp->how == ST_JOB_WARP_FIXED) {
        const struct st_warp_fixed f = st_warp_fixed_of(by->map);
        memcpy(warp->at, f.at, sizeof warp->at);
        memcpy(warp->right, f.right, sizeof warp->right);
        memcpy(warp->down, f.down, sizeof warp->down);
        warp->limit[0] = st_warp_fixed_side(width);
        warp->limit[1] = st_warp_fixed_side(height);
    }
    if (warp->how == ST_JOB_WARP_PLACES) {
        int32_t *place = (int32_t *)(void *)(to + sizeof *warp);
        warp->places = at + sizeof *warp;
        st_warp_places(by->map[0], by->map[2], width, width, place);
        st_warp_places(by->map[4], by->map[5], height, height, place + width);
    }
}
