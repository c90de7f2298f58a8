/* resampler.h - changes the sampling rate, by a sinc in a Hann window
 *
 * Sample k of the output is the input's band-limited curve at k * from / to:
 *
 *     y[k] = sum over i of x[i] * scale * sinc(t) * cos(pi t / 12)^2,
 *     t = 0.99 * min(from, to) * (i / from - k / to)
 *
 * for |t| < 6, with rates divided by their greatest common divisor and scale = 0.99 * min(from, to) /
 * from. torchaudio calls this sinc_interp_hann, with its defaults. The weights repeat after `to`
 * outputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_SOUND_RESAMPLER_H
#define ST_OP_SOUND_RESAMPLER_H

#include "base/err.h"

enum { ST_RESAMPLERS = 4, ST_RESAMPLER_LANES = 8 };

struct st_resampler {
    uint32_t from_rate, to_rate; /* as requested; 0: not initialised */
    uint64_t from, to;           /* divided by their greatest common divisor */
    uint32_t taps;               /* per output, a multiple of the lanes */
    int64_t *first;              /* [to]: the input of the first tap of output k */
    float *weight;               /* [to][taps] */
};

int st_resampler_init(struct st_resampler *r, uint32_t from_rate, uint32_t to_rate,
                      struct stoker_error *err);
void st_resampler_free(struct st_resampler *r); /* safe when zeroed */

/* Number of output samples for `frames` input samples. */
uint64_t st_resampler_length(const struct st_resampler *r, uint64_t frames);
/* The inputs [*low, *high) that outputs [first, first + count) depend on; the range may extend beyond
 * the sound. */
void st_resampler_needs(const struct st_resampler *r, uint64_t first, uint64_t count, int64_t *low,
                        int64_t *high);
/* `in` starts with input `low` and covers everything needed. */
void st_resampler_run(const struct st_resampler *r, const float *in, int64_t low, uint64_t first,
                      uint64_t count, float *out);

#endif
