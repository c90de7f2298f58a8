/* variants.h - for tests of kernels: the variants of this CPU, chance from a seed, guarded memory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_OP_VARIANTS_H
#define ST_TESTS_OP_VARIANTS_H

#include "op/kernels/kernels.h"
#include "tap.h"

#include <string.h>

/* The variants that this CPU can run, C first; returns their number. Names those it cannot. */
static inline int variants(const struct st_kernels *out[4])
{
    const enum st_cpu_level best = st_cpu_level();
    int count = 0;
    for (int level = ST_CPU_C; level <= ST_CPU_AVX512; level++) {
        const struct st_kernels *kernels = st_kernels_for((enum st_cpu_level)level);
        if (strcmp(kernels->name, st_cpu_level_name((enum st_cpu_level)level)))
            continue; /* not of this architecture */
        if (level > (int)best)
            skip(kernels->name, "this CPU does not have it");
        else
            out[count++] = kernels;
    }
    return count;
}

/* xorshift64*: the same numbers everywhere. */
static inline uint32_t chance(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 0x2545f4914f6cdd1d >> 32);
}

static inline int32_t between(uint64_t *state, int32_t low, int32_t high)
{
    return low + (int32_t)(chance(state) % (uint32_t)(high - low + 1));
}

/* Memory of exactly this size, so that a sanitizer sees the first byte too many. */
static inline void *exactly(size_t size)
{
    void *block = malloc(size ? size : 1);
    if (!block)
        abort();
    return block;
}

/* Noise, black and white noise, or a chequered pattern; 64 more bytes may be read. */
static inline uint8_t *random_bytes(uint64_t *state, size_t size)
{
    uint8_t *bytes = exactly(size + 64);
    const uint32_t kind = chance(state) % 4;
    for (size_t i = 0; i < size + 64; i++)
        bytes[i] = kind == 0   ? (chance(state) & 1 ? 255 : 0)
                   : kind == 1 ? (i & 1 ? 255 : 0)
                               : (uint8_t)chance(state);
    return bytes;
}

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

/* `size` bytes between guards. */
static inline uint8_t *guarded(size_t size)
{
    uint8_t *block = exactly(size + 2 * GUARD);
    memset(block, GUARD_BYTE, size + 2 * GUARD);
    return block + GUARD;
}

/* Whether the guards still stand. */
static inline bool unharmed(const uint8_t *bytes, size_t size)
{
    for (int i = 0; i < GUARD; i++)
        if (bytes[i - GUARD] != GUARD_BYTE || bytes[size + (size_t)i] != GUARD_BYTE)
            return false;
    return true;
}

static inline void guarded_free(uint8_t *bytes) { free(bytes - GUARD); }

#endif
