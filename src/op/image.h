/* image.h - a lazy image: its pixels are not made until they are needed
 *
 * Ops that only say where pixels come from (crops, a resize, borders, flips), or how they change once
 * the size is final (pending ops), are recorded. Pixels are made when an op needs to see them, or at the
 * end, directly in the slot. So a crop before decoding shrinks the decode, a crop after a resize shrinks
 * the resize, a flip costs nothing, and the recorded work can be left to a device.
 *
 *     encoded, pixels or front -> crop -> resize, window -> edges -> pending ops -> mirror, flip
 *
 * An op that comes too late for this order (a crop behind a warp, a second resize) begins a new record,
 * whose source is the one so far, its front. So of a warp, too, only what is left by a later crop or
 * needed by a later resize is made.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_IMAGE_H
#define ST_OP_IMAGE_H

#include "codec/codec.h"
#include "op/boxes.h"
#include "op/geometry/edges.h"
#include "op/pending.h"
#include "op/resize/resize.h"
#include "op/work.h"
#include "op/geometry/turn.h"

struct st_image {
    struct st_work *work;
    /* source of the pixels */
    bool encoded;
    struct st_bytes bytes;
    uint32_t codec;
    struct st_header header;
    struct st_turn turn;    /* to be applied on decoding */
    struct st_view pixels;  /* if not encoded */
    struct st_image *front; /* not NULL: the pixels will be those of this image, when it is known how
                               many of them are needed. It has no such source itself */
    uint32_t made_x, made_y; /* where `pixels` begin, which may be a part of the source */
    bool owned;             /* the pixels are the image's own, in the arena: ops may modify them */
    struct st_numbers *numbers; /* not NULL: a mask, whose pixels are numbers. It is moved like its image
                                   (resized by the nearest pixels), and its values never change */
    struct st_boxes *boxes; /* not NULL: boxes in an image without pixels. Ops move them at once */
    struct st_region *chosen; /* of an op with a guide: the crop; NULL: there is an image alone */
    /* remaining work, in this order */
    struct st_region crop; /* of the image after its turn */
    bool resized;
    struct st_resize resize; /* of `crop`; its window is the visible part of the result */
    struct st_edges edges;   /* around it; of masks, fill[0] is a number */
    struct st_pending pending[ST_PENDING_MAX];
    uint32_t pending_count;
    bool single; /* of three channels that the last one makes equal, one is left */
    bool mirror, flip;
};

/* Reads the header; the image is then `encoded`, and its crop is the whole image. */
int st_image_open(struct st_image *image, struct st_work *work, struct st_bytes bytes, bool exif_rotate,
                  struct stoker_error *err);
/* Makes an image that was just opened a mask. `numbers` outlives it; with st_image_raw, `wide` is
 * false. The caller may then set `bits` and `floored`. */
void st_image_is_mask(struct st_image *image, struct st_numbers *numbers);
/* An image without pixels whose boxes are moved. The boxes outlive it. */
void st_image_of_boxes(struct st_image *image, struct st_work *work, int32_t width, int32_t height,
                       struct st_boxes *boxes);
/* The pixel that stands for a number up to 255 outside of a mask, once its pixels are made. */
void st_image_number(const struct st_image *mask, uint8_t number, uint8_t pixel[4]);
/* An image of existing pixels, with 64 readable bytes after the last row. They are not modified and must
 * outlive the image. */
void st_image_wrap(struct st_image *image, struct st_work *work, struct st_view pixels);
/* An image of pixels in memory: rows of `channels` (1 to 4) interleaved bytes without gaps. They are
 * converted to RGB like Pillow's convert("RGB"): grey is tripled, alpha is dropped. RGB that
 * outlives the image, with 64 more readable bytes (`followed`), is not copied. */
int st_image_raw(struct st_image *image, struct st_work *work, struct st_bytes bytes, int64_t width,
                 int64_t height, int64_t channels, bool followed, struct stoker_error *err);
int32_t st_image_width(const struct st_image *image);
int32_t st_image_height(const struct st_image *image);
int32_t st_image_channels(const struct st_image *image); /* 3 while encoded */
/* The region must lie inside the image. */
int st_image_crop(struct st_image *image, struct st_region region, struct stoker_error *err);
int st_image_resize(struct st_image *image, int32_t width, int32_t height, enum st_filter filter,
                    struct stoker_error *err);
/* Puts edges around the image, or takes others of its rows and columns. Of masks, fill[0] is the
 * number that is filled in. The lists are copied. */
int st_image_surround(struct st_image *image, const struct st_edges *edges, struct stoker_error *err);
/* What is behind an op's pointers outlives the image. A warp (`mirror` and `flip` are set here) comes
 * after what was to be mirrored and flipped. */
int st_image_do(struct st_image *image, struct st_pending op, struct stoker_error *err);
/* Makes three channels a grey one. */
int st_image_grey(struct st_image *image, struct stoker_error *err);
void st_image_mirror(struct st_image *image);
void st_image_flip(struct st_image *image);
/* Makes the pixels. With `writable` they may be modified in place. With `any_side` (for ops that treat
 * all pixels alike) mirroring and flipping stay pending, else they are performed. */
int st_image_pixels(struct st_image *image, bool writable, bool any_side, struct st_view *out,
                    struct stoker_error *err);
/* Replaces the pixels by others (from the arena); everything pending is dropped, except mirror and flip
 * with `any_side`. */
void st_image_set(struct st_image *image, struct st_view pixels, bool any_side);
/* For a device: the pixels that the pending work starts from, which stay the image's. If `*resized`,
 * `*resize` is to be applied to them (they are just the part of the input that it needs); then follow
 * edges, pending ops, mirroring and flipping, and of a single channel's three the first is taken. */
int st_image_rest(struct st_image *image, struct st_view *pixels, bool *resized,
                  struct st_resize *resize, struct stoker_error *err);
/* For a device: a copy of what the image is made from, if that is another one that is not made yet;
 * `*part` of what it gives is needed. */
bool st_image_front(const struct st_image *image, struct st_image *front, struct st_region *part);
/* What was decoded for the copy is the image's. */
void st_image_front_keep(struct st_image *image, const struct st_image *front);
/* As st_image_rest, if the device decodes the file itself, whole and upright: `*window` is the part of
 * it that is needed. False if that is not possible, because pixels have been made already, the image is
 * turned, or something that is recorded lies in the arena, which such an image may outlive. */
bool st_image_window(const struct st_image *image, struct st_region *window, bool *resized,
                     struct st_resize *resize);
/* Does everything that is pending, directly into the slot. */
int st_image_finish(struct st_image *image, const struct st_finish *finish, const struct st_place *place,
                    struct stoker_error *err);

#endif
