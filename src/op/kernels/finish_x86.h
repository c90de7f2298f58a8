/* finish_x86.h - bytes to floats, shared by AVX2 and AVX-512
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_KERNELS_FINISH_X86_H
#define ST_OP_KERNELS_FINISH_X86_H

#include "base/vectors_x86.h"
#include "op/kernels/kernels_isa.h"

enum { VALUES = sizeof(vector) / 4 }; /* per vector: 8 or 16 */

/* The formula's constants for one vector of values. */
struct numbers {
    floats add, high, low;
};

/* Those of channel `i` (NCHW), or of the i-th of three consecutive vectors. */
ST_INLINE struct numbers numbers_of(const struct st_finish *f, int i)
{
    const struct st_lanes *lanes = f->lanes + (f->layout == STOKER_LAYOUT_NCHW ? i % f->channels : 0);
    const int lane = f->layout == STOKER_LAYOUT_NCHW ? 0 : i * VALUES;
    return (struct numbers){V(loadu_ps)(lanes->add + lane), V(loadu_ps)(lanes->high + lane),
                            V(loadu_ps)(lanes->low + lane)};
}

ST_INLINE floats apply(vector x, struct numbers n, enum st_formula formula)
{
    const floats value = V(cvtepi32_ps)(x);
    if (formula == ST_FORMULA_LINE)
        return V(fmadd_ps)(value, n.high, n.add);
    if (formula == ST_FORMULA_PRODUCT)
        return V(mul_ps)(V(add_ps)(value, n.add), n.high);
    const bool product = formula == ST_FORMULA_NORMALIZE_PRODUCT;
    const floats level = V(set1_ps)(1.0f / 255), part = V(mul_ps)(value, V(set1_ps)(1.0f / 256));
    const floats scaled = product ? V(mul_ps)(value, level) : V(fmadd_ps)(part, level, part);
    if (formula == ST_FORMULA_SCALE)
        return scaled;
    const floats centred = V(add_ps)(scaled, n.add);
    return V(fmadd_ps)(centred, n.high, V(mul_ps)(centred, n.low));
}

/* The upper half of each float as an integer, rounded to nearest, ties to even. */
ST_INLINE vector brain(floats v)
{
    const vector bits = V_BITS(castps)(v);
    const vector odd = V_BITS(and)(V(srli_epi32)(bits, 16), V(set1_epi32)(1));
    const vector sum = V(add_epi32)(V(add_epi32)(bits, V(set1_epi32)(0x7fff)), odd);
    return V(srli_epi32)(sum, 16);
}

#endif
