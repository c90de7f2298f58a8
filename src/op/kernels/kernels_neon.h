/* kernels_neon.h - shared by the NEON kernel files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_KERNELS_KERNELS_NEON_H
#define ST_OP_KERNELS_KERNELS_NEON_H

#include "op/kernels/kernels_isa.h"

#include <arm_neon.h>

/* Four of sixteen bytes as 32-bit integers, by a table look-up: one instruction where widening takes
 * two, on execution units that multiplications do not use. */
ST_INLINE uint32x4_t st_lanes32(uint8x16_t bytes, int quarter)
{
    static const uint8_t lanes[4][16] = {
        {0, 99, 99, 99, 1, 99, 99, 99, 2, 99, 99, 99, 3, 99, 99, 99},
        {4, 99, 99, 99, 5, 99, 99, 99, 6, 99, 99, 99, 7, 99, 99, 99},
        {8, 99, 99, 99, 9, 99, 99, 99, 10, 99, 99, 99, 11, 99, 99, 99},
        {12, 99, 99, 99, 13, 99, 99, 99, 14, 99, 99, 99, 15, 99, 99, 99},
    };
    return vreinterpretq_u32_u8(vqtbl1q_u8(bytes, vld1q_u8(lanes[quarter])));
}

#endif
