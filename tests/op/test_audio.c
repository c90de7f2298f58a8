/* test_audio.c - Fourier transforms and resampling against their definitions, and parts against the
 * whole
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/sound/audio.h"
#include "op/sound/spectrum.h"

#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state = 1;

static float draw(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / (1 << 24) - 0.5f;
}

static double fft_error(uint32_t size)
{
    struct st_fft fft;
    double worst = 0;
    if (st_fft_init(&fft, size, NULL))
        return INFINITY;
    st_fft_lanes *in = st_alloc_aligned(size * sizeof *in);
    struct st_fft_value *work = st_alloc_aligned(st_fft_work(&fft) * sizeof *work);
    struct st_fft_value *out = st_alloc_aligned((size / 2 + 1) * sizeof *out);
    for (uint32_t k = 0; k < size; k++)
        for (int lane = 0; lane < ST_FFT_LANES; lane++)
            in[k][lane] = draw();
    st_fft_run(&fft, in, work, out);
    for (uint32_t k = 0; k <= size / 2; k++)
        for (int lane = 0; lane < ST_FFT_LANES; lane += 7) {
            double re = 0, im = 0;
            for (uint32_t t = 0; t < size; t++) {
                const double angle = 2 * M_PI * ((uint64_t)t * k % size) / size;
                re += (double)in[t][lane] * cos(angle);
                im -= (double)in[t][lane] * sin(angle);
            }
            worst = fmax(worst, hypot(re - (double)out[k].re[lane], im - (double)out[k].im[lane]));
        }
    free(in);
    free(work);
    free(out);
    st_fft_free(&fft);
    return worst;
}

static void check_fft(void)
{
    static const uint32_t sizes[] = {2,  3,   4,   5,   6,   8,   9,   16,   31,  62,
                                     93, 128, 210, 400, 441, 480, 512, 1024, 1155};
    struct stoker_error err;
    struct st_fft fft;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        ok(fft_error(sizes[k]) < 1e-5, "a transform of %u is that of the definition", sizes[k]);
    ok(st_fft_init(&fft, 2 * 37, &err) == STOKER_EUNSUPPORTED && strstr(err.message, "37"), "%s",
       err.message);
    ok(st_fft_init(&fft, 1, &err) == STOKER_EINVAL, "%s", err.message);
    ok(st_fft_init(&fft, ST_FFT_MAX + 2, &err) == STOKER_EINVAL, "%s", err.message);
}

/* One output by the formula of resampler.h. */
static double resampled(const float *in, int64_t count, double from, double to, double k)
{
    const double base = 0.99 * (from < to ? from : to);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double t = base * ((double)i / from - k / to);
        if (fabs(t) < 6)
            sum += (double)in[i] * base / from * (t == 0 ? 1 : sin(M_PI * t) / (M_PI * t)) *
                   pow(cos(M_PI * t / 12), 2);
    }
    return sum;
}

static void check_resampler(uint32_t from, uint32_t to, uint64_t count)
{
    struct st_resampler r;
    int64_t low, high;
    double worst = 0;
    if (!ok(st_resampler_init(&r, from, to, NULL) == 0, "%u to %u can be done", from, to))
        return;
    const uint64_t length = st_resampler_length(&r, count);
    st_resampler_needs(&r, 0, length, &low, &high);
    const int64_t before = low < 0 ? -low : 0,
                  behind = high > (int64_t)count ? high - (int64_t)count : 0;
    float *in = calloc((size_t)(before + (int64_t)count + behind), sizeof *in);
    float *out = calloc(length, sizeof *out), *part = calloc(length, sizeof *part);
    for (uint64_t k = 0; k < count; k++)
        in[before + (int64_t)k] = draw();
    st_resampler_run(&r, in, -before, 0, length, out);
    for (uint64_t k = 0; k < length; k += 1 + length / 97)
        worst = fmax(
            worst, fabs(resampled(in + before, (int64_t)count, (double)r.from, (double)r.to, (double)k) -
                        (double)out[k]));
    ok(worst < 1e-5, "%u to %u: %llu samples make %llu, within %g of the definition", from, to,
       (unsigned long long)count, (unsigned long long)length, worst);
    const uint64_t first = length / 3, some = length / 4 + 1;
    st_resampler_needs(&r, first, some, &low, &high);
    st_resampler_run(&r, in + before + low, low, first, some, part);
    ok(low >= -before && high <= (int64_t)count + behind &&
           !memcmp(part, out + first, some * sizeof *part),
       "%u to %u: a part is the same as in the whole", from, to);
    free(in);
    free(out);
    free(part);
    st_resampler_free(&r);
}

static void check_spectrum(void)
{
    enum { SAMPLES = 1000 };
    const struct st_spectrum_spec spec = {.n_fft = 64, .hop_length = 10, .power = 2, .center = true};
    struct st_arena arena = {0};
    struct st_spectrum s;
    float in[SAMPLES];
    for (int k = 0; k < SAMPLES; k++)
        in[k] = sinf((float)(2 * M_PI * 9 / 64) * (float)k);
    ok(st_spectrum_init(&s, &spec, NULL) == 0 && st_spectrum_bins(&s) == 33,
       "33 frequencies of 64 samples");
    const uint64_t frames = st_spectrum_frames(&s, SAMPLES);
    ok(frames == 101 && st_spectrum_frames(&s, 32) == 0 && st_spectrum_frames(&s, 33) == 4,
       "a frame each 10 samples");
    float *out = calloc(33 * frames, sizeof *out);
    ok(st_spectrum_run(&s, in, SAMPLES, &arena, out, NULL) == 0, "a spectrogram");
    bool peaks = true;
    for (uint64_t t = 4; t < frames - 4; t++)
        for (uint64_t bin = 0; bin < 33; bin++)
            peaks = peaks && (bin == 9 || out[bin * frames + t] < out[9 * frames + t]);
    ok(peaks && fabsf(out[9 * frames + 50] - 256) < 1, "a tone stands at its frequency: %g",
       (double)out[9 * frames + 50]);
    free(out);
    st_spectrum_free(&s);
    st_arena_free(&arena);
}

static void check_bad_rates(void)
{
    struct st_resampler r;
    struct stoker_error err;
    ok(st_resampler_init(&r, 1048575, 999983, &err) == STOKER_EUNSUPPORTED && !r.weight, "%s",
       err.message);
    ok(st_resampler_init(&r, 1048576, 1, &err) == 0 || err.code == STOKER_EUNSUPPORTED,
       "extremes end well");
    st_resampler_free(&r);
}

int main(void)
{
    check_fft();
    check_resampler(44100, 16000, 5000);
    check_resampler(16000, 44100, 1000);
    check_resampler(22050, 16000, 3001);
    check_resampler(2, 1, 777);
    check_resampler(1, 3, 50);
    check_resampler(44101, 16000, 3000);
    check_resampler(48000, 16000, 1);
    check_bad_rates();
    check_spectrum();
    return done_testing();
}
