/* png_file.h - the chunks of a PNG file and the way from its rows to RGB
 *
 * What counts as a damaged file is decided here, by Pillow's rules, and not by the library that
 * inflates: chunks before the image data need a right checksum, the image data itself does not (its
 * Adler-32 is checked), colour hints are read for their size only, and what stands behind the data is
 * walked over.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_PNG_FILE_H
#define ST_CODEC_PNG_FILE_H

#include "codec/codec.h"

struct st_png {
    uint32_t width, height;
    uint8_t depth,
        colour; /* as in IHDR: colour 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha */
    bool interlaced;
    bool has_palette;
    uint8_t table[256][3];  /* colour 3: the palette, black where it ends */
    struct st_region frame; /* what the image data covers: all but in odd animations */
    size_t data;            /* where the first chunk of image data begins */
    bool ends;              /* the chunks go on to IEND, or to the next frame: nothing is cut off */
    uint32_t orientation;
};

int st_png_parse(struct st_bytes in, struct st_png *png, struct stoker_error *err);

/* The image data wrapped up as a plain PNG stream that any library reads: IHDR, IDATs, IEND. Palettes
 * are announced as grey, since only the bytes of the rows are wanted. */
struct st_png_stream {
    struct st_bytes in;
    uint8_t head[64]; /* bytes we made up ourselves: chunk headers and the like */
    size_t head_size, head_used;
    size_t at, left; /* the IDAT under way: where its next byte is, and how many are left */
    size_t rest;     /* of the file's own chunk behind that */
    size_t next;     /* where the file's next chunk would be */
    uint32_t crc;    /* of the IDAT under way */
    bool begun, ended;
    bool with_crc; /* IDATs are small and have right checksums (true at first); else they have none */
};
void st_png_stream_open(struct st_png_stream *stream, struct st_bytes in, const struct st_png *png);
/* False at the end. */
bool st_png_stream_read(struct st_png_stream *stream, uint8_t *to, size_t size);

/* A library that inflates and unfilters. */
struct st_png_engine {
    /* NULL: *status says why, with a sentence. */
    void *(*open)(struct st_png_stream *stream, int *status, struct stoker_error *err);
    /* The next row, pass after pass; NULL, or what is wrong. */
    const char *(*row)(void *reader, uint8_t *row, size_t bytes);
    void (*close)(void *reader); /* accepts NULL */
};

bool st_png_probe(const uint8_t *data, size_t size);
int st_png_header(void *state, struct st_bytes in, struct st_header *out, struct stoker_error *err);
int st_png_decode(const struct st_png_engine *engine, struct st_bytes in, const struct st_decode *how,
                  struct st_arena *arena, struct st_view *out, struct stoker_error *err);

#endif
