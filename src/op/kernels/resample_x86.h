/* resample_x86.h - the horizontal pass with few taps, shared by AVX2 and AVX-512
 *
 * The including file defines what is declared here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_KERNELS_RESAMPLE_X86_H
#define ST_OP_KERNELS_RESAMPLE_X86_H

#include "op/kernels/across_x86.h"
#include "op/kernels/down_x86.h"

enum { ROWS = ST_ROWS, VALUES = sizeof(vector) / 4 }; /* VALUES of one row: a unit */

static const struct st_cut cut;
/* The two taps of each value of a unit, as pairs of 16 bits. */
ST_INLINE vector unit_taps(const struct st_unit *unit, const uint8_t *row, vector index);
/* The bytes of the four rows are in the order that packing leaves; puts them row after row. */
ST_INLINE vector row_after_row(vector packed);
/* All units of four rows. */
ST_INLINE void across_units(const struct st_pairs *plan, uint8_t *const *out, const uint8_t *const *in,
                            int32_t pairs, int32_t channels);

/* One unit of four rows, row after row. */
ST_INLINE vector unit_rows(const struct st_unit *unit, const uint8_t *const *in, int32_t pairs,
                           int32_t channels)
{
    const vector index = load(unit->index);
    vector low[ROWS], high[ROWS];
    for (int r = 0; r < ROWS; r++) {
        low[r] = V(set1_epi32)(ST_HALF);
        high[r] = V(set1_epi32)(0);
    }
    for (int32_t p = 0; p < pairs; p++) {
        const vector low_weight = load(unit->weight + p * 2 * VALUES);
        const vector high_weight = load(unit->weight + p * 2 * VALUES + VALUES);
        for (int r = 0; r < ROWS; r++) {
            const vector taps = unit_taps(unit, in[r] + p * 2 * channels, index);
            low[r] = plus_products(low[r], taps, low_weight);
            high[r] = plus_products(high[r], taps, high_weight);
        }
    }
    const vector words01 = V(packs_epi32)(settle(low[0], high[0]), settle(low[1], high[1]));
    const vector words23 = V(packs_epi32)(settle(low[2], high[2]), settle(low[3], high[3]));
    return row_after_row(V(packus_epi16)(words01, words23));
}

static uint64_t across_size(const struct st_taps *taps, int32_t channels)
{
    return st_pairs_size(taps, channels, cut);
}

static void across_plan(void *plan, const struct st_taps *taps, int32_t channels)
{
    st_pairs_plan(plan, taps, channels, cut);
}

ST_INLINE void four_rows(const void *plan, uint8_t *const *out, const uint8_t *const *in,
                         int32_t channels)
{
    st_few_pairs(across_units, plan, out, in, channels);
}

static void across(const void *memory, uint8_t *const *out, const uint8_t *const *in, int32_t rows)
{
    const struct st_pairs *plan = memory;
    if (plan->wide)
        st_across_wide_avx2(plan, out, in, rows);
    else
        st_by_four_rows(four_rows, plan, plan->channels, out, in, rows);
}

#endif
