/* stat.h - is this what chance would do? Seeds are fixed, so a verdict never changes by itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_STAT_H
#define ST_TESTS_STAT_H

#include <math.h>
#include <stdint.h>

#include "tap.h"

/* A standard normal deviate that chi-square with `freedom` degrees amounts to (Wilson and Hilferty). */
static inline double chi_deviate(double chi, double freedom)
{
    const double spread = 2 / (9 * freedom);
    return (cbrt(chi / freedom) - (1 - spread)) / sqrt(spread);
}

/* Chi-square of counts that should all be `expected`. */
static inline double chi_flat(const uint64_t *counts, uint64_t cells, double expected)
{
    double chi = 0;
    for (uint64_t i = 0; i < cells; i++)
        chi += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    return chi;
}

/* Beyond 4.5 deviations on either side (too even is no chance either) something is wrong. */
static inline bool likely(double deviate) { return fabs(deviate) < 4.5; }

#define ok_likely(deviate, ...)                                                                         \
    do {                                                                                                \
        const double deviate_ = (deviate);                                                              \
        if (!ok(likely(deviate_), __VA_ARGS__))                                                         \
            note("%.1f standard deviations off", deviate_);                                             \
    } while (0)

/* FNV-1a over the bits of what was drawn: pins them for every machine. */
static inline uint64_t hash_bits(uint64_t hash, uint64_t bits)
{
    for (int byte = 0; byte < 8; byte++)
        hash = (hash ^ (bits >> (8 * byte) & 0xff)) * 0x100000001b3u;
    return hash;
}

#define HASH_START 0xcbf29ce484222325u

#endif
