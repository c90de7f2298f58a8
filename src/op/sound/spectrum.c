/* spectrum.c - spectrograms of sounds, plain and on the mel scale
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/sound/spectrum.h"

#include "base/functions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t frequencies(const struct st_spectrum *s) { return s->fft.size / 2 + 1; }

int32_t st_spectrum_bins(const struct st_spectrum *s)
{
    return s->spec.mels ? s->spec.mels : (int32_t)frequencies(s);
}

uint64_t st_spectrum_frames(const struct st_spectrum *s, uint64_t samples)
{
    const uint64_t size = s->fft.size, margin = s->spec.center ? size / 2 : 0,
                   all = samples + 2 * margin;
    if (all < size || (margin && samples <= margin)) /* too few to be reflected */
        return 0;
    return 1 + (all - size) / (uint64_t)s->spec.hop_length;
}

/* ---- tables -------------------------------------------------------------------------------------- */

static double to_mel(double hertz) { return 2595 * (st_ln(1 + hertz / 700) / M_LN10); }

static double to_hertz(double mel) { return 700 * (st_power(10, mel / 2595) - 1); }

/* The weights of triangle `m`; its corners are equidistant on the mel scale. */
static void make_triangle(const struct st_spectrum *s, int32_t m, float *weight, struct st_mel *out)
{
    const struct st_spectrum_spec *spec = &s->spec;
    const uint32_t count = frequencies(s);
    const double low = to_mel(spec->f_min), step = (to_mel(spec->f_max) - low) / (spec->mels + 1);
    const double left = to_hertz(low + m * step), middle = to_hertz(low + (m + 1) * step),
                 right = to_hertz(low + (m + 2) * step);
    *out = (struct st_mel){.weight = weight};
    for (uint32_t k = 0; k < count; k++) {
        const double hertz = (double)(spec->rate / 2) * k / (count - 1);
        const double rising = (hertz - left) / (middle - left),
                     falling = (right - hertz) / (right - middle);
        const double height = rising < falling ? rising : falling;
        if (height <= 0)
            continue;
        if (out->count == 0)
            out->first = k;
        weight[k - out->first] = (float)height;
        out->count = k - out->first + 1;
    }
}

static bool make_mels(struct st_spectrum *s)
{
    const uint32_t count = frequencies(s);
    s->mel = st_calloc((uint64_t)s->spec.mels, sizeof *s->mel);
    s->weights = st_calloc((uint64_t)s->spec.mels * count, sizeof *s->weights);
    for (int32_t m = 0; s->mel && s->weights && m < s->spec.mels; m++)
        make_triangle(s, m, s->weights + (uint64_t)m * count, &s->mel[m]);
    return s->mel && s->weights;
}

/* A Hann window of one period, centred in the transform. */
static bool make_window(struct st_spectrum *s)
{
    const int32_t length = s->spec.win_length;
    s->window = st_calloc(s->fft.size, sizeof *s->window);
    for (int32_t k = 0; s->window && k < length; k++)
        s->window[(s->spec.n_fft - length) / 2 + k] = (float)(0.5 - 0.5 * st_cos(2 * M_PI * k / length));
    return s->window != NULL;
}

static int check(struct st_spectrum_spec *spec, struct stoker_error *err)
{
    if (spec->win_length == 0)
        spec->win_length = spec->n_fft;
    if (spec->win_length > spec->n_fft)
        return st_fail(err, STOKER_EINVAL, "win_length=%d is greater than n_fft=%d",
                       spec->win_length, spec->n_fft);
    if (spec->hop_length == 0)
        spec->hop_length = spec->win_length / 2 ? spec->win_length / 2 : 1;
    if (spec->mels && spec->f_max == 0)
        spec->f_max = spec->rate / 2;
    if (spec->mels && spec->f_min >= spec->f_max)
        return st_fail(err, STOKER_EINVAL, "f_min=%g must be less than f_max=%g",
                       spec->f_min, spec->f_max);
    return 0;
}

int st_spectrum_init(struct st_spectrum *s, const struct st_spectrum_spec *spec,
                     struct stoker_error *err)
{
    *s = (struct st_spectrum){.spec = *spec};
    int rc = check(&s->spec, err);
    if (!rc)
        rc = st_fft_init(&s->fft, (uint32_t)spec->n_fft, err);
    if (!rc && (!make_window(s) || (spec->mels && !make_mels(s))))
        rc = st_fail(err, STOKER_ENOMEM, "no memory for a spectrogram of n_fft=%d", spec->n_fft);
    if (rc)
        st_spectrum_free(s);
    return rc;
}

void st_spectrum_free(struct st_spectrum *s)
{
    st_fft_free(&s->fft);
    free(s->window);
    free(s->mel);
    free(s->weights);
    *s = (struct st_spectrum){0};
}

/* ---- one sound ----------------------------------------------------------------------------------- */

/* The sound with reflected ends, so that frames need no bounds checks. */
static void reflect(float *out, const float *in, uint64_t samples, uint64_t margin)
{
    memcpy(out + margin, in, samples * sizeof *out);
    for (uint64_t k = 1; k <= margin; k++) {
        out[margin - k] = in[k];
        out[margin + samples - 1 + k] = in[samples - 1 - k];
    }
}

/* Interleaves several frames; those after the last one are silent. */
static void gather(const struct st_spectrum *s, const float *in, uint32_t count, st_fft_lanes *out)
{
    const uint64_t hop = (uint64_t)s->spec.hop_length;
    for (uint32_t k = 0; k < s->fft.size; k++) {
        st_fft_lanes x = {0};
        for (uint32_t lane = 0; lane < count; lane++)
            x[lane] = in[lane * hop + k];
        out[k] = x * s->window[k];
    }
}

static void measure(const struct st_spectrum *s, const struct st_fft_value *in, st_fft_lanes *out)
{
    const double power = s->spec.power;
    for (uint32_t k = 0; k < frequencies(s); k++) {
        st_fft_lanes square = in[k].re * in[k].re + in[k].im * in[k].im;
        for (uint32_t lane = 0; power != 2 && lane < ST_FFT_LANES; lane++)
            square[lane] = power == 1 ? sqrtf(square[lane]) : (float)st_power(square[lane], power / 2);
        out[k] = square;
    }
}

static void store(const struct st_spectrum *s, const st_fft_lanes *in, uint32_t count, uint64_t stride,
                  float *out)
{
    const int32_t bins = st_spectrum_bins(s);
    for (int32_t bin = 0; bin < bins; bin++) {
        st_fft_lanes sum = {0};
        if (s->mel)
            for (uint32_t k = 0; k < s->mel[bin].count; k++)
                sum += in[s->mel[bin].first + k] * s->mel[bin].weight[k];
        else
            sum = in[bin];
        memcpy(out + (uint64_t)bin * stride, &sum, count * sizeof *out);
    }
}

int st_spectrum_run(const struct st_spectrum *s, const float *in, uint64_t samples,
                    struct st_arena *arena, float *out, struct stoker_error *err)
{
    const uint64_t frames = st_spectrum_frames(s, samples),
                   margin = s->spec.center ? s->fft.size / 2 : 0;
    float *sound = st_arena_take(arena, (samples + 2 * margin) * sizeof *sound);
    st_fft_lanes *lanes = st_arena_take(arena, s->fft.size * sizeof *lanes);
    struct st_fft_value *work = st_arena_take(arena, st_fft_work(&s->fft) * sizeof *work);
    struct st_fft_value *spectra = st_arena_take(arena, frequencies(s) * sizeof *spectra);
    if (!sound || !lanes || !work || !spectra)
        return st_fail(err, STOKER_ENOMEM, "no memory for the spectrogram of %llu samples",
                       (unsigned long long)samples);
    reflect(sound, in, samples, margin);
    for (uint64_t frame = 0; frame < frames; frame += ST_FFT_LANES) {
        const uint32_t count = frames - frame < ST_FFT_LANES ? (uint32_t)(frames - frame) : ST_FFT_LANES;
        gather(s, sound + frame * (uint64_t)s->spec.hop_length, count, lanes);
        st_fft_run(&s->fft, lanes, work, spectra);
        measure(s, spectra, lanes);
        store(s, lanes, count, frames, out + frame);
    }
    return 0;
}
