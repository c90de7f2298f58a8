/* batch.h - what the kernels are given: the one argument of each of them
 *
 * Two kernels, one block for every tile of 32 x 32 output pixels of every row of the batch:
 *
 *   st_gpu_rows     resize, mirror, flip; then the row's deeds up to the first that needs the whole image
 *   st_gpu_deeds    from there to the next such deed: contrast, which wants a mean, or blur, which wants
 *                   neighbours; launched as often as the row with most of them asks for
 *
 * The block that carries out a row's last deed also finishes and erases, so that the output is written
 * once; a row without contrast and blur is done by the first kernel. In between images lie in scratch, a
 * word a pixel, already mirrored, in one of two planes a row by turns.
 *
 * Between the two passes of a resize a tile's pixels stay in shared memory. A tile that needs too many
 * for that (a reduction by more than about 5) is done in strips; a single row of output that does (by
 * more than about 80) makes them anew for each output pixel.
 *
 * Speed: a batch of 256 regions of 400 x 300 pixels to 224 x 224 in bf16 is 92 MB to read and 77 MB to
 * write, 35 us for an H200 with 4.8 TB/s. The rest is arithmetic: about 115 instructions for each of 18
 * million pixels between the passes, 60 in the second pass and 50 for finishing each of 13 million; 110
 * million by the warp, of which 132 multiprocessors with 1.7 GHz do 900,000 in a microsecond: 120 us.
 * tests/gpu/test_kernels measures.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_BATCH_H
#define ST_GPU_BATCH_H

#include "gpu/both.h"
#include "pipe/device.h"

enum {
    ST_TILE = 32,             /* pixels a side: a warp for a row of them */
    ST_TILE_MID = 160 * 32,   /* words between two passes */
    ST_TILE_TAPS = 40,        /* weights of a column that are kept close by */
};

struct st_gpu_batch {
    const uint8_t *raw;           /* jobs, and what their offsets count from */
    uint8_t *images;
    uint32_t *planes;             /* [2][rows][height][width] */
    uint64_t *sums;               /* [rows][ST_DEEDS_MAX]: of greys, before the stage's contrast */
    const uint32_t *lut;          /* [channels][256]: bits of the output */
    uint32_t rows;
    uint32_t stage;               /* 0: st_gpu_rows; else which run of st_gpu_deeds */
    int32_t width, height, channels;
    int32_t tiles_across, tiles;  /* of a row of the batch */
    uint32_t element;             /* bytes of a value */
    uint32_t planar;              /* NCHW */
};

/* Whether a deed wants more of the image than the pixel itself, and so begins a stage. */
ST_BOTH uint32_t st_deed_begins(uint32_t kind)
{
    return kind == ST_DEED_CONTRAST || kind == ST_DEED_BLUR;
}

/* What a block has to do, settled by its first thread. */
struct st_tile_plan {
    uint32_t idle;            /* this row has nothing to do in this stage */
    uint32_t from, to, last;  /* its deeds [from, to); last: then the row is finished */
    uint32_t summed;          /* the next deed is contrast: greys are added up */
    uint32_t sum;
    float level;              /* of the contrast that this stage begins with */
};

/* A block's shared memory. */
struct st_tile {
    union {
        uint32_t mid[ST_TILE_MID];
        float blurred[ST_TILE_MID]; /* downwards, not yet sideways */
    };
    uint32_t weights[ST_TILE_TAPS * ST_TILE]; /* horizontal taps, those of one place side by side */
    uint32_t out[ST_TILE * ST_TILE];          /* pixels, as the output will lie */
    uint32_t lut[3 * 256];
    struct st_tile_plan plan;
};

/* A block's place in the batch and in its image. */
struct st_spot {
    const struct st_job *job;
    uint32_t row;
    int32_t x, y, width, height; /* of the tile, before it is turned */
    uint32_t mirror, flip;
    int32_t out_x, out_y;        /* and after */
};

#endif
