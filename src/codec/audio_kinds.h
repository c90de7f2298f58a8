/* audio_kinds.h - the known kinds of sound
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_AUDIO_KINDS_H
#define ST_CODEC_AUDIO_KINDS_H

#include "codec/audio.h"

enum st_audio_kind {
    ST_AUDIO_WAV,
    ST_AUDIO_FLAC,
    ST_AUDIO_VORBIS,
    ST_AUDIO_OPUS,
    ST_AUDIO_MP3,
    ST_AUDIO_KINDS
};
extern const char *const st_audio_names[ST_AUDIO_KINDS];

#endif
