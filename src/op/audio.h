/* audio.h - one sound on its way through a pipeline
 *
 * What ops ask of a sound before its samples are needed (another rate, one channel, a part of it) is
 * only noted, so that no more is decoded and resampled than comes out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_AUDIO_H
#define ST_OP_AUDIO_H

#include "base/mem.h"
#include "codec/audio.h"
#include "op/resampler.h"

/* What is known of every sound at some point of the pipeline. */
struct st_audio_shape {
    int32_t channels; /* -1: as the files have */
    int32_t rate;     /* -1: as the files have */
    int64_t frames;   /* of samples or of spectra; -1: differs from sample to sample */
    int32_t bins;     /* of a spectrogram; 0: samples */
};

/* A worker's own; zeroed to begin. */
struct st_audio_work {
    struct st_arena *arena;
    uint64_t limit; /* values of one sound; 0: none */
    uint64_t decode_ns;
    struct st_resampler resampler[ST_RESAMPLERS];
    uint32_t next_resampler; /* the one that goes when another is needed */
};
void st_audio_work_free(struct st_audio_work *work);

struct st_audio {
    struct st_audio_work *work;
    struct st_audio_file *file; /* NULL: the samples are here */
    struct st_audio_header header;
    uint64_t base, source; /* before loading: the frames of the file that are the sound, */
    uint32_t rate;         /* the rate that it is to have, */
    uint64_t first;        /* which part of it then, of `frames` */
    bool mono;             /* and whether it is to be mixed down */
    uint32_t channels;
    uint64_t frames;
    int32_t bins;
    float *data; /* channel by channel, `stride` values apart; of a spectrogram [C][bins][frames] */
    uint64_t stride;
};

int st_audio_open(struct st_audio *audio, struct st_audio_work *work, struct st_bytes in,
                  struct stoker_error *err);
void st_audio_close(struct st_audio *audio);
/* The samples are there, and may be written. */
int st_audio_load(struct st_audio *audio, struct stoker_error *err);
int st_audio_resample(struct st_audio *audio, uint32_t rate, struct stoker_error *err);
int st_audio_mono(struct st_audio *audio, struct stoker_error *err);
/* One channel becomes `count` alike, and any number one by their mean; others that differ are refused. */
int st_audio_channels(struct st_audio *audio, uint32_t count, struct stoker_error *err);
/* Frames [first, first + frames), zeros behind the end. */
int st_audio_part(struct st_audio *audio, uint64_t first, uint64_t frames, struct stoker_error *err);
/* Values of one channel. */
static inline uint64_t st_audio_values(const struct st_audio *audio)
{
    return audio->bins ? (uint64_t)audio->bins * audio->frames : audio->frames;
}
/* Memory for so many values, until the sample is done. NULL with a sentence. */
float *st_audio_take(struct st_audio_work *work, uint64_t count, uint64_t each,
                     struct stoker_error *err);

#endif
