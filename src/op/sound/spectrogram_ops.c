/* spectrogram_ops.c - spectrograms of sounds, plain and on the mel scale
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/sound/audio.h"
#include "op/op.h"
#include "op/sound/spectrum.h"

struct spectrogram {
    struct st_spectrum_spec spec;
    struct st_spectrum spectrum;
};

#define PARAM(field, kind, default, low, high, text)                                                    \
    {                                                                                                   \
        .name = #field, .type = kind, .offset = offsetof(struct spectrogram, spec.field),               \
        .def = default, .min = low, .max = high, .help = text                                           \
    }
#define PARAMS                                                                                          \
    PARAM(n_fft, ST_PARAM_INT, 400, 2, ST_FFT_MAX, "samples per transform"),                            \
        PARAM(win_length, ST_PARAM_INT, 0, 1, ST_FFT_MAX, "length of the Hann window (n_fft)"),         \
        PARAM(hop_length, ST_PARAM_INT, 0, 1, 1 << 24,                                                  \
              "samples from one window to the next (half of the window)"),                              \
        PARAM(power, ST_PARAM_FLOAT, 2, 0.01, 100, "exponent of the magnitude"),                        \
        PARAM(center, ST_PARAM_BOOL, 1, 0, 0,                                                           \
              "frames are centred, and the sound is reflected at its ends")

static const struct st_param plain_params[] = {PARAMS, {0}};

static const struct st_param mel_params[] = {
    PARAMS,
    PARAM(rate, ST_PARAM_INT, 16000, 2, 1 << 20, "samples per second"),
    PARAM(f_min, ST_PARAM_FLOAT, 0, 0, 1 << 20, "lowest frequency, in Hz"),
    PARAM(f_max, ST_PARAM_FLOAT, 0, 1, 1 << 20, "highest frequency, in Hz (half the rate)"),
    {.name = "n_mels",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct spectrogram, spec.mels),
     .def = 128,
     .min = 1,
     .max = 4096,
     .help = "number of mel bands"},
    {0},
};

static int plan(void *self, struct st_audio_shape *shape, struct stoker_error *err)
{
    struct spectrogram *s = self;
    if (shape->bins)
        return st_fail(err, STOKER_EINVAL, "pipeline: cannot make a spectrogram of a spectrogram");
    if (s->spec.mels && shape->rate > 0 && shape->rate != s->spec.rate)
        return st_fail(err, STOKER_EINVAL,
                       "pipeline: audio_mel_spectrogram has rate=%d, but the sounds are resampled to %d",
                       s->spec.rate, shape->rate);
    const int rc = st_spectrum_init(&s->spectrum, &s->spec, err);
    if (rc)
        return st_fail_in(err, rc, "pipeline");
    shape->bins = st_spectrum_bins(&s->spectrum);
    if (shape->frames >= 0)
        shape->frames = (int64_t)st_spectrum_frames(&s->spectrum, (uint64_t)shape->frames);
    return shape->frames ? 0
                         : st_fail(err, STOKER_EINVAL,
                                   "pipeline: the sounds are too short for n_fft=%d", s->spec.n_fft);
}

static void drop(void *self) { st_spectrum_free(&((struct spectrogram *)self)->spectrum); }

static int run(const void *self, struct st_rng *rng, struct st_audio *audio, struct stoker_error *err)
{
    (void)rng;
    const struct st_spectrum *s = &((const struct spectrogram *)self)->spectrum;
    int rc = st_audio_load(audio, err);
    if (rc)
        return rc;
    if (s->spec.mels && audio->rate != (uint32_t)s->spec.rate)
        return st_fail(
            err, STOKER_EINVAL,
            "a sound of %u samples per second does not match audio_mel_spectrogram(rate=%d): put "
            "audio_resample before it",
            audio->rate, s->spec.rate);
    const uint64_t frames = st_spectrum_frames(s, audio->frames), bins = (uint64_t)st_spectrum_bins(s);
    if (frames == 0)
        return st_fail(
            err, STOKER_EINVAL,
            "a sound of %llu samples is too short for n_fft=%d: pad it with audio_crop",
            (unsigned long long)audio->frames, s->spec.n_fft);
    float *out = st_audio_take(audio->work, frames, bins * audio->channels, err);
    if (!out)
        return err ? err->code : STOKER_ENOMEM;
    for (uint32_t c = 0; !rc && c < audio->channels; c++)
        rc = st_spectrum_run(s, audio->data + c * audio->stride, audio->frames, audio->work->arena,
                             out + c * bins * frames, err);
    audio->data = out;
    audio->bins = (int32_t)bins;
    audio->frames = frames;
    audio->stride = bins * frames;
    return rc;
}

const struct st_op st_op_audio_spectrogram = {
    .name = "audio_spectrogram",
    .help = "short-time spectra, one row per frequency",
    .self_size = sizeof(struct spectrogram),
    .params = plain_params,
    .plan_audio = plan,
    .run_audio = run,
    .drop = drop,
};

const struct st_op st_op_audio_mel_spectrogram = {
    .name = "audio_mel_spectrogram",
    .help = "short-time spectra in bands of the mel scale",
    .self_size = sizeof(struct spectrogram),
    .params = mel_params,
    .plan_audio = plan,
    .run_audio = run,
    .drop = drop,
};
