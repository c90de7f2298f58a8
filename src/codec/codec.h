/* codec.h - encoded bytes to pixels
 *
 * One kind of file is one codec: a file that ends in its `const struct st_codec`, named in registry.c.
 * Content decides which codec takes the bytes, never the file's name. All codecs give RGB bytes, equal to
 * what PIL.Image.open(...).convert("RGB") gives.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_CODEC_H
#define ST_CODEC_CODEC_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

#include <stdatomic.h>

struct st_header {
    uint32_t width, height;
    uint32_t orientation; /* EXIF: 1 (upright) to 8; 1 where the file says nothing */
    uint32_t scales;      /* a set of bits: 1 | 2 | 4 | 8, the reductions `decode` can do (1 always) */
    uint64_t scratch;     /* bytes that decoding takes beside the pixels, about: for who plans memory */
};

/* So many bytes for each pixel, for `scratch`. */
static inline uint64_t st_scratch_for(uint64_t each, uint64_t width, uint64_t height)
{
    uint64_t bytes;
    return st_mul(width, height, &bytes) && st_mul(each, bytes, &bytes) ? bytes : UINT64_MAX;
}

struct st_decode {
    uint32_t scale;          /* 1, 2, 4 or 8: decode at width/scale, rounded up (JPEG only) */
    struct st_region region; /* of the image as scaled; inside it, and not empty */
    uint32_t *path;          /* where the codec says which of its paths the file took; set by the decoder */
};

struct st_codec {
    const char *name;
    size_t state_size; /* of one worker, zeroed by the caller; 0 is fine */
    bool (*probe)(const uint8_t *data, size_t size);
    /* Cheap: reads the header only. May keep what it found in `state` for the decode that follows. */
    int (*header)(void *state, struct st_bytes in, struct st_header *out, struct stoker_error *err);
    /* RGB pixels of the region, in memory from `arena`, with 64 readable bytes behind the last row. */
    int (*decode)(void *state, struct st_bytes in, const struct st_decode *how, struct st_arena *arena,
                  struct st_view *out, struct stoker_error *err);
    void (*close)(void *state); /* safe on zeroed state; NULL where there is nothing to free */
    const char *(*based_on)(void); /* "libjpeg-turbo 2.1.5"; NULL: our own code */
    /* Names of the ways a file can take through the codec; NULL past the last. No function: one way. */
    const char *(*path_name)(uint32_t path);
};

enum { ST_CODECS_MAX = 16, ST_PATHS_MAX = 32 };
/* The codecs of this build, NULL at the end. */
extern const struct st_codec *const st_codecs[];
/* Kinds of file we know but this build cannot decode, with the library that is missing. */
struct st_codec_missing {
    const char *name, *library;
    bool (*probe)(const uint8_t *data, size_t size);
};
extern const struct st_codec_missing st_codecs_missing[]; /* name NULL at the end */

/* One worker's codecs with their states, made when first needed. Zero it to begin. */
struct st_decoder {
    void *state[ST_CODECS_MAX];
    uint64_t pixel_limit; /* 0: none */
    _Atomic uint64_t files[ST_CODECS_MAX][ST_PATHS_MAX]; /* decoded, by codec and path; any thread may look */
};

/* Finds the codec, reads the header, and refuses images beyond the pixel limit. *codec is the codec's
 * number, to be given to st_decoder_decode. */
int st_decoder_header(struct st_decoder *decoder, struct st_bytes in, uint32_t *codec,
                      struct st_header *out, struct stoker_error *err);
int st_decoder_decode(struct st_decoder *decoder, uint32_t codec, struct st_bytes in,
                      const struct st_decode *how, struct st_arena *arena, struct st_view *out,
                      struct stoker_error *err);
void st_decoder_close(struct st_decoder *decoder);

#endif
