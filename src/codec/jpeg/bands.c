/* bands.c - the loops over blocks in scans of AC coefficients, of progressive files
 *
 * Compiled once in plain C, and on x86-64 once more for CPUs with BMI2, which find the n-th bit of a
 * mask in one instruction.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/progressive.h"

#if defined(__BMI2__)
#include <immintrin.h>
#endif

enum { LOOKUPS = 5, MOST_BITS = 48 /* that are taken at once, of those that a refill gives */ };

/* The lowest bit of `mask` that has `below` others under it; 0 if there are fewer. */
ST_INLINE uint64_t bit_above(uint64_t mask, uint32_t below)
{
#if defined(__BMI2__)
    return _pdep_u64(1ull << below, mask);
#else
    for (; below > 0; below--)
        mask &= mask - 1;
    return mask & -mask;
#endif
}

/* The next symbol without the table. In the result it looks like an entry; 0: there is no such code. */
static uint32_t long_symbol(struct st_jpeg_bits *bits, const struct st_jpeg_ac_single *table)
{
    uint32_t length;
    const uint32_t symbol = st_jpeg_symbol(&table->canon, bits->word, &length);
    const uint32_t run = symbol >> 4, size = symbol & 15;
    if (length == 0)
        return 0;
    st_jpeg_drop(bits, length);
    if (size == 0)
        return run == 15 ? run << 8 | 1 : ST_JPEG_ENDED | run << 8 | 1;
    const int32_t value = st_jpeg_value(bits->word, size);
    st_jpeg_drop(bits, size);
    return (uint32_t)value << 16 | run << 8 | 1;
}

/* After the code of a run of ended blocks: its length is 2^size and the bits that follow. */
ST_INLINE void begin_ended(struct st_jpeg_band *band, struct st_jpeg_bits *bits, uint32_t entry)
{
    const uint32_t size = entry >> 8 & 15;
    st_jpeg_refill(bits);
    band->ended = (1u << size) + (uint32_t)(bits->word >> 1 >> (63 - size));
    st_jpeg_drop(bits, size);
}

/* Whether a look-up needs something else to be done: the block ends, or the code is too long. */
ST_INLINE bool is_special(uint32_t entry) { return entry & ST_JPEG_ENDED || (entry & 31) == 0; }

/* ---- the first scan of a band -------------------------------------------------------------------- */

/* Where a block stands. */
struct block {
    int16_t *coefs;
    uint64_t mask;
    uint32_t position;
};

/* Puts the value of a symbol in its place. False: this was the last position, or lies behind it. */
ST_INLINE bool put(struct st_jpeg_band *band, struct block *block, uint32_t entry, const bool keep)
{
    const uint32_t position = block->position + (entry >> 8 & 15);
    const int16_t value = (int16_t)(entry >> 16 << band->low);
    if (ST_UNLIKELY(position > band->last)) {
        band->reason = ST_JPEG_INDEX;
        return false;
    }
    if (keep)
        block->coefs[position] = value;
    block->mask |= (uint64_t)(value != 0) << position;
    block->position = position + 1;
    return position != band->last;
}

/* False: the block has ended, or there is a reason. */
ST_INLINE bool put_special(struct st_jpeg_band *band, struct st_jpeg_bits *bits, struct block *block,
                           uint32_t entry, const bool keep)
{
    if ((entry & 31) == 0) {
        st_jpeg_refill(bits);
        entry = long_symbol(bits, band->table);
    }
    if (entry & ST_JPEG_ENDED)
        begin_ended(band, bits, entry);
    else if (entry == 0)
        band->reason = ST_JPEG_CODE;
    else
        return put(band, block, entry, keep);
    return false;
}

ST_INLINE uint64_t first_block(struct st_jpeg_band *band, struct st_jpeg_bits *bits, int16_t *coefs,
                               const bool keep)
{
    struct block block = {coefs, 0, band->first};
    for (;;) {
        st_jpeg_refill(bits);
#pragma GCC unroll 5
        for (int k = 0; k < LOOKUPS; k++) {
            const uint32_t entry = band->table->look[bits->word >> (64 - ST_JPEG_SINGLE_BITS)];
            st_jpeg_drop(bits, entry & 31);
            if (ST_UNLIKELY(is_special(entry))) {
                if (!put_special(band, bits, &block, entry, keep))
                    return block.mask;
                break;
            }
            if (!put(band, &block, entry, keep))
                return block.mask;
        }
    }
}

ST_INLINE void first_blocks(struct st_jpeg_band *band, uint64_t *masks, int16_t *coefs, uint32_t count,
                            const bool keep)
{
    struct st_jpeg_bits bits = band->bits;
    for (uint32_t k = 0; k < count; k++) {
        if (band->ended) {
            const uint32_t ended = band->ended < count - k ? band->ended : count - k;
            band->ended -= ended;
            k += ended - 1;
            continue;
        }
        if (ST_UNLIKELY(bits.next >= band->stop))
            band->reason = ST_JPEG_DATA;
        else
            masks[k] |= first_block(band, &bits, keep ? coefs + (size_t)k * 64 : NULL, keep);
        if (ST_UNLIKELY(band->reason != ST_JPEG_OURS))
            break;
        band->ended -= band->ended > 0;
    }
    band->bits = bits;
}

/* ---- one bit more -------------------------------------------------------------------------------- */

/* The next bit of each coefficient in `mask`. */
ST_INLINE void correct(struct st_jpeg_bits *bits, int16_t *coefs, uint64_t mask, uint32_t low,
                       const bool keep)
{
    uint32_t count = (uint32_t)__builtin_popcountll(mask);
    while (count > 0) {
        const uint32_t now = count < MOST_BITS ? count : MOST_BITS;
        st_jpeg_refill(bits);
        uint64_t word = bits->word;
        st_jpeg_drop(bits, now);
        count -= now;
        for (uint32_t k = 0; keep && k < now; k++, word <<= 1, mask &= mask - 1) {
            int16_t *coef = &coefs[__builtin_ctzll(mask)];
            const int32_t value = *coef, away = (value >> 31) | 1;
            *coef = (int16_t)(value + away * (int32_t)((uint32_t)(word >> 63) << low));
        }
    }
}

/* What a block's symbols say; returns the mask of new coefficients. `mask` is that of the known ones. */
ST_INLINE uint64_t later_block(struct st_jpeg_band *band, struct st_jpeg_bits *bits, int16_t *coefs,
                               uint64_t mask, uint64_t rest, const bool keep)
{
    uint64_t added = 0;
    while (rest) {
        st_jpeg_refill(bits);
        uint32_t entry = band->table->look[bits->word >> (64 - ST_JPEG_SINGLE_BITS)];
        st_jpeg_drop(bits, entry & 31);
        if (ST_UNLIKELY((entry & 31) == 0 && !(entry & ST_JPEG_ENDED)))
            entry = long_symbol(bits, band->table);
        if (entry & ST_JPEG_ENDED) {
            begin_ended(band, bits, entry);
            break;
        }
        const int32_t value = (int32_t)entry >> 16;
        const uint64_t place = bit_above(rest & ~mask, entry >> 8 & 15);
        if (ST_UNLIKELY(entry == 0 || place == 0 || value < -1 || value > 1)) {
            band->reason = place ? ST_JPEG_CODE : ST_JPEG_INDEX;
            return added;
        }
        correct(bits, coefs, mask & rest & (place - 1), band->low, keep);
        if (value) {
            added |= place;
            if (keep)
                coefs[__builtin_ctzll(place)] = (int16_t)((uint32_t)value << band->low);
        }
        rest &= ~(place | (place - 1));
    }
    correct(bits, coefs, mask & rest, band->low, keep);
    return added;
}

ST_INLINE void later_blocks(struct st_jpeg_band *band, uint64_t *masks, int16_t *coefs, uint32_t count,
                            const bool keep)
{
    const uint64_t all = ~0ull >> (63 - band->last) & ~0ull << band->first;
    struct st_jpeg_bits bits = band->bits;
    for (uint32_t k = 0; k < count; k++) {
        int16_t *block = keep ? coefs + (size_t)k * 64 : NULL;
        if (ST_UNLIKELY(bits.next >= band->stop))
            band->reason = ST_JPEG_DATA;
        else if (band->ended)
            correct(&bits, block, masks[k] & all, band->low, keep);
        else
            masks[k] |= later_block(band, &bits, block, masks[k], all, keep);
        if (ST_UNLIKELY(band->reason != ST_JPEG_OURS))
            break;
        band->ended -= band->ended > 0;
    }
    band->bits = bits;
}

/* ---- for kernels.h ------------------------------------------------------------------------------- */

void ST_JPEG_BAND(first)(struct st_jpeg_band *band, uint64_t *masks, int16_t *coefs, uint32_t count)
{
    if (coefs)
        first_blocks(band, masks, coefs, count, true);
    else
        first_blocks(band, masks, NULL, count, false);
}

void ST_JPEG_BAND(later)(struct st_jpeg_band *band, uint64_t *masks, int16_t *coefs, uint32_t count)
{
    if (coefs)
        later_blocks(band, masks, coefs, count, true);
    else
        later_blocks(band, masks, NULL, count, false);
}
