/* audio_probe.c - recognises the kind of a sound file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/audio.h"

#include <string.h>

const char *const st_audio_names[ST_AUDIO_KINDS] = {"WAV", "FLAC", "Ogg/Vorbis", "Opus", "MP3"};

static bool has(struct st_bytes in, size_t at, const char *magic)
{
    return st_has(in, at, magic, strlen(magic));
}

/* The first packet of an Ogg stream, which identifies its contents, follows a page header of 27 bytes
 * and its table. */
static bool ogg_holds(struct st_bytes in, const char *magic)
{
    return in.size > 27 && has(in, (size_t)27 + in.data[26], magic);
}

/* Eleven sync bits, then a layer and rates other than the reserved ones. */
static bool is_mpeg_frame(struct st_bytes in)
{
    return in.size >= 4 && in.data[0] == 0xff && (in.data[1] & 0xe0) == 0xe0 &&
           (in.data[1] & 0x18) != 0x08 && (in.data[1] & 0x06) != 0 && (in.data[2] & 0xf0) != 0xf0 &&
           (in.data[2] & 0x0c) != 0x0c;
}

int32_t st_audio_probe(struct st_bytes in)
{
    if ((has(in, 0, "RIFF") || has(in, 0, "RF64") || has(in, 0, "RIFX")) && has(in, 8, "WAVE"))
        return ST_AUDIO_WAV;
    if (has(in, 0, "fLaC"))
        return ST_AUDIO_FLAC;
    if (has(in, 0, "OggS"))
        return ogg_holds(in, "OpusHead")     ? ST_AUDIO_OPUS
               : ogg_holds(in, "\001vorbis") ? ST_AUDIO_VORBIS
                                             : -1;
    return has(in, 0, "ID3") || is_mpeg_frame(in) ? ST_AUDIO_MP3 : -1;
}
