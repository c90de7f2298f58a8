/* across_x86.h - the horizontal pass shared by AVX2 and AVX-512: taps in pairs
 *
 * The multiplier of 16-bit integers multiplies two adjacent pairs and adds the products to 32-bit sums.
 * A weight has up to 24 bits, so it is split into two parts, low + high * 2^15, each with its own sums.
 *
 * Few taps: a unit of adjacent output values shares one or two loads ("tables") of the row, from which a
 * byte shuffle moves two taps of every value into place. The next pair is the same shuffle two pixels
 * further on. Many taps: one output pixel at a time, with its taps side by side in a vector.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_KERNELS_ACROSS_X86_H
#define ST_OP_KERNELS_ACROSS_X86_H

#include "op/kernels/kernels_isa.h"

enum { ST_LOW_BITS = 15, ST_HALF = 1 << (ST_WEIGHT_BITS - 1) };

/* Packs two 16-bit weights into one 32-bit lane. */
static inline int32_t st_pair_low(int32_t a, int32_t b)
{
    return (int32_t)(((uint32_t)a & 0x7fff) | ((uint32_t)b & 0x7fff) << 16);
}

static inline int32_t st_pair_high(int32_t a, int32_t b)
{
    return (int32_t)(((uint32_t)(a >> ST_LOW_BITS) & 0xffff) | (uint32_t)(b >> ST_LOW_BITS) << 16);
}

/* How a variant divides rows. */
struct st_cut {
    int32_t values; /* per unit: 8 or 16 */
    int32_t table;  /* values that share a load: 4 or 16 */
    int32_t reach;  /* bytes per load: 16 or 64 */
};

/* Followed by the weights of each pair of taps: `values` lanes of low parts, then of high parts. */
struct st_unit {
    uint8_t index[64]; /* position of each value's two taps in its load; 0x80 gives zero */
    int32_t start[2];  /* where the loads start */
    int32_t pad[14];
    int32_t weight[];
};

struct st_pairs {
    int32_t channels, values, units;
    int32_t pairs;        /* of taps */
    size_t unit_size;
    bool wide;
    const int32_t *first; /* wide: per output pixel; data holds its low pairs, then its high pairs */
    _Alignas(64) uint8_t data[];
};

uint64_t st_pairs_size(const struct st_taps *taps, int32_t channels, struct st_cut cut);
void st_pairs_plan(struct st_pairs *plan, const struct st_taps *taps, int32_t channels,
                   struct st_cut cut);

/* Rows of a wide plan. */
void st_across_wide_avx2(const struct st_pairs *plan, uint8_t *const *out, const uint8_t *const *in,
                         int32_t rows);

/* Four rows of the first `pairs` pairs of taps, a constant where it is inlined. */
typedef void st_units_fn(const struct st_pairs *plan, uint8_t *const *out, const uint8_t *const *in,
                         int32_t pairs, int32_t channels);

ST_INLINE void st_few_pairs(st_units_fn *units, const struct st_pairs *plan, uint8_t *const *out,
                            const uint8_t *const *in, int32_t channels)
{
    if (plan->pairs == 1)
        units(plan, out, in, 1, channels);
    else if (plan->pairs == 2)
        units(plan, out, in, 2, channels);
    else
        units(plan, out, in, plan->pairs, channels);
}

/* For the vertical pass: two rows, and the two parts of their weights. */
struct st_down_pair {
    int32_t low, high;
    const uint8_t *rows[2];
};
enum { ST_DOWN_TAPS = 128 };
/* Groups up to ST_DOWN_TAPS rows into pairs; returns the number of pairs. */
int32_t st_down_pairs(struct st_down_pair *pairs, const uint8_t *const *rows, const int32_t *weight,
                      int32_t taps);

/* One output row from `count` pairs, a constant where it is inlined. */
typedef void st_down_fn(uint8_t *out, const struct st_down_pair *pairs, int32_t count, size_t bytes);

ST_INLINE void st_down_with(st_down_fn *down, uint8_t *out, const uint8_t *const *rows,
                            const int32_t *weight, int32_t taps, size_t bytes)
{
    struct st_down_pair pairs[ST_DOWN_TAPS / 2];
    if (taps > ST_DOWN_TAPS) {
        st_down_c(out, rows, weight, taps, bytes);
        return;
    }
    const int32_t count = st_down_pairs(pairs, rows, weight, taps);
    if (count == 1)
        down(out, pairs, 1, bytes);
    else if (count == 2)
        down(out, pairs, 2, bytes);
    else
        down(out, pairs, count, bytes);
}

#endif
