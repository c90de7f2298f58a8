/* work.h - what a worker has to make images with
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_WORK_H
#define ST_OP_WORK_H

#include "codec/codec.h"
#include "op/colour/colour.h"
#include "op/geometry/warp_rows.h"

struct st_image;
struct st_jpeg_kernels;
struct st_jpeg_marks;
struct st_kernels;
struct st_taps_kept;

/* Resources of one worker; not shared. */
struct st_work {
    struct st_arena arena;
    struct st_decoder decoder;
    const struct st_kernels *kernels;    /* st_kernels_for(level) */
    const struct st_colour_rows *colour; /* st_colour_rows_for(level); NULL: plain C */
    const struct st_jpeg_kernels *jpeg;  /* st_jpeg_kernels_for(level); NULL: plain C */
    const struct st_warp_rows *warp;     /* st_warp_rows_for(level); NULL: plain C */
    enum st_cpu_level level;             /* of kernels that are found when they run */
    struct st_taps_kept *taps; /* NULL: taps are always computed */
    uint32_t pillow; /* 12 or 13 */
    bool fast;       /* fidelity: may decode at a reduced scale */
    bool *clean;     /* NULL, or out, for each decode: see struct st_decode */
    struct st_jpeg_marks *marks; /* NULL, or in and out, likewise: of the one file that is decoded */
    uint64_t decode_ns;
    /* NULL, or called before decoding an image that will take about `bytes` of scratch memory; any
     * result but 0 fails the sample. */
    int (*reserve)(struct st_work *work, const struct st_image *image, uint64_t bytes,
                   struct stoker_error *err);
};

/* Selects the fastest kernels for this CPU. */
void st_work_equip(struct st_work *work);

static inline const struct st_colour_rows *st_colour_rows_of(const struct st_work *work)
{
    return work->colour ? work->colour : st_colour_rows_for(ST_CPU_C);
}
static inline const struct st_warp_rows *st_warp_rows_of(const struct st_work *work)
{
    return work->warp ? work->warp : st_warp_rows_for(ST_CPU_C);
}

#endif
