/* pixels.h - converts coefficients to rows of RGB
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_PIXELS_H
#define ST_CODEC_JPEG_PIXELS_H

#include "codec/jpeg/kernels.h"
#include "codec/jpeg/progressive.h"
#include "codec/jpeg/streams.h"

/* The samples of one component, for two rows of MCUs: the current one and the one above it. */
struct st_jpeg_plane {
    uint8_t *samples;
    size_t stride;
    uint32_t rows; /* of samples per row of MCUs */
};

struct st_jpeg_pixels {
    const struct st_jpeg_kernels *kernels;
    const struct st_jpeg_scan *scan;
    const struct st_jpeg_grid *grids; /* where coefficients are, or NULL: in the scan's band */
    struct st_region region;
    struct st_view out;
    uint32_t next_row; /* next row of the image to be written */
    struct st_jpeg_plane plane[ST_JPEG_COMPONENTS_MAX];
    struct st_jpeg_quant quant[ST_JPEG_COMPONENTS_MAX];
    struct st_jpeg_block *blocks;
    uint8_t *chroma[2]; /* one row each, as wide as the image */
};

enum st_jpeg_reason st_jpeg_pixels_begin(struct st_jpeg_pixels *pixels, struct st_arena *arena);
/* Writes the pixels that are complete with this row of MCUs, whose coefficients are in the scan. */
enum st_jpeg_reason st_jpeg_pixels_row(struct st_jpeg_pixels *pixels, uint32_t mcu_row);

#endif
