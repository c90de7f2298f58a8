/* pending.h - ops on an image's values, and maps of its pixels, that are recorded and run later
 *
 * Like crops and resizes, they are first recorded in the image (st_image_do) and run later by whoever
 * makes its pixels: st_pending_run here, or a device. None of them changes the image's size. Those on
 * values do not depend on the image's orientation, so mirroring and flipping may come before or after;
 * a map has recorded what was to be mirrored and flipped before it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_PENDING_H
#define ST_OP_PENDING_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"
#include "op/colour/tables.h"
#include "op/tensor/finish.h"

struct st_warp_rows;

enum st_pending_kind {
    ST_PENDING_BRIGHTNESS, ST_PENDING_CONTRAST, ST_PENDING_SATURATION, ST_PENDING_HUE,
    ST_PENDING_GREY,    /* three equal channels; an image of one channel is unchanged */
    ST_PENDING_BLUR, ST_PENDING_SHARPNESS,
    ST_PENDING_SOLARIZE,  /* inverts the values from `level` on, 0 to 256 */
    ST_PENDING_POSTERIZE, /* keeps the bits of `level` */
    ST_PENDING_LIGHTEN,   /* adds `level`, 0 to 128, to values below 128 */
    ST_PENDING_AUTOCONTRAST, ST_PENDING_EQUALIZE,
    ST_PENDING_PERMUTE,   /* channel k becomes that of digit k of `level`, in base 16 */
    ST_PENDING_WARP,      /* pixels come from other places */
    ST_PENDING_TABLE,     /* each value of a channel becomes that of its table */
    ST_PENDING_KINDS
};

enum { ST_PENDING_MAX = 16 }; /* when full, the recorded ops are run first */

/* How the pixel of a point between others is made of them; or rows become columns, in a square image,
 * without a map. */
enum st_mix { ST_MIX_NEAREST, ST_MIX_BILINEAR, ST_MIX_BICUBIC, ST_MIX_TRANSPOSED };

/* Where pixels come from (geometry/warp.h: st_warp.map), and how they are made. */
struct st_pixel_map {
    double map[8];
    bool perspective;
    enum st_mix mix;
    uint8_t fill[4]; /* of pixels that come from outside */
    struct st_region window; /* the part of the result that is made; width 0: all of it */
};

struct st_pending {
    enum st_pending_kind kind;
    float factor;          /* of colour changes and sharpness */
    uint32_t level;
    int32_t across, down;  /* blur: kernel widths, odd; half a kernel is smaller than the image */
    double sigma;
    const uint8_t *table;  /* of three channels, 256 values each */
    struct st_pixel_map warp;
    bool mirror, flip;     /* warp: of the image, before */
};

/* Whether each of the ops makes a pixel of that pixel alone, so that it does not matter whether the
 * others are there. */
bool st_pending_by_pixel(const struct st_pending *pending, uint32_t count);

/* The level of solarize for a threshold: i < threshold stays. Not for NaN. */
static inline uint32_t st_solarize_level(double threshold)
{
    const double bounded = threshold < 0 ? 0 : threshold > 256 ? 256 : threshold;
    const uint32_t whole = (uint32_t)bounded;
    return whole + (whole < bounded);
}

/* The level of posterize that keeps the highest `bits`, 0 to 8. */
static inline uint32_t st_posterize_mask(int32_t bits) { return 256 - (1u << (8 - bits)); }

/* What is still to be done to each row, whatever the others hold. */
struct st_row_changes {
    const struct st_colour_rows *rows;
    int32_t channels;
    uint32_t count;
    struct st_row_change {
        enum st_pending_kind kind; /* ST_PENDING_KINDS: replaces values */
        float factor;
        uint32_t level;
        struct st_replacement values;
    } list[ST_PENDING_MAX];
};

/* Runs the ops up to the last one that has to see all pixels, and leaves the rest in `changes`, which
 * the arena outlives. The pixels, unless they are `*owned`, are not modified but replaced by new ones
 * from the arena. Returns STOKER_ENOMEM or STOKER_OK. */
int st_pending_begin(const struct st_pending *pending, uint32_t count, const struct st_colour_rows *rows,
                     const struct st_warp_rows *warp, struct st_arena *arena, struct st_view *pixels,
                     bool *owned, struct st_row_changes *changes);
/* Makes the changes on the way to the destination; false: out of memory. */
bool st_row_changes_finish(const struct st_row_changes *changes, struct st_arena *arena,
                           const struct st_view *pixels, const struct st_finish *finish,
                           const struct st_kernels *kernels, bool mirror, bool flip,
                           const struct st_place *place);
/* Runs all of them. */
int st_pending_run(const struct st_pending *pending, uint32_t count, const struct st_colour_rows *rows,
                   const struct st_warp_rows *warp, struct st_arena *arena, struct st_view *pixels,
                   bool *owned);

#endif
