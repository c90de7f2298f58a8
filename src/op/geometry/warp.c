/* warp.c - rotations, affine and perspective maps of images
 *
 * A map that leaves an image its size is recorded, as ops on values are; another one is made at once,
 * and so are those of masks and boxes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp.h"

#include "op/geometry/warp_boxes.h"
#include "op/geometry/warp_nearest.h"
#include "op/geometry/warp_pixels.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int no_memory(const struct st_warp *warp, const char *op, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: no memory for an image of %d x %d pixels", op, warp->width,
                   warp->height);
}

static int check(const struct st_image *image, const struct st_warp *warp, const char *op,
                 struct stoker_error *err)
{
    const uint64_t limit = image->work->decoder.pixel_limit;
    if (warp->width < 1 || warp->height < 1)
        return st_fail(err, STOKER_EINVAL, "%s: a result of %d x %d pixels is empty", op, warp->width,
                       warp->height);
    if (limit && (uint64_t)warp->width * (uint64_t)warp->height > limit)
        return st_fail(err, STOKER_ELIMIT, "%s: %d x %d exceeds pixel_limit (%llu pixels)", op,
                       warp->width, warp->height, (unsigned long long)limit);
    for (int k = 0; k < (warp->kind == ST_WARP_PERSPECTIVE ? 8 : 6); k++)
        if (!isfinite(warp->map[k]))
            return st_fail(err, STOKER_EINVAL, "%s: a number of the map is %g, which is not finite", op,
                           warp->map[k]);
    return STOKER_OK;
}

static int turn_image(struct st_image *image, const struct st_warp *warp, const char *op,
                      struct stoker_error *err)
{
    struct st_view in, out;
    if (warp->turn.transpose) {
        const int rc = st_image_pixels(image, false, false, &in, err);
        if (rc < 0)
            return rc;
        if (!st_turn_view(warp->turn, &in, &image->work->arena, &out))
            return no_memory(warp, op, err);
        st_image_set(image, out, false);
        return STOKER_OK;
    }
    if (warp->turn.mirror)
        st_image_mirror(image);
    if (warp->turn.flip)
        st_image_flip(image);
    return STOKER_OK;
}

static struct st_pixel_map map_of(const struct st_warp *warp)
{
    struct st_pixel_map by = {.perspective = warp->kind == ST_WARP_PERSPECTIVE,
                              .mix = warp->filter == ST_FILTER_BICUBIC    ? ST_MIX_BICUBIC
                                     : warp->filter == ST_FILTER_BILINEAR ? ST_MIX_BILINEAR
                                                                          : ST_MIX_NEAREST};
    memcpy(by.map, warp->map, sizeof by.map);
    memcpy(by.fill, warp->fill, sizeof by.fill);
    return by;
}

/* Whether whoever makes the pixels can do it later: a device has no sums from pixel to pixel. */
static bool can_wait(const struct st_image *image, const struct st_warp *warp)
{
    const uint64_t bytes = (uint64_t)warp->width * (uint64_t)warp->height * 4;
    const bool summed = warp->kind == ST_WARP_AFFINE && warp->filter == ST_FILTER_NEAREST &&
                        st_warp_nearest_way(warp->map, warp->width, warp->height) == ST_NEAREST_FAR;
    return !image->numbers && warp->width == st_image_width(image) &&
           warp->height == st_image_height(image) && bytes <= INT32_MAX && !summed;
}

static int warp_now(struct st_image *image, const struct st_warp *warp, const char *op,
                    struct stoker_error *err)
{
    struct st_work *work = image->work;
    struct st_pixel_map by = map_of(warp);
    struct st_view in, out;
    const int rc = st_image_pixels(image, false, false, &in, err);
    if (rc < 0)
        return rc;
    if (image->numbers) {
        by.mix = ST_MIX_NEAREST;
        st_image_number(image, warp->mask_fill, by.fill);
    }
    if ((uint64_t)imaxabs(in.stride) * (uint64_t)in.height > INT32_MAX)
        return st_fail(err, STOKER_ELIMIT, "%s: an image of %d x %d pixels is too large to be moved", op,
                       in.width, in.height);
    if (!st_view_take(&out, &work->arena, warp->width, warp->height, in.channels) ||
        !st_warp_pixels(st_warp_rows_of(work), &by, &work->arena, &in, &out))
        return no_memory(warp, op, err);
    st_image_set(image, out, false);
    return STOKER_OK;
}

int st_image_warp(struct st_image *image, const struct st_warp *warp, const char *op,
                  struct stoker_error *err)
{
    if (image->boxes)
        return st_boxes_warp(image, warp, op, err);
    if (warp->kind == ST_WARP_TURN)
        return turn_image(image, warp, op, err);
    const int rc = check(image, warp, op, err);
    if (rc < 0)
        return rc;
    if (!can_wait(image, warp))
        return warp_now(image, warp, op, err);
    return st_image_do(image, (struct st_pending){.kind = ST_PENDING_WARP, .warp = map_of(warp)}, err);
}
