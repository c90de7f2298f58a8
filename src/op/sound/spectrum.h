/* spectrum.h - spectrograms of sounds, plain and on the mel scale, as torchaudio defines them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_SOUND_SPECTRUM_H
#define ST_OP_SOUND_SPECTRUM_H

#include "base/mem.h"
#include "op/sound/fft.h"

struct st_spectrum_spec {
    int32_t n_fft, win_length, hop_length; /* 0: win_length is n_fft, hop_length half of the window */
    double power;                          /* of the magnitude */
    bool center;                           /* frames are centred; the sound is reflected at its ends */
    int32_t mels;                          /* 0: a plain spectrogram */
    int32_t rate;
    double f_min, f_max; /* of the mel scale; f_max 0: half the rate */
};

/* One triangle of the mel scale: the weights of the frequencies from `first` on. */
struct st_mel {
    uint32_t first, count;
    const float *weight;
};

struct st_spectrum {
    struct st_spectrum_spec spec;
    struct st_fft fft;
    float *window; /* [n_fft] */
    struct st_mel *mel;
    float *weights;
};

/* Fills in omitted lengths. */
int st_spectrum_init(struct st_spectrum *s, const struct st_spectrum_spec *spec,
                     struct stoker_error *err);
void st_spectrum_free(struct st_spectrum *s); /* safe when zeroed */
int32_t st_spectrum_bins(const struct st_spectrum *s);
/* Number of spectra for `samples` samples; 0: too few for one. */
uint64_t st_spectrum_frames(const struct st_spectrum *s, uint64_t samples);
/* out[bins][frames]. */
int st_spectrum_run(const struct st_spectrum *s, const float *in, uint64_t samples,
                    struct st_arena *arena, float *out, struct stoker_error *err);

#endif
