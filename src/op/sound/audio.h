/* audio.h - a sound on its way through a pipeline
 *
 * Until the samples are needed, ops only record what they want (another rate, one channel, a part), so
 * that nothing is decoded or resampled unnecessarily.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_SOUND_AUDIO_H
#define ST_OP_SOUND_AUDIO_H

#include "base/mem.h"
#include "codec/audio.h"
#include "op/sound/resampler.h"

/* What is known about every sound at some point of the pipeline. */
struct st_audio_shape {
    int32_t channels; /* -1: as in the files */
    int32_t rate;     /* -1: as in the files */
    int64_t frames;   /* of samples or of spectra; -1: varies by sample */
    int32_t bins;     /* of a spectrogram; 0: the values are samples */
};

/* Owned by one worker; initially zeroed. */
struct st_audio_work {
    struct st_arena *arena;
    uint64_t limit; /* on the values of one sound; 0: none */
    uint64_t decode_ns;
    struct st_resampler resampler[ST_RESAMPLERS];
    uint32_t next_resampler; /* the one to be replaced next */
};
void st_audio_work_free(struct st_audio_work *work);

struct st_audio {
    struct st_audio_work *work;
    struct st_audio_file *file; /* NULL: the samples are loaded */
    struct st_audio_header header;
    uint64_t base, source; /* before loading: the frames of the file that form the sound, */
    uint32_t rate;         /* its target rate, */
    uint64_t first;        /* start of the wanted part of `frames` at that rate, */
    bool mono;             /* and whether to mix the channels */
    uint32_t channels;
    uint64_t frames;
    int32_t bins;
    float *data; /* channel by channel, `stride` values apart; a spectrogram is [C][bins][frames] */
    uint64_t stride;
};

int st_audio_open(struct st_audio *audio, struct st_audio_work *work, struct st_bytes in,
                  struct stoker_error *err);
void st_audio_close(struct st_audio *audio);
/* Loads the samples; they may then be written to. */
int st_audio_load(struct st_audio *audio, struct stoker_error *err);
int st_audio_resample(struct st_audio *audio, uint32_t rate, struct stoker_error *err);
int st_audio_mono(struct st_audio *audio, struct stoker_error *err);
/* Copies one channel `count` times, or mixes any number into one; other conversions are refused. */
int st_audio_channels(struct st_audio *audio, uint32_t count, struct stoker_error *err);
/* Frames [first, first + frames), padded with zeros at the end. */
int st_audio_part(struct st_audio *audio, uint64_t first, uint64_t frames, struct stoker_error *err);
/* Number of values per channel. */
static inline uint64_t st_audio_values(const struct st_audio *audio)
{
    return audio->bins ? (uint64_t)audio->bins * audio->frames : audio->frames;
}
/* Memory for count * each values, valid until the sample is done. NULL on failure, with a message. */
float *st_audio_take(struct st_audio_work *work, uint64_t count, uint64_t each,
                     struct stoker_error *err);

#endif
