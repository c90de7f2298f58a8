/* tiff_file.h - parses a TIFF's first directory, and decodes its pixels by libtiff
 *
 * Which files are accepted, and what their tags mean, is decided here by Pillow's rules. Uncompressed
 * pixels are read by us, as Pillow does; everything else goes through libtiff.
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
    uint64_t count; /* 0: the tag is missing */
    const uint8_t *data;
};

struct st_tiff {
    bool big_endian;
    uint32_t width, height; /* as stored, before turning */
    uint32_t orientation;   /* 1 to 8; like Pillow, we turn the image when it is loaded */
    uint32_t compression, photometric;
    bool separate;  /* the samples of a pixel are stored in separate planes */
    uint32_t bits;  /* per sample */
    uint32_t bands; /* of the image's mode in Pillow: including alpha or black, without padding */
    struct st_packing packing; /* of one pixel, contiguous */
    bool reversed;             /* the bits of each byte are stored lowest first */
    uint8_t table[256][3];
    uint64_t block_width, block_height; /* of a strip or tile; uncompressed files only */
    struct st_tiff_tag offsets;
};

int st_tiff_parse(struct st_bytes in, struct st_tiff *tiff, struct stoker_error *err);
/* The i-th value of an integer tag. */
int64_t st_tiff_value(const struct st_tiff *tiff, const struct st_tiff_tag *tag, uint64_t i);

struct st_tiff_sink;
/* Decodes the region's pixels into the sink, using libtiff. */
int st_tiff_decode_lib(struct st_bytes in, struct st_tiff *tiff, struct st_tiff_sink *sink,
                       struct st_arena *arena, struct stoker_error *err);

#endif
