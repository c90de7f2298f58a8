/* inflate.c - inflates streams (RFC 1950 and 1951)
 *
 * Far from both ends of its memory, steps are taken without bounds checks (steps.c). Near an end each
 * step is checked.
 *
 * Small streams are left to libdeflate, if it is built in: it makes its tables faster.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/deflate/inflater.h"
#include "source/little.h"
#include "st_config.h"

#include <string.h>

#if ST_HAVE_DEFLATE
#include <libdeflate.h>

uint32_t st_crc32(const void *data, uint64_t size) { return libdeflate_crc32(0, data, size); }

uint32_t st_adler32(uint32_t sum, const void *data, uint64_t size)
{
    return libdeflate_adler32(sum, data, size);
}

#else
#include <zlib.h>

uint32_t st_crc32(const void *data, uint64_t size) { return (uint32_t)crc32_z(0, data, size); }

uint32_t st_adler32(uint32_t sum, const void *data, uint64_t size)
{
    return (uint32_t)adler32_z(sum, data, size);
}

#endif

/* The literals of a step are stored from a register. */
enum { FAST_HERE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

/* ---- bits --------------------------------------------------------------------------------------- */

static uint64_t lowest(uint64_t bits, uint32_t count) { return bits & ((1ull << count) - 1); }

static void refill(struct st_inflater *s)
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

static bool take(struct st_inflater *s, uint32_t count, uint32_t *out)
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

/* One step, with all checks. */
static bool step_carefully(struct st_inflater *s, bool *ended)
{
    uint32_t unused;
    refill(s);
    st_step step = s->codes.letters[lowest(s->bits, ST_LETTER_BITS)];
    if (st_step_kind(step) == ST_STEP_LONG)
        step = st_long_letter(&s->codes, s->bits);
    const uint32_t literals = st_step_literals(step), length = st_step_length(step, s->bits);
    if (st_step_kind(step) == ST_STEP_BAD || !take(s, st_step_takes(step), &unused) ||
        literals > s->out_end - s->out)
        return false;
    for (uint32_t k = 0; k < literals; k++)
        *s->out++ = (uint8_t)(st_step_what(step) >> 8 * k);
    *ended = st_step_kind(step) == ST_STEP_END;
    if (!length)
        return true;
    refill(s);
    step = s->codes.distances[lowest(s->bits, ST_DISTANCE_BITS)];
    if (st_step_kind(step) == ST_STEP_LONG)
        step = st_long_distance(&s->codes, s->bits);
    const uint32_t distance = st_step_distance(step, s->bits);
    if (st_step_kind(step) != ST_STEP_USUAL || !take(s, st_step_takes(step), &unused) ||
        distance > s->out - s->out_begin || length > s->out_end - s->out)
        return false;
    for (uint32_t k = 0; k < length; k++, s->out++)
        *s->out = s->out[-(int64_t)distance];
    return true;
}

static enum st_inflate_verdict steps(struct st_inflater *s)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
        return st_inflate_steps_avx2(s);
#endif
    return st_inflate_steps_c(s);
}

/* Until the block ends, or the room where the stream does not. */
static enum st_inflate_verdict run_block(struct st_inflater *s)
{
    bool ended = false;
    while (!ended) {
        const bool room = s->out_end - s->out >= ST_INFLATE_OUT_SPARE;
        if (!room && !s->whole)
            return ST_VERDICT_NEAR_AN_END;
        if (FAST_HERE && room && s->in_end - s->in >= ST_INFLATE_IN_SPARE) {
            const enum st_inflate_verdict verdict = steps(s);
            if (verdict != ST_VERDICT_NEAR_AN_END)
                return verdict;
        } else if (!step_carefully(s, &ended)) {
            return ST_VERDICT_BAD;
        }
    }
    return ST_VERDICT_END_OF_BLOCK;
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static bool begin_stored(struct st_inflater *s)
{
    uint32_t size, inverse, skipped;
    if (!take(s, s->held % 8, &skipped) || !take(s, 16, &size) || !take(s, 16, &inverse) ||
        (size ^ inverse) != 0xffff)
        return false;
    s->in -= s->held / 8; /* give back whole bytes from the bit buffer */
    s->bits = s->held = 0;
    s->stored = size;
    return size <= s->in_end - s->in;
}

static enum st_inflate_verdict copy_stored(struct st_inflater *s)
{
    const uint64_t room = (uint64_t)(s->out_end - s->out);
    const uint32_t part = s->stored < room ? s->stored : (uint32_t)room;
    if (part > 0)
        memcpy(s->out, s->in, part);
    s->in += part;
    s->out += part;
    s->stored -= part;
    return !s->stored ? ST_VERDICT_END_OF_BLOCK : s->whole ? ST_VERDICT_BAD : ST_VERDICT_NEAR_AN_END;
}

static bool read_fixed(struct st_inflater *s)
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
static bool read_lengths(struct st_inflater *s, const st_step *table, uint8_t *lengths, uint32_t count)
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

static bool read_codes(struct st_inflater *s)
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
static bool begin_block(struct st_inflater *s)
{
    uint32_t three;
    if (!take(s, 3, &three))
        return false;
    s->last = three & 1;
    s->block = (enum st_inflate_block)(three >> 1);
    s->inside = true;
    return (s->block == ST_INFLATE_STORED && begin_stored(s)) ||
           (s->block == ST_INFLATE_FIXED && read_fixed(s)) ||
           (s->block == ST_INFLATE_DYNAMIC && read_codes(s));
}

/* ---- streams ------------------------------------------------------------------------------------ */

bool st_inflater_begin(struct st_inflater *s, enum st_wrapping wrapping, struct st_bytes in)
{
    s->in = in.data;
    s->in_end = in.data + in.size;
    s->bits = s->held = 0;
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

enum st_inflated st_inflater_run(struct st_inflater *s)
{
    while (s->inside || !s->last) {
        if (!s->inside && !begin_block(s))
            return ST_INFLATE_FAILED;
        const enum st_inflate_verdict verdict =
            s->block == ST_INFLATE_STORED ? copy_stored(s) : run_block(s);
        if (verdict == ST_VERDICT_BAD)
            return ST_INFLATE_FAILED;
        if (verdict == ST_VERDICT_NEAR_AN_END)
            return ST_INFLATE_PAUSED;
        s->inside = false;
    }
    return s->whole && s->out != s->out_end ? ST_INFLATE_FAILED : ST_INFLATE_FINISHED;
}

bool st_inflater_sum_is(const struct st_inflater *s, uint32_t adler32)
{
    const uint8_t *behind = s->in - s->held / 8;
    return s->in_end - behind >= 4 && __builtin_bswap32(st_u32(behind)) == adler32;
}

/* The rest of a stream that has begun, at once. */
static bool run_whole(struct st_inflater *s, enum st_wrapping wrapping, uint8_t *out, uint64_t size)
{
    s->out = s->out_begin = out;
    s->out_end = out + size;
    s->whole = true;
    return st_inflater_run(s) == ST_INFLATE_FINISHED &&
           (wrapping == ST_WRAPPING_NONE || st_inflater_sum_is(s, st_adler32(1, out, size)));
}

bool st_inflate_here(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out, uint64_t size)
{
    struct st_inflater s;
    return st_inflater_begin(&s, wrapping, in) && run_whole(&s, wrapping, out, size);
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

bool st_inflate(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out, uint64_t size)
{
    enum { WORTH_TABLES = 4096 };
    struct st_inflater s;
    if (in.size < WORTH_TABLES)
        return inflate_by_library(wrapping, in, out, size);
    if (!st_inflater_begin(&s, wrapping, in))
        return false;
    return s.block == ST_INFLATE_DYNAMIC ? run_whole(&s, wrapping, out, size)
                                         : inflate_by_library(wrapping, in, out, size);
}

#else

bool st_inflate(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out, uint64_t size)
{
    return st_inflate_here(wrapping, in, out, size);
}

#endif
