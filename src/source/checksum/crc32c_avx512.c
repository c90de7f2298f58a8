/* crc32c_avx512.c - CRC-32C by carry-less products, three times as fast as the CPU's CRC instruction
 *
 * A CRC is a remainder modulo a polynomial P, so the data may be replaced by any that is congruent to
 * it. A block B of 128 bits is folded onto data D bits later: it is removed, and B * x^D mod P is added
 * there, by a product of 64 by 32 bits for each half. Sixteen blocks are folded at once, each onto the
 * one 256 bytes later; at the end all are folded onto the last, whose CRC is that of the whole run.
 *
 * A block is a reflected polynomial: its first bit is x^127. The product of two reflected halves, as the
 * instruction gives it, is x times too large, which the powers of x here make up for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/checksum/crc32c.h"

#include <immintrin.h>

enum { STEP = 256, LEAST = 2 * STEP }; /* bytes; shorter runs are left to the CRC instruction */

/* To fold by D bits: x^(D+63) mod P for the first half of a block, x^(D-1) mod P for the second. */
#define FOLD(first, second) (long long)((uint64_t)(second) << 32), (long long)((uint64_t)(first) << 32)
#define BY_128  FOLD(0x3743f7bdu, 0x3171d430u)
#define BY_256  FOLD(0x33ccbbbcu, 0xa2158b34u)
#define BY_384  FOLD(0xa46ef4aau, 0x6051243fu)
#define BY_512  FOLD(0x1c19243bu, 0x75bba45bu)
#define BY_1024 FOLD(0x6577b245u, 0x7417153fu)
#define BY_1536 FOLD(0x7ccbbbf2u, 0x31c94608u)
#define BY_2048 FOLD(0xe9a5d8beu, 0x1426a815u)

/* Every block times the same power. (FOLD has the upper half first, as the intrinsics do.) */
#define ALL(...) _mm512_set_epi64(__VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__)

static inline __m512i folded(__m512i blocks, __m512i powers, __m512i onto)
{
    enum { XOR_OF_THREE = 0x96 };
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(blocks, powers, 0x00),
                                     _mm512_clmulepi64_epi128(blocks, powers, 0x11), onto, XOR_OF_THREE);
}

static inline __m512i at_once(const uint8_t *at) { return _mm512_loadu_si512((const void *)at); }

/* The CRC of four blocks, starting from 0. */
static inline uint32_t of_blocks(__m512i blocks)
{
    const __m512i powers = _mm512_set_epi64(0, 0, BY_128, BY_256, BY_384);
    const __m512i last = _mm512_maskz_mov_epi64(0xc0, blocks), all = folded(blocks, powers, last);
    const __m256i half =
        _mm256_xor_si256(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    const __m128i sum = _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    const uint64_t crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(sum));
    return (uint32_t)_mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(sum, 1));
}

uint32_t st_crc32c_run_avx512(uint32_t crc, const uint8_t *at, size_t size)
{
    if (size < LEAST)
        return st_crc32c_run_x86(crc, at, size);
    const __m512i by_2048 = ALL(BY_2048);
    __m512i first = _mm512_xor_si512(at_once(at), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    __m512i second = at_once(at + 64), third = at_once(at + 128), fourth = at_once(at + 192);
    for (at += STEP, size -= STEP; size >= STEP; at += STEP, size -= STEP) {
        first = folded(first, by_2048, at_once(at));
        second = folded(second, by_2048, at_once(at + 64));
        third = folded(third, by_2048, at_once(at + 128));
        fourth = folded(fourth, by_2048, at_once(at + 192));
    }
    fourth = folded(first, ALL(BY_1536), fourth);
    fourth = folded(second, ALL(BY_1024), fourth);
    fourth = folded(third, ALL(BY_512), fourth);
    return st_crc32c_run_x86(of_blocks(fourth), at, size);
}
