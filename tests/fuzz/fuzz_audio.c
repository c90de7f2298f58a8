/* fuzz_audio.c - any bytes at all as a sound
 *
 * Nothing may crash or run away in what we give libsndfile and take from it, and no frame may be read that a
 * limit forbids.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/sound/audio.h"

#include "leaks.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int rc, const struct stoker_error *err)
{
    if (rc && (err->code != rc || strlen(err->message) < 5))
        abort(); /* an error without a sentence */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_arena arena = {0};
    struct st_audio_work work = {.arena = &arena, .limit = VALUES_MAX};
    struct stoker_error err = {0};
    struct st_audio audio;
    int rc = st_audio_open(&audio, &work, (struct st_bytes){data, size}, &err);
    if (!rc && size % 2)
        rc = st_audio_resample(&audio, 16000, &err);
    if (!rc && size % 3)
        rc = st_audio_mono(&audio, &err);
    if (!rc && audio.frames > 1000)
        rc = st_audio_part(&audio, audio.frames / 2, 500, &err);
    if (!rc)
        rc = st_audio_load(&audio, &err);
    check(rc, &err);
    st_audio_close(&audio);
    st_audio_work_free(&work);
    st_arena_free(&arena);
    return 0;
}
