/* resize_rows.c - the inner loops of resizes with OpenCV's arithmetic
 *
 * One file, compiled for each kind of CPU; the plain C version is the specification.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/resize.h"

#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512VBMI__)
enum { WINDOW = 64, GROUP = 16 };
#elif defined(__AVX2__)
enum { WINDOW = 16, GROUP = 4 };
#else
enum { WINDOW = 0, GROUP = 0 };
#endif

/* ---- linear ---- */

static void across_one(const struct st_cv_linear *plan, int16_t *out, const uint8_t *in, int32_t k)
{
    out[k] = (int16_t)((in[plan->first[k]] * plan->weight[2 * k] +
                        in[plan->second[k]] * plan->weight[2 * k + 1]) >>
                       4);
}

/* From a multiple of the channels on; returns where it stopped. */
#if defined(__AVX2__)
/* Two neighbouring pixels are 6 bytes, of which pairs are made; the 4th sum is overwritten by the next
 * pixel's. */
static int32_t across_pixels(const struct st_cv_linear *plan, int16_t *out, const uint8_t *in, int32_t k)
{
    const __m256i pairs = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
    if (plan->channels != 3)
        return k;
    for (; k < plan->values - 9 && plan->first[k + 3] + 8 <= plan->row_bytes; k += 6) {
        int32_t weights[2];
        memcpy(&weights[0], plan->weight + 2 * k, 4);
        memcpy(&weights[1], plan->weight + 2 * k + 6, 4);
        const __m128i one = _mm_loadl_epi64((const __m128i *)(in + plan->first[k]));
        const __m128i two = _mm_loadl_epi64((const __m128i *)(in + plan->first[k + 3]));
        const __m256i both = _mm256_shuffle_epi8(_mm256_set_m128i(two, one), pairs);
        const __m256i weight = _mm256_set_m128i(_mm_set1_epi32(weights[1]), _mm_set1_epi32(weights[0]));
        const __m256i sums = _mm256_srli_epi32(_mm256_madd_epi16(both, weight), 4);
        const __m256i packed = _mm256_packs_epi32(sums, sums);
        _mm_storel_epi64((__m128i *)(out + k), _mm256_castsi256_si128(packed));
        _mm_storel_epi64((__m128i *)(out + k + 3), _mm256_extracti128_si256(packed, 1));
    }
    return k;
}

#if !defined(__AVX512VBMI__)
/* Eight sums of two groups of values, from value k on. */
static inline __m256i two_groups(const struct st_cv_linear *plan, const uint8_t *in, const int32_t *base,
                                 int32_t k)
{
    const __m256i window = _mm256_loadu2_m128i((const __m128i *)(in + base[1]),
                                               (const __m128i *)(in + base[0]));
    const __m256i pick = _mm256_loadu_si256((const __m256i *)(plan->pick + (size_t)k * 4));
    const __m256i weight = _mm256_loadu_si256((const __m256i *)(plan->weight + (size_t)k * 2));
    return _mm256_srli_epi32(_mm256_madd_epi16(_mm256_shuffle_epi8(window, pick), weight), 4);
}

static inline __m256i packed_in_order(__m256i first, __m256i second)
{
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
}
#endif

/* Four bytes from the first source on hold the second one, too. */
static int32_t across_values(const struct st_cv_linear *plan, int16_t *out, const uint8_t *in, int32_t k)
{
    const __m256i byte = _mm256_set1_epi32(255);
    const __m128i up = _mm_cvtsi32_si128(16 - 8 * plan->channels),
                  down = _mm_cvtsi32_si128(8 * plan->channels - 16);
    const bool left = plan->channels < 2;
    if (plan->channels > 3)
        return k;
    for (; k <= plan->values - 8 && plan->first[k + 7] + 4 <= plan->row_bytes; k += 8) {
        const __m256i first = _mm256_loadu_si256((const __m256i *)(plan->first + k));
        const __m256i four = _mm256_i32gather_epi32((const int *)in, first, 1);
        const __m256i high = left ? _mm256_sll_epi32(four, up) : _mm256_srl_epi32(four, down);
        const __m256i pairs = _mm256_or_si256(_mm256_and_si256(four, byte),
                                              _mm256_and_si256(high, _mm256_slli_epi32(byte, 16)));
        const __m256i weight = _mm256_loadu_si256((const __m256i *)(plan->weight + 2 * k));
        const __m256i sums = _mm256_srli_epi32(_mm256_madd_epi16(pairs, weight), 4);
        const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(sums, sums), 8);
        _mm_storeu_si128((__m128i *)(out + k), _mm256_castsi256_si128(packed));
    }
    return k;
}
#endif

static void across(const struct st_cv_linear *plan, int16_t *out, const uint8_t *in)
{
    int32_t k = 0;
#if defined(__AVX512VBMI__)
    for (int32_t group = 0; group < plan->windows.groups; group++, k += GROUP) {
        const __m512i window = _mm512_loadu_si512(in + plan->windows.base[group]);
        const __m512i pick = _mm512_loadu_si512(plan->pick + (size_t)k * 4);
        const __m512i pairs = _mm512_maskz_permutexvar_epi8(0x5555555555555555, pick, window);
        const __m512i sums = _mm512_madd_epi16(pairs, _mm512_loadu_si512(plan->weight + (size_t)k * 2));
        _mm256_storeu_si256((__m256i *)(out + k), _mm512_cvtepi32_epi16(_mm512_srli_epi32(sums, 4)));
    }
#elif defined(__AVX2__)
    const int32_t *base = plan->windows.base, *end = base + plan->windows.groups;
    for (; end - base >= 4; base += 4, k += 4 * GROUP) {
        const __m256i first = two_groups(plan, in, base, k);
        const __m256i second = two_groups(plan, in, base + 2, k + 2 * GROUP);
        _mm256_storeu_si256((__m256i *)(out + k), packed_in_order(first, second));
    }
    for (; end - base >= 2; base += 2, k += 2 * GROUP) {
        const __m256i sums = two_groups(plan, in, base, k);
        _mm_storeu_si128((__m128i *)(out + k), _mm256_castsi256_si128(packed_in_order(sums, sums)));
    }
#endif
#if defined(__AVX2__)
    for (; plan->channels == 3 && k % 3 && k < plan->values; k++)
        across_one(plan, out, in, k);
    k = across_values(plan, out, in, across_pixels(plan, out, in, k));
#endif
    for (; k < plan->values; k++)
        across_one(plan, out, in, k);
}

static void down(uint8_t *out, const int16_t *a, const int16_t *b, int16_t weight_a, int16_t weight_b,
                 int32_t values)
{
    int32_t k = 0;
#if defined(__AVX2__)
    const __m256i wa = _mm256_set1_epi16(weight_a), wb = _mm256_set1_epi16(weight_b);
    const __m256i two = _mm256_set1_epi16(2);
    for (; k <= values - 32; k += 32) {
        __m256i half[2];
        for (int i = 0; i < 2; i++) {
            const __m256i va = _mm256_loadu_si256((const __m256i *)(a + k + 16 * i));
            const __m256i vb = _mm256_loadu_si256((const __m256i *)(b + k + 16 * i));
            const __m256i sum = _mm256_add_epi16(_mm256_mulhi_epi16(va, wa), _mm256_mulhi_epi16(vb, wb));
            half[i] = _mm256_srai_epi16(_mm256_add_epi16(sum, two), 2);
        }
        const __m256i packed = _mm256_packus_epi16(half[0], half[1]);
        _mm256_storeu_si256((__m256i *)(out + k), _mm256_permute4x64_epi64(packed, 0xd8));
    }
#endif
    for (; k < values; k++)
        out[k] = (uint8_t)((((a[k] * weight_a) >> 16) + ((b[k] * weight_b) >> 16) + 2) >> 2);
}

/* ---- area ---- */

static void area_one(const struct st_cv_area *plan, float *out, const uint8_t *in, int32_t k)
{
    const size_t values = (size_t)plan->values;
    const uint8_t *from = in + plan->first[k];
    float sum = 0;
    for (int32_t t = 0; t < plan->taps; t++)
        sum += (float)from[t * plan->channels] * plan->weight[(size_t)t * values + (size_t)k];
    out[k] = sum;
}

#if defined(__AVX2__)
/* Pixels of 3 or 4 channels; the 4th sum of 3 is overwritten by the next pixel's. */
static int32_t area_pixels(const struct st_cv_area *plan, float *out, const uint8_t *in, int32_t k)
{
    const int32_t channels = plan->channels, last = (plan->taps - 1) * channels + 4;
    const size_t values = (size_t)plan->values;
    if (channels < 3)
        return k;
    for (; k <= plan->values - 4 && plan->first[k] + last <= plan->row_bytes; k += channels) {
        const uint8_t *from = in + plan->first[k];
        const float *weight = plan->weight + k;
        __m128 sum = _mm_setzero_ps();
        for (int32_t t = 0; t < plan->taps; t++, from += channels, weight += values) {
            const __m128i pixel = _mm_cvtepu8_epi32(_mm_loadu_si32(from));
            sum = _mm_add_ps(sum, _mm_mul_ps(_mm_cvtepi32_ps(pixel), _mm_set1_ps(*weight)));
        }
        _mm_storeu_ps(out + k, sum);
    }
    return k;
}

/* Four bytes from a source on are those of four taps. */
static int32_t area_grey(const struct st_cv_area *plan, float *out, const uint8_t *in, int32_t k)
{
    const int32_t last = (plan->taps + 3) / 4 * 4;
    const size_t values = (size_t)plan->values;
    const __m256i byte = _mm256_set1_epi32(255);
    if (plan->channels != 1)
        return k;
    for (; k <= plan->values - 8 && plan->first[k + 7] + last <= plan->row_bytes; k += 8) {
        const __m256i first = _mm256_loadu_si256((const __m256i *)(plan->first + k));
        __m256 sum = _mm256_setzero_ps();
        __m256i four = first;
        for (int32_t t = 0; t < plan->taps; t++) {
            four = t % 4 ? _mm256_srli_epi32(four, 8)
                         : _mm256_i32gather_epi32((const int *)(in + t), first, 1);
            const __m256 value = _mm256_cvtepi32_ps(_mm256_and_si256(four, byte));
            const __m256 weight = _mm256_loadu_ps(plan->weight + (size_t)t * values + (size_t)k);
            sum = _mm256_add_ps(sum, _mm256_mul_ps(value, weight));
        }
        _mm256_storeu_ps(out + k, sum);
    }
    return k;
}
#endif

static void area_across(const struct st_cv_area *plan, float *out, const uint8_t *in)
{
    int32_t k = 0;
#if defined(__AVX512VBMI__)
    const size_t values = (size_t)plan->values;
    const __m512i step = _mm512_set1_epi32(plan->channels);
    for (int32_t group = 0; group < plan->windows.groups; group++, k += GROUP) {
        const __m512i window = _mm512_loadu_si512(in + plan->windows.base[group]);
        __m512i pick = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(plan->pick + k)));
        __m512 sum = _mm512_setzero_ps();
        for (int32_t t = 0; t < plan->taps; t++) {
            const __m512i bytes = _mm512_maskz_permutexvar_epi8(0x1111111111111111, pick, window);
            const __m512 weight = _mm512_loadu_ps(plan->weight + (size_t)t * values + (size_t)k);
            sum = _mm512_add_ps(sum, _mm512_mul_ps(_mm512_cvtepi32_ps(bytes), weight));
            pick = _mm512_add_epi32(pick, step);
        }
        _mm512_storeu_ps(out + k, sum);
    }
#endif
#if defined(__AVX2__)
    for (; k % plan->channels && k < plan->values; k++)
        area_one(plan, out, in, k);
    k = area_grey(plan, out, in, area_pixels(plan, out, in, k));
#endif
    for (; k < plan->values; k++)
        area_one(plan, out, in, k);
}

static void area_add(float *sum, const float *row, float weight, int32_t values)
{
    for (int32_t k = 0; k < values; k++)
        sum[k] += row[k] * weight;
}

static void area_set(float *sum, const float *row, float weight, int32_t values)
{
    for (int32_t k = 0; k < values; k++)
        sum[k] = row[k] * weight;
}

/* Adding this to a float32 below 2^22 leaves the nearest integer, even ones first, in its lowest bits.
 */
static const float ROUND = 12582912.f;

static void area_round(uint8_t *out, const float *sum, int32_t values)
{
    for (int32_t k = 0; k < values; k++) {
        const float shifted = sum[k] + ROUND;
        uint32_t bits;
        memcpy(&bits, &shifted, 4);
        const int32_t value = (int32_t)(bits & 0x3fffff);
        out[k] = (uint8_t)(value > 255 ? 255 : value);
    }
}

/* ---- half the size ---- */

static void halve(uint8_t *out, const uint8_t *a, const uint8_t *b, int32_t width, int32_t channels)
{
    int32_t k = 0; /* value of the result; those of pixel k / channels begin at 2 k - k % channels */
#if defined(__AVX2__)
    const __m128i pairs_of[] = {_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                _mm_setr_epi8(0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11, -1, -1, -1, -1),
                                _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15)};
    const __m128i pairs = pairs_of[channels == 1 ? 0 : channels - 2], one = _mm_set1_epi8(1);
    const int32_t made = channels == 3 ? 6 : 8;
    for (; 2 * k + 16 <= 2 * width * channels && k + 8 <= width * channels; k += made) {
        const __m128i from_a = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(a + 2 * k)), pairs);
        const __m128i from_b = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(b + 2 * k)), pairs);
        const __m128i sum =
            _mm_add_epi16(_mm_maddubs_epi16(from_a, one), _mm_maddubs_epi16(from_b, one));
        const __m128i mean = _mm_srli_epi16(_mm_add_epi16(sum, _mm_set1_epi16(2)), 2);
        _mm_storel_epi64((__m128i *)(out + k), _mm_packus_epi16(mean, mean));
    }
#endif
    for (int32_t x = k / channels; x < width; x++)
        for (int32_t c = 0; c < channels; c++) {
            const int32_t at = 2 * x * channels + c, next = at + channels;
            out[x * channels + c] = (uint8_t)((a[at] + a[next] + b[at] + b[next] + 2) >> 2);
        }
}

/* ---- nearest ---- */

/* Copies of constant size are single instructions. Three bytes are copied as four, of which the next
 * pixel overwrites the last. */
static void nearest_pixels(const struct st_cv_nearest *plan, uint8_t *out, const uint8_t *in, int32_t x)
{
    const int32_t *from = plan->first, count = plan->pixels;
    switch (plan->channels) {
    case 1:
        for (; x < count; x++)
            out[x] = in[from[x]];
        return;
    case 2:
        for (; x < count; x++)
            memcpy(out + 2 * (size_t)x, in + from[x], 2);
        return;
    case 3:
        for (; x < count - 1 && from[x] + 4 <= plan->row_bytes; x++)
            memcpy(out + 3 * (size_t)x, in + from[x], 4);
        for (; x < count; x++)
            memcpy(out + 3 * (size_t)x, in + from[x], 3);
        return;
    default:
        for (; x < count; x++)
            memcpy(out + 4 * (size_t)x, in + from[x], 4);
    }
}

static void nearest(const struct st_cv_nearest *plan, uint8_t *out, const uint8_t *in)
{
    int32_t k = 0;
#if defined(__AVX512VBMI__)
    for (int32_t group = 0; group < plan->windows.groups; group++, k += GROUP) {
        const __m512i window = _mm512_loadu_si512(in + plan->windows.base[group]);
        const __m512i pick = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(plan->pick + k)));
        _mm_storeu_si128((__m128i *)(out + k),
                         _mm512_castsi512_si128(_mm512_permutexvar_epi8(pick, window)));
    }
#elif defined(__AVX2__)
    /* Copying pixels of several channels is faster than this. */
    for (int32_t group = 0; plan->channels == 1 && group < plan->windows.groups; group++, k += GROUP) {
        const __m128i window = _mm_loadu_si128((const __m128i *)(in + plan->windows.base[group]));
        const __m128i pick = _mm_loadu_si32(plan->pick + k);
        _mm_storeu_si32(out + k, _mm_shuffle_epi8(window, pick));
    }
#endif
    nearest_pixels(plan, out, in, k / plan->channels);
}

const struct st_cv_resize_rows ST_CV_ROWS = {.window = WINDOW,
                                             .group = GROUP,
                                             .across = across,
                                             .down = down,
                                             .area_across = area_across,
                                             .area_add = area_add,
                                             .area_set = area_set,
                                             .area_round = area_round,
                                             .halve = halve,
                                             .nearest = nearest};
