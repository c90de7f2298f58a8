/* warp_rows.c - the inner loops of warps
 *
 * Compiled once for each kind of CPU; ST_WARP_ROWS is the name of the table. Places are computed for
 * some pixels at a time, which the compiler vectorises; the sums are of doubles, in Pillow's order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp_rows.h"

#include "op/kernels/rgb_pixels.h"

#include <string.h>

enum { CHUNK = 128 };

/* Where pixels come from: the pixel to the upper left of the point, and the rest of the way. */
struct places {
    int32_t at[CHUNK];
    double right[CHUNK], down[CHUNK];
};

static inline int32_t within(int32_t value, int32_t most)
{
    value = value < most ? value : most;
    return value > 0 ? value : 0;
}

/* `half`: the distance from a pixel's corner to the point that stands for it. The pixels are known to
 * lie inside; that they are kept there once more costs little, and no error of rounding can make these
 * loops read elsewhere. */
static inline void find(const struct st_warp_line *restrict line, bool perspective, int32_t begin,
                        int32_t count, double half, struct places *restrict out)
{
    const struct st_view *in = line->in;
    const int32_t x = line->x + begin, y = line->y;
    const int32_t across = in->channels, row = (int32_t)in->stride;
    const int32_t right = in->width - 1, bottom = in->height - 1;
    double map[8] = {0};
    memcpy(map, line->map, (perspective ? 8 : 6) * sizeof *map);
    for (int32_t k = 0; k < count; k++) {
        const struct st_point from = st_warp_source(map, perspective, x + k, y);
        const double fx = from.x - half, fy = from.y - half;
        const int32_t column = within((int32_t)fx, right), line_of = within((int32_t)fy, bottom);
        out->at[k] = line_of * row + column * across;
        out->right[k] = fx - column;
        out->down[k] = fy - line_of;
    }
}

static void places_of(const struct st_warp_line *line, int32_t begin, int32_t count, double half,
                      struct places *out)
{
    if (line->perspective)
        find(line, true, begin, count, half, out);
    else
        find(line, false, begin, count, half, out);
}

static int32_t chunk(int32_t left) { return left < CHUNK ? left : CHUNK; }

/* ---- nearest ------------------------------------------------------------------------------------ */

static void gather(const uint8_t *in, const int32_t *at, int32_t count, int32_t channels, uint8_t *out)
{
    if (channels == 1) {
        for (int32_t k = 0; k < count; k++)
            out[k] = in[at[k]];
        return;
    }
    if (count <= 0)
        return;
#pragma GCC unroll 4
    for (int32_t k = 0; k < count - 1; k++, out += 3) /* the fourth byte is overwritten by the next */
        memcpy(out, in + at[k], 4);
    memcpy(out, in + at[count - 1], 3);
}

static void nearest(const struct st_warp_line *line)
{
    struct places places;
    for (int32_t begin = 0, some; begin < line->count; begin += some) {
        some = chunk(line->count - begin);
        places_of(line, begin, some, 0, &places);
        gather(line->in->data, places.at, some, line->in->channels,
               line->out + (ptrdiff_t)begin * line->in->channels);
    }
}

static void fixed(const struct st_view *in, struct st_warp_steps steps, int32_t count, uint8_t *out)
{
    int32_t at[CHUNK];
    const int32_t row = (int32_t)in->stride, across = in->channels;
    for (int32_t begin = 0, some; begin < count; begin += some) {
        some = chunk(count - begin);
        for (int32_t k = 0; k < some; k++) {
            const int32_t column =
                (int32_t)((uint32_t)steps.x + (uint32_t)k * (uint32_t)steps.right) >> 16;
            const int32_t line = (int32_t)((uint32_t)steps.y + (uint32_t)k * (uint32_t)steps.down) >> 16;
            at[k] = line * row + column * across;
        }
        gather(in->data, at, some, across, out + (ptrdiff_t)begin * across);
        steps.x = (int32_t)((uint32_t)steps.x + (uint32_t)some * (uint32_t)steps.right);
        steps.y = (int32_t)((uint32_t)steps.y + (uint32_t)some * (uint32_t)steps.down);
    }
}

/* ---- mixtures of pixels ------------------------------------------------------------------------ */

typedef void mix_fn(const struct st_view *in, const struct places *places, int32_t count, uint8_t *out);

static inline void by_places(const struct st_warp_line *line, mix_fn *one, mix_fn *three)
{
    const struct st_view *in = line->in;
    struct places places;
    for (int32_t begin = 0, some; begin < line->count; begin += some) {
        some = chunk(line->count - begin);
        places_of(line, begin, some, 0.5, &places);
        (in->channels == 3 ? three : one)(in, &places, some,
                                          line->out + (ptrdiff_t)begin * in->channels);
    }
}

/* ---- bilinear ----------------------------------------------------------------------------------- */

static inline uint8_t mix(const uint8_t *upper, const uint8_t *lower, int32_t next, double right,
                          double down)
{
    const double above = st_warp_linear(upper[0], upper[next], right);
    const double below = st_warp_linear(lower[0], lower[next], right);
    return (uint8_t)(int32_t)(above + (below - above) * down);
}

static inline void mix_pixels(const struct st_view *in, const struct places *places, int32_t count,
                              int32_t channels, uint8_t *out)
{
    for (int32_t k = 0; k < count; k++) {
        const uint8_t *upper = in->data + places->at[k], *lower = upper + in->stride;
        for (int32_t c = 0; c < channels; c++)
            *out++ = mix(upper + c, lower + c, channels, places->right[k], places->down[k]);
    }
}

static void mix_one(const struct st_view *in, const struct places *places, int32_t count, uint8_t *out)
{
    mix_pixels(in, places, count, 1, out);
}

#if defined(__AVX2__)

/* Two pixels side by side as doubles: a byte becomes the lowest one of 2^52. */
static inline void two_pixels(const uint8_t *from, __m256d *left, __m256d *right)
{
    const __m256i first = _mm256_setr_epi64x(-256, -255, -254, -1);
    const __m256i second = _mm256_setr_epi64x(-253, -252, -251, -1);
    const __m256d more = _mm256_set1_pd(0x1p52);
    int64_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    const __m256i all = _mm256_set1_epi64x(bytes);
    *left = _mm256_or_pd(_mm256_castsi256_pd(_mm256_shuffle_epi8(all, first)), more);
    *right = _mm256_or_pd(_mm256_castsi256_pd(_mm256_shuffle_epi8(all, second)), more);
}

static inline uint32_t bytes_of(__m256d values)
{
    const __m128i lowest = _mm_set1_epi32(0x0c080400);
    return (uint32_t)_mm_cvtsi128_si32(_mm_shuffle_epi8(_mm256_cvttpd_epi32(values), lowest));
}

static inline __m256d between_pixels(const uint8_t *from, __m256d by)
{
    __m256d left, right;
    two_pixels(from, &left, &right);
    return _mm256_add_pd(_mm256_sub_pd(left, _mm256_set1_pd(0x1p52)),
                         _mm256_mul_pd(_mm256_sub_pd(right, left), by));
}

static void mix_in_doubles(const struct st_view *in, const struct places *places, int32_t k,
                           uint8_t *out)
{
    const uint8_t *from = in->data + places->at[k];
    const __m256d right = _mm256_set1_pd(places->right[k]), down = _mm256_set1_pd(places->down[k]);
    const __m256d above = between_pixels(from, right);
    const __m256d below = between_pixels(from + in->stride, right);
    const uint32_t pixel =
        bytes_of(_mm256_add_pd(above, _mm256_mul_pd(_mm256_sub_pd(below, above), down)));
    memcpy(out, &pixel, 3);
}

/* Floats nearly always decide which integer is below: they are off by less than 2^-14, so only where
 * what is rounded to 2^-12 is a whole number, a pixel is made again in doubles. Each channel stays in
 * its byte: it is 1, 2^8 or 2^16 times its value. */
enum { AT_ONCE = 8, PARTS = 1 << 12 };

/* Pixels in lanes: of each point the one to the left, and the next one. */
struct sides {
    __m256i left, right;
};

static inline __m128i two_places(const uint8_t *data, const int32_t *at)
{
    const __m128i one = _mm_loadl_epi64((const __m128i *)(const void *)(data + at[0]));
    const __m128 first = _mm_castsi128_ps(one);
    return _mm_castps_si128(_mm_loadh_pi(first, (const __m64 *)(const void *)(data + at[1])));
}

static inline __m256i four_places(const uint8_t *data, const int32_t *at)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(two_places(data, at)),
                                   two_places(data, at + 4), 1);
}

/* The lower halves of eight numbers of 64 bits. */
static inline __m256i lower_halves(__m256i first, __m256i second)
{
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(first), _mm256_castsi256_ps(second), 0x88));
}

static inline struct sides sides_of(const uint8_t *data, const int32_t *at)
{
    const __m256i first = four_places(data, at), second = four_places(data, at + 2);
    return (struct sides){lower_halves(first, second),
                          lower_halves(_mm256_srli_epi64(first, 24), _mm256_srli_epi64(second, 24))};
}

static inline __m256 channel_of(__m256i pixels, __m256i channel)
{
    return _mm256_cvtepi32_ps(_mm256_and_si256(pixels, channel));
}

/* A channel of the mixtures, in 1 / PARTS; `scale` undoes that of its byte. */
static inline __m256i mixed_channel(struct sides upper, struct sides lower, __m256i channel,
                                    __m256 right, __m256 down, float scale)
{
    const __m256 a = channel_of(upper.left, channel), b = channel_of(upper.right, channel);
    const __m256 c = channel_of(lower.left, channel), d = channel_of(lower.right, channel);
    const __m256 above = _mm256_fmadd_ps(right, _mm256_sub_ps(b, a), a);
    const __m256 below = _mm256_fmadd_ps(right, _mm256_sub_ps(d, c), c);
    const __m256 value = _mm256_fmadd_ps(down, _mm256_sub_ps(below, above), above);
    return _mm256_cvtps_epi32(_mm256_mul_ps(value, _mm256_set1_ps(scale * PARTS)));
}

static inline __m256i is_whole(__m256i parts)
{
    return _mm256_cmpeq_epi32(_mm256_and_si256(parts, _mm256_set1_epi32(PARTS - 1)),
                              _mm256_setzero_si256());
}

/* Where four pixels are not equal, bits of the channels in which they are not. */
static inline __m256i differing(struct sides upper, struct sides lower)
{
    const __m256i across = _mm256_xor_si256(upper.left, upper.right);
    const __m256i below = _mm256_xor_si256(upper.left, lower.left);
    const __m256i aslant = _mm256_xor_si256(upper.left, lower.right);
    return _mm256_or_si256(_mm256_or_si256(across, below), aslant);
}

static inline __m256 eight_floats(const double *from)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(from + 4)),
                           _mm256_cvtpd_ps(_mm256_loadu_pd(from)));
}

static inline void mix_eight(const struct st_view *in, const struct places *places, int32_t k,
                             uint8_t *out)
{
    const __m128i threes = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m256i r = _mm256_set1_epi32(0xff), g = _mm256_set1_epi32(0xff00),
                  b = _mm256_set1_epi32(0xff0000);
    const __m256 right = eight_floats(places->right + k), down = eight_floats(places->down + k);
    const struct sides upper = sides_of(in->data, places->at + k);
    const struct sides lower = sides_of(in->data + in->stride, places->at + k);
    const __m256i red = mixed_channel(upper, lower, r, right, down, 1);
    const __m256i green = mixed_channel(upper, lower, g, right, down, 0x1p-8f);
    const __m256i blue = mixed_channel(upper, lower, b, right, down, 0x1p-16f);
    put_pixels(out,
               _mm256_or_si256(_mm256_srli_epi32(red, 12),
                               _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(green, 4), g),
                                               _mm256_and_si256(_mm256_slli_epi32(blue, 4), b))),
               threes);
    /* Mixtures of equal values are exact. */
    const __m256i whole =
        _mm256_or_si256(_mm256_and_si256(is_whole(red), r),
                        _mm256_or_si256(_mm256_and_si256(is_whole(green), g),
                                        _mm256_and_si256(is_whole(blue), b)));
    const __m256i unsure = _mm256_and_si256(whole, differing(upper, lower));
    if (_mm256_testz_si256(unsure, unsure))
        return;
    const __m256i sure = _mm256_cmpeq_epi32(unsure, _mm256_setzero_si256());
    int again = ~_mm256_movemask_ps(_mm256_castsi256_ps(sure)) & 0xff;
    for (int i = 0; again >> i; i++)
        if (again >> i & 1)
            mix_in_doubles(in, places, k + i, out + 3 * (ptrdiff_t)i);
}

static void mix_three(const struct st_view *in, const struct places *places, int32_t count,
                      uint8_t *out)
{
    if (count < AT_ONCE) {
        for (int32_t k = 0; k < count; k++)
            mix_in_doubles(in, places, k, out + 3 * (ptrdiff_t)k);
        return;
    }
    for (int32_t k = 0; k + AT_ONCE <= count; k += AT_ONCE)
        mix_eight(in, places, k, out + 3 * (ptrdiff_t)k);
    if (count % AT_ONCE)
        mix_eight(in, places, count - AT_ONCE, out + 3 * (ptrdiff_t)(count - AT_ONCE));
}

#else

static void mix_three(const struct st_view *in, const struct places *places, int32_t count, uint8_t *out)
{
    mix_pixels(in, places, count, 3, out);
}

#endif

static void bilinear(const struct st_warp_line *line) { by_places(line, mix_one, mix_three); }

/* ---- bicubic ------------------------------------------------------------------------------------ */

static inline double cubic_row(const uint8_t *from, int32_t next, double by)
{
    return st_warp_cubic(from[-next], from[0], from[next], from[2 * next], by);
}

static inline uint8_t cubic(const uint8_t *from, ptrdiff_t stride, int32_t next, double right,
                            double down)
{
    double row[4];
    for (int32_t k = 0; k < 4; k++)
        row[k] = cubic_row(from + (k - 1) * stride, next, right);
    return st_warp_byte(st_warp_cubic(row[0], row[1], row[2], row[3], down));
}

static inline void cubic_pixels(const struct st_view *in, const struct places *places, int32_t count,
                                int32_t channels, uint8_t *out)
{
    for (int32_t k = 0; k < count; k++)
        for (int32_t c = 0; c < channels; c++)
            *out++ = cubic(in->data + places->at[k] + c, in->stride, channels, places->right[k],
                           places->down[k]);
}

static void cubic_one(const struct st_view *in, const struct places *places, int32_t count, uint8_t *out)
{
    cubic_pixels(in, places, count, 1, out);
}

#if defined(__AVX2__)

/* st_warp_cubic */
static inline __m256d cubic4(__m256d a, __m256d b, __m256d c, __m256d d, __m256d by)
{
    const __m256d slope = _mm256_sub_pd(c, a);
    const __m256d twice = _mm256_mul_pd(_mm256_set1_pd(2), _mm256_sub_pd(a, b));
    const __m256d bend = _mm256_sub_pd(_mm256_add_pd(twice, c), d);
    const __m256d twist = _mm256_add_pd(_mm256_sub_pd(_mm256_sub_pd(b, a), c), d);
    __m256d sum = _mm256_add_pd(bend, _mm256_mul_pd(by, twist));
    sum = _mm256_add_pd(slope, _mm256_mul_pd(by, sum));
    return _mm256_add_pd(b, _mm256_mul_pd(by, sum));
}

static inline __m256d cubic_row4(const uint8_t *from, __m256d by)
{
    const __m256d low = _mm256_set1_pd(0x1p52);
    __m256d a, b, c, d;
    two_pixels(from - 3, &a, &b);
    two_pixels(from + 3, &c, &d);
    return cubic4(_mm256_sub_pd(a, low), _mm256_sub_pd(b, low), _mm256_sub_pd(c, low),
                  _mm256_sub_pd(d, low), by);
}

static inline uint32_t cubic_pixel(const uint8_t *from, ptrdiff_t stride, double right, double down)
{
    const __m256d across = _mm256_set1_pd(right);
    __m256d value = cubic4(cubic_row4(from - stride, across), cubic_row4(from, across),
                           cubic_row4(from + stride, across), cubic_row4(from + 2 * stride, across),
                           _mm256_set1_pd(down));
    value = _mm256_max_pd(value, _mm256_setzero_pd());
    return bytes_of(_mm256_min_pd(value, _mm256_set1_pd(255)));
}

static void cubic_three(const struct st_view *in, const struct places *places, int32_t count,
                        uint8_t *out)
{
    for (int32_t k = 0; k < count; k++, out += 3) {
        const uint32_t pixel =
            cubic_pixel(in->data + places->at[k], in->stride, places->right[k], places->down[k]);
        memcpy(out, &pixel, k + 1 < count ? 4 : 3);
    }
}

#else

static void cubic_three(const struct st_view *in, const struct places *places, int32_t count,
                        uint8_t *out)
{
    cubic_pixels(in, places, count, 3, out);
}

#endif

static void bicubic(const struct st_warp_line *line) { by_places(line, cubic_one, cubic_three); }

extern const struct st_warp_rows ST_WARP_ROWS;
const struct st_warp_rows ST_WARP_ROWS = {
    .nearest = nearest,
    .bilinear = bilinear,
    .bicubic = bicubic,
    .fixed = fixed,
    .gather = gather,
};
