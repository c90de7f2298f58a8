/* codes.h - decoding tables for the prefix codes of a deflate block
 *
 * A table lookup is a load that depends on the previous one, and mispredicting whether a literal or a
 * match comes next costs even more. So one step yields as much as fits: up to four literals, and the
 * length of the match that follows them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_DEFLATE_CODES_H
#define ST_SOURCE_DEFLATE_CODES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ST_CODE_LONGEST = 15,
    ST_LETTERS_MAX = 288, /* literals, the end of the block, lengths */
    ST_DISTANCES_MAX = 32,
    ST_LETTER_END = 256,
    ST_LETTER_BITS = 11, /* bits of the tables' indices */
    ST_DISTANCE_BITS = 9,
    ST_LENGTH_BITS = 7,
    ST_EXTRA_MAX = 13, /* bits after the code of a distance */
    ST_LENGTH_EXTRA_MAX = 5,
};

/* What the next bits mean. Only the first kind is handled at full speed. */
enum st_step_kind {
    ST_STEP_USUAL, /* of letters: literals, a length, or both; else a distance or a symbol */
    ST_STEP_END,
    ST_STEP_LONG, /* a code longer than the table's index */
    ST_STEP_BAD,
};

/* One integer, so that it is a single load. From the lowest bit: 6 bits for how many bits the step
 * consumes, an unused one, ST_STEP_HAS_LENGTH; 8 for how many of them are codes (extra bits follow); 4
 * for the number of literals; 9 for the length without its extra bits, or 0; 3 for the kind; and 32 for
 * the literals, the first one lowest, or for a distance or symbol. */
typedef uint64_t st_step;

enum { ST_STEP_LITERALS_MAX = 4, ST_STEP_HAS_LENGTH = 1 << 7 };
#define ST_STEP_IS_OTHER ((st_step)7 << 29)

static inline st_step st_step_of(enum st_step_kind kind, uint32_t codes, uint32_t extra, uint32_t what)
{
    return (codes + extra) | codes << 8 | (st_step)kind << 29 | (st_step)what << 32;
}

static inline st_step st_step_with_length(uint32_t codes, uint32_t extra, uint32_t length)
{
    return (codes + extra) | ST_STEP_HAS_LENGTH | codes << 8 | length << 20;
}

static inline uint32_t st_step_takes(st_step step) { return step & 63; }
static inline uint32_t st_step_literals(st_step step) { return step >> 16 & 15; }
static inline enum st_step_kind st_step_kind(st_step step)
{
    return (enum st_step_kind)(step >> 29 & 7);
}
static inline uint32_t st_step_what(st_step step) { return (uint32_t)(step >> 32); }

static inline uint32_t st_step_extra(st_step step, uint64_t bits)
{
    return (uint32_t)((bits & ~(~0ull << (step & 63))) >> (step >> 8 & 63));
}
/* Its extra bits included; 0 if it has none. */
static inline uint32_t st_step_length(st_step step, uint64_t bits)
{
    return (step >> 20 & 511) + st_step_extra(step, bits);
}
static inline uint32_t st_step_distance(st_step step, uint64_t bits)
{
    return st_step_what(step) + st_step_extra(step, bits);
}

struct st_code {
    uint16_t count[ST_CODE_LONGEST + 1]; /* number of codes of each length */
    uint16_t sorted[ST_LETTERS_MAX];     /* symbols, sorted by code */
};

/* The codes of a block. */
struct st_codes {
    struct st_code letter, distance;
    st_step letters[1 << ST_LETTER_BITS];
    st_step distances[1 << ST_DISTANCE_BITS];
};

/* Builds the tables from the code length of each symbol (0: no code). False if these are not valid
 * prefix codes. */
bool st_codes_make(struct st_codes *codes, const uint8_t *letters, uint32_t letter_count,
                   const uint8_t *distances, uint32_t distance_count);
/* The same for the code that the lengths are written in: 1 << ST_LENGTH_BITS steps. */
bool st_codes_make_lengths(st_step *table, const uint8_t *lengths, uint32_t count);

/* For bits that the table marks as LONG. */
st_step st_long_letter(const struct st_codes *codes, uint64_t bits);
st_step st_long_distance(const struct st_codes *codes, uint64_t bits);

#endif
