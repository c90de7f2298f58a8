/* image.h - an image that is not made until someone needs its pixels
 *
 * Ops that only say where pixels come from (crops, one resize, flips), or what is done to each of them once
 * the size is settled (deeds), are noted down; pixels are made when an op wants to see them, or at the end,
 * straight into the slot. So a crop before decoding shrinks the decode, a crop after a resize shrinks the
 * resize, a flip costs nothing, and what is noted can be left to a device.
 *
 *     encoded or pixels -> crop -> resize, window -> deeds -> mirror, flip
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_IMAGE_H
#define ST_OP_IMAGE_H

#include "codec/codec.h"
#include "op/colour.h"
#include "op/deed.h"
#include "op/resize.h"
#include "op/turn.h"

struct st_image;
struct st_jpeg_kernels;

/* What a worker brings along; one for each worker, not shared. */
struct st_work {
    struct st_arena arena;
    struct st_decoder decoder;
    const struct st_kernels *kernels;    /* st_kernels_for(level) */
    const struct st_colour_rows *colour; /* st_colour_rows_for(level); NULL: plain C */
    const struct st_jpeg_kernels *jpeg;  /* st_jpeg_kernels_for(level); NULL: plain C */
    uint32_t pillow; /* 12 or 13 */
    bool fast;       /* fidelity: may decode at a reduced scale */
    uint64_t decode_ns;
    /* NULL, or called before an image is decoded that will take about so much scratch memory: whatever it
     * answers but 0 ends the sample. */
    int (*reserve)(struct st_work *work, const struct st_image *image, uint64_t bytes, struct stoker_error *err);
};

/* The fastest kernels that this CPU has. */
void st_work_equip(struct st_work *work);

static inline const struct st_colour_rows *st_colour_rows_of(const struct st_work *work)
{
    return work->colour ? work->colour : st_colour_rows_for(ST_CPU_C);
}

struct st_image {
    struct st_work *work;
    /* where the pixels come from */
    bool encoded;
    struct st_bytes bytes;
    uint32_t codec;
    struct st_header header;
    struct st_turn turn;    /* to be applied on decoding */
    struct st_view pixels;  /* when not encoded */
    bool owned;             /* pixels lie in the arena for this image alone: ops may write to them */
    /* what is still to be done to them, in this order */
    struct st_region crop; /* of the image as turned */
    bool resized;
    struct st_resize resize; /* of `crop`; its window is what is left of the result */
    struct st_deed deed[ST_DEEDS_MAX];
    uint32_t deed_count;
    bool mirror, flip;
};

/* Reads the header; the image is then `encoded`, its crop the whole. */
int st_image_open(struct st_image *image, struct st_work *work, struct st_bytes bytes, bool exif_rotate,
                  struct stoker_error *err);
/* An image of pixels that are there already, with 64 readable bytes behind the last row. They stay as
 * they are, and must outlive the image. */
void st_image_wrap(struct st_image *image, struct st_work *work, struct st_view pixels);
/* An image of pixels that somebody has in memory: rows of `channels` (1 to 4) interleaved bytes without gaps.
 * They become RGB, as Pillow's convert("RGB") has it: grey is tripled, transparency dropped. */
int st_image_raw(struct st_image *image, struct st_work *work, struct st_bytes bytes, int64_t width, int64_t height,
                 int64_t channels, struct stoker_error *err);
int32_t st_image_width(const struct st_image *image);
int32_t st_image_height(const struct st_image *image);
int32_t st_image_channels(const struct st_image *image); /* 3 while encoded */
/* The region must lie inside the image. */
int st_image_crop(struct st_image *image, struct st_region region, struct stoker_error *err);
int st_image_resize(struct st_image *image, int32_t width, int32_t height, enum st_filter filter,
                    struct stoker_error *err);
/* Deeds see the whole image: a crop or resize that comes after one has them carried out first. */
int st_image_do(struct st_image *image, struct st_deed deed, struct stoker_error *err);
void st_image_mirror(struct st_image *image);
void st_image_flip(struct st_image *image);
/* Makes the pixels. With `writable` they may be changed in place. Mirroring and flipping stay noted when
 * `any_side` (for ops that treat every pixel alike), else they are carried out. */
int st_image_pixels(struct st_image *image, bool writable, bool any_side, struct st_view *out,
                    struct stoker_error *err);
/* Puts other pixels (from the arena) in their place; what was noted down is dropped, except mirror and
 * flip when `any_side`. */
void st_image_set(struct st_image *image, struct st_view pixels, bool any_side);
/* The end, for a device: the pixels that what is still noted begins with. `*resize` is then what becomes of
 * them (of which they are the part that it needs), if `*resized`; deeds, mirroring and flipping follow. */
int st_image_rest(const struct st_image *image, struct st_view *pixels, bool *resized,
                  struct st_resize *resize, struct stoker_error *err);
/* The same where someone else decodes the file, whole and upright: `*window` is the part of it that the pixels
 * are. False where that will not do, because pixels have been made already or the image is turned. */
bool st_image_window(const struct st_image *image, struct st_region *window, bool *resized,
                     struct st_resize *resize);
/* The end: everything that is left, into the slot. */
int st_image_finish(struct st_image *image, const struct st_finish *finish, const struct st_place *place,
                    struct stoker_error *err);

#endif
