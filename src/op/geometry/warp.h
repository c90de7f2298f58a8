/* warp.h - rotations, affine and perspective maps of images, byte for byte as Pillow's x86-64 builds
 *
 * Every pixel of the result comes from a point of the image, between four pixels as a rule. Drawing the
 * numbers, making a map of them (maps.h) and moving pixels are three things: what else belongs to the
 * image (masks, boxes) follows the same map.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_WARP_H
#define ST_OP_GEOMETRY_WARP_H

#include "op/image.h"

enum st_warp_kind { ST_WARP_TURN, ST_WARP_AFFINE, ST_WARP_PERSPECTIVE };

struct st_warp {
    enum st_warp_kind kind;
    struct st_turn turn;   /* ST_WARP_TURN: this is all that counts */
    int32_t width, height; /* of the result */
    /* The point (x, y) of the result, pixels having their centres at halves, comes from
     * ((map[0] x + map[1] y + map[2]) / d, (map[3] x + map[4] y + map[5]) / d), where d is
     * map[6] x + map[7] y + 1, or 1 if the map is affine. */
    double map[8];
    /* Unless the map is a perspective: the point (x, y) of the image goes to
     * (forward[0] x + forward[1] y + forward[2], forward[3] x + forward[4] y + forward[5]). */
    double forward[6];
    bool expand;           /* the result is as large as what comes out, which begins at its upper left */
    bool off_centre;       /* turned around another point than the image's centre */
    enum st_filter filter; /* nearest, bilinear or bicubic */
    uint8_t fill[4];       /* of pixels that come from outside */
    uint8_t mask_fill;     /* the same for masks, to which the nearest pixels move */
};

/* Rows become columns. `op` is the op's name, for messages. Not for boxes. */
int st_image_transpose(struct st_image *image, const char *op, struct stoker_error *err);
int st_image_warp(struct st_image *image, const struct st_warp *warp, const char *op,
                  struct stoker_error *err);

#endif
