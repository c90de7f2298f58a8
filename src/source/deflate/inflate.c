/* inflate.c - inflates a whole buffer of known size (RFC 1950 and 1951)
 *
 * Far from both ends, steps are taken without bounds checks: one refill provides the bits of two steps,
 * and refills, literals and matches may read and write more than they need. Near an end each step is
 * checked.
 *
 * Streams whose steps would mostly be single literals are left to libdeflate, if it is built in.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/deflate/inflate.h"
#include "source/deflate/codes.h"
#include "source/little.h"
#include "st_config.h"

#include <string.h>

#if ST_HAVE_DEFLATE
#include <libdeflate.h>

uint32_t st_crc32(const void *data, uint64_t size) { return libdeflate_crc32(0, data, size); }

static uint32_t adler32_of(const void *data, uint64_t size) { return libdeflate_adler32(1, data, size); }

#else
#include <zlib.h>

uint32_t st_crc32(const void *data, uint64_t size) { return (uint32_t)crc32_z(0, data, size); }

static uint32_t adler32_of(const void *data, uint64_t size)
{
    return (uint32_t)adler32_z(1, data, size);
}

#endif

enum {
    WINDOW = 32768, /* the longest distance */
    MATCH_MAX = 258,
    COPY = 16,                                 /* bytes written at once */
    STEPS = 2,                                 /* between refills, each at most this many bits: */
    TAKES_MAX = ST_LETTER_BITS + ST_EXTRA_MAX, /* a match with the extra bits of its distance */
    IN_SPARE = 2 * 7 + 8, /* two refills advance by at most 7 bytes each, and read 8 */
    OUT_SPARE = STEPS * COPY + MATCH_MAX + COPY,
};
/* The fast path copies a step's bytes from memory, so they must be in output order. */
enum { FAST_HERE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };
_Static_assert(STEPS *TAKES_MAX <= 56, "one refill is enough for that many steps");

enum block { STORED, FIXED, DYNAMIC };

/* The stream and its output. */
struct inflater {
    const uint8_t *in, *in_end;
    uint64_t bits; /* the next bits, lowest first; those beyond `held` are a copy of what `in` points to,
                      or zeros */
    uint32_t held;
    uint8_t *out, *out_begin, *out_end;
    enum block block;
    bool last;
    bool fixed; /* `codes` are the fixed codes */
    struct st_codes codes;
};

/* ---- bits --------------------------------------------------------------------------------------- */

static uint64_t lowest(uint64_t bits, uint32_t count) { return bits & ((1ull << count) - 1); }

static void refill(struct inflater *s)
{
    if (s->in_end - s->in >= 8) {
        s->bits |= st_u64(s->in) << s->held;
        s->in += (63 - s->held) >> 3;
        s->held |= 56;
        return;
    }
    while (s->held < 56 && s->in < s->in_end) {
        s->bits |= (uint64_t)*s->in++ << s->held;
        s->held += 8;
    }
}

static bool take(struct inflater *s, uint32_t count, uint32_t *out)
{
    refill(s);
    if (count > s->held)
        return false;
    *out = (uint32_t)lowest(s->bits, count);
    s->bits >>= count;
    s->held -= count;
    return true;
}

/* ---- steps -------------------------------------------------------------------------------------- */

/* May write up to COPY - 1 bytes past the end. */
static inline void copy_match(uint8_t *to, uint32_t distance, uint32_t length)
{
    const uint8_t *from = to - distance;
    const uint8_t *const end = to + length;
    if (distance >= COPY) {
        do {
            memcpy(to, from, COPY);
            to += COPY;
            from += COPY;
        } while (to < end);
    } else if (distance == 1) {
        memset(to, *from, length);
    } else { /* only the first bytes of each word are right, and the next word begins after them */
        const uint32_t right = distance < 8 ? distance : 8;
        do {
            memcpy(to, from, 8);
            to += right;
            from += right;
        } while (to < end);
    }
}

enum verdict { BAD, END_OF_BLOCK, NEAR_AN_END };

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
#define LOOK()                                                                                          \
    do {                                                                                                \
        at = (const uint8_t *)s->codes.letters + (lowest(bits, ST_LETTER_BITS) * sizeof(st_step));      \
        memcpy(&step, at, sizeof step);                                                                 \
    } while (0)
/* The source of the bytes is selected without a branch, because it is unpredictable; the empty asm
 * statement keeps the compiler from adding a branch to avoid computing the distance for literals. */
#define COPY_STEP()                                                                                     \
    do {                                                                                                \
        const uint64_t distance_ = st_step_number(step, bits);                                          \
        const bool match_ = __builtin_expect_with_probability(!!(step & ST_STEP_IS_MATCH), 1, 0.5);     \
        const uint8_t *from_ = at + ST_STEP_WHAT_AT,                                                    \
                      *before_ = (const uint8_t *)((uintptr_t)out - distance_);                         \
        __asm__("" : "+r"(before_));                                                                    \
        uint64_t bytes_[COPY / 8];                                                                      \
        if (near_begin && (match_ & (before_ < begin)))                                                 \
            return BAD;                                                                                 \
        from_ = match_ ? before_ : from_;                                                               \
        TAKE(step);                                                                                     \
        memcpy(bytes_, from_, COPY);                                                                    \
        memcpy(out, bytes_, COPY);                                                                      \
        out += st_step_size(step);                                                                      \
    } while (0)

/* Runs until an end is near or, with `near_begin`, until no distance can be too long. */
static inline __attribute__((always_inline)) enum verdict run_fast(struct inflater *s, bool near_begin)
{
    const uint8_t *in = s->in, *const in_last = s->in_end - IN_SPARE;
    uint8_t *out = s->out, *out_last = s->out_end - OUT_SPARE, *const begin = s->out_begin;
    uint64_t bits = s->bits, held = s->held;
    enum verdict verdict = NEAR_AN_END;
    if (near_begin && out_last - begin > WINDOW)
        out_last = begin + WINDOW;
    while (in <= in_last && out <= out_last) {
        const uint8_t *at;
        st_step step;
        REFILL();
        LOOK();
        if (!(step & ST_STEP_IS_OTHER)) {
            COPY_STEP();
            LOOK();
            if (!(step & ST_STEP_IS_OTHER)) {
                COPY_STEP();
                continue;
            }
            REFILL();
        }
        if (st_step_kind(step) == ST_STEP_LONG)
            step = st_long_letter(&s->codes, bits);
        const uint32_t length = st_step_number(step, bits);
        TAKE(step);
        if (st_step_kind(step) == ST_STEP_LITERALS) {
            *out++ = (uint8_t)st_step_what(step);
            continue;
        }
        if (st_step_kind(step) != ST_STEP_NUMBER) {
            verdict = st_step_kind(step) == ST_STEP_END ? END_OF_BLOCK : BAD;
            break;
        }
        step = s->codes.distances[lowest(bits, ST_DISTANCE_BITS)];
        if (st_step_kind(step) == ST_STEP_LONG)
            step = st_long_distance(&s->codes, bits);
        const uint32_t distance = st_step_number(step, bits);
        if (st_step_kind(step) != ST_STEP_NUMBER || distance > (uint64_t)(out - begin))
            return BAD;
        TAKE(step);
        copy_match(out, distance, length);
        out += length;
    }
    s->in = in;
    s->out = out;
    s->held = held & 63;
    s->bits = lowest(bits, s->held);
    return verdict;
}

/* One step or one match, with all checks. */
static bool step_carefully(struct inflater *s, bool *ended)
{
    refill(s);
    st_step step = s->codes.letters[lowest(s->bits, ST_LETTER_BITS)];
    if (st_step_kind(step) == ST_STEP_LONG)
        step = st_long_letter(&s->codes, s->bits);
    uint32_t number = st_step_number(step, s->bits), size = st_step_size(step), unused;
    const uint64_t room = (uint64_t)(s->out_end - s->out);
    if (!take(s, st_step_takes(step), &unused))
        return false;
    switch (st_step_kind(step)) {
    case ST_STEP_LITERALS:
        if (size > room)
            return false;
        for (uint32_t k = 0; k < size; k++)
            *s->out++ = (uint8_t)(st_step_what(step) >> 8 * k);
        return true;
    case ST_STEP_END:
        return *ended = true;
    case ST_STEP_NUMBER:
        size = number;
        refill(s);
        step = s->codes.distances[lowest(s->bits, ST_DISTANCE_BITS)];
        if (st_step_kind(step) == ST_STEP_LONG)
            step = st_long_distance(&s->codes, s->bits);
        number = st_step_number(step, s->bits);
        if (st_step_kind(step) != ST_STEP_NUMBER || !take(s, st_step_takes(step), &unused))
            return false;
        break;
    case ST_STEP_MATCH:
        break;
    default:
        return false;
    }
    if (number > (uint64_t)(s->out - s->out_begin) || size > room)
        return false;
    for (uint32_t k = 0; k < size; k++, s->out++)
        *s->out = s->out[-(int64_t)number];
    return true;
}

static bool run_block(struct inflater *s)
{
    enum verdict verdict = NEAR_AN_END;
    bool ended = false;
    if (FAST_HERE && s->in_end - s->in >= IN_SPARE && s->out_end - s->out >= OUT_SPARE) {
        if (s->out - s->out_begin < WINDOW)
            verdict = run_fast(s, true);
        if (verdict == NEAR_AN_END)
            verdict = run_fast(s, false);
        if (verdict != NEAR_AN_END)
            return verdict == END_OF_BLOCK;
    }
    while (!ended)
        if (!step_carefully(s, &ended))
            return false;
    return true;
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static bool copy_stored(struct inflater *s)
{
    uint32_t size, inverse, skipped;
    if (!take(s, s->held % 8, &skipped) || !take(s, 16, &size) || !take(s, 16, &inverse) ||
        (size ^ inverse) != 0xffff)
        return false;
    s->in -= s->held / 8; /* give back whole bytes from the bit buffer */
    s->bits = s->held = 0;
    if (size > s->in_end - s->in || size > s->out_end - s->out)
        return false;
    memcpy(s->out, s->in, size);
    s->in += size;
    s->out += size;
    return true;
}

static bool read_fixed(struct inflater *s)
{
    uint8_t letters[ST_LETTERS_MAX], distances[ST_DISTANCES_MAX];
    if (s->fixed)
        return true;
    for (uint32_t i = 0; i < ST_LETTERS_MAX; i++)
        letters[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(distances, 5, sizeof distances);
    s->fixed = true;
    return st_codes_make(&s->codes, letters, ST_LETTERS_MAX, distances, ST_DISTANCES_MAX);
}

/* Code lengths are written one by one or as repetitions of the last one or of zero. */
static bool read_lengths(struct inflater *s, const st_step *table, uint8_t *lengths, uint32_t count)
{
    static const struct {
        uint8_t bits, least;
    } again[] = {{2, 3}, {3, 3}, {7, 11}};
    for (uint32_t i = 0; i < count;) {
        uint32_t times = 1, unused;
        refill(s);
        const st_step step = table[lowest(s->bits, ST_LENGTH_BITS)];
        const uint32_t symbol = st_step_what(step);
        if (!take(s, st_step_takes(step), &unused))
            return false;
        if (symbol >= 16) {
            if (!take(s, again[symbol - 16].bits, &times) || (symbol == 16 && !i))
                return false;
            times += again[symbol - 16].least;
        }
        if (times > count - i)
            return false;
        memset(lengths + i, symbol < 16 ? (int)symbol : symbol == 16 ? lengths[i - 1] : 0, times);
        i += times;
    }
    return true;
}

static bool read_codes(struct inflater *s)
{
    static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[ST_LETTERS_MAX + ST_DISTANCES_MAX] = {0};
    uint32_t letters, distances, count, length;
    st_step table[1 << ST_LENGTH_BITS];
    if (!take(s, 5, &letters) || !take(s, 5, &distances) || !take(s, 4, &count))
        return false;
    letters += 257;
    distances += 1;
    if (letters > 286 || distances > 30)
        return false;
    for (uint32_t i = 0; i < count + 4; i++) {
        if (!take(s, 3, &length))
            return false;
        lengths[order[i]] = (uint8_t)length;
    }
    s->fixed = false;
    return st_codes_make_lengths(table, lengths, sizeof order) &&
           read_lengths(s, table, lengths, letters + distances) &&
           st_codes_make(&s->codes, lengths, letters, lengths + letters, distances);
}

/* Reads the header of a block. */
static bool begin_block(struct inflater *s)
{
    uint32_t three;
    if (!take(s, 3, &three))
        return false;
    s->last = three & 1;
    s->block = (enum block)(three >> 1);
    return s->block == STORED || (s->block == FIXED && read_fixed(s)) ||
           (s->block == DYNAMIC && read_codes(s));
}

/* ---- streams ------------------------------------------------------------------------------------ */

/* Reads the headers of the stream and of its first block. */
static bool begin_stream(struct inflater *s, enum st_wrapping wrapping, struct st_bytes in, uint8_t *out,
                         uint64_t size)
{
    s->in = in.data;
    s->in_end = in.data + in.size;
    s->bits = s->held = 0;
    s->out = s->out_begin = out;
    s->out_end = out + size;
    s->fixed = false;
    if (wrapping == ST_WRAPPING_ZLIB) {
        /* Method 8, a window of up to 32 KiB, no dictionary, header divisible by 31. */
        if (in.size < 2 || (in.data[0] & 15) != 8 || in.data[0] >> 4 > 7 || in.data[1] & 32 ||
            (in.data[0] << 8 | in.data[1]) % 31)
            return false;
        s->in += 2;
    }
    return begin_block(s);
}

static bool run_stream(struct inflater *s, enum st_wrapping wrapping)
{
    for (;;) {
        if (!(s->block == STORED ? copy_stored(s) : run_block(s)))
            return false;
        if (s->last)
            break;
        if (!begin_block(s))
            return false;
    }
    if (s->out != s->out_end)
        return false;
    s->in -= s->held / 8;
    const uint64_t size = (uint64_t)(s->out_end - s->out_begin);
    return wrapping == ST_WRAPPING_NONE ||
           (s->in_end - s->in >= 4 &&
            __builtin_bswap32(st_u32(s->in)) == adler32_of(s->out_begin, size));
}

bool st_inflate_here(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out, uint64_t size)
{
    struct inflater s;
    return begin_stream(&s, wrapping, in, out, size) && run_stream(&s, wrapping);
}

#if ST_HAVE_DEFLATE

static bool inflate_by_library(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out,
                               uint64_t size)
{
    struct libdeflate_decompressor *own = libdeflate_alloc_decompressor();
    if (!own)
        return false;
    /* With NULL for the actual size, producing fewer than `size` bytes is an error too. */
    const enum libdeflate_result result =
        wrapping == ST_WRAPPING_ZLIB
            ? libdeflate_zlib_decompress(own, in.data, in.size, out, size, NULL)
            : libdeflate_deflate_decompress(own, in.data, in.size, out, size, NULL);
    libdeflate_free_decompressor(own);
    return result == LIBDEFLATE_SUCCESS;
}

/* This file is fast if most steps do the work of two; the first block is representative. */
bool st_inflate(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out, uint64_t size)
{
    enum { WORTH_LOOKING = 4096 };
    struct inflater s;
    if (in.size < WORTH_LOOKING)
        return inflate_by_library(wrapping, in, out, size);
    if (!begin_stream(&s, wrapping, in, out, size))
        return false;
    return s.block == DYNAMIC && st_codes_are_paired(&s.codes)
               ? run_stream(&s, wrapping)
               : inflate_by_library(wrapping, in, out, size);
}

#else

bool st_inflate(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out, uint64_t size)
{
    return st_inflate_here(wrapping, in, out, size);
}

#endif
