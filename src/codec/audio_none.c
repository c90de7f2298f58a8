/* audio_none.c - replaces audio.c in builds without libsndfile
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/audio.h"

int st_audio_file_open(struct st_audio_file **out, struct st_bytes in, struct st_audio_header *header,
                       struct stoker_error *err)
{
    (void)in;
    *out = NULL;
    *header = (struct st_audio_header){0};
    return st_fail(
        err, STOKER_EUNSUPPORTED,
        "this build has no libsndfile and cannot read sounds: install it (libsndfile1-dev) and rebuild");
}

int st_audio_file_read(struct st_audio_file *file, uint64_t first, uint64_t frames, float *out,
                       struct stoker_error *err)
{
    (void)file;
    (void)first;
    (void)frames;
    (void)out;
    return st_fail(err, STOKER_EUNSUPPORTED,
                   "this build has no libsndfile and cannot read sounds");
}

void st_audio_file_close(struct st_audio_file *file) { (void)file; }

bool st_audio_format_at(uint32_t index, struct st_audio_format *out)
{
    if (index >= ST_AUDIO_KINDS)
        return false;
    *out = (struct st_audio_format){st_audio_names[index], "libsndfile is missing", false};
    return true;
}
