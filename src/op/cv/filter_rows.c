/* filter_rows.c - the inner loops of filters with OpenCV's arithmetic
 *
 * One file, compiled for each kind of CPU: written for auto-vectorisation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/filter.h"

#include <string.h>

enum { CHUNK = 512 }; /* values at a time, in the cache */

static inline size_t part_of(size_t bytes, size_t done)
{
    return bytes - done < CHUNK ? bytes - done : CHUNK;
}

/* ---- median ---- */

static inline uint8_t least(uint8_t a, uint8_t b) { return a < b ? a : b; }
static inline uint8_t most(uint8_t a, uint8_t b) { return a > b ? a : b; }
static inline uint8_t middle(uint8_t a, uint8_t b, uint8_t c)
{
    return most(least(a, b), least(most(a, b), c));
}

/* The middle of: the greatest least, the middle middle and the least greatest of three columns. */
static void median_of_nine(uint8_t *restrict out, const uint8_t *const *t, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        uint8_t low = 0, mid[3], high = 255;
        for (int x = 0; x < 3; x++) {
            const uint8_t a = t[x][i], b = t[x + 3][i], c = t[x + 6][i];
            low = most(low, least(least(a, b), c));
            mid[x] = middle(a, b, c);
            high = least(high, most(most(a, b), c));
        }
        out[i] = middle(low, middle(mid[0], mid[1], mid[2]), high);
    }
}

#if defined(__AVX512BW__)
enum { LANES = 64 };
#elif defined(__AVX2__)
enum { LANES = 32 };
#else
enum { LANES = 16 };
#endif

typedef uint8_t bytes_vec __attribute__((vector_size(LANES)));

/* Bit by bit: the greatest value that at least half of the others reach. */
static inline void block_median(uint8_t *out, const uint8_t *const *tap, int32_t count, size_t at)
{
    bytes_vec found = {0};
    for (uint8_t bit = 128; bit; bit /= 2) {
        const bytes_vec goal = found | bit;
        bytes_vec reach = {0}, value;
        for (int32_t t = 0; t < count; t++) {
            memcpy(&value, tap[t] + at, sizeof value);
            reach -= (bytes_vec)(value >= goal);
        }
        found |= (bytes_vec)(reach > (uint8_t)(count / 2)) & bit;
    }
    memcpy(out + at, &found, sizeof found);
}

static void median_by_bits(uint8_t *out, const uint8_t *const *tap, int32_t count, size_t bytes)
{
    const uint8_t *few[ST_CV_MEDIAN_MOST * ST_CV_MEDIAN_MOST];
    uint8_t values[ST_CV_MEDIAN_MOST * ST_CV_MEDIAN_MOST][LANES], made[LANES];
    size_t done = 0;
    for (; done + LANES <= bytes; done += LANES)
        block_median(out, tap, count, done);
    if (done == bytes)
        return;
    memset(values, 0, (size_t)count * LANES);
    for (int32_t t = 0; t < count; t++)
        few[t] = memcpy(values[t], tap[t] + done, bytes - done);
    block_median(made, few, count, 0);
    memcpy(out + done, made, bytes - done);
}

static void median(uint8_t *out, const uint8_t *const *tap, int32_t count, size_t bytes)
{
    if (count == 9)
        median_of_nine(out, tap, bytes);
    else
        median_by_bits(out, tap, count, bytes);
}

/* ---- means ---- */

static void slide(uint16_t *restrict sum, const uint8_t *restrict in, const uint8_t *restrict out,
                  size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        sum[i] = (uint16_t)(sum[i] + in[i] - out[i]);
}

static void mean(uint8_t *restrict out, const uint16_t *restrict sum, int32_t side, int32_t step,
                 size_t bytes)
{
    const float scale = 1.f / (float)(side * side);
    uint32_t all[CHUNK];
    for (size_t done = 0; done < bytes; done += CHUNK) {
        const size_t n = part_of(bytes, done);
        memset(all, 0, sizeof all);
        for (int32_t k = 0; k < side; k++) {
            const uint16_t *restrict one = sum + done + (ptrdiff_t)k * step;
            for (size_t i = 0; i < n; i++)
                all[i] += one[i];
        }
        for (size_t i = 0; i < n; i++)
            out[done + i] = (uint8_t)(int32_t)st_cv_round((float)(int32_t)all[i] * scale);
    }
}

/* ---- weighted sums ---- */

static uint8_t byte_of(float sum)
{
    const float above = sum > 0 ? sum : 0;
    return (uint8_t)(int32_t)st_cv_round(above < 255 ? above : 255);
}

static void weigh_fused(uint8_t *restrict out, const uint8_t *const *tap, const struct st_cv_tap *of,
                        int32_t count, size_t bytes)
{
    float sum[CHUNK];
    for (size_t done = 0; done < bytes; done += CHUNK) {
        const size_t n = part_of(bytes, done);
        memset(sum, 0, sizeof sum);
        for (int32_t t = 0; t < count; t++) {
            const uint8_t *restrict value = tap[t] + done;
            const float weight = of[t].weight;
            for (size_t i = 0; i < n; i++)
                sum[i] = __builtin_fmaf((float)value[i], weight, sum[i]);
        }
        for (size_t i = 0; i < n; i++)
            out[done + i] = byte_of(sum[i]);
    }
}

/* OpenCV fuses products and sums where it takes four values at once, but not at the ends of rows. */
static void weigh(uint8_t *restrict out, const uint8_t *const *tap, const struct st_cv_tap *of,
                  int32_t count, size_t bytes)
{
    const size_t fused = bytes - bytes % 4;
    weigh_fused(out, tap, of, count, fused);
    for (size_t i = fused; i < bytes; i++) {
        float sum = 0;
        for (int32_t t = 0; t < count; t++)
            sum += (float)tap[t][i] * of[t].weight;
        out[i] = byte_of(sum);
    }
}

/* From the left to the right, each product and sum rounded once. */
static void across(float *restrict out, const uint8_t *restrict in, const float *weight, int32_t half,
                   int32_t step, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += CHUNK) {
        const size_t n = part_of(bytes, done);
        float *restrict sum = out + done;
        memset(sum, 0, n * sizeof *sum);
        for (int32_t k = -half; k <= half; k++) {
            const uint8_t *value = in + done + (ptrdiff_t)k * step;
            const float w = weight[k < 0 ? -k : k];
            for (size_t i = 0; i < n; i++)
                sum[i] = __builtin_fmaf(value[i], w, sum[i]);
        }
    }
}

static void down(uint8_t *restrict out, const float *const *row, const float *weight, int32_t half,
                 size_t bytes)
{
    float sum[CHUNK];
    for (size_t done = 0; done < bytes; done += CHUNK) {
        const size_t n = part_of(bytes, done);
        for (size_t i = 0; i < n; i++)
            sum[i] = row[half][done + i] * weight[0];
        for (int32_t k = 1; k <= half; k++) {
            const float *above = row[half - k] + done, *below = row[half + k] + done;
            for (size_t i = 0; i < n; i++)
                sum[i] = __builtin_fmaf(above[i] + below[i], weight[k], sum[i]);
        }
        for (size_t i = 0; i < n; i++)
            out[done + i] = (uint8_t)(int32_t)st_cv_round(sum[i] < 255 ? sum[i] : 255);
    }
}

enum { TAPS = 8 }; /* at a time, so that sums are rarely loaded and stored */

static void weigh_eight(float *restrict sum, const float *const *tap, const float *weight, size_t at,
                        size_t count)
{
    const float *restrict a = tap[0] + at, *restrict b = tap[1] + at, *restrict c = tap[2] + at,
                          *restrict d = tap[3] + at, *restrict e = tap[4] + at,
                          *restrict f = tap[5] + at, *restrict g = tap[6] + at,
                          *restrict h = tap[7] + at;
    for (size_t i = 0; i < count; i++) {
        float all = __builtin_fmaf(a[i], weight[0], sum[i]);
        all = __builtin_fmaf(b[i], weight[1], all);
        all = __builtin_fmaf(c[i], weight[2], all);
        all = __builtin_fmaf(d[i], weight[3], all);
        all = __builtin_fmaf(e[i], weight[4], all);
        all = __builtin_fmaf(f[i], weight[5], all);
        all = __builtin_fmaf(g[i], weight[6], all);
        sum[i] = __builtin_fmaf(h[i], weight[7], all);
    }
}

static void weigh_floats(float *restrict out, const float *const *tap, const float *weight,
                         int32_t count, size_t floats)
{
    for (size_t at = 0; at < floats; at += CHUNK) {
        const size_t n = part_of(floats, at);
        int32_t t = 0;
        memset(out + at, 0, n * sizeof *out);
        for (; t + TAPS <= count; t += TAPS)
            weigh_eight(out + at, tap + t, weight + t, at, n);
        for (; t < count; t++)
            for (size_t i = 0; i < n; i++)
                out[at + i] = __builtin_fmaf(tap[t][at + i], weight[t], out[at + i]);
    }
}

extern const struct st_cv_filter_rows ST_CV_ROWS;
const struct st_cv_filter_rows ST_CV_ROWS = {
    .median = median,
    .slide = slide,
    .mean = mean,
    .weigh = weigh,
    .across = across,
    .down = down,
    .weigh_floats = weigh_floats,
};
