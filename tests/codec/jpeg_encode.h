/* jpeg_encode.h - JPEG files of every kind, for tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_JPEG_ENCODE_H
#define ST_TESTS_JPEG_ENCODE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

struct jpeg_kind {
    int width, height, components;          /* components: 1, 3 or 4 */
    int h[4], v[4];                         /* sampling factors; 0: 1 */
    int quality;                            /* 0: 85 */
    int restart;                            /* MCUs between restart markers */
    bool progressive, arithmetic, separate; /* separate: one scan for each component */
    bool unfinished;                        /* progressive, but the low bits of AC never come */
    J_COLOR_SPACE space;                    /* of the file; 0: YCbCr, grey or CMYK */
    bool plain;                             /* neither a JFIF nor an Adobe marker */
    int adobe;                              /* with an Adobe marker: its transform + 1 */
    bool wide;                              /* quantisation tables of 16 bits */
    bool optimized;                         /* Huffman tables made for this image */
    bool tables;                            /* three components: a quantisation table each, Huffman tables swapped */
    /* Paints row y; NULL: jpeg_paint. */
    void (*paint)(const struct jpeg_kind *kind, uint8_t *row, int y);
    const void *picture; /* for paint */
};

/* Smooth shapes, edges and a little noise: all coefficients get used. */
static inline void jpeg_paint(uint8_t *row, int y, int width, int components)
{
    for (int x = 0; x < width; x++)
        for (int c = 0; c < components; c++) {
            const double wave = sin(x * (0.11 + 0.05 * c)) * cos(y * (0.07 + 0.03 * c));
            const int edge = ((x / 13 + y / 9 + c) & 3) * 25,
                      noise = (x * 7919 + y * 104729 + c * 31) % 23;
            row[x * components + c] = (uint8_t)(70 + 60 * (wave + 0.5) + edge + noise);
        }
}

static inline void jpeg_use_tables(struct jpeg_compress_struct *c)
{
    unsigned steps[DCTSIZE2];
    for (unsigned k = 0; k < DCTSIZE2; k++)
        steps[k] = 3 + k / 2;
    jpeg_add_quant_table(c, 2, steps, 100, TRUE);
    c->comp_info[2].quant_tbl_no = 2;
    for (int k = 0; k < 3; k++)
        c->comp_info[k].dc_tbl_no = c->comp_info[k].ac_tbl_no = k == 0;
}

static inline void jpeg_apply(struct jpeg_compress_struct *c, const struct jpeg_kind *kind)
{
    static const jpeg_scan_info unfinished[] = {{3, {0, 1, 2}, 0, 0, 0, 1},
                                                {1, {0}, 1, 5, 0, 2},
                                                {1, {1}, 1, 63, 0, 1},
                                                {3, {0, 1, 2}, 0, 0, 1, 0}};
    static const jpeg_scan_info separate[] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}, {1, {3}, 0, 63, 0, 0}};
    static const J_COLOR_SPACE usual[] = {0, JCS_GRAYSCALE, 0, JCS_YCbCr, JCS_CMYK};
    jpeg_set_colorspace(c, kind->space ? kind->space : usual[kind->components]);
    if (kind->wide)
        jpeg_set_linear_quality(c, 500, FALSE);
    else
        jpeg_set_quality(c, kind->quality ? kind->quality : 85, TRUE);
    for (int k = 0; k < kind->components; k++) {
        c->comp_info[k].h_samp_factor = kind->h[k] ? kind->h[k] : 1;
        c->comp_info[k].v_samp_factor = kind->v[k] ? kind->v[k] : 1;
    }
    if (kind->tables)
        jpeg_use_tables(c);
    c->restart_interval = (unsigned)kind->restart;
    if (kind->progressive)
        jpeg_simple_progression(c);
    if (kind->unfinished) {
        c->scan_info = unfinished;
        c->num_scans = 4;
    } else if (kind->separate) {
        c->scan_info = separate;
        c->num_scans = kind->components;
    }
    c->arith_code = kind->arithmetic;
    c->optimize_coding = kind->optimized || c->optimize_coding;
    if (kind->plain)
        c->write_JFIF_header = c->write_Adobe_marker = FALSE;
}

/* The file, to be freed; libjpeg ends the program when the kind is impossible. */
static inline uint8_t *jpeg_make(const struct jpeg_kind *kind, size_t *size)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *file = NULL;
    unsigned long bytes = 0;
    c.err = jpeg_std_error(&errors);
    errors.trace_level = -1; /* no remarks on coarse tables */
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &file, &bytes);
    c.image_width = (JDIMENSION)kind->width;
    c.image_height = (JDIMENSION)kind->height;
    c.input_components = kind->components;
    c.in_color_space = kind->components == 1   ? JCS_GRAYSCALE
                       : kind->components == 3 ? JCS_RGB
                                               : JCS_CMYK;
    jpeg_set_defaults(&c);
    jpeg_apply(&c, kind);
    jpeg_start_compress(&c, TRUE);
    if (kind->adobe) {
        const uint8_t marker[12] = {'A', 'd', 'o', 'b', 'e', 0,
                                    100, 0,   0,   0,   0,   (uint8_t)(kind->adobe - 1)};
        jpeg_write_marker(&c, JPEG_APP0 + 14, marker, sizeof marker);
    }
    uint8_t *row = malloc((size_t)kind->width * 4);
    while (c.next_scanline < c.image_height) {
        if (kind->paint)
            kind->paint(kind, row, (int)c.next_scanline);
        else
            jpeg_paint(row, (int)c.next_scanline, kind->width, kind->components);
        jpeg_write_scanlines(&c, &row, 1);
    }
    free(row);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    *size = bytes;
    return file;
}

#endif
