/* streams.h - the scan: which MCUs are needed, and two decoders that decode their coefficients
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_STREAMS_H
#define ST_CODEC_JPEG_STREAMS_H

#include "codec/jpeg/blocks.h"
#include "codec/jpeg/marks.h"
#include "codec/jpeg/unstuff.h"

enum {
    ST_JPEG_SLACK = 32,        /* coefficients after a run of blocks that look-ups may overwrite */
    ST_JPEG_PAST_THE_END = 16, /* bytes; a lane that has read this far has used bits that do not exist */
};

/* The blocks of one MCU. */
struct st_jpeg_mcu {
    int16_t *coefs;
    const uint8_t *ends;
};

/* The start of an MCU, whose place in the image may be unknown. */
struct st_jpeg_point {
    uint32_t position; /* in bits */
    int32_t predicted[ST_JPEG_COMPONENTS_MAX];
};

/* One decoder and its interval. */
struct st_jpeg_stream {
    struct st_jpeg_lane lane;
    int32_t predicted[ST_JPEG_COMPONENTS_MAX];
    uint32_t mcu;      /* the first one after the current run */
    uint32_t mcu_end;  /* of the interval; equal to mcu when there is none */
    uint32_t data_end; /* of the interval, in bytes */
    enum st_jpeg_reason reason;
    /* Of a decoder that does not know its place in the image, for marks: */
    struct st_jpeg_point *points; /* NULL, or where the start of its next MCU is noted */
    uint32_t unplaced;            /* MCUs that it may still begin */
};

struct st_jpeg_scan {
    const struct st_jpeg_kernels *kernels;
    const struct st_jpeg_frame *frame;
    struct st_jpeg_data data;
    struct st_jpeg_phase phase[ST_JPEG_MCU_BLOCKS_MAX];
    uint32_t left, right, top, bottom; /* needed MCUs: columns [left, right), rows [top, bottom) */
    bool skips;                        /* there are tables for skipped blocks */
    bool surplus;                      /* bytes were left after the last MCU of an interval */
    uint32_t interval;                 /* MCUs between restart markers or marks, or the total number */
    uint32_t intervals;                /* the last one may be longer */
    uint32_t next_interval;
    struct st_jpeg_marks *marks;       /* in: where intervals start, if there are several; out: more of
                                          them. NULL: none */
    uint32_t mark_every;               /* MCUs */
    struct st_jpeg_stream stream[2];
    /* The current band: the rows whose coefficients are held at a time. */
    uint32_t band_top, band_bottom;
    struct st_jpeg_mcu *mcus;    /* [row - band_top][column - left] */
    int16_t *coefs, *coefs_free; /* memory for one band, and the next free position in it */
    uint8_t *ends, *ends_free;
    _Alignas(64) int16_t forgotten[64 + ST_JPEG_SLACK]; /* where discarded blocks go */
    uint8_t forgotten_end;
};

/* Allocates memory for the coefficients of a band of `rows` rows of MCUs. */
enum st_jpeg_reason st_jpeg_scan_reserve(struct st_jpeg_scan *scan, uint32_t rows,
                                         struct st_arena *arena);
/* Decodes the coefficients of the rows [band_top, band_bottom); bands follow each other downwards. */
enum st_jpeg_reason st_jpeg_scan_band(struct st_jpeg_scan *scan);
/* The same for scans with a single band and a single interval: two decoders in a stream without restart
 * markers. (speculate.c) */
enum st_jpeg_reason st_jpeg_scan_speculate(struct st_jpeg_scan *scan, struct st_arena *arena);

/* For speculate.c: positions a stream at the start of an interval, */
void st_jpeg_stream_begin(struct st_jpeg_scan *scan, struct st_jpeg_stream *s, uint32_t interval);
/* and starts its next run, at the lane's position; false if there is nothing more to decode for it in
 * this band. */
bool st_jpeg_stream_run(struct st_jpeg_scan *scan, struct st_jpeg_stream *s);
/* After the last MCU of an interval: notes whether bytes are left. */
void st_jpeg_stream_ended(struct st_jpeg_scan *scan, const struct st_jpeg_stream *s);
/* Notes the next mark, if this is its place. */
void st_jpeg_note_mark(struct st_jpeg_scan *scan, uint32_t mcu, const struct st_jpeg_point *point);
/* Whether bits past the end were used. */
bool st_jpeg_stream_overran(const struct st_jpeg_scan *scan, const struct st_jpeg_stream *s);

#endif
