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
        return st_step_of(ST_STEP_USUAL, bits, 0, symbol) | 1 << 16;
    if (symbol == ST_LETTER_END)
        return st_step_of(ST_STEP_END, bits, 0, 0);
    const uint32_t k = symbol - ST_LETTER_END - 1;
    if (k >= LENGTHS)
        return st_step_of(ST_STEP_BAD, bits, 0, 0);
    if (k < SHORT_LENGTHS || k == LENGTHS - 1)
        return st_step_with_length(bits, 0, k < SHORT_LENGTHS ? k + 3 : 258);
    const uint32_t extra = k / 4 - 1;
    return st_step_with_length(bits, extra, ((k % 4 + 4) << extra) + 3);
}

static st_step distance_step(uint32_t symbol, uint32_t bits)
{
    if (symbol >= DISTANCES)
        return st_step_of(ST_STEP_BAD, bits, 0, 0);
    if (symbol < 4)
        return st_step_of(ST_STEP_USUAL, bits, 0, symbol + 1);
    const uint32_t extra = symbol / 2 - 1;
    return st_step_of(ST_STEP_USUAL, bits, extra, ((symbol % 2 + 2) << extra) + 1);
}

static st_step length_step(uint32_t symbol, uint32_t bits)
{
    return st_step_of(ST_STEP_USUAL, bits, 0, symbol);
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

/* Fills the table from one bit upwards: an entry for n bits appears twice in the table for n + 1. */
static void fill(st_step *table, uint32_t bits, const struct st_code *code,
                 st_step (*step_of)(uint32_t symbol, uint32_t bits))
{
    const uint16_t *symbol = code->sorted;
    uint32_t next = 0;
    table[0] = st_step_of(ST_STEP_LONG, 0, 0, 0);
    for (uint32_t n = 1; n <= bits; n++) {
        memcpy(table + (1u << (n - 1)), table, sizeof *table << (n - 1));
        for (uint32_t k = 0; k < code->count[n]; k++, symbol++) {
            table[next] = step_of(*symbol, n);
            next = next_code(next, n);
        }
    }
}

/* Steps of less bits than the table's index, to be put together. Those that take n bits begin at
 * first[n]: one literal each, and from several[n] on two to four. Fewer than 2^n strings have n bits, so
 * that there is room. */
struct parts {
    uint32_t first[ST_LETTER_BITS + 1], several[ST_LETTER_BITS], lengths_first[ST_LETTER_BITS + 1];
    struct st_part {
        uint32_t code;
        st_step step;
    } literals[1 << ST_LETTER_BITS], lengths[LENGTHS];
};

static void keep(struct st_part *list, uint32_t *count, uint32_t code, st_step step)
{
    list[*count].code = code;
    list[*count].step = step;
    *count += 1;
}

/* Writes all steps of n bits that are literals behind a literal, and keeps them in turn. */
static void add_literals(st_step *table, struct parts *parts, uint32_t n, uint32_t *kept)
{
    for (uint32_t m = 1; m < n; m++)
        for (uint32_t a = parts->first[m]; a < parts->several[m]; a++) {
            const st_step one = parts->literals[a].step >> 32 << 32 | n | n << 8;
            for (uint32_t b = parts->first[n - m]; b < parts->first[n - m + 1]; b++) {
                const struct st_part rest = parts->literals[b];
                const uint32_t count = st_step_literals(rest.step) + 1;
                const uint32_t code = parts->literals[a].code | rest.code << m;
                const st_step step = one | rest.step >> 32 << 40 | count << 16;
                if (count > ST_STEP_LITERALS_MAX)
                    continue;
                table[code] = step;
                if (n < ST_LETTER_BITS)
                    keep(parts->literals, kept, code, step);
            }
        }
}

/* Writes all steps of n bits of codes that are a length behind literals. */
static void add_lengths(st_step *table, const struct parts *parts, uint32_t n)
{
    for (uint32_t m = 1; m < n; m++)
        for (uint32_t a = parts->lengths_first[m]; a < parts->lengths_first[m + 1]; a++) {
            const struct st_part length = parts->lengths[a];
            const st_step step = length.step + (n - m) + ((n - m) << 8);
            for (uint32_t b = parts->first[n - m]; b < parts->first[n - m + 1]; b++)
                table[parts->literals[b].code | length.code << (n - m)] =
                    step | (parts->literals[b].step & ~(st_step)0xffff);
        }
}

/* Like fill, but also writes steps of several codes. */
static void fill_letters(struct st_codes *codes)
{
    struct parts parts;
    st_step *table = codes->letters;
    const uint16_t *symbol = codes->letter.sorted;
    uint32_t next = 0, literals = 0, lengths = 0;
    table[0] = st_step_of(ST_STEP_LONG, 0, 0, 0);
    parts.first[1] = parts.lengths_first[1] = 0;
    for (uint32_t n = 1; n <= ST_LETTER_BITS; n++) {
        memcpy(table + (1u << (n - 1)), table, sizeof *table << (n - 1));
        for (uint32_t k = 0; k < codes->letter.count[n]; k++, symbol++) {
            table[next] = letter_step(*symbol, n);
            if (n < ST_LETTER_BITS && *symbol < LITERALS)
                keep(parts.literals, &literals, next, table[next]);
            else if (n < ST_LETTER_BITS && (table[next] & ST_STEP_HAS_LENGTH))
                keep(parts.lengths, &lengths, next, table[next]);
            next = next_code(next, n);
        }
        if (n < ST_LETTER_BITS)
            parts.several[n] = literals;
        add_lengths(table, &parts, n);
        add_literals(table, &parts, n, &literals);
        if (n < ST_LETTER_BITS) {
            parts.first[n + 1] = literals;
            parts.lengths_first[n + 1] = lengths;
        }
    }
}

bool st_codes_make(struct st_codes *codes, const uint8_t *letters, uint32_t letter_count,
                   const uint8_t *distances, uint32_t distance_count)
{
    if (!letters[ST_LETTER_END] || !sort_symbols(&codes->letter, letters, letter_count, true) ||
        !sort_symbols(&codes->distance, distances, distance_count, true))
        return false;
    fill(codes->distances, ST_DISTANCE_BITS, &codes->distance, distance_step);
    fill_letters(codes);
    return true;
}

bool st_codes_make_lengths(st_step *table, const uint8_t *lengths, uint32_t count)
{
    struct st_code code;
    if (!sort_symbols(&code, lengths, count, false))
        return false;
    fill(table, ST_LENGTH_BITS, &code, length_step);
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
    return length ? letter_step(symbol, length) : st_step_of(ST_STEP_BAD, 0, 0, 0);
}

st_step st_long_distance(const struct st_codes *codes, uint64_t bits)
{
    uint32_t symbol;
    const uint32_t length = find_long(&codes->distance, bits, &symbol);
    return length ? distance_step(symbol, length) : st_step_of(ST_STEP_BAD, 0, 0, 0);
}
