/* blocks.h - a lane: one decoder reading blocks of coefficients
 *
 * A lane decodes several symbols per look-up. Two lanes alternate in one loop (streams.c), because each
 * alone is a long chain of dependent loads and shifts that leaves the CPU idle most of the time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_BLOCKS_H
#define ST_CODEC_JPEG_BLOCKS_H

#include "codec/jpeg/bits.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

/* One block of an MCU: its tables, and the block that follows. */
struct st_jpeg_phase {
    const uint64_t *look;
    const uint16_t *skip;
    const uint16_t *dc_look;
    const struct st_jpeg_ac *ac;
    const struct st_jpeg_dc *dc;
    const struct st_jpeg_phase *next;
    uint32_t component;
};

/* State that the loop keeps in registers. */
struct st_jpeg_lane {
    struct st_jpeg_bits bits;
    uint32_t sum;    /* of the entries since the refill: bits used, position << 8; 0: between blocks */
    uint32_t keep;   /* 64 if blocks are kept, 0 if all go to one place and are discarded */
    int16_t *coefs;  /* of this block, zigzag; look-ups store up to 24 values past its 64 */
    uint8_t *end;    /* where its end (as in st_jpeg_block) is stored */
    uint32_t blocks; /* remaining in this run, including this one */
    const void *look; /* of this block: uint64_t entries, or uint16_t if it is skipped */
    const struct st_jpeg_phase *phase;
    const uint8_t *stop; /* the lane stops if bits.next has reached this at the start of a block */
};

enum st_jpeg_event { ST_JPEG_GO_ON, ST_JPEG_BLOCK_DONE, ST_JPEG_BAD_CODE, ST_JPEG_BAD_INDEX };

/* Unrolled: some compilers would use a microcoded loop instead of eight stores. */
ST_INLINE void st_jpeg_clear(int16_t block[64])
{
#if defined(__aarch64__)
    for (int k = 0; k < 64; k += 8)
        vst1q_s16(block + k, vdupq_n_s16(0));
#elif defined(__SSE2__)
    for (int k = 0; k < 64; k += 8)
        _mm_storeu_si128((__m128i *)(block + k), _mm_setzero_si128());
#else
    memset(block, 0, 64 * sizeof *block);
#endif
}

/* Stores five values and three zeros; the zeros overwrite only what has not been decoded yet. */
ST_INLINE void st_jpeg_store_values(int16_t *to, uint64_t entry)
{
#if defined(__aarch64__)
    vst1q_s16(to, vmovl_s8(vcreate_s8(entry >> 24)));
#elif defined(__SSE2__)
    const __m128i bytes = _mm_srli_epi64(_mm_cvtsi64_si128((long long)entry), 24);
    _mm_storeu_si128((__m128i *)to, _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8));
#else
    for (int k = 0; k < 8; k++)
        to[k] = (int8_t)(k < ST_JPEG_VALUES ? entry >> (24 + 8 * k) : 0);
#endif
}

/* The same for one value of any size. */
ST_INLINE void st_jpeg_store_value(int16_t *to, int32_t value)
{
    memset(to, 0, 8 * sizeof *to);
    to[0] = (int16_t)value;
}

ST_INLINE void st_jpeg_lane_refill(struct st_jpeg_lane *l)
{
    l->bits.count -= l->sum & 255;
    l->sum &= 0xFF00;
    st_jpeg_refill(&l->bits);
}

/* One look-up. In the result, ST_JPEG_EOB << 8 means that the block has ended, and ST_JPEG_LONG << 8
 * that something else must be done before the next look-up: see st_jpeg_lane_event. */
ST_INLINE uint32_t st_jpeg_lane_step(struct st_jpeg_lane *l, uint64_t *entry)
{
    const uint64_t e = ((const uint64_t *)l->look)[l->bits.word >> (64 - ST_JPEG_LOOK_BITS)];
    l->bits.word <<= e & 63;
    /* Position and run, added in the third byte: the bytes below do not overflow. */
    const uint32_t at = (l->sum << 8) + (uint32_t)e;
    st_jpeg_store_values(l->coefs + (at >> 16 & 255), e);
    l->sum += (uint32_t)e;
    *entry = e;
    return l->sum;
}

/* The same in a block that is skipped: nothing is stored. */
ST_INLINE uint32_t st_jpeg_lane_skip(struct st_jpeg_lane *l, uint64_t *entry)
{
    const uint32_t e = ((const uint16_t *)l->look)[l->bits.word >> (64 - ST_JPEG_SKIP_BITS)];
    l->bits.word <<= e & 63;
    l->sum += e;
    *entry = e;
    return l->sum;
}

/* A single symbol at `position`, which is not the end of the block; its code length, run and value size
 * are known. */
ST_INLINE enum st_jpeg_event st_jpeg_lane_symbol(struct st_jpeg_lane *l, uint32_t position,
                                                 uint32_t length, uint32_t run, uint32_t size,
                                                 const bool skip)
{
    position += run;
    if (ST_UNLIKELY(position > 63))
        return ST_JPEG_BAD_INDEX;
    if (!skip)
        st_jpeg_store_value(l->coefs + position, st_jpeg_value(l->bits.word << length, size));
    st_jpeg_drop(&l->bits, length + size);
    position++;
    l->sum = position << 8;
    if (!skip)
        *l->end = (uint8_t)position;
    return ST_UNLIKELY(position == 64) ? ST_JPEG_BLOCK_DONE : ST_JPEG_GO_ON;
}

/* After a look-up that found the end of the block: false if it lies past the block's 64 positions. */
ST_INLINE bool st_jpeg_lane_end(struct st_jpeg_lane *l, const bool skip)
{
    const uint32_t position = l->sum >> 8 & 255;
    if (ST_UNLIKELY(position >= ST_JPEG_EOB + 64))
        return false;
    l->bits.count -= l->sum & 255;
    if (!skip)
        *l->end = (uint8_t)(position & (ST_JPEG_EOB - 1));
    return true;
}

/* After a look-up that requires it: the block is complete, or the next symbol does not fit into the
 * table, or the look-up went past the end of the block into bits of the next one and must be redone
 * symbol by symbol. */
ST_INLINE enum st_jpeg_event st_jpeg_lane_event(struct st_jpeg_lane *l, uint64_t entry,
                                                const uint8_t *base, const bool skip)
{
    uint32_t position = l->sum >> 8 & 255, length;
    l->bits.count -= l->sum & 255;
    l->sum = 0;
    if (!skip && ST_LIKELY((entry & 255) == 0 && entry >> 24)) {
        st_jpeg_refill(&l->bits);
        return st_jpeg_lane_symbol(l, position - ST_JPEG_LONG, entry >> 24 & 255, entry >> 16 & 255,
                                   entry >> 32 & 255, skip);
    }
    if (position == 64 && (entry & 255)) {
        if (!skip)
            *l->end = 64;
        return ST_JPEG_BLOCK_DONE;
    }
    position -= entry >> 8 & 255;
    if (entry & 255)
        st_jpeg_seek(&l->bits, base, st_jpeg_position(&l->bits, base) - (uint32_t)(entry & 255));
    st_jpeg_refill(&l->bits);
    const uint32_t symbol = st_jpeg_symbol(&l->phase->ac->canon, l->bits.word, &length);
    if (ST_UNLIKELY(length == 0))
        return ST_JPEG_BAD_CODE;
    if ((symbol & 15) == 0 && symbol >> 4 != 15) {
        st_jpeg_drop(&l->bits, length);
        if (!skip)
            *l->end = (uint8_t)position;
        return ST_JPEG_BLOCK_DONE;
    }
    return st_jpeg_lane_symbol(l, position, length, symbol >> 4, symbol & 15, skip);
}

/* The difference of a DC value from the one before it. False if there is no such code. */
ST_INLINE bool st_jpeg_dc_difference(struct st_jpeg_bits *bits, const uint16_t *look,
                                     const struct st_jpeg_dc *dc, uint32_t *difference)
{
    st_jpeg_refill(bits);
    const uint32_t e = look[bits->word >> (64 - ST_JPEG_DC_BITS)];
    uint32_t both = e & 31, length = e >> 5 & 15, size = e >> 9;
    if (ST_UNLIKELY(both == 0)) {
        size = st_jpeg_symbol(&dc->canon, bits->word, &length);
        both = length + size;
        if (length == 0)
            return false;
    }
    *difference = (uint32_t)st_jpeg_value(bits->word << length, size);
    st_jpeg_drop(bits, both);
    return true;
}

/* Starts a block: DC. False if there is no such code. */
ST_INLINE bool st_jpeg_lane_begin(struct st_jpeg_lane *l, int32_t *predicted, const bool skip)
{
    const struct st_jpeg_phase *phase = l->phase;
    uint32_t difference;
    if (!st_jpeg_dc_difference(&l->bits, phase->dc_look, phase->dc, &difference))
        return false;
    /* Added as in the library: the sum wraps at 32 bits and then at 16. */
    const uint32_t dc = (uint32_t)predicted[phase->component] + difference;
    predicted[phase->component] = (int32_t)dc;
    l->sum = 1 << 8;
    if (skip) {
        l->look = phase->skip;
        return true;
    }
    l->look = phase->look;
    st_jpeg_clear(l->coefs);
    l->coefs[0] = (int16_t)dc;
    return true;
}

#endif
