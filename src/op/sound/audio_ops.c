/* audio_ops.c - ops on the samples of sounds: sampling rate, channels, length, loudness
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "op/sound/audio.h"
#include "op/op.h"

#include <math.h>

static int want_samples(const struct st_audio_shape *shape, const char *op, struct stoker_error *err)
{
    return shape->bins ? st_fail(err, STOKER_EINVAL,
                                 "pipeline: %s works on samples, not on spectrograms: move it before "
                                 "the spectrogram",
                                 op)
                       : 0;
}

static const struct st_param no_params[] = {{0}};

/* ---- audio_decode -------------------------------------------------------------------------------- */

static int run_decode(const void *self, struct st_rng *rng, struct st_audio *audio,
                      struct stoker_error *err)
{
    (void)self, (void)rng, (void)audio, (void)err;
    return 0;
}

const struct st_op st_op_audio_decode = {
    .name = "audio_decode",
    .help = "the samples of a sound, unchanged",
    .self_size = 1,
    .params = no_params,
    .run_audio = run_decode,
};

/* ---- audio_resample ------------------------------------------------------------------------------ */

struct resample {
    int32_t rate;
};

static const struct st_param resample_params[] = {
    {.name = "rate",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct resample, rate),
     .min = 1,
     .max = 1 << 20,
     .required = true,
     .help = "samples per second"},
    {0},
};

static int plan_resample(void *self, struct st_audio_shape *shape, struct stoker_error *err)
{
    const struct resample *r = self;
    if (shape->rate != r->rate)
        shape->frames = -1;
    shape->rate = r->rate;
    return want_samples(shape, "audio_resample", err);
}

static int run_resample(const void *self, struct st_rng *rng, struct st_audio *audio,
                        struct stoker_error *err)
{
    (void)rng;
    return st_audio_resample(audio, (uint32_t)((const struct resample *)self)->rate, err);
}

const struct st_op st_op_audio_resample = {
    .name = "audio_resample",
    .help = "resamples to another rate, by a windowed sinc",
    .self_size = sizeof(struct resample),
    .params = resample_params,
    .plan_audio = plan_resample,
    .run_audio = run_resample,
};

/* ---- audio_mono ---------------------------------------------------------------------------------- */

static int plan_mono(void *self, struct st_audio_shape *shape, struct stoker_error *err)
{
    (void)self;
    shape->channels = 1;
    return want_samples(shape, "audio_mono", err);
}

static int run_mono(const void *self, struct st_rng *rng, struct st_audio *audio,
                    struct stoker_error *err)
{
    (void)self, (void)rng;
    return st_audio_mono(audio, err);
}

const struct st_op st_op_audio_mono = {
    .name = "audio_mono",
    .help = "the mean of all channels",
    .self_size = 1,
    .params = no_params,
    .plan_audio = plan_mono,
    .run_audio = run_mono,
};

/* ---- audio_channels ------------------------------------------------------------------------------ */

struct channels {
    int32_t count;
};

static const struct st_param channels_params[] = {
    {.name = "count",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct channels, count),
     .min = 1,
     .max = ST_AUDIO_CHANNELS_MAX,
     .required = true,
     .help = "number of output channels"},
    {0},
};

static int plan_channels(void *self, struct st_audio_shape *shape, struct stoker_error *err)
{
    shape->channels = ((const struct channels *)self)->count;
    return want_samples(shape, "audio_channels", err);
}

static int run_channels(const void *self, struct st_rng *rng, struct st_audio *audio,
                        struct stoker_error *err)
{
    (void)rng;
    return st_audio_channels(audio, (uint32_t)((const struct channels *)self)->count, err);
}

const struct st_op st_op_audio_channels = {
    .name = "audio_channels",
    .help = "sets the number of channels: a single channel is repeated, others must match",
    .self_size = sizeof(struct channels),
    .params = channels_params,
    .plan_audio = plan_channels,
    .run_audio = run_channels,
};

/* ---- audio_crop ---------------------------------------------------------------------------------- */

struct crop {
    int32_t frames;
    double seconds;
    bool random;
};

static const struct st_param crop_params[] = {
    {.name = "frames",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct crop, frames),
     .min = 1,
     .max = 1 << 30,
     .help = "length of the result in frames"},
    {.name = "seconds",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct crop, seconds),
     .min = 1e-6,
     .max = 86400,
     .help = "or in seconds"},
    {.name = "random",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct crop, random),
     .def = 1,
     .help = "random position; else from the beginning"},
    {0},
};

static uint64_t crop_frames(const struct crop *c, uint32_t rate)
{
    const double frames = c->frames ? c->frames : round(c->seconds * rate);
    return frames < 1 ? 1 : (uint64_t)frames;
}

static int plan_crop(void *self, struct st_audio_shape *shape, struct stoker_error *err)
{
    const struct crop *c = self;
    if ((c->frames != 0) == (c->seconds != 0))
        return st_fail(err, STOKER_EINVAL,
                       "pipeline: audio_crop requires either frames= or seconds=");
    const bool known = c->frames || shape->rate > 0;
    const uint64_t frames = known ? crop_frames(c, (uint32_t)shape->rate) : 0;
    if (frames > INT32_MAX)
        return st_fail(err, STOKER_EINVAL,
                       "pipeline: audio_crop: %llu frames are too many; allowed are up to 2147483647",
                       (unsigned long long)frames);
    shape->frames = known ? (int64_t)frames : -1;
    return want_samples(shape, "audio_crop", err);
}

static int run_crop(const void *self, struct st_rng *rng, struct st_audio *audio,
                    struct stoker_error *err)
{
    const struct crop *c = self;
    const uint64_t frames = crop_frames(c, audio->rate);
    const uint64_t room = audio->frames > frames ? audio->frames - frames : 0;
    return st_audio_part(audio, c->random && room ? st_rng_below(rng, room + 1) : 0, frames, err);
}

const struct st_op st_op_audio_crop = {
    .name = "audio_crop",
    .help = "a part of fixed length; shorter sounds are padded with zeros",
    .self_size = sizeof(struct crop),
    .params = crop_params,
    .plan_audio = plan_crop,
    .run_audio = run_crop,
};

/* ---- audio_gain ---------------------------------------------------------------------------------- */

struct gain {
    struct st_list db;
};

static const struct st_param gain_params[] = {
    {.name = "db",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct gain, db),
     .min = -200,
     .max = 200,
     .required = true,
     .help = "decibels, or low and high of a range to draw from"},
    {0},
};

static int plan_gain(void *self, struct st_audio_shape *shape, struct stoker_error *err)
{
    struct gain *g = self;
    if (g->db.count == 1)
        g->db = (struct st_list){.count = 2, .value = {g->db.value[0], g->db.value[0]}};
    const int rc = st_param_range(&g->db, "audio_gain", "db", 0, 0, err);
    return rc ? rc : want_samples(shape, "audio_gain", err);
}

/* x * scale + shift, for all values. */
static void change(struct st_audio *audio, float shift, float scale)
{
    for (uint32_t c = 0; c < audio->channels; c++)
        for (uint64_t k = 0; k < st_audio_values(audio); k++)
            audio->data[c * audio->stride + k] = (audio->data[c * audio->stride + k] + shift) * scale;
}

static int run_gain(const void *self, struct st_rng *rng, struct st_audio *audio,
                    struct stoker_error *err)
{
    const struct gain *g = self;
    const double db = st_rng_range(rng, g->db.value[0], g->db.value[1]);
    const int rc = st_audio_load(audio, err);
    if (!rc)
        change(audio, 0, (float)st_power(10, db / 20));
    return rc;
}

const struct st_op st_op_audio_gain = {
    .name = "audio_gain",
    .help = "changes the loudness by a number of decibels",
    .self_size = sizeof(struct gain),
    .params = gain_params,
    .plan_audio = plan_gain,
    .run_audio = run_gain,
};

/* ---- audio_normalize ----------------------------------------------------------------------------- */

struct normalize {
    double mean, std;
};

static const struct st_param normalize_params[] = {
    {.name = "mean",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct normalize, mean),
     .help = "to be subtracted"},
    {.name = "std",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct normalize, std),
     .min = 1e-12,
     .max = 1e12,
     .help = "divisor; if omitted, each sound's own mean and deviation are used"},
    {0},
};

static int plan_normalize(void *self, struct st_audio_shape *shape, struct stoker_error *err)
{
    (void)shape;
    const struct normalize *n = self;
    return n->mean != 0 && n->std == 0
               ? st_fail(err, STOKER_EINVAL, "pipeline: audio_normalize(mean=) also requires std=")
               : 0;
}

static int run_normalize(const void *self, struct st_rng *rng, struct st_audio *audio,
                         struct stoker_error *err)
{
    (void)rng;
    const struct normalize *n = self;
    const uint64_t each = st_audio_values(audio);
    const double least = 1e-7; /* minimum variance: silence stays silence */
    double mean = n->mean, std = n->std;
    const int rc = st_audio_load(audio, err);
    if (rc)
        return rc;
    if (std == 0) {
        double sum = 0, squares = 0;
        for (uint32_t c = 0; c < audio->channels; c++)
            for (uint64_t k = 0; k < each; k++)
                sum += (double)audio->data[c * audio->stride + k];
        mean = each ? sum / (double)(each * audio->channels) : 0;
        for (uint32_t c = 0; c < audio->channels; c++)
            for (uint64_t k = 0; k < each; k++) {
                const double x = (double)audio->data[c * audio->stride + k] - mean;
                squares += x * x;
            }
        std = sqrt((each ? squares / (double)(each * audio->channels) : 0) + least);
    }
    change(audio, (float)-mean, (float)(1 / std));
    return 0;
}

const struct st_op st_op_audio_normalize = {
    .name = "audio_normalize",
    .help = "(x - mean) / std, with given values or those of each sound",
    .self_size = sizeof(struct normalize),
    .params = normalize_params,
    .plan_audio = plan_normalize,
    .run_audio = run_normalize,
};
