/* steps.c - the inner loop of inflating, compiled for each kind of CPU (-DST_INFLATE_STEPS=...)
 *
 * Far from both ends, steps are taken without bounds checks: one refill provides the bits of three steps
 * or of a match, and refills, literals and matches may read and write more than they need.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/deflate/inflater.h"
#include "source/little.h"

#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#ifndef ST_INFLATE_STEPS
#define ST_INFLATE_STEPS st_inflate_steps_c
#endif

enum {
    NEAR = 16,                                 /* bytes in a vector: nearer strings are repeated in it */
    STEPS = 3,                                 /* of literals between refills */
    FAR_MAX = ST_DISTANCE_BITS + ST_EXTRA_MAX, /* a distance that is not long */
};
_Static_assert((STEPS + 1) * ST_LETTER_BITS <= 56, "the step after them needs no refill");
_Static_assert(ST_CODE_LONGEST + ST_LENGTH_EXTRA_MAX + FAR_MAX + ST_LETTER_BITS <= 56,
               "nor after a match");

/* Copies 16 bytes again and again, from at least as many before. */
static inline __attribute__((always_inline)) void copy_on(uint8_t *out, const uint8_t *from,
                                                          const uint8_t *end)
{
    do {
        memcpy(out, from, 16);
        memcpy(out + 16, from + 16, 16);
        out += 32;
        from += 32;
    } while (out < end);
}

#ifdef __AVX2__

/* Without a branch on the distance: the bytes of a near string are repeated by a shuffle, and from then
 * on it is a multiple of its distance away. */
static inline __attribute__((always_inline)) void copy_string(uint8_t *out, uint64_t distance,
                                                              uint64_t length)
{
#define REPEAT(n)                                                                                       \
    {                                                                                                   \
        0, 1 % n, 2 % n, 3 % n, 4 % n, 5 % n, 6 % n, 7 % n, 8 % n, 9 % n, 10 % n, 11 % n, 12 % n,       \
            13 % n, 14 % n, 15 % n                                                                      \
    }
    static const uint8_t repeated[NEAR + 1][16] = {
        REPEAT(16), REPEAT(1),  REPEAT(2),  REPEAT(3),  REPEAT(4),  REPEAT(5),
        REPEAT(6),  REPEAT(7),  REPEAT(8),  REPEAT(9),  REPEAT(10), REPEAT(11),
        REPEAT(12), REPEAT(13), REPEAT(14), REPEAT(15), REPEAT(16)};
    /* What makes a distance below 16 the next multiple that is not. */
    static const uint8_t more[NEAR + 1] = {0, 15, 14, 15, 12, 10, 12, 7, 8,
                                           9, 10, 11, 12, 13, 14, 15, 0};
    const uint64_t k = distance < NEAR ? distance : NEAR;
    const __m128i first = _mm_loadu_si128((const __m128i *)(out - distance));
    const __m128i order = _mm_loadu_si128((const __m128i *)repeated[k]);
    _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(first, order));
    const uint8_t *from = out - distance - more[k];
    memcpy(out + 16, from + 16, 16);
    if (__builtin_expect(length > 32, 0))
        copy_on(out + 32, from + 32, out + length);
}

#else

static void repeat_near(uint8_t *out, uint64_t distance, uint64_t length)
{
    const uint8_t *from = out - distance, *const end = out + length;
    /* Only the first bytes of each word are right, and the next word begins after them. */
    const uint64_t right = distance < 8 ? distance : 8;
    for (; out < end; out += right, from += right)
        memcpy(out, from, 8);
}

static inline __attribute__((always_inline)) void copy_string(uint8_t *out, uint64_t distance,
                                                              uint64_t length)
{
    const uint8_t *from = out - distance;
    if (__builtin_expect(distance == 1, 0)) {
        memset(out, *from, length);
    } else if (__builtin_expect(distance < NEAR, 0)) {
        repeat_near(out, distance, length);
    } else {
        memcpy(out, from, 16);
        memcpy(out + 16, from + 16, 16);
        if (__builtin_expect(length > 32, 0))
            copy_on(out + 32, from + 32, out + length);
    }
}

#endif

/* Macros on local variables, since compilers keep these in registers but not the members of a struct. */
#define REFILL()                                                                                        \
    do {                                                                                                \
        bits |= st_u64(in) << (held & 63);                                                              \
        in += (~held & 63) >> 3;                                                                        \
        held |= 56;                                                                                     \
    } while (0)
#define TAKE(step_)                                                                                     \
    do {                                                                                                \
        bits >>= (step_)&63;                                                                            \
        held -= (step_); /* only the lowest 6 bits matter */                                            \
    } while (0)
#define LOOK() s->codes.letters[bits & ((1u << ST_LETTER_BITS) - 1)]
/* A step of nothing but literals, and the look at the next one. */
#define PUT_LITERALS()                                                                                  \
    do {                                                                                                \
        const uint32_t literals_ = st_step_what(step);                                                  \
        memcpy(out, &literals_, sizeof literals_);                                                      \
        out += st_step_literals(step);                                                                  \
        TAKE(step);                                                                                     \
        step = LOOK();                                                                                  \
    } while (0)
#define ONLY_LITERALS() (!(step & (ST_STEP_IS_OTHER | ST_STEP_HAS_LENGTH)))

enum st_inflate_verdict ST_INFLATE_STEPS(struct st_inflater *s)
{
    const uint8_t *in = s->in, *const in_last = s->in_end - ST_INFLATE_IN_SPARE;
    uint8_t *out = s->out, *const out_last = s->out_end - ST_INFLATE_OUT_SPARE,
            *const begin = s->out_begin;
    uint64_t bits = s->bits, held = s->held;
    enum st_inflate_verdict verdict = ST_VERDICT_NEAR_AN_END;
    REFILL();
    st_step step = LOOK();
    do {
        if (ONLY_LITERALS()) {
            PUT_LITERALS();
            if (ONLY_LITERALS()) {
                PUT_LITERALS();
                if (ONLY_LITERALS()) {
                    PUT_LITERALS();
                    REFILL();
                    continue;
                }
            }
        }
        REFILL();
        if (__builtin_expect((step & ST_STEP_IS_OTHER) != 0, 0)) {
            if (st_step_kind(step) == ST_STEP_LONG)
                step = st_long_letter(&s->codes, bits);
            if (st_step_kind(step) != ST_STEP_USUAL) {
                TAKE(step);
                verdict = st_step_kind(step) == ST_STEP_END ? ST_VERDICT_END_OF_BLOCK : ST_VERDICT_BAD;
                break;
            }
        }
        if (__builtin_expect(!(step & ST_STEP_HAS_LENGTH), 0)) { /* a long code */
            PUT_LITERALS();
            REFILL();
            continue;
        }
        const uint64_t length = st_step_length(step, bits);
        const uint32_t literals = st_step_what(step);
        memcpy(out, &literals, sizeof literals);
        out += st_step_literals(step);
        TAKE(step);
        st_step far = s->codes.distances[bits & ((1u << ST_DISTANCE_BITS) - 1)];
        if (__builtin_expect((far & ST_STEP_IS_OTHER) != 0, 0)) {
            REFILL();
            far = st_long_distance(&s->codes, bits);
            if (st_step_kind(far) != ST_STEP_USUAL)
                return ST_VERDICT_BAD;
        }
        const uint64_t distance = st_step_distance(far, bits);
        if (distance > (uint64_t)(out - begin))
            return ST_VERDICT_BAD;
        TAKE(far);
        step = LOOK();
        REFILL();
        copy_string(out, distance, length);
        out += length;
    } while (in <= in_last && out <= out_last);
    s->in = in;
    s->out = out;
    s->held = held & 63;
    s->bits = bits & ((1ull << s->held) - 1);
    return verdict;
}
