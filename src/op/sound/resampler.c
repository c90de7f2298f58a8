/* resampler.c - changes the sampling rate, by a sinc in a Hann window
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/sound/resampler.h"

#include "base/functions.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ZEROS = 6, WEIGHTS_MAX = 1 << 22 };
static const double rolloff = 0.99;

typedef float lanes __attribute__((vector_size(ST_RESAMPLER_LANES * sizeof(float))));

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The weights of output `phase`, for the inputs from first[phase] on. */
static void make_phase(struct st_resampler *r, uint64_t phase, double base, double reach)
{
    const double centre = (double)phase * (double)r->from / (double)r->to;
    const double scale = base / (double)r->from;
    float *weight = r->weight + phase * r->taps;
    r->first[phase] = (int64_t)ceil(centre - reach);
    for (uint32_t k = 0; k < r->taps; k++) {
        const double at = (double)(r->first[phase] + (int64_t)k) / (double)r->from;
        const double t = (at - (double)phase / (double)r->to) * base;
        const double window = st_cos(t * M_PI / ZEROS / 2);
        if (fabs(t) < ZEROS)
            weight[k] = (float)((t == 0 ? 1 : st_sin(t * M_PI) / (t * M_PI)) * window * window * scale);
    }
}

int st_resampler_init(struct st_resampler *r, uint32_t from_rate, uint32_t to_rate,
                      struct stoker_error *err)
{
    const uint64_t shared = common_divisor(from_rate, to_rate);
    *r = (struct st_resampler){.from = from_rate / shared, .to = to_rate / shared};
    const double base = (double)(r->from < r->to ? r->from : r->to) * rolloff;
    const double reach = ZEROS * (double)r->from / base;
    if ((2 * reach + 2 + ST_RESAMPLER_LANES) * (double)r->to > WEIGHTS_MAX)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "cannot resample from %u to %u samples per second: the rates have too small a "
                       "common divisor",
                       from_rate, to_rate);
    r->taps = (uint32_t)st_align((uint64_t)(2 * reach) + 2, ST_RESAMPLER_LANES);
    r->first = st_calloc(r->to, sizeof *r->first);
    r->weight = st_calloc(r->to * r->taps, sizeof *r->weight);
    if (!r->first || !r->weight) {
        st_resampler_free(r);
        return st_fail(err, STOKER_ENOMEM, "no memory to resample from %u to %u", from_rate, to_rate);
    }
    for (uint64_t phase = 0; phase < r->to; phase++)
        make_phase(r, phase, base, reach);
    r->from_rate = from_rate;
    r->to_rate = to_rate;
    return 0;
}

void st_resampler_free(struct st_resampler *r)
{
    free(r->first);
    free(r->weight);
    *r = (struct st_resampler){0};
}

uint64_t st_resampler_length(const struct st_resampler *r, uint64_t frames)
{
    /* torchaudio computes the quotient in float32, which affects the length of long sounds. */
    const double exact = (double)r->to * (double)frames / (double)r->from;
    const uint64_t length = (uint64_t)ceilf((float)exact), most = r->to * (frames / r->from + 1);
    return length < most ? length : most;
}

static int64_t first_input(const struct st_resampler *r, uint64_t k)
{
    return (int64_t)(k / r->to * r->from) + r->first[k % r->to];
}

void st_resampler_needs(const struct st_resampler *r, uint64_t first, uint64_t count, int64_t *low,
                        int64_t *high)
{
    *low = first_input(r, first);
    *high = first_input(r, first + count - 1) + r->taps;
}

void st_resampler_run(const struct st_resampler *r, const float *in, int64_t low, uint64_t first,
                      uint64_t count, float *out)
{
    uint64_t phase = first % r->to;
    const float *block = in + (int64_t)(first / r->to * r->from) - low;
    for (uint64_t k = 0; k < count; k++) {
        const float *x = block + r->first[phase], *w = r->weight + phase * r->taps;
        lanes sum = {0};
        for (uint32_t tap = 0; tap < r->taps; tap += ST_RESAMPLER_LANES) {
            lanes a, b;
            memcpy(&a, x + tap, sizeof a);
            memcpy(&b, w + tap, sizeof b);
            sum += a * b;
        }
        out[k] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
        if (++phase == r->to) {
            phase = 0;
            block += r->from;
        }
    }
}
