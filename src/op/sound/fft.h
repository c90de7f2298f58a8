/* fft.h - the Fourier transform of real signals, several at once
 *
 * ST_FFT_LANES signals are interleaved: value k of all of them, then value k + 1. So every step of the
 * transform is a plain vector operation, whatever its radix.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_SOUND_FFT_H
#define ST_OP_SOUND_FFT_H

#include "base/err.h"

enum { ST_FFT_LANES = 8, ST_FFT_MAX = 1 << 16, ST_FFT_FACTOR_MAX = 31, ST_FFT_STAGES_MAX = 16 };

typedef float st_fft_lanes __attribute__((vector_size(ST_FFT_LANES * sizeof(float))));

struct st_fft_value {
    st_fft_lanes re, im;
};

struct st_fft {
    uint32_t size;  /* of the real signal */
    uint32_t inner; /* size of the complex transform: half of `size` if that is even */
    uint32_t stages, radix[ST_FFT_STAGES_MAX];
    float *wave;  /* [inner] cos and -sin of 2 pi k / inner */
    float *twist; /* [inner + 1] the same of 2 pi k / size */
};

/* Sizes of at least 2 whose prime factors are at most 31. */
int st_fft_init(struct st_fft *fft, uint32_t size, struct stoker_error *err);
void st_fft_free(struct st_fft *fft); /* safe when zeroed */

/* Size of the work space of st_fft_run, in values. */
static inline uint64_t st_fft_work(const struct st_fft *fft) { return 2 * (uint64_t)fft->inner + 1; }
/* in[size]; out[size / 2 + 1]. */
void st_fft_run(const struct st_fft *fft, const st_fft_lanes *in, struct st_fft_value *work,
                struct st_fft_value *out);

#endif
