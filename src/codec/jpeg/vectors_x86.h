/* vectors_x86.h - helpers for files that are compiled for one vector width
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_VECTORS_X86_H
#define ST_CODEC_JPEG_VECTORS_X86_H

#include "base/vectors_x86.h"
#include "codec/jpeg/kernels_isa.h"

ST_INLINE vector no_bits(void) { return V(set1_epi32)(0); }

/* a and b alternating, for the multiplication that adds two adjacent products. */
ST_INLINE vector in_turns(int a, int b)
{
    return V(set1_epi32)((int32_t)((uint32_t)b << 16 | ((uint32_t)a & 0xFFFF)));
}

ST_INLINE vector times(vector pairs, int a, int b) { return V(madd_epi16)(pairs, in_turns(a, b)); }

ST_INLINE vector plus_times(vector sum, vector pairs, int a, int b)
{
    return plus_products(sum, pairs, in_turns(a, b));
}

#endif
