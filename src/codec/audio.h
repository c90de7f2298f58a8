/* audio.h - decodes sounds to samples
 *
 * The kind of a file is determined by its contents, never by its name. Samples are float32; full scale
 * is 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_AUDIO_H
#define ST_CODEC_AUDIO_H

#include "base/err.h"
#include "base/pixels.h"

enum { ST_AUDIO_CHANNELS_MAX = 64 }; /* sounds with more are refused */

struct st_audio_header {
    uint32_t rate, channels; /* samples per second; neither is 0 */
    uint64_t frames;         /* a frame is one sample of each channel */
};

struct st_audio_file;

/* Reads the header. The bytes must outlive the file. */
int st_audio_file_open(struct st_audio_file **out, struct st_bytes in, struct st_audio_header *header,
                       struct stoker_error *err);
/* Decodes only these frames, channels interleaved. */
int st_audio_file_read(struct st_audio_file *file, uint64_t first, uint64_t frames, float *out,
                       struct stoker_error *err);
void st_audio_file_close(struct st_audio_file *file); /* NULL is fine */

/* The known kinds of sound. */
enum st_audio_kind {
    ST_AUDIO_WAV,
    ST_AUDIO_FLAC,
    ST_AUDIO_VORBIS,
    ST_AUDIO_OPUS,
    ST_AUDIO_MP3,
    ST_AUDIO_KINDS
};
extern const char *const st_audio_names[ST_AUDIO_KINDS];

/* Whether this build can read a kind; false past the last. */
struct st_audio_format {
    const char *name;   /* "FLAC" */
    const char *detail; /* the library that reads it, or what is missing */
    bool present;
};
bool st_audio_format_at(uint32_t index, struct st_audio_format *out);

/* An enum st_audio_kind, determined by the first bytes, or -1. */
int32_t st_audio_probe(struct st_bytes in);

#endif
