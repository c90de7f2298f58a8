/* codec.h - decodes images
 *
 * Each codec is one file that ends in its `const struct st_codec`, listed in registry.c. The codec is
 * chosen by the contents of a file, never by its name. All codecs give RGB bytes, equal to those of
 * PIL.Image.open(...).convert("RGB").
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_CODEC_H
#define ST_CODEC_CODEC_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

#include <stdatomic.h>

struct st_jpeg_marks;

struct st_header {
    uint32_t width, height;
    uint32_t orientation; /* EXIF: 1 (upright) to 8; 1 if the file does not say */
    uint32_t scales;      /* bit set 1 | 2 | 4 | 8: the reductions that `decode` supports (always 1) */
    uint64_t scratch;     /* estimated bytes that decoding takes in addition to the pixels */
};

/* `each` bytes per pixel, for `scratch`. */
static inline uint64_t st_scratch_for(uint64_t each, uint64_t width, uint64_t height)
{
    uint64_t bytes;
    return st_mul(width, height, &bytes) && st_mul(each, bytes, &bytes) ? bytes : UINT64_MAX;
}

/* Asks for the numbers of a mask's pixels (classes) instead of their colours: a palette's indices, and
 * grey levels that are not scaled from 1 bit. PNG only: other files give grey levels. */
struct st_numbers {
    bool floored; /* in: resizes take the pixel at or before the one they need, as torch does */
    bool bits; /* in: each of 8 bits is a mask by itself, and outside of the image all are 0 */
    bool wide; /* out: they have 16 bits, and are R + 256 * G; else they are R, G and B alike */
};

struct st_decode {
    uint32_t scale;          /* 1, 2, 4 or 8: decode at width/scale, rounded up (JPEG only) */
    struct st_region region; /* of the scaled image; inside it, and not empty */
    uint32_t *path;          /* out: the path that the file took through the codec; set by the decoder */
    bool *clean; /* NULL, or out: whether all of the file, not just the region, was decoded by our own
                    decoder, and nothing unusual was found; only JPEG sets it */
    struct st_jpeg_marks *marks; /* NULL, or of this file: only for JPEG (codec/jpeg/marks.h) */
    struct st_numbers *numbers;  /* NULL: colours */
};

struct st_codec {
    const char *name;
    size_t state_size; /* per worker, zeroed by the caller; may be 0 */
    bool (*probe)(const uint8_t *data, size_t size);
    /* Cheap: reads only the header. May keep its findings in `state` for the decode that follows. */
    int (*header)(void *state, struct st_bytes in, struct st_header *out, struct stoker_error *err);
    /* RGB pixels of the region, allocated from `arena`, with 64 readable bytes after the last row. */
    int (*decode)(void *state, struct st_bytes in, const struct st_decode *how, struct st_arena *arena,
                  struct st_view *out, struct stoker_error *err);
    void (*close)(void *state); /* safe on zeroed state; NULL if there is nothing to free */
    const char *(*based_on)(void); /* "libjpeg-turbo 2.1.5"; NULL: our own code */
    /* Names of the paths that a file can take through the codec; NULL past the last. May be NULL: one
     * path. */
    const char *(*path_name)(uint32_t path);
};

enum { ST_CODECS_MAX = 16, ST_PATHS_MAX = 32 };
/* The codecs of this build, NULL-terminated. */
extern const struct st_codec *const st_codecs[];
/* Known kinds of file that this build cannot decode, with the missing library. */
struct st_codec_missing {
    const char *name, *library;
    bool (*probe)(const uint8_t *data, size_t size);
};
extern const struct st_codec_missing st_codecs_missing[]; /* terminated by a NULL name */

/* The codecs of one worker, with states that are allocated on first use. Initially zeroed. */
struct st_decoder {
    void *state[ST_CODECS_MAX];
    uint64_t pixel_limit; /* 0: none */
    _Atomic uint64_t files[ST_CODECS_MAX][ST_PATHS_MAX]; /* decoded, by codec and path; read by any
                                                            thread */
};

/* Finds the codec, reads the header, and refuses images beyond the pixel limit. *codec is the codec's
 * index, to be passed to st_decoder_decode. */
int st_decoder_header(struct st_decoder *decoder, struct st_bytes in, uint32_t *codec,
                      struct st_header *out, struct stoker_error *err);
int st_decoder_decode(struct st_decoder *decoder, uint32_t codec, struct st_bytes in,
                      const struct st_decode *how, struct st_arena *arena, struct st_view *out,
                      struct stoker_error *err);
void st_decoder_close(struct st_decoder *decoder);

#endif
