/* progressive.h - the coefficients of a region of a progressive file, while its scans come in
 *
 * A scan either is the first of some coefficients or adds one bit to them. What it says of a block
 * depends on which coefficients of that block are not 0 yet, so this has to be known of each block above
 * and beside the region, too: one bit for each coefficient. The coefficients themselves are kept of
 * needed blocks only.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_PROGRESSIVE_H
#define ST_CODEC_JPEG_PROGRESSIVE_H

#include "codec/jpeg/bits.h"

/* Of one component; rows and columns are in blocks. */
struct st_jpeg_grid {
    uint64_t *masks; /* [row][column], down to the last needed row; bit k: coefficient k > 0 is not 0 */
    int16_t *coefs;  /* [row - top][column - left][64], of needed blocks, in zigzag order */
    uint32_t stride; /* columns, with those that only fill the last MCU */
    uint32_t across, down; /* without them: what scans of this component alone have */
    uint32_t left, right, top, bottom; /* needed */
    int8_t low[64]; /* bits of each coefficient that are still missing; -1: all */
};

static inline uint64_t *st_jpeg_masks_at(const struct st_jpeg_grid *grid, uint32_t row, uint32_t column)
{
    return grid->masks + (size_t)row * grid->stride + column;
}

static inline int16_t *st_jpeg_coefs_at(const struct st_jpeg_grid *grid, uint32_t row, uint32_t column)
{
    const size_t columns = grid->right - grid->left;
    return grid->coefs + ((row - grid->top) * columns + (column - grid->left)) * 64;
}

/* A scan of AC coefficients, or an interval of it. */
struct st_jpeg_band {
    struct st_jpeg_bits bits;
    const uint8_t *stop; /* a block that begins here or later has no data */
    const struct st_jpeg_ac_single *table;
    uint32_t first, last, low;
    uint32_t ended; /* blocks from here on that have no new coefficients */
    enum st_jpeg_reason reason;
};

struct st_jpeg_scan;

/* Reads all scans of the file, beginning with the one that `frame` has; `scan` says what is needed. */
enum st_jpeg_reason st_jpeg_progressive(const struct st_jpeg_scan *scan, struct st_jpeg_frame *frame,
                                        struct st_jpeg_tables *tables, struct st_arena *arena,
                                        struct st_jpeg_grid grids[ST_JPEG_COMPONENTS_MAX]);

#endif
