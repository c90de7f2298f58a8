/* codes.c - decoding tables for the prefix codes of a deflate block
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/deflate/codes.h"

#include <string.h>

/* ---- steps of one code -------------------------------------------------------------------------- */

enum { LITERALS = 256, LENGTHS = 29, SHORT_LENGTHS = 8, DISTANCES = 30 };

static st_step letter_step(uint32_t symbol, uint32_t bits)
{
    if (symbol < LITERALS)
        return st_step_of(ST_STEP_LITERALS, bits, 0, 1, symbol);
    if (symbol == ST_LETTER_END)
        return st_step_of(ST_STEP_END, bits, 0, 0, 0);
    const uint32_t k = symbol - ST_LETTER_END - 1;
    if (k >= LENGTHS)
        return st_step_of(ST_STEP_BAD, bits, 0, 0, 0);
    if (k < SHORT_LENGTHS || k == LENGTHS - 1)
        return st_step_of(ST_STEP_NUMBER, bits, 0, 0, k < SHORT_LENGTHS ? k + 3 : 258);
    const uint32_t extra = k / 4 - 1;
    return st_step_of(ST_STEP_NUMBER, bits, extra, 0, ((k % 4 + 4) << extra) + 3);
}

/* With `kind` and `size`, also used for the second half of a match. */
static st_step distance_step_of(enum st_step_kind kind, uint32_t symbol, uint32_t bits, uint32_t size)
{
    if (symbol < 4)
        return st_step_of(kind, bits, 0, size, symbol + 1);
    const uint32_t extra = symbol / 2 - 1;
    return st_step_of(kind, bits, extra, size, ((symbol % 2 + 2) << extra) + 1);
}

static st_step distance_step(uint32_t symbol, uint32_t bits)
{
    return distance_step_of(symbol < DISTANCES ? ST_STEP_NUMBER : ST_STEP_BAD, symbol, bits, 0);
}

static st_step length_step(uint32_t symbol, uint32_t bits)
{
    return st_step_of(ST_STEP_NUMBER, bits, 0, 0, symbol);
}

/* ---- codes -------------------------------------------------------------------------------------- */

/* Sorts the symbols by code; false if no prefix code has these lengths. Incomplete codes are invalid
 * too, except a single code of one bit or no code at all if `may_lack` is set. */
static bool sort_symbols(struct st_code *code, const uint8_t *lengths, uint32_t count, bool may_lack)
{
    uint16_t next[ST_CODE_LONGEST + 1];
    memset(code->count, 0, sizeof code->count);
    for (uint32_t s = 0; s < count; s++)
        code->count[lengths[s]]++;
    code->count[0] = 0;
    uint32_t left = 1u << ST_CODE_LONGEST, used = 0;
    for (uint32_t n = 1; n <= ST_CODE_LONGEST; n++) {
        const uint32_t taken = (uint32_t)code->count[n] << (ST_CODE_LONGEST - n);
        if (taken > left)
            return false;
        left -= taken;
        next[n] = (uint16_t)used;
        used += code->count[n];
    }
    for (uint32_t s = 0; s < count; s++)
        if (lengths[s])
            code->sorted[next[lengths[s]]++] = (uint16_t)s;
    return left == 0 || (may_lack && used == code->count[1]);
}

/* The next code of `length` bits, where the first bit is the lowest. */
static uint32_t next_code(uint32_t code, uint32_t length)
{
    const uint32_t zeros = code ^ ((1u << length) - 1);
    if (!zeros)
        return 0;
    const uint32_t bit = 1u << (31 - __builtin_clz(zeros));
    return (code & (bit - 1)) | bit;
}

/* Some symbols, grouped by code length: first[n] is the first with n bits. */
struct part {
    uint32_t first[ST_LETTER_BITS + 2];
    struct {
        uint16_t code, symbol;
    } all[LITERALS];
};

/* Appends a symbol with a code of n bits; n must not decrease. */
static void add_to_part(struct part *part, uint32_t n, uint32_t code, uint32_t symbol)
{
    const uint32_t at = part->first[n + 1]++;
    part->all[at].code = (uint16_t)code;
    part->all[at].symbol = (uint16_t)symbol;
}

/* Replaces single literals by pairs where two fit into `bits`. */
static void add_pairs(st_step *table, const struct part *literals, uint32_t bits)
{
    for (uint32_t n = 1; n < bits; n++)
        for (uint32_t a = literals->first[n]; a < literals->first[n + 1]; a++)
            for (uint32_t b = literals->first[bits - n]; b < literals->first[bits - n + 1]; b++)
                table[literals->all[a].code | (uint32_t)literals->all[b].code << n] =
                    st_step_of(ST_STEP_LITERALS, bits, 0, 2,
                               literals->all[a].symbol | (uint32_t)literals->all[b].symbol << 8);
}

/* Replaces single lengths by whole matches where length and distance fit into `bits`, if the copy does
 * not overlap itself. */
static void add_matches(st_step *table, const struct part *lengths, const struct part *distances,
                        uint32_t bits)
{
    for (uint32_t n = 1; n < bits; n++)
        for (uint32_t a = lengths->first[n]; a < lengths->first[n + 1]; a++)
            for (uint32_t b = distances->first[bits - n]; b < distances->first[bits - n + 1]; b++) {
                const uint32_t size = lengths->all[a].symbol - ST_LETTER_END + 2;
                const st_step step =
                    distance_step_of(ST_STEP_MATCH, distances->all[b].symbol, bits, size);
                if (st_step_what(step) >= size)
                    table[lengths->all[a].code | (uint32_t)distances->all[b].code << n] = step;
            }
}

/* Fills the table from one bit upwards: an entry for n bits appears twice in the table for n + 1. */
static void fill(st_step *table, uint32_t bits, const struct st_code *code,
                 st_step (*step_of)(uint32_t symbol, uint32_t bits), struct part *part)
{
    const uint16_t *symbol = code->sorted;
    uint32_t next = 0;
    table[0] = st_step_of(ST_STEP_LONG, 0, 0, 0, 0);
    for (uint32_t n = 1; n <= bits; n++) {
        memcpy(table + (1u << (n - 1)), table, sizeof *table << (n - 1));
        if (part)
            part->first[n + 1] = part->first[n];
        for (uint32_t k = 0; k < code->count[n]; k++, symbol++) {
            table[next] = step_of(*symbol, n);
            if (part && *symbol < DISTANCES)
                add_to_part(part, n, next, *symbol);
            next = next_code(next, n);
        }
    }
}

/* Like fill, but also adds steps of two codes. */
static void fill_letters(struct st_codes *codes, const struct part *distances)
{
    struct part literals, lengths;
    st_step *table = codes->letters;
    const uint16_t *symbol = codes->letter.sorted;
    uint32_t next = 0;
    table[0] = st_step_of(ST_STEP_LONG, 0, 0, 0, 0);
    literals.first[1] = lengths.first[1] = 0;
    for (uint32_t n = 1; n <= ST_LETTER_BITS; n++) {
        memcpy(table + (1u << (n - 1)), table, sizeof *table << (n - 1));
        literals.first[n + 1] = literals.first[n];
        lengths.first[n + 1] = lengths.first[n];
        for (uint32_t k = 0; k < codes->letter.count[n]; k++, symbol++) {
            table[next] = letter_step(*symbol, n);
            if (*symbol < LITERALS)
                add_to_part(&literals, n, next, *symbol);
            else if (*symbol > ST_LETTER_END && *symbol <= ST_LETTER_END + SHORT_LENGTHS)
                add_to_part(&lengths, n, next, *symbol);
            next = next_code(next, n);
        }
        add_pairs(table, &literals, n);
        add_matches(table, &lengths, distances, n);
    }
    table[1 << ST_LETTER_BITS] = table[(1 << ST_LETTER_BITS) + 1] = table[0];
}

bool st_codes_make(struct st_codes *codes, const uint8_t *letters, uint32_t letter_count,
                   const uint8_t *distances, uint32_t distance_count)
{
    struct part part;
    if (!letters[ST_LETTER_END] || !sort_symbols(&codes->letter, letters, letter_count, true) ||
        !sort_symbols(&codes->distance, distances, distance_count, true))
        return false;
    part.first[1] = 0;
    fill(codes->distances, ST_DISTANCE_BITS, &codes->distance, distance_step, &part);
    for (uint32_t n = ST_DISTANCE_BITS + 1; n <= ST_LETTER_BITS; n++) /* longer ones are not paired */
        part.first[n + 1] = part.first[n];
    fill_letters(codes, &part);
    return true;
}

bool st_codes_are_paired(const struct st_codes *codes)
{
    uint32_t pairs = 0, others = 0;
    for (uint32_t i = 0; i < 1 << ST_LETTER_BITS; i++) {
        pairs += st_step_size(codes->letters[i]) > 1;
        others += (codes->letters[i] & ST_STEP_IS_OTHER) != 0;
    }
    return pairs >= (1 << ST_LETTER_BITS) / 4 && others <= (1 << ST_LETTER_BITS) / 16;
}

bool st_codes_make_lengths(st_step *table, const uint8_t *lengths, uint32_t count)
{
    struct st_code code;
    if (!sort_symbols(&code, lengths, count, false))
        return false;
    fill(table, ST_LENGTH_BITS, &code, length_step, NULL);
    return true;
}

/* ---- codes longer than the table ---------------------------------------------------------------- */

/* Finds the symbol whose code begins the bits; returns the code's length, 0 if there is none. */
static uint32_t find_long(const struct st_code *code, uint64_t bits, uint32_t *symbol)
{
    uint32_t value = 0, first = 0, before = 0;
    for (uint32_t n = 1; n <= ST_CODE_LONGEST; n++, bits >>= 1) {
        value = value << 1 | (bits & 1);
        first <<= 1;
        if (value - first < code->count[n]) {
            *symbol = code->sorted[before + value - first];
            return n;
        }
        first += code->count[n];
        before += code->count[n];
    }
    return 0;
}

st_step st_long_letter(const struct st_codes *codes, uint64_t bits)
{
    uint32_t symbol;
    const uint32_t length = find_long(&codes->letter, bits, &symbol);
    return length ? letter_step(symbol, length) : st_step_of(ST_STEP_BAD, 0, 0, 0, 0);
}

st_step st_long_distance(const struct st_codes *codes, uint64_t bits)
{
    uint32_t symbol;
    const uint32_t length = find_long(&codes->distance, bits, &symbol);
    return length ? distance_step(symbol, length) : st_step_of(ST_STEP_BAD, 0, 0, 0, 0);
}
