/* fft.c - the Fourier transform of real signals, several at once
 *
 * Stockham's algorithm: every stage reads one array and writes another, so that no bit-reversal
 * permutation is needed. A real signal of even size is transformed as a complex one of half the size.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/sound/fft.h"

#include "base/functions.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

typedef struct st_fft_value value;

/* One stage of the remaining transform: `rest` = radix * m values, in groups of `done` contiguous
 * ones. */
struct stage {
    const value *in;
    value *out;
    const float *wave;
    uint32_t radix, m, done;
};

static void turn(value *to, const value *a, float c, float s)
{
    to->re = a->re * c - a->im * s;
    to->im = a->re * s + a->im * c;
}

static void stage2(const struct stage *st)
{
    const uint32_t m = st->m, done = st->done;
    for (uint32_t j = 0; j < m; j++) {
        const float *w = st->wave + 2 * (uint64_t)j * done;
        for (uint32_t k = 0; k < done; k++) {
            const value *a = st->in + k + (uint64_t)done * j, *b = a + (uint64_t)done * m;
            value *out = st->out + k + (uint64_t)done * 2 * j;
            const value sum = {a->re + b->re, a->im + b->im},
                        difference = {a->re - b->re, a->im - b->im};
            out[0] = sum;
            turn(&out[done], &difference, w[0], w[1]);
        }
    }
}

static void stage4(const struct stage *st)
{
    const uint32_t m = st->m, done = st->done;
    const uint64_t step = (uint64_t)done * m;
    for (uint32_t j = 0; j < m; j++) {
        const uint64_t w = 2 * (uint64_t)j * done;
        for (uint32_t k = 0; k < done; k++) {
            const value *a = st->in + k + (uint64_t)done * j;
            value *out = st->out + k + (uint64_t)done * 4 * j;
            const value even = {a[0].re + a[2 * step].re, a[0].im + a[2 * step].im};
            const value odd = {a[step].re + a[3 * step].re, a[step].im + a[3 * step].im};
            const value p = {a[0].re - a[2 * step].re, a[0].im - a[2 * step].im};
            const value q = {a[step].re - a[3 * step].re, a[step].im - a[3 * step].im};
            const value one = {p.re + q.im, p.im - q.re}, two = {even.re - odd.re, even.im - odd.im};
            const value three = {p.re - q.im, p.im + q.re};
            out[0] = (value){even.re + odd.re, even.im + odd.im};
            turn(&out[done], &one, st->wave[w], st->wave[w + 1]);
            turn(&out[2 * done], &two, st->wave[2 * w], st->wave[2 * w + 1]);
            turn(&out[3 * done], &three, st->wave[3 * w], st->wave[3 * w + 1]);
        }
    }
}

/* One butterfly of an odd radix, written to its destination: values q and radix - q share all
 * products. */
static inline __attribute__((always_inline)) void
butterfly(const struct stage *st, uint32_t radix, const float (*wave)[2], uint32_t j, uint32_t k)
{
    const uint32_t done = st->done, half = radix / 2;
    const uint64_t step = (uint64_t)done * st->m;
    const value *a = st->in + k + (uint64_t)done * j;
    value *out = st->out + k + (uint64_t)done * radix * j;
    value sum[ST_FFT_FACTOR_MAX / 2 + 1], difference[ST_FFT_FACTOR_MAX / 2 + 1], all = a[0];
    for (uint32_t r = 1; r <= half; r++) {
        const value *x = &a[r * step], *y = &a[(radix - r) * step];
        sum[r] = (value){x->re + y->re, x->im + y->im};
        difference[r] = (value){x->re - y->re, x->im - y->im};
        all.re += sum[r].re;
        all.im += sum[r].im;
    }
    out[0] = all;
    for (uint32_t q = 1; q <= half; q++) {
        value even = a[0], odd = {{0}, {0}};
        for (uint32_t r = 1; r <= half; r++) {
            const float *w = wave[r * q % radix];
            even.re += sum[r].re * w[0];
            even.im += sum[r].im * w[0];
            odd.re -= difference[r].im * w[1];
            odd.im += difference[r].re * w[1];
        }
        const value low = {even.re + odd.re, even.im + odd.im};
        const value high = {even.re - odd.re, even.im - odd.im};
        const float *u = st->wave + 2 * (uint64_t)j * done * q;
        const float *v = st->wave + 2 * (uint64_t)j * done * (radix - q);
        turn(&out[(uint64_t)q * done], &low, u[0], u[1]);
        turn(&out[(uint64_t)(radix - q) * done], &high, v[0], v[1]);
    }
}

/* Inlined, so that the compiler unrolls it for constant radices. */
static inline __attribute__((always_inline)) void run_odd(const struct stage *st, uint32_t radix,
                                                          uint32_t inner)
{
    float wave[ST_FFT_FACTOR_MAX][2];
    for (uint32_t k = 0; k < radix; k++) {
        wave[k][0] = st->wave[2 * (uint64_t)k * (inner / radix)];
        wave[k][1] = st->wave[2 * (uint64_t)k * (inner / radix) + 1];
    }
    for (uint32_t j = 0; j < st->m; j++)
        for (uint32_t k = 0; k < st->done; k++)
            butterfly(st, radix, (const float(*)[2])wave, j, k);
}

static void stage_odd(const struct stage *st, uint32_t inner)
{
    if (st->radix == 3)
        run_odd(st, 3, inner);
    else if (st->radix == 5)
        run_odd(st, 5, inner);
    else
        run_odd(st, st->radix, inner);
}

/* Transforms a[inner], with b[inner] as work space; returns the array that holds the result. */
static value *run_complex(const struct st_fft *fft, value *a, value *b)
{
    struct stage st = {.wave = fft->wave, .m = fft->inner, .done = 1};
    for (uint32_t k = 0; k < fft->stages; k++) {
        st.in = a;
        st.out = b;
        st.radix = fft->radix[k];
        st.m /= st.radix;
        if (st.radix == 4)
            stage4(&st);
        else if (st.radix == 2)
            stage2(&st);
        else
            stage_odd(&st, fft->inner);
        st.done *= st.radix;
        b = a;
        a = st.out;
    }
    return a;
}

/* The spectrum of the real signal whose even and odd values were used as real and imaginary parts. */
static void untangle(const struct st_fft *fft, const value *z, value *out)
{
    const uint32_t half = fft->inner;
    for (uint32_t k = 0; k <= half; k++) {
        const value *a = &z[k == half ? 0 : k], *b = &z[k == 0 ? 0 : half - k];
        const float c = fft->twist[2 * k], s = fft->twist[2 * k + 1];
        const value even = {(a->re + b->re) * 0.5f, (a->im - b->im) * 0.5f};
        const value odd = {(a->im + b->im) * 0.5f, (b->re - a->re) * 0.5f};
        turn(&out[k], &odd, c, s);
        out[k].re += even.re;
        out[k].im += even.im;
    }
}

void st_fft_run(const struct st_fft *fft, const st_fft_lanes *in, struct st_fft_value *work,
                struct st_fft_value *out)
{
    const bool halved = fft->size % 2 == 0;
    for (uint32_t k = 0; k < fft->inner; k++)
        work[k] = halved ? (value){in[2 * k], in[2 * k + 1]} : (value){in[k], {0}};
    const value *z = run_complex(fft, work, work + fft->inner);
    if (halved)
        untangle(fft, z, out);
    else
        for (uint32_t k = 0; k <= fft->size / 2; k++)
            out[k] = z[k];
}

static float *waves(uint32_t count, uint32_t size)
{
    float *wave = st_calloc(count, 2 * sizeof *wave);
    for (uint32_t k = 0; wave && k < count; k++) {
        wave[2 * k] = (float)st_cos(2 * M_PI * k / size);
        wave[2 * k + 1] = (float)-st_sin(2 * M_PI * k / size);
    }
    return wave;
}

int st_fft_init(struct st_fft *fft, uint32_t size, struct stoker_error *err)
{
    *fft = (struct st_fft){.size = size, .inner = size % 2 ? size : size / 2};
    if (size < 2 || size > ST_FFT_MAX)
        return st_fail(err, STOKER_EINVAL, "n_fft=%u: the size of a Fourier transform must be 2 to %d",
                       size, ST_FFT_MAX);
    uint32_t rest = fft->inner;
    for (; rest % 4 == 0; rest /= 4)
        fft->radix[fft->stages++] = 4;
    for (uint32_t factor = 2; factor <= ST_FFT_FACTOR_MAX; factor++)
        for (; rest % factor == 0; rest /= factor)
            fft->radix[fft->stages++] = factor;
    if (rest != 1)
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "n_fft=%u: its factor %u has prime factors above %d; use a nearby size with smaller prime "
            "factors, such as a power of 2",
            size, rest, ST_FFT_FACTOR_MAX);
    fft->wave = waves(fft->inner, fft->inner);
    fft->twist = waves(fft->inner + 1, size);
    if (fft->wave && fft->twist)
        return 0;
    st_fft_free(fft);
    return st_fail(err, STOKER_ENOMEM, "no memory for a Fourier transform of size %u", size);
}

void st_fft_free(struct st_fft *fft)
{
    free(fft->wave);
    free(fft->twist);
    *fft = (struct st_fft){0};
}
