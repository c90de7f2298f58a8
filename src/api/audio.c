/* audio.c - one sound, outside of any loader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/sized.h"
#include "op/sound/audio.h"

#include <stdlib.h>
#include <string.h>

enum { VALUE_LIMIT = 178956970 }; /* a loader's default: half an hour of two channels at 48 kHz */

ST_SIZED(options, stoker_sound_options, pixel_limit);

static const struct stoker_sound_options defaults = {.size = sizeof defaults,
                                                     .pixel_limit = VALUE_LIMIT};

void stoker_sound_options_init(struct stoker_sound_options *opt, size_t size)
{
    st_sized_init(&options, &defaults, opt, size);
}

static int cut(struct st_audio *audio, const struct stoker_sound_options *opt, struct stoker_error *err)
{
    const uint64_t left = opt->first <= audio->frames ? audio->frames - opt->first : 0;
    if (opt->first > audio->frames || opt->frames > left)
        return st_fail(err, STOKER_EINVAL,
                       "%llu frames from frame %llu on are asked for, of a sound of %llu",
                       (unsigned long long)opt->frames, (unsigned long long)opt->first,
                       (unsigned long long)audio->frames);
    return st_audio_part(audio, opt->first, opt->frames ? opt->frames : left, err);
}

static int copy_out(struct stoker_sound *out, const struct st_audio *audio, struct stoker_error *err)
{
    const size_t each = audio->frames * sizeof *out->samples; /* bounded: the arena has held them */
    out->samples = st_alloc_aligned(each ? each * audio->channels : sizeof *out->samples);
    if (!out->samples)
        return st_fail(err, STOKER_ENOMEM, "no memory for a sound of %llu frames",
                       (unsigned long long)audio->frames);
    out->rate = audio->rate;
    out->channels = audio->channels;
    out->frames = audio->frames;
    for (uint32_t c = 0; c < audio->channels; c++)
        memcpy(out->samples + c * audio->frames, audio->data + c * audio->stride, each);
    return STOKER_OK;
}

int stoker_sound_decode(struct stoker_sound *out, const void *data, size_t size, const char *name,
                        const struct stoker_sound_options *given, struct stoker_error *err)
{
    struct stoker_sound_options opt = defaults;
    struct st_arena arena = {0};
    struct st_audio audio;
    if (!out || (!data && size))
        return st_fail(err, STOKER_EINVAL, "stoker_sound_decode: out and data must not be NULL");
    *out = (struct stoker_sound){0};
    int rc = given ? st_sized_take(&options, &opt, given, err) : STOKER_OK;
    if (rc)
        return rc;
    struct st_audio_work work = {.arena = &arena, .limit = opt.pixel_limit};
    rc = st_audio_open(&audio, &work, (struct st_bytes){data, size}, err);
    const uint64_t length = audio.frames;
    if (!rc)
        rc = cut(&audio, &opt, err);
    if (!rc)
        rc = st_audio_load(&audio, err);
    if (!rc)
        rc = copy_out(out, &audio, err);
    if (!rc)
        out->length = length;
    st_audio_close(&audio);
    st_audio_work_free(&work);
    st_arena_free(&arena);
    return rc < 0 && name ? st_fail_in(err, rc, name) : rc;
}

void stoker_sound_close(struct stoker_sound *sound)
{
    if (!sound)
        return;
    free(sound->samples);
    *sound = (struct stoker_sound){0};
}
