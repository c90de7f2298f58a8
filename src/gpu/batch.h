/* batch.h - the argument of the kernels
 *
 * There are two kernels for finished images, with one block per tile of 32 x 32 output pixels of every
 * row of the batch:
 *
 *   st_gpu_rows       resize, mirror, flip; then pending ops up to the first that needs all pixels
 *   st_gpu_pending    from there to the next such op: contrast, which needs a mean, autocontrast and
 *                     equalize, which need histograms, or blur, sharpness and warps, which need other
 *                     pixels; launched as often as the row with the most such ops requires
 *
 * A row whose job has a front (pipe/device.h) needs an image that is made before, of a size of its own:
 * st_gpu_front_rows and st_gpu_front_pending are the same code for it, launched first. Blocks beyond the
 * front's last tile have nothing to do.
 *
 * The block that runs a row's last op also finishes and erases, so that the output is written once; a
 * row without these is done by the first kernel. In between, images are kept in scratch
 * memory, one word per pixel, already mirrored, alternating between two planes per row. What is to be
 * mirrored after a warp is mirrored by it.
 *
 * A JPEG that the device has decoded itself arrives as samples. Its pixels are made from them in shared
 * memory, just before the horizontal pass needs them: nothing between the samples and the output is ever
 * in the device's memory.
 *
 * Between the two passes of a resize, a tile's pixels stay in shared memory. The passes are products of
 * matrices (products.h) where a tile, or a strip of it, has room for that: for reductions by up to about
 * 4. Otherwise they are sums (resample.h), also in strips; if there is no room even for a single output
 * row (beyond about 80), sums are recomputed for each output pixel.
 *
 * Speed: a batch of 256 regions of 400 x 300 pixels, resized to 224 x 224 in bf16, reads 92 MB and
 * writes 77 MB, which takes 35 us on an H200 with 4.8 TB/s. The rest is arithmetic: by a count in the
 * compiled code about 7,000 warp instructions for each of 12,544 tiles, of which 132 multiprocessors at
 * 1.9 GHz execute 1,000,000 per microsecond at best (88 us), but half as many of most kinds. It takes
 * 0.23 ms from pixels in the heap, and 0.29 ms from samples with and without subsampling, in one launch;
 * it was 0.27 and 0.34 ms with 9,000 instructions.
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
    ST_TILE_POOL = 33 << 10,  /* bytes for products.h */
};

struct st_gpu_batch {
    const uint8_t *raw;           /* jobs; their offsets count from here */
    const struct st_job *jobs;    /* of its rows */
    uint8_t *made;                /* results of fronts, and their scratch memory */
    uint8_t *images;
    uint32_t *planes;             /* [2][rows][height][width]; the second half is */
    uint64_t other;               /* words further */
    uint64_t *sums;               /* [rows][ST_PENDING_MAX]: of grey, before the stage's contrast */
    uint32_t *counts;             /* [2][rows][3][256]: of values, before the stage's autocontrast or
                                     equalize; alternating like the planes */
    const uint32_t *lut;          /* [channels][256]: bits of the output; NULL: of bytes as they are */
    uint32_t rows;
    uint32_t first;               /* number of the launch's first block */
    uint32_t stage;               /* 0: st_gpu_rows; else the number of the run of st_gpu_pending */
    int32_t width, height, channels;
    int32_t pitch;                /* pixels of the output per row */
    int32_t tiles_across, tiles;  /* per row of the batch */
    uint32_t element;             /* bytes per value */
    uint32_t planar;              /* NCHW */
};

/* Whether an op needs more of the image than the pixel itself, and so starts a stage. */
ST_BOTH uint32_t st_pending_begins(uint32_t kind)
{
    const uint32_t kinds = 1u << ST_PENDING_CONTRAST | 1u << ST_PENDING_BLUR |
                           1u << ST_PENDING_SHARPNESS | 1u << ST_PENDING_AUTOCONTRAST |
                           1u << ST_PENDING_EQUALIZE | 1u << ST_PENDING_WARP;
    return kinds >> kind & 1;
}

/* Whether it needs how often each value occurs in the image. */
ST_BOTH uint32_t st_pending_counts(uint32_t kind)
{
    return kind == ST_PENDING_AUTOCONTRAST || kind == ST_PENDING_EQUALIZE;
}

/* The work of a block, determined by its first thread. */
struct st_tile_plan {
    uint32_t idle;            /* nothing to do for this row in this stage */
    uint32_t from, to, last;  /* its ops [from, to); last: the row is finished after them */
    uint32_t summed;          /* the next op is contrast: grey values are summed */
    uint32_t sum;
    uint32_t counted;         /* the next op needs histograms */
    float level;              /* of the contrast that this stage starts with */
    int32_t channels;         /* of its pixels: the output may have only one of three */
};

/* The planes of a job, prepared for the loops. */
struct st_planes {
    const uint8_t *luma, *blue, *red;
    uint32_t stride, chroma_stride;
    int32_t x, y;           /* of the region */
    int32_t last_x, last_y; /* of chroma */
    uint32_t half_x, half_y; /* chroma has half the columns, half the rows */
    uint32_t repeated;
};

/* One axis of a job, with addresses. */
struct st_axis {
    const int32_t *first, *weight;
    int32_t taps, window; /* struct st_job_side's */
};

/* A job, prepared for the loops. */
struct st_region_in {
    const uint8_t *pixels;
    uint32_t stride;
    int32_t channels;
    struct st_axis x, y;
    uint32_t in_planes; /* the pixels are still samples, in `planes` */
    struct st_planes planes;
};

/* An axis of a tile: the inputs that `count` outputs from `from` on need, and how they are kept. */
struct st_reach {
    int32_t from, count;
    int32_t first, inputs; /* the first input that is kept, and how many are */
    int32_t steps;         /* ST_PRODUCT_TAPS inputs each, per window */
    int32_t pitch;         /* bytes from line to line of inputs */
};

/* Where everything is in the pool, for `y.count` rows of a tile. */
struct st_products {
    struct st_reach x, y;
    int32_t weights_y, columns, rows; /* offsets; x's weights are at 0 */
    int32_t chunk;                    /* rows that are kept at once; 0: there is too little room */
    int32_t across, inverse;          /* groups of four columns per row; st_quotient's, of that */
};

/* A block's position in the batch and in its image. */
struct st_spot {
    const struct st_job *job;
    uint32_t row;
    int32_t x, y, width, height; /* of the tile, before mirroring and flipping */
    uint32_t mirror, flip;
    int32_t out_x, out_y;        /* and after */
    uint64_t at;                 /* offset of its first pixel in the output */
};

/* What becomes of values, and how often they occur. */
struct st_tile_values {
    uint32_t up_to[2][3][256]; /* pixels with a value or a lower one */
    int32_t low[3], high[3];   /* the least and the greatest value that occurs */
    uint32_t last[3];          /* pixels with the greatest */
    uint8_t table[3][256];     /* of the op that this stage starts with */
    uint32_t counts[3][256];   /* of this tile, for the next stage */
};

/* A block's shared memory. */
struct st_tile {
    union {
        uint8_t pool[ST_TILE_POOL];
        struct {
            uint32_t mid[ST_TILE_MID];
            uint32_t weights[ST_TILE_TAPS * ST_TILE]; /* horizontal taps, grouped by tap position */
        };
        float blurred[ST_TILE_MID]; /* vertically, not yet horizontally */
        struct st_tile_values values;
    };
    uint32_t out[ST_TILE * ST_TILE];          /* pixels, in output order */
    uint32_t lut[3 * 256];
    struct st_tile_plan plan;
    /* the same for all threads, and here because registers are scarcer: */
    struct st_spot spot;
    struct st_region_in in;
    struct st_products products;
};

/* Where pixel `x`, `y` of the tile is kept in tile->out, which is in output order. */
ST_BOTH uint32_t *st_out_at(struct st_tile *tile, const struct st_spot *spot, int32_t x, int32_t y)
{
    x = spot->mirror ? spot->width - 1 - x : x;
    y = spot->flip ? spot->height - 1 - y : y;
    return tile->out + y * ST_TILE + x;
}

#endif
