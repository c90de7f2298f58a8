/* kernels.h - the inner loops of the JPEG decoder, one table for each kind of CPU
 *
 * The C version is complete and is the specification; every other variant gives the same bytes, and
 * tests/codec/test_jpeg_own_kernels compares them with guard bytes around the output.
 *
 * Vectors may overshoot within limits that every variant observes: an input row is readable for 64 bytes
 * past its end (unstuff: none), an output row may be written up to the next multiple of 64 pixels, and
 * the transform works in whole groups of ST_JPEG_GROUP blocks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_KERNELS_H
#define ST_CODEC_JPEG_KERNELS_H

#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ST_JPEG_GROUP = 4,
    /* Upper limit for the sum of absolute dequantised coefficients in each column of a block. Below it,
     * the 16-bit and the 32-bit variants of libjpeg-turbo's transform give the same pixels; above it
     * they differ, so such files are left to the library. Blocks made from pixels stay below: sqrt(8) *
     * 1024 = 2896. */
    ST_JPEG_COLUMN_MAX = 2950,
    /* Larger quantiser steps need not be distinguished: any coefficient times this exceeds the limit. */
    ST_JPEG_STEP_MAX = ST_JPEG_COLUMN_MAX + 1,
};

struct st_jpeg_block {
    const int16_t *coefs; /* 64, quantised, in zigzag order, 64-byte aligned */
    uint32_t end;         /* 1 to 64: coefficients from here on are 0 */
};

/* Steps of one quantisation table, 0 to ST_JPEG_STEP_MAX. */
struct st_jpeg_quant {
    _Alignas(64) int16_t zigzag[64];
    _Alignas(64) int16_t natural[64];
};

struct st_jpeg_scan;
struct st_jpeg_stream;
struct st_jpeg_band;

struct st_jpeg_kernels {
    const char *name;
    /* Runs one stream, or two alternating ones, until one stops: at its lane's `stop`, at the end of its
     * runs, or with a reason. Returns that one. (streams.h; the same C code for all, compiled with
     * better instructions where available.) */
    struct st_jpeg_stream *(*run_one)(struct st_jpeg_scan *scan, struct st_jpeg_stream *a);
    struct st_jpeg_stream *(*run_two)(struct st_jpeg_scan *scan, struct st_jpeg_stream *a,
                                      struct st_jpeg_stream *b);
    /* Read adjacent blocks of a scan of AC coefficients, up to the first reason, and add what they find
     * to the blocks' masks. `coefs` NULL: they are not needed. The first scan of a band, or one that
     * adds a bit. (progressive.h; the same C code for all) */
    void (*band_first)(struct st_jpeg_band *band, uint64_t *masks, int16_t *coefs, uint32_t count);
    void (*band_later)(struct st_jpeg_band *band, uint64_t *masks, int16_t *coefs, uint32_t count);
    /* Copies scan data without the 00 that follows each FF, up to the first FF that is followed by
     * something else or is the last byte of the input. Returns the number of bytes written; *used is the
     * number read. May write up to 64 bytes beyond that. */
    size_t (*unstuff)(uint8_t *out, const uint8_t *in, size_t size, size_t *used);
    /* Dequantises and transforms `count` adjacent blocks, 8 rows `stride` bytes apart. Both the list and
     * the output have room up to the next multiple of ST_JPEG_GROUP, and the list entries there are
     * valid. False if a column exceeds ST_JPEG_COLUMN_MAX; the output is then undefined. */
    bool (*transform)(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks, int32_t count,
                      const struct st_jpeg_quant *quant);
    /* Doubles `count` samples; each output is 3/4 of the nearer and 1/4 of the farther sample. in[-1]
     * and in[count] must be valid. */
    void (*h2v1)(uint8_t *out, const uint8_t *in, int32_t count);
    /* As h2v1, applied to the row 3/4 near + 1/4 far. */
    void (*h2v2)(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t count);
    /* (3 near + far + bias) / 4; bias 1 for the upper row of a pair, 2 for the lower. */
    void (*h1v2)(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t bias, int32_t count);
    void (*ycc)(uint8_t *rgb, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width);
    void (*grey)(uint8_t *rgb, const uint8_t *y, int32_t width);
};

/* The table for a level, or for the next lower one in this build. */
const struct st_jpeg_kernels *st_jpeg_kernels_for(enum st_cpu_level level);

extern const struct st_jpeg_kernels st_jpeg_kernels_c;
void st_jpeg_interleave(uint8_t *restrict rgb, const uint8_t *restrict red,
                        const uint8_t *restrict green, const uint8_t *restrict blue, int32_t width);
/* From zigzag position to position in a block, row by row. */
#define ST_JPEG_NATURAL                                                                                 \
    {                                                                                                   \
        0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, \
            13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58,   \
            59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63                                  \
    }
extern const uint8_t st_jpeg_natural[64];

#endif
