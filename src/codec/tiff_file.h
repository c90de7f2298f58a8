/* tiff_file.h - what a TIFF's first directory says, and where its pixels go
 *
 * Which files are taken and what their tags mean is decided here, by Pillow's rules. Uncompressed pixels
 * are read by us, as Pillow does; everything else goes through libtiff.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_TIFF_FILE_H
#define ST_CODEC_TIFF_FILE_H

#include "codec/codec.h"
#include "codec/to_rgb.h"

enum { ST_TIFF_RAW = 1, ST_TIFF_JPEG = 7 };
enum { ST_TIFF_YCBCR = 6 };

/* The values of a tag. */
struct st_tiff_tag {
    uint32_t type;
    uint64_t count; /* 0: the tag is not there */
    const uint8_t *data;
};

struct st_tiff {
    bool big_endian;
    uint32_t width, height; /* as stored, before turning */
    uint32_t orientation;   /* 1 to 8; Pillow turns the image when it loads it, and so do we */
    uint32_t compression, photometric;
    bool separate;  /* the samples of a pixel are stored in planes of their own */
    uint32_t bits;  /* of one sample */
    uint32_t bands; /* of the mode that Pillow gives the image: with alpha or black, without padding */
    struct st_packing packing; /* of one pixel, contiguous */
    bool reversed;             /* the bits of each byte, lowest first */
    uint8_t table[256][3];
    uint64_t block_width, block_height; /* of a strip or tile; uncompressed files only */
    struct st_tiff_tag offsets;
};

int st_tiff_parse(struct st_bytes in, struct st_tiff *tiff, struct stoker_error *err);
/* The i-th value of a tag of whole numbers. */
int64_t st_tiff_value(const struct st_tiff *tiff, const struct st_tiff_tag *tag, uint64_t i);

/* Takes packed rows in any order and paints them where they belong, turned. */
struct st_tiff_sink {
    const struct st_tiff *tiff;
    struct st_packing packing;
    struct st_region region; /* of the image as stored */
    uint8_t *first;          /* where the region's first pixel goes */
    ptrdiff_t across, down;  /* from there to the next pixel and the next row */
    uint8_t *line;           /* scratch: a row of the region as RGB */
    uint8_t *planes;         /* separate samples, four bytes a pixel; else NULL */
    uint8_t *reversed;       /* scratch: a row with its bits turned round; else NULL */
};
/* Pixels x to x + count of row y. The row's bytes beyond the region's need not be there. */
void st_tiff_put(struct st_tiff_sink *sink, uint32_t x, uint32_t y, uint32_t count, const uint8_t *row);
/* The same for one plane of samples, `step` bytes apart; byte `high` of each is taken. */
void st_tiff_put_plane(struct st_tiff_sink *sink, uint32_t plane, uint32_t x, uint32_t y, uint32_t count,
                       const uint8_t *row, uint32_t step, uint32_t high);

/* Brings the region's pixels to the sink, through libtiff. */
int st_tiff_decode_lib(struct st_bytes in, struct st_tiff *tiff, struct st_tiff_sink *sink,
                       struct st_arena *arena, struct stoker_error *err);

#endif
