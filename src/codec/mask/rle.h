/* rle.h - masks as run lengths, as COCO writes them
 *
 * Results are those of pycocotools.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_MASK_RLE_H
#define ST_CODEC_MASK_RLE_H

#include "base/shapes.h"
#include "codec/mask/fill.h"

/* Fails unless the mask has pixels, and no more than can be counted. */
int st_mask_check_size(uint32_t width, uint32_t height, struct stoker_error *err);
/* Fails unless the counts have the right sum: counts from elsewhere are checked before they are used. */
int st_rle_check(const struct st_rle *rle, struct stoker_error *err);
/* The counts from COCO's compressed text; the memory is the arena's. */
int st_rle_read(struct st_rle *out, struct st_bytes text, uint32_t width, uint32_t height,
                struct st_arena *arena, struct stoker_error *err);

/* Draws the mask in a plane of the same size with one channel. */
int st_rle_draw(const struct st_rle *rle, const struct st_view *plane, struct st_brush brush,
                struct st_arena *arena, struct stoker_error *err);

#endif
