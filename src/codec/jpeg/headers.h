/* headers.h - reads everything before a scan
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_HEADERS_H
#define ST_CODEC_JPEG_HEADERS_H

#include "codec/jpeg/baseline.h"

#include <stdbool.h>

enum { ST_JPEG_COMPONENTS_MAX = 3, ST_JPEG_TABLES_MAX = 4, ST_JPEG_MCU_BLOCKS_MAX = 6 };

/* A Huffman table as in the file: the numbers of codes of 1 to 16 bits, then their symbols. */
struct st_jpeg_code {
    const uint8_t *counts, *symbols; /* counts NULL: no table */
    uint32_t total;
};

struct st_jpeg_component {
    uint8_t id, h, v;       /* sampling factors */
    uint8_t quant, dc, ac;  /* indices of its tables */
    uint32_t width, height; /* in samples, without the padding of the last blocks */
};

/* What a scan of a progressive file is of. */
struct st_jpeg_selection {
    uint32_t count; /* of components */
    uint8_t component[ST_JPEG_COMPONENTS_MAX];
    uint8_t first, last; /* coefficients, in zigzag order */
    uint8_t high, low;   /* bits below which nothing was known (0: nothing at all), and is now */
};

struct st_jpeg_frame {
    uint32_t width, height, components;
    struct st_jpeg_component component[ST_JPEG_COMPONENTS_MAX];
    uint32_t h, v; /* maximum sampling factors; 1, 1 for grey */
    uint32_t mcus_across, mcus_down, mcu_blocks;
    uint32_t restart_interval;              /* in MCUs; 0: none */
    bool rgb;                               /* the components are red, green and blue */
    bool ignored_factors;                   /* a single component with sampling factors other than 1 */
    bool progressive;
    struct st_jpeg_selection selection;     /* of the scan, if it is */
    bool extended;                          /* SOF1, or 16-bit quantisation: beyond baseline */
    uint16_t steps[ST_JPEG_TABLES_MAX][64]; /* quantisation, in zigzag order */
    bool has_steps[ST_JPEG_TABLES_MAX];
    struct st_jpeg_code dc[ST_JPEG_TABLES_MAX], ac[ST_JPEG_TABLES_MAX];
    struct st_bytes scan; /* from the first byte of entropy-coded data to the end of the file */
};

/* The result points into `in`, which must outlive it. ST_JPEG_PROGRESSIVE: the frame is as complete as
 * that of a baseline file, and its scan is the first of several. */
enum st_jpeg_reason st_jpeg_headers(struct st_bytes in, struct st_jpeg_frame *frame);
/* In a progressive file: from the marker behind a scan to the start of the next one. `frame->scan` is
 * empty if the image ends here. */
enum st_jpeg_reason st_jpeg_next_scan(struct st_bytes in, struct st_jpeg_frame *frame);

#endif
