/* tables.c - fast Huffman tables, cached by content
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/tables.h"

#include <stdlib.h>
#include <string.h>

enum {
    SIZE = 1 << ST_JPEG_LOOK_BITS,
    SMALL_BITS = 7,
    SKIP_SIZE = 1 << ST_JPEG_SKIP_BITS,
    SKIP_AFTER = 4, /* uses of a code; one file uses it twice, for two chroma components */
};

/* ---- one entry --------------------------------------------------------------------------------- */

static uint64_t entry(uint32_t bits, uint32_t advance, uint32_t run, uint64_t values)
{
    return (uint64_t)bits | (uint64_t)advance << 8 | (uint64_t)run << 16 | values << 24;
}

static uint32_t entry_bits(uint64_t e) { return e & 255; }
static uint32_t entry_advance(uint64_t e) { return e >> 8 & 255; }
static uint32_t entry_run(uint64_t e) { return e >> 16 & 255; }
static uint64_t entry_values(uint64_t e) { return e >> 24; }

/* The meaning of the value bits of a symbol: a leading 0 means negative. */
static int32_t extend(uint32_t bits, uint32_t size)
{
    return bits < 1u << (size - 1) ? (int32_t)bits - (1 << size) + 1 : (int32_t)bits;
}

/* The symbols of `first`, which does not end the block, followed by those of `second`, which may have
 * none; 0 if they do not fit into one entry. Together they have no more bits than an index. `zeros`: the
 * first has no values. Without branches, since nobody could predict them. */
static inline uint64_t join(uint64_t first, uint64_t second, const bool zeros)
{
    const uint64_t values = second & ~0xFFFFFFull;
    const uint64_t both = first + (second & 0xFFFF); /* bits and positions */
    const uint32_t start = entry_advance(first) + entry_run(second); /* of the second's values */
    const bool inside = (both >> 8 & (ST_JPEG_EOB - 1)) <= 63;
    if (zeros)
        return inside & (start <= 15 || !values) ? both | values | (values ? start << 16 : 0) : 0;
    const uint32_t behind = start - entry_run(first);
    const uint32_t shift = 8 * (behind < ST_JPEG_VALUES ? behind : ST_JPEG_VALUES);
    const uint64_t moved = values << shift; /* nothing is left if that is too far */
    return inside & (moved >> shift == values) ? both | moved : 0;
}

/* ---- building ---------------------------------------------------------------------------------- */

/* False if the counts do not form a prefix code; a code of all ones is not allowed either. */
static bool make_canon(struct st_jpeg_canon *canon, const struct st_jpeg_code *code)
{
    uint32_t next = 0, index = 0;
    memset(canon->symbols, 0, sizeof canon->symbols);
    memcpy(canon->symbols, code->symbols, code->total);
    canon->limit[0] = 0;
    canon->offset[0] = 0;
    for (uint32_t length = 1; length <= 16; length++) {
        const uint32_t count = code->counts[length - 1];
        canon->offset[length] = (int32_t)index - (int32_t)next;
        next += count;
        index += count;
        if (count > 0 && next >= 1u << length)
            return false;
        canon->limit[length] = next << (16 - length);
        next <<= 1;
    }
    return true;
}

/* Entries that hold only the first symbol, for the codes of `length` bits that start at `at`. */
static uint32_t fill_symbol(uint64_t *look, uint32_t at, uint32_t length, uint8_t symbol)
{
    const uint32_t run = symbol >> 4, size = symbol & 15, spare = ST_JPEG_LOOK_BITS - length;
    const uint32_t end = at + (1u << spare);
    if (size == 0) {
        const uint64_t e = run == 15 ? entry(length, 16, 0, 0) : entry(length, ST_JPEG_EOB, 0, 0);
        while (at < end)
            look[at++] = e;
    } else if (size <= SMALL_BITS && size <= spare) {
        for (uint32_t value = 0; value < 1u << size; value++) {
            const uint64_t e = entry(length + size, run + 1, run, (uint8_t)extend(value, size));
            for (uint32_t k = 0; k < 1u << (spare - size); k++)
                look[at++] = e;
        }
    } else {
        const uint64_t e = entry(0, ST_JPEG_LONG, run, length | size << 8);
        while (at < end)
            look[at++] = e;
    }
    return end;
}

/* Entries of `first` and what follows it, in all strings of `left` more bits: all of it, or the next
 * symbol, or nothing. */
static inline void append(uint64_t *to, uint64_t first, const uint64_t *single, const uint64_t *shorter,
                          uint32_t left, const bool zeros)
{
    const uint64_t *rest = shorter + (1u << left);
    for (uint32_t k = 0; k < 1u << left; k++) {
        to[k] = join(first, rest[k], zeros);
        if (to[k] == 0) {
            const uint64_t two = join(first, single[k << (ST_JPEG_LOOK_BITS - left)], zeros);
            to[k] = two ? two : first;
        }
    }
}

/* Entries of as many symbols as there are in all strings of `bits` bits, given those of fewer bits, at
 * [1 << bits | string]. Strings without a whole symbol get 0 or, if they are indices, what `single`
 * has. */
static void make_chains(uint64_t *to, const uint64_t *single, const uint64_t *shorter, uint32_t bits)
{
    const uint32_t spare = ST_JPEG_LOOK_BITS - bits;
    for (uint32_t at = 0; at < 1u << bits;) {
        const uint64_t first = single[at << spare];
        const uint32_t used = entry_bits(first);
        if (used == 0 || used > bits) {
            to[at++] = spare ? 0 : first;
            continue;
        }
        const uint32_t left = bits - used, count = 1u << left;
        if (entry_advance(first) >= ST_JPEG_EOB)
            for (uint32_t k = 0; k < count; k++)
                to[at + k] = first;
        else if (entry_values(first))
            append(to + at, first, single, shorter, left, false);
        else
            append(to + at, first, single, shorter, left, true);
        at += count;
    }
}

/* The fewest bits of a symbol that does not end the block. */
static uint32_t fewest_bits(const struct st_jpeg_code *code)
{
    uint32_t fewest = ST_JPEG_LOOK_BITS, symbol = 0;
    for (uint32_t length = 1; length < ST_JPEG_LOOK_BITS; length++)
        for (uint32_t k = 0; k < code->counts[length - 1]; k++, symbol++) {
            const uint32_t run = code->symbols[symbol] >> 4, size = code->symbols[symbol] & 15;
            if ((size || run == 15) && length + size < fewest)
                fewest = length + size;
        }
    return fewest;
}

/* First single symbols, then chains of them, for strings of ever more bits. */
static bool make_ac(void *memory, const struct st_jpeg_code *code)
{
    struct st_jpeg_ac *table = memory;
    uint64_t single[SIZE], shorter[SIZE];
    uint32_t at = 0, symbol = 0;
    if (!make_canon(&table->canon, code))
        return false;
    table->has_skip = false;
    table->asked = 0;
    for (uint32_t length = 1; length <= ST_JPEG_LOOK_BITS; length++)
        for (uint32_t k = 0; k < code->counts[length - 1]; k++)
            at = fill_symbol(single, at, length, code->symbols[symbol++]);
    while (at < SIZE)
        single[at++] = entry(0, ST_JPEG_LONG, 0, 0);
    const uint32_t most = ST_JPEG_LOOK_BITS - fewest_bits(code); /* that can follow a symbol */
    for (uint32_t bits = 0; bits <= most; bits++)
        make_chains(shorter + (1u << bits), single, shorter, bits);
    make_chains(table->look, single, shorter, ST_JPEG_LOOK_BITS);
    return true;
}

static bool make_single(void *memory, const struct st_jpeg_code *code)
{
    struct st_jpeg_ac_single *table = memory;
    uint32_t at = 0, symbol = 0;
    if (!make_canon(&table->canon, code))
        return false;
    for (uint32_t length = 1; length <= ST_JPEG_SINGLE_BITS; length++)
        for (uint32_t k = 0; k < code->counts[length - 1]; k++, symbol++) {
            const uint32_t run = code->symbols[symbol] >> 4, size = code->symbols[symbol] & 15;
            const uint32_t spare = ST_JPEG_SINGLE_BITS - length;
            const uint32_t values = size <= spare ? 1u << size : 1;
            const uint32_t kind = size || run == 15 ? run << 8 : ST_JPEG_ENDED | run << 8;
            for (uint32_t value = 0; value < values; value++) {
                const uint32_t e = size > spare ? 0
                                   : size ? (uint32_t)extend(value, size) << 16 | kind | (length + size)
                                          : kind | length;
                for (const uint32_t end = at + (1u << spare) / values; at < end; at++)
                    table->look[at] = e;
            }
        }
    memset(table->look + at, 0, sizeof table->look - at * sizeof *table->look);
    return true;
}

/* The first symbol alone: bits of its code and value, and positions; 0 if the code is not in the index,
 * or too long. */
static void skip_symbols(uint16_t *single, uint8_t *length, const struct st_jpeg_code *code)
{
    uint32_t at = 0, symbol = 0;
    for (uint32_t bits = 1; bits <= ST_JPEG_SKIP_BITS; bits++)
        for (uint32_t k = 0; k < code->counts[bits - 1]; k++, symbol++) {
            const uint32_t run = code->symbols[symbol] >> 4, size = code->symbols[symbol] & 15;
            const uint32_t advance = size ? run + 1 : run == 15 ? 16 : ST_JPEG_EOB, all = bits + size;
            const uint32_t end = at + (1u << (ST_JPEG_SKIP_BITS - bits));
            for (; at < end; at++) {
                single[at] = all <= ST_JPEG_SKIP_MOST ? (uint16_t)(all | advance << 8) : 0;
                length[at] = (uint8_t)bits;
            }
        }
    memset(single + at, 0, (SKIP_SIZE - at) * sizeof *single);
    memset(length + at, 0, SKIP_SIZE - at);
}

static void make_skip(struct st_jpeg_ac *table, const struct st_jpeg_code *code)
{
    uint16_t single[SKIP_SIZE];
    uint8_t length[SKIP_SIZE];
    skip_symbols(single, length, code);
    for (uint32_t i = 0; i < SKIP_SIZE; i++) {
        uint32_t all = single[i], bits = all & 255;
        while (bits > 0 && bits < ST_JPEG_SKIP_BITS && all < ST_JPEG_EOB << 8) {
            const uint32_t rest = i << bits & (SKIP_SIZE - 1), sum = all + single[rest];
            if (single[rest] == 0 || length[rest] > ST_JPEG_SKIP_BITS - bits ||
                (sum & 255) > ST_JPEG_SKIP_MOST || (sum >> 8 & (ST_JPEG_EOB - 1)) > 63)
                break;
            all = sum;
            bits = all & 255;
        }
        table->skip[i] = (uint16_t)(all ? all : ST_JPEG_LONG << 8);
    }
    table->has_skip = true;
}

static bool make_dc(void *memory, const struct st_jpeg_code *code)
{
    struct st_jpeg_dc *table = memory;
    uint32_t at = 0, symbol = 0;
    if (!make_canon(&table->canon, code))
        return false;
    for (uint32_t k = 0; k < code->total; k++)
        if (code->symbols[k] > 15)
            return false;
    memset(table->look, 0, sizeof table->look);
    for (uint32_t length = 1; length <= ST_JPEG_DC_BITS; length++)
        for (uint32_t k = 0; k < code->counts[length - 1]; k++) {
            const uint32_t size = code->symbols[symbol++], end = at + (1u << (ST_JPEG_DC_BITS - length));
            while (at < end)
                table->look[at++] = (uint16_t)((length + size) | length << 5 | size << 9);
        }
    return true;
}

/* ---- the cache --------------------------------------------------------------------------------- */

static bool is_for(const struct st_jpeg_cached *cached, const struct st_jpeg_code *code)
{
    return cached->used && cached->total == code->total &&
           memcmp(cached->counts, code->counts, 16) == 0 &&
           memcmp(cached->symbols, code->symbols, code->total) == 0;
}

static void *find_or_make(struct st_jpeg_tables *tables, struct st_jpeg_cached *cache, size_t size,
                                bool (*make)(void *, const struct st_jpeg_code *),
                                const struct st_jpeg_code *code, enum st_jpeg_reason *reason)
{
    struct st_jpeg_cached *oldest = cache;
    for (uint32_t k = 0; k < ST_JPEG_CACHE; k++) {
        if (is_for(&cache[k], code)) {
            cache[k].used = ++tables->clock;
            return cache[k].table;
        }
        if (cache[k].used < oldest->used)
            oldest = &cache[k];
    }
    oldest->used = 0;
    if (!oldest->table)
        oldest->table = st_alloc_aligned(size);
    *reason = ST_JPEG_MEMORY;
    if (!oldest->table)
        return NULL;
    *reason = ST_JPEG_TABLES;
    if (!make(oldest->table, code))
        return NULL;
    memcpy(oldest->counts, code->counts, 16);
    memcpy(oldest->symbols, code->symbols, code->total);
    oldest->total = code->total;
    oldest->used = ++tables->clock;
    *reason = ST_JPEG_OURS;
    return oldest->table;
}

const struct st_jpeg_ac *st_jpeg_ac_table(struct st_jpeg_tables *tables, const struct st_jpeg_code *code,
                                          enum st_jpeg_reason *reason)
{
    struct st_jpeg_ac *table =
        find_or_make(tables, tables->ac, sizeof(struct st_jpeg_ac), make_ac, code, reason);
    if (table && !table->has_skip && ++table->asked == SKIP_AFTER)
        make_skip(table, code);
    return table;
}

const struct st_jpeg_dc *st_jpeg_dc_table(struct st_jpeg_tables *tables, const struct st_jpeg_code *code,
                                          enum st_jpeg_reason *reason)
{
    return find_or_make(tables, tables->dc, sizeof(struct st_jpeg_dc), make_dc, code, reason);
}

const struct st_jpeg_ac_single *st_jpeg_ac_single_table(struct st_jpeg_tables *tables,
                                                        const struct st_jpeg_code *code,
                                                        enum st_jpeg_reason *reason)
{
    return find_or_make(tables, tables->single, sizeof(struct st_jpeg_ac_single), make_single, code,
                        reason);
}

void st_jpeg_tables_free(struct st_jpeg_tables *tables)
{
    for (uint32_t k = 0; k < ST_JPEG_CACHE; k++) {
        free(tables->ac[k].table);
        free(tables->dc[k].table);
        free(tables->single[k].table);
    }
    memset(tables, 0, sizeof *tables);
}
