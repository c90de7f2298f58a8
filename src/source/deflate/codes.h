/* codes.h - decoding tables for the prefix codes of a deflate block
 *
 * A table lookup is a load that depends on the previous one, and mispredicting whether a literal or a
 * match comes next costs even more. So one step yields as much as fits: two literals, or a whole short
 * match (length and distance). Both are bytes to copy, from the table or from earlier output.
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
};

/* What the next bits mean. Only LITERALS and MATCH are handled at full speed. */
enum st_step_kind {
    ST_STEP_LITERALS, /* `size` bytes, stored in `what`, the first in the lowest byte */
    ST_STEP_MATCH,    /* `size` bytes at distance `what` plus the extra bits, which is >= `size` */
    ST_STEP_NUMBER,   /* a length or distance of `what` plus the extra bits; or a symbol */
    ST_STEP_END,
    ST_STEP_LONG, /* a code longer than the table's index */
    ST_STEP_BAD,
};

/* One integer, so that it is a single load. From the lowest byte: the bits that the step consumes, how
 * many of them are codes (extra bits follow), size, kind, and 4 bytes of `what`. */
typedef uint64_t st_step;

#define ST_STEP_IS_MATCH ((st_step)1 << 24)
#define ST_STEP_IS_OTHER ((st_step)6 << 24)
enum { ST_STEP_WHAT_AT = 4 }; /* byte offset in memory */

static inline st_step st_step_of(enum st_step_kind kind, uint32_t codes, uint32_t extra, uint32_t size,
                                 uint32_t what)
{
    return (codes + extra) | codes << 8 | size << 16 | (st_step)kind << 24 | (st_step)what << 32;
}

static inline uint32_t st_step_takes(st_step step) { return step & 63; }
static inline uint32_t st_step_size(st_step step) { return (uint8_t)(step >> 16); }
static inline enum st_step_kind st_step_kind(st_step step)
{
    return (enum st_step_kind)(uint8_t)(step >> 24);
}
static inline uint32_t st_step_what(st_step step) { return (uint32_t)(step >> 32); }

/* `what` plus the step's extra bits. */
static inline uint32_t st_step_number(st_step step, uint64_t bits)
{
    return st_step_what(step) + (uint32_t)((bits & ~(~0ull << (step & 63))) >> (step >> 8 & 63));
}

struct st_code {
    uint16_t count[ST_CODE_LONGEST + 1]; /* number of codes of each length */
    uint16_t sorted[ST_LETTERS_MAX];     /* symbols, sorted by code */
};

/* The codes of a block. */
struct st_codes {
    struct st_code letter, distance;
    st_step letters[(1 << ST_LETTER_BITS) + 2]; /* two extra, because reads may go past the last */
    st_step distances[1 << ST_DISTANCE_BITS];
};

/* Builds the tables from the code length of each symbol (0: no code). False if these are not valid
 * prefix codes. */
bool st_codes_make(struct st_codes *codes, const uint8_t *letters, uint32_t letter_count,
                   const uint8_t *distances, uint32_t distance_count);
/* Whether many steps of these codes do the work of two and few are slow. */
bool st_codes_are_paired(const struct st_codes *codes);
/* The same for the code that the lengths are written in: 1 << ST_LENGTH_BITS steps. */
bool st_codes_make_lengths(st_step *table, const uint8_t *lengths, uint32_t count);

/* For bits that the table marks as LONG. */
st_step st_long_letter(const struct st_codes *codes, uint64_t bits);
st_step st_long_distance(const struct st_codes *codes, uint64_t bits);

#endif
