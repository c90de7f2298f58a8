/* inflater.h - inflates a stream piece by piece, into memory that its caller may move
 *
 * Where its bytes go is written into the inflater before each run, so that a stream of any size passes
 * through a window, of which the last 32 KiB stay where they are or are moved together with `out`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_DEFLATE_INFLATER_H
#define ST_SOURCE_DEFLATE_INFLATER_H

#include "source/deflate/codes.h"
#include "source/deflate/inflate.h"

enum {
    ST_INFLATE_WINDOW = 32768,   /* the longest distance */
    ST_INFLATE_MATCH_MAX = 258,  /* the longest length */
    ST_INFLATE_COPY = 32,        /* bytes written at once */
    ST_INFLATE_IN_SPARE = 5 * 8, /* four refills advance by at most 7 bytes each, and one reads 8 */
    ST_INFLATE_OUT_SPARE = 4 * ST_STEP_LITERALS_MAX + ST_INFLATE_MATCH_MAX + ST_INFLATE_COPY,
};

enum st_inflate_block { ST_INFLATE_STORED, ST_INFLATE_FIXED, ST_INFLATE_DYNAMIC };

struct st_inflater {
    const uint8_t *in, *in_end;
    uint64_t bits; /* the next bits, lowest first; those beyond `held` are a copy of what `in` points to,
                      or zeros */
    uint32_t held;
    uint8_t *out, *out_begin,
        *out_end; /* the next byte; the first that a match may copy; the room's end */
    bool whole;   /* the stream has to end exactly at out_end; else it pauses at least
                     ST_INFLATE_OUT_SPARE - ST_INFLATE_MATCH_MAX bytes before */
    enum st_inflate_block block;
    bool inside; /* of a block */
    bool last;
    bool fixed;      /* `codes` are the fixed codes */
    uint32_t stored; /* bytes that a stored block still has */
    struct st_codes codes;
};

enum st_inflated { ST_INFLATE_FAILED, ST_INFLATE_PAUSED, ST_INFLATE_FINISHED };

/* Reads the headers of the stream and of its first block. The caller then sets out, out_begin, out_end
 * and whole. */
bool st_inflater_begin(struct st_inflater *s, enum st_wrapping wrapping, struct st_bytes in);
/* Inflates until out_end is near or the stream ends. Bytes after `out` and up to out_end may be
 * overwritten. */
enum st_inflated st_inflater_run(struct st_inflater *s);
/* After the stream's end: whether this Adler-32 of all its bytes follows it. */
bool st_inflater_sum_is(const struct st_inflater *s, uint32_t adler32);
/* Continues an Adler-32, which begins as 1. */
uint32_t st_adler32(uint32_t sum, const void *data, uint64_t size);

/* For inflate.c: the inner loop, again for CPUs with BMI2 and byte shuffles. Needs the spare bytes on
 * both sides, and runs until there are fewer. */
enum st_inflate_verdict { ST_VERDICT_BAD, ST_VERDICT_END_OF_BLOCK, ST_VERDICT_NEAR_AN_END };
enum st_inflate_verdict st_inflate_steps_c(struct st_inflater *s);
enum st_inflate_verdict st_inflate_steps_avx2(struct st_inflater *s);

#endif
