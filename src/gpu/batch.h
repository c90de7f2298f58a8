/* batch.h - the argument of the kernels
 *
 * There are two kernels, with one block per tile of 32 x 32 output pixels of every row of the batch:
 *
 *   st_gpu_rows       resize, mirror, flip; then pending ops up to the first that needs all pixels
 *   st_gpu_pending    from there to the next such op: contrast, which needs a mean, or blur, which needs
 *                     neighbours; launched as often as the row with the most such ops requires
 *
 * The block that runs a row's last op also finishes and erases, so that the output is written once; a
 * row without contrast and blur is done by the first kernel. In between, images are kept in scratch
 * memory, one word per pixel, already mirrored, alternating between two planes per row.
 *
 * A JPEG that the device has decoded itself arrives as samples. Its pixels are made from them in shared
 * memory, one input row per warp, just before the horizontal pass needs them: nothing between the
 * samples and the output is ever in the device's memory.
 *
 * Between the two passes of a resize, a tile's pixels stay in shared memory. A tile that needs too many
 * for that (a reduction by more than about 5) is done in strips; if even a single output row does (by
 * more than about 80), they are recomputed for each output pixel.
 *
 * Speed: a batch of 256 regions of 400 x 300 pixels, resized to 224 x 224 in bf16, reads 92 MB and
 * writes 77 MB, which takes 35 us on an H200 with 4.8 TB/s. The rest is arithmetic: about 115
 * instructions for each of 18 million pixels between the passes, 60 in the second pass and 50 for
 * finishing each of 13 million; that is 110 million warp instructions, of which 132 multiprocessors at
 * 1.7 GHz execute 900,000 per microsecond: 120 us. tests/gpu/test_kernels measures this.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_BATCH_H
#define ST_GPU_BATCH_H

#include "gpu/both.h"
#include "pipe/device.h"

enum {
    ST_TILE = 32,             /* pixels per side: one warp per row */
    ST_TILE_MID = 160 * 32,   /* words between two passes */
    ST_TILE_TAPS = 40,        /* weights of a column that are kept in shared memory */
    ST_TILE_LINE = 256,       /* input columns of a tile that are made from samples at once */
};

struct st_gpu_batch {
    const uint8_t *raw;           /* jobs; their offsets count from here */
    uint8_t *images;
    uint32_t *planes;             /* [2][rows][height][width] */
    uint64_t *sums;               /* [rows][ST_PENDING_MAX]: of grey, before the stage's contrast */
    const uint32_t *lut;          /* [channels][256]: bits of the output */
    uint32_t rows;
    uint32_t stage;               /* 0: st_gpu_rows; else the number of the run of st_gpu_pending */
    int32_t width, height, channels;
    int32_t tiles_across, tiles;  /* per row of the batch */
    uint32_t element;             /* bytes per value */
    uint32_t planar;              /* NCHW */
};

/* Whether an op needs more of the image than the pixel itself, and so starts a stage. */
ST_BOTH uint32_t st_pending_begins(uint32_t kind)
{
    return kind == ST_PENDING_CONTRAST || kind == ST_PENDING_BLUR;
}

/* The work of a block, determined by its first thread. */
struct st_tile_plan {
    uint32_t idle;            /* nothing to do for this row in this stage */
    uint32_t from, to, last;  /* its ops [from, to); last: the row is finished after them */
    uint32_t summed;          /* the next op is contrast: grey values are summed */
    uint32_t sum;
    float level;              /* of the contrast that this stage starts with */
};

/* A block's shared memory. */
struct st_tile {
    union {
        uint32_t mid[ST_TILE_MID];
        float blurred[ST_TILE_MID]; /* vertically, not yet horizontally */
    };
    uint32_t weights[ST_TILE_TAPS * ST_TILE]; /* horizontal taps, grouped by tap position */
    uint32_t line[ST_GPU_WARPS * ST_TILE_LINE]; /* input rows made from samples */
    uint32_t out[ST_TILE * ST_TILE];          /* pixels, in output order */
    uint32_t lut[3 * 256];
    struct st_tile_plan plan;
};

/* A block's position in the batch and in its image. */
struct st_spot {
    const struct st_job *job;
    uint32_t row;
    int32_t x, y, width, height; /* of the tile, before mirroring and flipping */
    uint32_t mirror, flip;
    int32_t out_x, out_y;        /* and after */
};

#endif
