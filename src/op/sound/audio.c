/* audio.c - a sound on its way through a pipeline
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/sound/audio.h"

#include "base/clock.h"

#include <string.h>

float *st_audio_take(struct st_audio_work *work, uint64_t count, uint64_t each, struct stoker_error *err)
{
    uint64_t values, bytes;
    if (!st_mul(count, each, &values) || !st_mul(values, sizeof(float), &bytes) ||
        (work->limit && values > work->limit)) {
        st_fail(err, STOKER_ELIMIT,
                "a sound of %llu frames with %llu values each exceeds the limit of %llu values: raise "
                "pixel_limit, or crop it first",
                (unsigned long long)count, (unsigned long long)each, (unsigned long long)work->limit);
        return NULL;
    }
    float *data = st_arena_take(work->arena, bytes ? bytes : sizeof *data);
    if (!data)
        st_fail(err, STOKER_ENOMEM, "no memory for a sound of %llu values", (unsigned long long)values);
    return data;
}

static int out_of(const struct stoker_error *err) { return err ? err->code : STOKER_ENOMEM; }

void st_audio_work_free(struct st_audio_work *work)
{
    for (uint32_t k = 0; k < ST_RESAMPLERS; k++)
        st_resampler_free(&work->resampler[k]);
}

int st_audio_open(struct st_audio *audio, struct st_audio_work *work, struct st_bytes in,
                  struct stoker_error *err)
{
    *audio = (struct st_audio){.work = work};
    const uint64_t began = st_now_ns();
    const int rc = st_audio_file_open(&audio->file, in, &audio->header, err);
    work->decode_ns += st_now_ns() - began;
    audio->rate = audio->header.rate;
    audio->channels = audio->header.channels;
    audio->frames = audio->source = audio->header.frames;
    return rc;
}

void st_audio_close(struct st_audio *audio)
{
    st_audio_file_close(audio->file);
    audio->file = NULL;
}

/* ---- from the file ------------------------------------------------------------------------------- */

/* Extracts channel `c` from interleaved frames, or the mix of all channels; a single channel serves for
 * every `c`. */
static void take_channel(float *out, const float *in, uint64_t frames, uint32_t channels, uint32_t c,
                         bool mix)
{
    for (uint64_t k = 0; !mix && k < frames; k++)
        out[k] = in[k * channels + (channels > 1 ? c : 0)];
    for (uint64_t k = 0; mix && k < frames; k++) {
        float sum = 0;
        for (uint32_t from = 0; from < channels; from++)
            sum += in[k * channels + from];
        out[k] = sum / (float)channels;
    }
}

/* Reads frames [low, high) of the sound, channel by channel; frames outside it are 0. */
static int read_frames(struct st_audio *audio, int64_t low, int64_t high, float **out,
                       struct stoker_error *err)
{
    const uint32_t channels = audio->header.channels;
    const int64_t all = (int64_t)audio->source;
    const int64_t from = low < 0     ? 0
                         : low < all ? low
                                     : all,
                  to = high < from  ? from
                       : high < all ? high
                                    : all;
    const uint64_t width = (uint64_t)(high - low), count = (uint64_t)(to - from);
    float *raw = st_audio_take(audio->work, count, channels, err);
    float *data = raw ? st_audio_take(audio->work, width, audio->channels, err) : NULL;
    if (!data)
        return out_of(err);
    const uint64_t began = st_now_ns();
    const int rc = st_audio_file_read(audio->file, audio->base + (uint64_t)from, count, raw, err);
    audio->work->decode_ns += st_now_ns() - began;
    for (uint32_t c = 0; !rc && c < audio->channels; c++) {
        float *row = data + c * width;
        memset(row, 0, (size_t)(from - low) * sizeof *row);
        take_channel(row + (from - low), raw, count, channels, c, audio->mono);
        memset(row + (to - low), 0, (size_t)(high - to) * sizeof *row);
    }
    *out = data;
    return rc;
}

static int resampler_for(struct st_audio_work *work, uint32_t from, uint32_t to,
                         struct st_resampler **out, struct stoker_error *err)
{
    for (uint32_t k = 0; k < ST_RESAMPLERS; k++)
        if (work->resampler[k].from_rate == from && work->resampler[k].to_rate == to) {
            *out = &work->resampler[k];
            return 0;
        }
    *out = &work->resampler[work->next_resampler++ % ST_RESAMPLERS];
    st_resampler_free(*out);
    return st_resampler_init(*out, from, to, err);
}

/* Loads the part of the sound at another rate, decoding only what that needs. */
static int load_resampled(struct st_audio *audio, struct stoker_error *err)
{
    struct st_resampler *r;
    int64_t low, high;
    float *in;
    int rc = resampler_for(audio->work, audio->header.rate, audio->rate, &r, err);
    if (rc)
        return rc;
    st_resampler_needs(r, audio->first, audio->frames, &low, &high);
    rc = read_frames(audio, low, high, &in, err);
    audio->data = rc ? NULL : st_audio_take(audio->work, audio->frames, audio->channels, err);
    if (rc || !audio->data)
        return rc ? rc : out_of(err);
    for (uint32_t c = 0; c < audio->channels; c++)
        st_resampler_run(r, in + c * (uint64_t)(high - low), low, audio->first, audio->frames,
                         audio->data + c * audio->frames);
    return 0;
}

int st_audio_load(struct st_audio *audio, struct stoker_error *err)
{
    if (!audio->file)
        return 0;
    const bool other_rate = audio->rate != audio->header.rate && audio->frames;
    const int rc = other_rate ? load_resampled(audio, err)
                              : read_frames(audio, (int64_t)audio->first,
                                            (int64_t)(audio->first + audio->frames), &audio->data, err);
    audio->stride = audio->frames;
    st_audio_close(audio);
    return rc;
}

/* ---- requests of ops ----------------------------------------------------------------------------- */

/* Resamples samples that are already loaded. */
static int resample_loaded(struct st_audio *audio, const struct st_resampler *r,
                           struct stoker_error *err)
{
    const uint64_t frames = st_resampler_length(r, audio->frames);
    int64_t low, high;
    if (frames == 0)
        return 0;
    st_resampler_needs(r, 0, frames, &low, &high);
    if (low > 0)
        low = 0;
    if (high < (int64_t)audio->frames)
        high = (int64_t)audio->frames;
    float *in = st_audio_take(audio->work, (uint64_t)(high - low), 1, err);
    float *out = in ? st_audio_take(audio->work, frames, audio->channels, err) : NULL;
    if (!out)
        return out_of(err);
    memset(in, 0, (size_t)(high - low) * sizeof *in);
    for (uint32_t c = 0; c < audio->channels; c++) {
        memcpy(in - low, audio->data + c * audio->stride, audio->frames * sizeof *in);
        st_resampler_run(r, in, low, 0, frames, out + c * frames);
    }
    audio->data = out;
    audio->frames = audio->stride = frames;
    return 0;
}

int st_audio_resample(struct st_audio *audio, uint32_t rate, struct stoker_error *err)
{
    struct st_resampler *r;
    if (rate == audio->rate)
        return 0;
    const bool later = audio->file && audio->rate == audio->header.rate;
    int rc = later ? 0 : st_audio_load(audio, err);
    if (!rc)
        rc = resampler_for(audio->work, audio->rate, rate, &r, err);
    if (!rc && later)
        audio->frames = st_resampler_length(r, audio->frames);
    else if (!rc)
        rc = resample_loaded(audio, r, err);
    audio->rate = rate;
    return rc;
}

int st_audio_mono(struct st_audio *audio, struct stoker_error *err)
{
    (void)err;
    if (audio->channels == 1)
        return 0;
    audio->mono = true;
    if (!audio->file) {
        for (uint64_t k = 0; k < audio->frames; k++) {
            float sum = 0;
            for (uint32_t c = 0; c < audio->channels; c++)
                sum += audio->data[c * audio->stride + k];
            audio->data[k] = sum / (float)audio->channels;
        }
    }
    audio->channels = 1;
    return 0;
}

int st_audio_channels(struct st_audio *audio, uint32_t count, struct stoker_error *err)
{
    if (count == audio->channels)
        return 0;
    if (count == 1)
        return st_audio_mono(audio, err);
    if (audio->channels != 1)
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "a sound of %u channels cannot be converted to %u: use audio_mono, or remove audio_channels",
            audio->channels, count);
    if (!audio->file) {
        float *out = st_audio_take(audio->work, audio->frames, count, err);
        if (!out)
            return out_of(err);
        for (uint32_t c = 0; c < count; c++)
            memcpy(out + c * audio->frames, audio->data, audio->frames * sizeof *out);
        audio->data = out;
        audio->stride = audio->frames;
    }
    audio->channels = count;
    return 0;
}

int st_audio_part(struct st_audio *audio, uint64_t first, uint64_t frames, struct stoker_error *err)
{
    if (first + frames <= audio->frames) {
        if (audio->file && audio->rate == audio->header.rate) {
            audio->base += first;
            audio->source = frames;
        } else if (audio->file)
            audio->first += first;
        else
            audio->data += first;
        audio->frames = frames;
        return 0;
    }
    const int rc = st_audio_load(audio, err);
    float *out = rc ? NULL : st_audio_take(audio->work, frames, audio->channels, err);
    if (!out)
        return rc ? rc : out_of(err);
    const uint64_t left = first < audio->frames ? audio->frames - first : 0;
    for (uint32_t c = 0; c < audio->channels; c++) {
        memcpy(out + c * frames, audio->data + c * audio->stride + first, left * sizeof *out);
        memset(out + c * frames + left, 0, (frames - left) * sizeof *out);
    }
    audio->data = out;
    audio->frames = audio->stride = frames;
    return 0;
}
