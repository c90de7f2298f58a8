/* tiff_sink.h - collects the pixels of a TIFF, and turns the image upright
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_TIFF_SINK_H
#define ST_CODEC_TIFF_SINK_H

#include "codec/tiff_file.h"

/* Takes packed rows in any order and writes them to their positions in the upright image. */
struct st_tiff_sink {
    const struct st_tiff *tiff;
    struct st_packing packing;
    struct st_region region; /* of the image as stored */
    uint8_t *first;          /* destination of the region's first pixel */
    ptrdiff_t across, down;  /* from there to the next pixel and the next row */
    uint8_t *line;           /* scratch: a row of the region as RGB */
    uint8_t *planes;         /* separate samples, four bytes per pixel; else NULL */
    uint8_t *reversed;       /* scratch: a row with reversed bits; else NULL */
};
/* Sets up the sink for `region`, which is in upright coordinates, and allocates its pixels. */
int st_tiff_sink_open(struct st_tiff_sink *sink, const struct st_tiff *tiff, struct st_region region,
                      struct st_arena *arena, struct st_view *out, struct stoker_error *err);
/* Pixels x to x + count of row y. Bytes outside the region need not be valid. */
void st_tiff_put(struct st_tiff_sink *sink, uint32_t x, uint32_t y, uint32_t count, const uint8_t *row);
/* The same for one plane of samples, `step` bytes apart; byte `high` of each is used. */
void st_tiff_put_plane(struct st_tiff_sink *sink, uint32_t plane, uint32_t x, uint32_t y, uint32_t count,
                       const uint8_t *row, uint32_t step, uint32_t high);
/* All pixels are there: converts separate planes to RGB. */
void st_tiff_sink_finish(struct st_tiff_sink *sink);

#endif
