/* warp_rows.c - the inner loops of warps with OpenCV's arithmetic
 *
 * One file, compiled for each kind of CPU; the plain C version is the specification.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/warp.h"

#include <math.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* ---- points ---- */

/* m[0] x + m[1] y + m[2] for the pixels x of a row. In whole blocks the part of the row is rounded twice
 * and the rest once; behind them it is the other way round. `m` is for the row y. */
struct plane {
    float slope, part, last, begin;
};

static struct plane plane_of(const float *m, int32_t y)
{
    const float part = (float)y * m[1];
    return (struct plane){m[0], part, m[2], part + m[2]};
}

static float behind_blocks(struct plane plane, int32_t x)
{
    return fmaf((float)x, plane.slope, plane.part) + plane.last;
}

#if defined(__AVX2__)
static __m256 in_blocks(struct plane plane, int32_t x)
{
    const __m256i eight = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256 xs = _mm256_cvtepi32_ps(_mm256_add_epi32(eight, _mm256_set1_epi32(x)));
    return _mm256_fmadd_ps(_mm256_set1_ps(plane.slope), xs, _mm256_set1_ps(plane.begin));
}
#else
static float in_blocks(struct plane plane, int32_t x)
{
    return fmaf(plane.slope, (float)x, plane.begin);
}
#endif

static void affine(float *xs, float *ys, int32_t count, int32_t y, const float map[6])
{
    const struct plane to_x = plane_of(map, y), to_y = plane_of(map + 3, y);
    const int32_t blocks = count - count % ST_CV_WARP_BLOCK;
    int32_t x = 0;
#if defined(__AVX2__)
    for (; x < blocks; x += 8) {
        _mm256_storeu_ps(xs + x, in_blocks(to_x, x));
        _mm256_storeu_ps(ys + x, in_blocks(to_y, x));
    }
#else
    for (; x < blocks; x++) {
        xs[x] = in_blocks(to_x, x);
        ys[x] = in_blocks(to_y, x);
    }
#endif
    for (; x < count; x++) {
        xs[x] = behind_blocks(to_x, x);
        ys[x] = behind_blocks(to_y, x);
    }
}

static void perspective(float *xs, float *ys, int32_t count, int32_t y, const float map[9])
{
    const struct plane to_x = plane_of(map, y), to_y = plane_of(map + 3, y), to_w = plane_of(map + 6, y);
    const int32_t blocks = count - count % ST_CV_WARP_BLOCK;
    int32_t x = 0;
#if defined(__AVX2__)
    for (; x < blocks; x += 8) {
        const __m256 divisor = in_blocks(to_w, x);
        _mm256_storeu_ps(xs + x, _mm256_div_ps(in_blocks(to_x, x), divisor));
        _mm256_storeu_ps(ys + x, _mm256_div_ps(in_blocks(to_y, x), divisor));
    }
#else
    for (; x < blocks; x++) {
        xs[x] = in_blocks(to_x, x) / in_blocks(to_w, x);
        ys[x] = in_blocks(to_y, x) / in_blocks(to_w, x);
    }
#endif
    for (; x < count; x++) {
        const float divisor = behind_blocks(to_w, x);
        xs[x] = behind_blocks(to_x, x) / divisor;
        ys[x] = behind_blocks(to_y, x) / divisor;
    }
}

static bool all_near(const struct st_cv_points *points, float limit)
{
    int32_t k = 0;
    bool near = true;
#if defined(__AVX2__)
    const __m256 most = _mm256_set1_ps(limit), sign = _mm256_set1_ps(-0.f);
    __m256 all = _mm256_cmp_ps(most, most, _CMP_EQ_OQ);
    for (; k <= points->count - 8; k += 8) {
        const __m256 x = _mm256_andnot_ps(sign, _mm256_loadu_ps(points->x + k));
        const __m256 y = _mm256_andnot_ps(sign, _mm256_loadu_ps(points->y + k));
        all = _mm256_and_ps(all, _mm256_cmp_ps(x, most, _CMP_LE_OQ));
        all = _mm256_and_ps(all, _mm256_cmp_ps(y, most, _CMP_LE_OQ));
    }
    near = _mm256_movemask_ps(all) == 255;
#endif
    for (; k < points->count; k++)
        near = near && fabsf(points->x[k]) <= limit && fabsf(points->y[k]) <= limit;
    return near;
}

/* ---- pixels ---- */

static const uint8_t *fetch(const struct st_view *in, const struct st_cv_border_of *border, int32_t x,
                            int32_t y)
{
    const bool inside = x >= 0 && x < in->width && y >= 0 && y < in->height;
    if (!inside && border->kind == ST_CV_BORDER_CONSTANT)
        return border->value;
    if (!inside) {
        x = st_cv_border_at(x, in->width, border->kind);
        y = st_cv_border_at(y, in->height, border->kind);
    }
    return st_row(in, y) + (ptrdiff_t)x * in->channels;
}

/* NaN, too, becomes a place far outside. */
static int32_t whole(float at)
{
    const float most = 1e9f;
    return !(at > -most) ? (int32_t)-most : at < most ? (int32_t)at : (int32_t)most;
}

static void nearest(const struct st_view *in, const struct st_cv_border_of *border,
                    const struct st_cv_points *points, uint8_t *out)
{
    const size_t channels = (size_t)in->channels;
    for (int32_t k = 0; k < points->count; k++, out += channels)
        memcpy(out, fetch(in, border, whole(rintf(points->x[k])), whole(rintf(points->y[k]))), channels);
}

#if !defined(__AVX2__)
static void linear_pixel(const struct st_view *in, const struct st_cv_border_of *border, float x,
                         float y, uint8_t *out)
{
    const float left = floorf(x), upper = floorf(y), beyond_x = x - left, beyond_y = y - upper;
    const int32_t at_x = whole(left), at_y = whole(upper);
    const uint8_t *from[4];
    if (border->kind == ST_CV_BORDER_CONSTANT &&
        (at_x < -1 || at_x >= in->width || at_y < -1 || at_y >= in->height)) {
        memcpy(out, border->value, (size_t)in->channels);
        return;
    }
    for (int k = 0; k < 4; k++)
        from[k] = fetch(in, border, at_x + k % 2, at_y + k / 2);
    for (int32_t c = 0; c < in->channels; c++) {
        const float a = fmaf(beyond_x, (float)(from[1][c] - from[0][c]), from[0][c]);
        const float b = fmaf(beyond_x, (float)(from[3][c] - from[2][c]), from[2][c]);
        out[c] = (uint8_t)lrintf(fmaf(beyond_y, b - a, a));
    }
}

static void linear(const struct st_view *in, const struct st_cv_border_of *border,
                   const struct st_cv_points *points, uint8_t *out)
{
    for (int32_t k = 0; k < points->count; k++, out += in->channels)
        linear_pixel(in, border, points->x[k], points->y[k], out);
}

#else

enum { AT_ONCE = 8, MADE = AT_ONCE * ST_CV_CHANNELS };

/* The image in which eight points are looked up. */
struct field {
    const struct st_view *in;
    const struct st_cv_border_of *border;
    __m256i width, height, channels, stride;
    __m256i filling;     /* the constant border's pixel in each number */
    int32_t last, below; /* offsets of the last places where what is read ends inside of the image */
};

/* `bytes` are read at each offset. */
static struct field field_of(const struct st_view *in, const struct st_cv_border_of *border,
                             int32_t bytes)
{
    const int64_t end = (int64_t)in->stride * (in->height - 1) + (int64_t)in->width * in->channels;
    int32_t filling;
    memcpy(&filling, border->value, sizeof filling);
    return (struct field){.in = in,
                          .border = border,
                          .width = _mm256_set1_epi32(in->width),
                          .height = _mm256_set1_epi32(in->height),
                          .channels = _mm256_set1_epi32(in->channels),
                          .stride = _mm256_set1_epi32((int32_t)in->stride),
                          .filling = _mm256_set1_epi32(filling),
                          .last = end < 4 ? -1 : (int32_t)end - 4,
                          .below = end - in->stride < bytes ? -1 : (int32_t)(end - in->stride) - bytes};
}

static __m256i offsets(const struct field *field, __m256i x, __m256i y)
{
    return _mm256_add_epi32(_mm256_mullo_epi32(y, field->stride),
                            _mm256_mullo_epi32(x, field->channels));
}

/* Numbers from 0 to `end` - 1. */
static __m256i within(__m256i at, __m256i end)
{
    return _mm256_and_si256(_mm256_cmpgt_epi32(at, _mm256_set1_epi32(-1)), _mm256_cmpgt_epi32(end, at));
}

static int bits_of(__m256i mask) { return _mm256_movemask_ps(_mm256_castsi256_ps(mask)); }

/* Coordinates outside of the image become those inside of it that stand for them, as far as one step
 * takes them there; not for constant borders. */
static __m256i settled(__m256i at, __m256i size, enum st_cv_border kind)
{
    const __m256i one = _mm256_set1_epi32(1), last = _mm256_sub_epi32(size, one);
    const __m256i twice = _mm256_add_epi32(last, last), negative = _mm256_srai_epi32(at, 31);
    const __m256i over = _mm256_cmpgt_epi32(at, last);
    switch (kind) {
    case ST_CV_BORDER_REFLECT:
        at = _mm256_xor_si256(at, negative);
        return _mm256_min_epi32(at, _mm256_sub_epi32(_mm256_add_epi32(twice, one), at));
    case ST_CV_BORDER_REFLECT_101:
        at = _mm256_abs_epi32(at);
        return _mm256_min_epi32(at, _mm256_sub_epi32(twice, at));
    case ST_CV_BORDER_WRAP:
        at = _mm256_add_epi32(at, _mm256_and_si256(negative, size));
        return _mm256_sub_epi32(at, _mm256_and_si256(over, size));
    default:
        return _mm256_max_epi32(_mm256_min_epi32(at, last), _mm256_setzero_si256());
    }
}

/* The pixels at eight places in the lowest bytes of numbers; false if that takes single steps. */
static bool pick(const struct field *field, __m256i x, __m256i y, __m256i *out)
{
    const bool constant = field->border->kind == ST_CV_BORDER_CONSTANT;
    if (!constant) {
        x = settled(x, field->width, field->border->kind);
        y = settled(y, field->height, field->border->kind);
    }
    const __m256i inside = _mm256_and_si256(within(x, field->width), within(y, field->height));
    const __m256i offset = offsets(field, x, y);
    const __m256i late = _mm256_cmpgt_epi32(offset, _mm256_set1_epi32(field->last));
    if (!_mm256_testz_si256(late, inside) || (!constant && bits_of(inside) != 255))
        return false;
    *out = _mm256_mask_i32gather_epi32(field->filling, (const int *)field->in->data, offset, inside, 1);
    return true;
}

/* The same, one by one. */
static __m256i pick_each(const struct field *field, __m256i x, __m256i y)
{
    int32_t xs[AT_ONCE], ys[AT_ONCE], pixels[AT_ONCE] = {0};
    _mm256_storeu_si256((__m256i *)xs, x);
    _mm256_storeu_si256((__m256i *)ys, y);
    for (int k = 0; k < AT_ONCE; k++)
        memcpy(&pixels[k], fetch(field->in, field->border, xs[k], ys[k]), (size_t)field->in->channels);
    return _mm256_loadu_si256((const __m256i *)pixels);
}

static __m256i pixels_at(const struct field *field, __m256i x, __m256i y)
{
    __m256i out;
    return pick(field, x, y, &out) ? out : pick_each(field, x, y);
}

/* Eight points: for each the pixel left above it in the lowest bytes, and the one right of that; and the
 * two below. With one channel in numbers of 32 bits; else in numbers of 64: points 0 to 3, and 4 to 7.
 */
struct block {
    __m256 beyond_x, beyond_y;
    __m256i upper[2], lower[2];
};

/* Eight bytes at each of four places, one after the other: with the microcode of many CPUs, gathers take
 * longer. */
static __m256i four_places(const uint8_t *data, __m128i offset)
{
    const uint64_t low = (uint64_t)_mm_cvtsi128_si64(offset);
    const uint64_t high = (uint64_t)_mm_extract_epi64(offset, 1);
    const uint64_t at[4] = {(uint32_t)low, low >> 32, (uint32_t)high, high >> 32};
    __m128i found[4];
    for (int k = 0; k < 4; k++)
        found[k] = _mm_loadl_epi64((const __m128i *)(const void *)(data + at[k]));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi64(found[0], found[1])),
                                   _mm_unpacklo_epi64(found[2], found[3]), 1);
}

static void gather_inside(struct block *block, const struct field *field, __m256i offset)
{
    const uint8_t *data = field->in->data, *below = data + field->in->stride;
    if (field->in->channels == 1) {
        block->upper[0] = _mm256_i32gather_epi32((const int *)data, offset, 1);
        block->lower[0] = _mm256_i32gather_epi32((const int *)below, offset, 1);
        return;
    }
    for (int k = 0; k < 2; k++) {
        const __m128i half = k ? _mm256_extracti128_si256(offset, 1) : _mm256_castsi256_si128(offset);
        block->upper[k] = four_places(data, half);
        block->lower[k] = four_places(below, half);
    }
}

/* Two neighbouring pixels each. */
static void join(const struct field *field, __m256i left, __m256i right, __m256i out[2])
{
    const int32_t bits = 8 * field->in->channels;
    const __m256i channels = _mm256_set1_epi32(bits < 32 ? (1 << bits) - 1 : -1);
    left = _mm256_and_si256(left, channels);
    if (bits == 8) {
        out[0] = _mm256_or_si256(left, _mm256_slli_epi32(_mm256_and_si256(right, channels), 8));
        return;
    }
    for (int k = 0; k < 2; k++) {
        const __m128i a = k ? _mm256_extracti128_si256(left, 1) : _mm256_castsi256_si128(left);
        const __m128i b = k ? _mm256_extracti128_si256(right, 1) : _mm256_castsi256_si128(right);
        const __m256i shifted = _mm256_sll_epi64(_mm256_cvtepu32_epi64(b), _mm_cvtsi32_si128(bits));
        out[k] = _mm256_or_si256(_mm256_cvtepu32_epi64(a), shifted);
    }
}

static __m256i whole_numbers(__m256 at)
{
    const __m256 most = _mm256_set1_ps(1e9f), least = _mm256_set1_ps(-1e9f);
    return _mm256_cvttps_epi32(_mm256_min_ps(_mm256_max_ps(at, least), most)); /* NaN: the second one */
}

/* False if the border is constant and all points are beyond it. */
static bool gather(struct block *block, const struct field *field, const float *xs, const float *ys)
{
    const __m256 x = _mm256_loadu_ps(xs), y = _mm256_loadu_ps(ys);
    const __m256 left = _mm256_floor_ps(x), above = _mm256_floor_ps(y);
    const __m256i at_x = whole_numbers(left), at_y = whole_numbers(above), one = _mm256_set1_epi32(1);
    const __m256i next_x = _mm256_add_epi32(at_x, one), next_y = _mm256_add_epi32(at_y, one);
    const __m256i offset = offsets(field, at_x, at_y);
    const __m256i inside = _mm256_and_si256(within(at_x, _mm256_sub_epi32(field->width, one)),
                                            within(at_y, _mm256_sub_epi32(field->height, one)));
    const __m256i late = _mm256_cmpgt_epi32(offset, _mm256_set1_epi32(field->below));
    block->beyond_x = _mm256_sub_ps(x, left);
    block->beyond_y = _mm256_sub_ps(y, above);
    if (bits_of(_mm256_andnot_si256(late, inside)) == 255) {
        gather_inside(block, field, offset);
        return true;
    }
    if (field->border->kind == ST_CV_BORDER_CONSTANT) {
        const __m256i near = _mm256_and_si256(within(next_x, _mm256_add_epi32(field->width, one)),
                                              within(next_y, _mm256_add_epi32(field->height, one)));
        if (_mm256_testz_si256(near, near))
            return false;
    }
    join(field, pixels_at(field, at_x, at_y), pixels_at(field, next_x, at_y), block->upper);
    join(field, pixels_at(field, at_x, next_y), pixels_at(field, next_x, next_y), block->lower);
    return true;
}

static __m256i mean(__m256 a, __m256 b, __m256 c, __m256 d, __m256 beyond_x, __m256 beyond_y)
{
    const __m256 upper = _mm256_fmadd_ps(beyond_x, _mm256_sub_ps(b, a), a);
    const __m256 lower = _mm256_fmadd_ps(beyond_x, _mm256_sub_ps(d, c), c);
    return _mm256_cvtps_epi32(_mm256_fmadd_ps(beyond_y, _mm256_sub_ps(lower, upper), upper));
}

/* Four bytes of each lane as floats. */
static __m256 floats(__m256i pixels, __m256i pick)
{
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(pixels, pick));
}

/* The four channels of points k and k + 2 of half a block; k: 0 or 1. */
static __m256i two_points(const struct block *block, int half, int k, int32_t channels)
{
    const __m256i start = _mm256_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3);
    const __m256i empty = _mm256_set1_epi32((int)0x80808000);
    const __m256i left = _mm256_or_si256(_mm256_add_epi32(start, _mm256_set1_epi32(8 * k)), empty);
    const __m256i right = _mm256_add_epi32(left, _mm256_set1_epi32(channels));
    const __m256i upper = block->upper[half], lower = block->lower[half];
    const int p = 4 * half + k;
    const __m256i point = _mm256_setr_epi32(p, p, p, p, p + 2, p + 2, p + 2, p + 2);
    return mean(floats(upper, left), floats(upper, right), floats(lower, left), floats(lower, right),
                _mm256_permutevar8x32_ps(block->beyond_x, point),
                _mm256_permutevar8x32_ps(block->beyond_y, point));
}

/* Half a block as 16-bit numbers: points 0 and 1, 2 and 3. */
static __m256i four_points(const struct block *block, int half, int32_t channels)
{
    return _mm256_packs_epi32(two_points(block, half, 0, channels),
                              two_points(block, half, 1, channels));
}

/* Eight pixels in the lowest bytes of numbers. */
static void store_pixels(__m256i pixels, int32_t channels, uint8_t out[MADE])
{
    const __m128i threes = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m128i ones = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i pick = channels == 3 ? threes : ones;
    const __m128i low = _mm256_castsi256_si128(pixels), high = _mm256_extracti128_si256(pixels, 1);
    if (channels == 4) {
        _mm256_storeu_si256((__m256i *)out, pixels);
        return;
    }
    _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(low, pick));
    _mm_storeu_si128((__m128i *)(out + 4 * channels), _mm_shuffle_epi8(high, pick));
}

/* Eight pixels of 3 or 4 channels. */
static void block_of_colours(const struct block *block, int32_t channels, uint8_t out[MADE])
{
    const __m256i bytes =
        _mm256_packus_epi16(four_points(block, 0, channels), four_points(block, 1, channels));
    const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
    store_pixels(_mm256_permutevar8x32_epi32(bytes, order), channels, out);
}

/* Eight pixels of one channel. */
static void block_of_greys(const struct block *block, uint8_t out[MADE])
{
    const __m256i byte = _mm256_set1_epi32(255);
    __m256 four[4];
    for (int k = 0; k < 2; k++) {
        const __m256i row = k ? block->lower[0] : block->upper[0];
        four[2 * k] = _mm256_cvtepi32_ps(_mm256_and_si256(row, byte));
        four[2 * k + 1] = _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(row, 8), byte));
    }
    const __m256i sums = mean(four[0], four[1], four[2], four[3], block->beyond_x, block->beyond_y);
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    _mm_storel_epi64((__m128i *)out, _mm_packus_epi16(words, words));
}

static void linear(const struct st_view *in, const struct st_cv_border_of *border,
                   const struct st_cv_points *points, uint8_t *out)
{
    const struct field field = field_of(in, border, in->channels == 1 ? 4 : 8);
    const int32_t channels = in->channels, step = AT_ONCE * channels;
    uint8_t filled[MADE], made[MADE];
    struct block block = {0};
    for (int k = 0; k < AT_ONCE; k++)
        memcpy(filled + k * channels, border->value, (size_t)channels);
    for (int32_t k = 0; k < points->count; k += AT_ONCE, out += step) {
        const int32_t left = (points->count - k) * channels;
        uint8_t *to = left >= MADE ? out : made;
        if (!gather(&block, &field, points->x + k, points->y + k))
            memcpy(to, filled, (size_t)step);
        else if (channels == 1)
            block_of_greys(&block, to);
        else
            block_of_colours(&block, channels, to);
        if (to == made)
            memcpy(out, made, (size_t)(left < step ? left : step));
    }
}
#endif

const struct st_cv_warp_rows ST_CV_ROWS = {.affine = affine,
                                           .perspective = perspective,
                                           .all_near = all_near,
                                           .nearest = nearest,
                                           .linear = linear};
