/* rng.c - random numbers as a function of (seed, epoch, sample, op): Philox4x32-10
 *
 * The generator is that of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
 * (SC 2011). Everything derived from it uses plain IEEE arithmetic, including the logarithm
 * (base/functions.h), so that all machines draw the same bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "order/rng.h"

#include "base/functions.h"

#include <math.h>

enum { ROUNDS = 10, WORDS = 4 };

void st_philox4x32(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];

    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)0xd2511f53 * c0, p1 = (uint64_t)0xcd9e8d57 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void st_rng_init(struct st_rng *rng, uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t op)
{
    rng->key[0] = (uint32_t)seed;
    rng->key[1] = (uint32_t)(seed >> 32) ^ (uint32_t)(epoch >> 32); /* the counter has only 32 bits */
    rng->counter[0] = (uint32_t)sample;
    rng->counter[1] = (uint32_t)(sample >> 32);
    rng->counter[2] = (uint32_t)epoch;
    rng->counter[3] = op << 16;
    rng->left = 0;
}

uint32_t st_rng_u32(struct st_rng *rng)
{
    if (rng->left == 0) {
        st_philox4x32(rng->key, rng->counter, rng->block);
        rng->left = WORDS;
        if ((++rng->counter[3] & 0xffff) == 0) { /* overflow: another key after 2^16 blocks */
            rng->counter[3] -= 0x10000;
            rng->key[1] += 0x9e3779b9;
        }
    }
    return rng->block[WORDS - rng->left--];
}

uint64_t st_rng_u64(struct st_rng *rng)
{
    const uint64_t low = st_rng_u32(rng);
    return (uint64_t)st_rng_u32(rng) << 32 | low;
}

double st_rng_f64(struct st_rng *rng) { return (double)(st_rng_u64(rng) >> 11) * 0x1p-53; }

double st_rng_range(struct st_rng *rng, double low, double high)
{
    const double value = low + (high - low) * st_rng_f64(rng);
    return value < high ? value : low; /* rounding can produce `high` */
}

/* Multiplies and keeps the high half; the few low halves that would bias the result are rejected. */
static uint32_t below32(struct st_rng *rng, uint32_t bound)
{
    uint64_t product = (uint64_t)st_rng_u32(rng) * bound;
    if ((uint32_t)product < bound) {
        const uint32_t uneven = -bound % bound;
        while ((uint32_t)product < uneven)
            product = (uint64_t)st_rng_u32(rng) * bound;
    }
    return (uint32_t)(product >> 32);
}

uint64_t st_rng_below(struct st_rng *rng, uint64_t bound)
{
    if (bound <= UINT32_MAX)
        return below32(rng, (uint32_t)bound);
    unsigned __int128 product = (unsigned __int128)st_rng_u64(rng) * bound;
    if ((uint64_t)product < bound) {
        const uint64_t uneven = -bound % bound;
        while ((uint64_t)product < uneven)
            product = (unsigned __int128)st_rng_u64(rng) * bound;
    }
    return (uint64_t)(product >> 64);
}

/* Marsaglia's polar method: a point in the unit disc, scaled to a normally distributed radius. */
double st_rng_normal(struct st_rng *rng)
{
    double x, y, square;
    do {
        x = (double)(int32_t)st_rng_u32(rng) * 0x1p-31;
        y = (double)(int32_t)st_rng_u32(rng) * 0x1p-31;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    return x * sqrt(-2 * st_ln(square) / square);
}

/* Marsaglia and Tsang, "A simple method for generating gamma variables" (ACM TOMS 2000). For a shape
 * below 1, a variate of shape + 1 is multiplied by a power of a uniform variate. */
double st_rng_log_gamma(struct st_rng *rng, double shape)
{
    const double lift = shape < 1 ? st_ln(1 - st_rng_f64(rng)) / shape : 0;
    const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double normal = st_rng_normal(rng), root = 1 + c * normal, v = root * root * root;
        if (root > 0 && st_ln(1 - st_rng_f64(rng)) < 0.5 * normal * normal + d - d * v + d * st_ln(v))
            return st_ln(d) + st_ln(v) + lift;
    }
}
