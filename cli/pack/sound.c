/* sound.c - checks sounds and reads their properties
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "codec/audio.h"

#include <stdlib.h>

enum { FRAMES_AT_ONCE = 1 << 14 };

/* Decodes all of it, piece by piece. */
static int decode(struct st_audio_file *file, const struct pack_sound *sound, struct stoker_error *err)
{
    float *samples = st_calloc((uint64_t)FRAMES_AT_ONCE * sound->channels, sizeof *samples);
    if (!samples)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a sound");
    int rc = STOKER_OK;
    for (uint64_t at = 0; at < sound->frames && !rc; at += FRAMES_AT_ONCE) {
        const uint64_t left = sound->frames - at;
        rc = st_audio_file_read(file, at, left < FRAMES_AT_ONCE ? left : FRAMES_AT_ONCE, samples, err);
    }
    free(samples);
    return rc;
}

int pack_sound_look(struct pack_sound *sound, struct st_bytes bytes, bool deep, struct stoker_error *err)
{
    struct st_audio_format format;
    struct st_audio_header header;
    struct st_audio_file *file = NULL;
    const int32_t kind = st_audio_probe(bytes);
    *sound = (struct pack_sound){0};
    if (kind >= 0 && st_audio_format_at((uint32_t)kind, &format) && !format.present)
        return STOKER_OK; /* this build cannot decode sounds */
    int rc = st_audio_file_open(&file, bytes, &header, err);
    if (rc)
        return rc;
    *sound = (struct pack_sound){header.rate, header.channels, header.frames};
    if (deep)
        rc = decode(file, sound, err);
    st_audio_file_close(file);
    return rc;
}
