/* random.h - random numbers of the doctor: the same for the same run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_RANDOM_H
#define ST_DOCTOR_RANDOM_H

#include <math.h>
#include <stdint.h>

struct dr_random {
    uint64_t state; /* initially the seed */
};

/* SplitMix64. */
static inline uint64_t dr_random_next(struct dr_random *random)
{
    uint64_t x = random->state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static inline uint32_t dr_random_below(struct dr_random *random, uint32_t limit)
{
    return (uint32_t)((dr_random_next(random) >> 32) * limit >> 32);
}

/* Block length for a bootstrap over `count` values that are correlated over short distances. */
static inline uint32_t dr_block_length(uint32_t count)
{
    const uint32_t length = (uint32_t)(2 * cbrt(count));
    return length < 1 ? 1 : length > 50 ? 50 : length;
}

#endif
