/* Inflating: what zlib packs in all its ways, and what it refuses. */
#include "source/deflate/inflate.h"
#include "tap.h"

#include <string.h>
#include <zlib.h>

enum { LARGEST = 120000 };

static uint32_t seed = 1;
static uint32_t chance(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)seed * below >> 32);
}

enum kind { ZEROS, NOISE, FEW, WAVES, WORDS, SKEWED, KINDS };
static const char *const kind_names[] = {"zeros", "noise", "few values",
                                         "waves", "words", "skewed values"};

/* WAVES: many short matches, as in pixels. WORDS: long ones. SKEWED: codes of up to 15 bits. */
static void make(enum kind kind, uint8_t *out, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        switch (kind) {
        case ZEROS:
            out[i] = 0;
            break;
        case NOISE:
            out[i] = (uint8_t)chance(256);
            break;
        case FEW:
            out[i] = (uint8_t)chance(3);
            break;
        case WAVES:
            out[i] = (uint8_t)(i / 3 % 500 * (i / 1500 % 200) / 200 + chance(3));
            break;
        case WORDS:
            out[i] = i > 4000 && chance(40) ? out[i - 1 - seed % 3000] : (uint8_t)('a' + chance(26));
            break;
        default:
            out[i] = (uint8_t)(__builtin_clz(chance(1u << 31) | 1) * 8 + chance(2));
        }
}

static uint64_t pack(uint8_t *out, const uint8_t *in, uint64_t size, int level, int strategy, bool raw)
{
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)in,
                  .avail_in = (unsigned)size,
                  .next_out = out,
                  .avail_out = 2 * LARGEST};
    if (deflateInit2(&z, level, Z_DEFLATED, raw ? -15 : 15, 8, strategy) != Z_OK ||
        deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    deflateEnd(&z);
    return z.total_out;
}

typedef bool inflate_way(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out, uint64_t size);

enum verdict { REFUSED, OTHER_BYTES, THE_SAME };

/* From and to memory of exactly these sizes: a sanitizer sees each byte beyond. */
static enum verdict come_back(inflate_way *way, bool raw, const uint8_t *stream, uint64_t stream_size,
                              const uint8_t *expected, uint64_t size)
{
    uint8_t *in = malloc(stream_size ? stream_size : 1), *out = malloc(size ? size : 1);
    memcpy(in, stream, stream_size);
    const bool read =
        way(raw ? ST_WRAPPING_NONE : ST_WRAPPING_ZLIB, (struct st_bytes){in, stream_size}, out, size);
    const enum verdict verdict = !read ? REFUSED : memcmp(out, expected, size) ? OTHER_BYTES : THE_SAME;
    free(in);
    free(out);
    return verdict;
}

static uint8_t plain[LARGEST], packed[2 * LARGEST];

static void all_ways(enum kind kind)
{
    static const uint64_t sizes[] = {0, 1, 2, 15, 16, 300, 306, 307, 2000, 32768, 33100, LARGEST};
    static const struct {
        int level, strategy;
    } ways[] = {{0, 0}, {1, 0}, {6, 0}, {9, Z_FILTERED}, {6, Z_FIXED}, {6, Z_HUFFMAN_ONLY}, {6, Z_RLE}};
    bool same = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < 2 * sizeof ways / sizeof *ways && same; k++) {
            make(kind, plain, sizes[i]);
            const bool raw = k & 1;
            const uint64_t size =
                pack(packed, plain, sizes[i], ways[k / 2].level, ways[k / 2].strategy, raw);
            same = come_back(st_inflate, raw, packed, size, plain, sizes[i]) == THE_SAME &&
                   come_back(st_inflate_here, raw, packed, size, plain, sizes[i]) == THE_SAME;
            if (!same)
                note("%llu bytes, level %d, strategy %d%s", (unsigned long long)sizes[i],
                     ways[k / 2].level, ways[k / 2].strategy, raw ? ", raw" : "");
        }
    ok(same, "%s come back, whatever zlib's level and strategy", kind_names[kind]);
}

static bool refused(bool raw, uint64_t stream_size, uint64_t size)
{
    return come_back(st_inflate_here, raw, packed, stream_size, plain, size) == REFUSED &&
           come_back(st_inflate, raw, packed, stream_size, plain, size) == REFUSED;
}

static void cut_short(void)
{
    make(WAVES, plain, 3000);
    const uint64_t size = pack(packed, plain, 3000, 6, 0, false);
    bool all = true;
    for (uint64_t n = 0; n < size && all; n++)
        all = refused(false, n, 3000);
    ok(all, "a stream that ends before its end is refused, wherever");
}

static void other_sizes(enum kind kind)
{
    enum { SIZE = 40000 };
    make(kind, plain, SIZE);
    const uint64_t size = pack(packed, plain, SIZE, 6, 0, true);
    bool all = true;
    for (uint64_t n = SIZE - 700; n < SIZE + 40 && all; n++)
        all = n == SIZE || refused(true, size, n);
    for (uint64_t n = 0; n < 700 && all; n++)
        all = refused(true, size, n);
    ok(all, "%s are refused where another size is expected", kind_names[kind]);
}

/* Streams with one bit changed: zlib's verdict and zlib's bytes. */
static void damaged(enum kind kind, uint64_t size, uint64_t step)
{
    static uint8_t by_zlib[LARGEST];
    bool same = true;
    uint32_t read = 0, refused = 0;
    make(kind, plain, size);
    const uint64_t packed_size = pack(packed, plain, size, 6, 0, true);
    for (uint64_t bit = 0; bit < 8 * packed_size && same; bit += step) {
        packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        z_stream z = {.next_in = packed,
                      .avail_in = (unsigned)packed_size,
                      .next_out = by_zlib,
                      .avail_out = LARGEST};
        inflateInit2(&z, -15);
        const int rc = inflate(&z, Z_FINISH);
        inflateEnd(&z);
        same = come_back(st_inflate_here, true, packed, packed_size, by_zlib, z.total_out) ==
               (rc == Z_STREAM_END ? THE_SAME : REFUSED);
        *(rc == Z_STREAM_END ? &read : &refused) += 1;
        if (!same)
            note("bit %llu", (unsigned long long)bit);
        packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ok(same && read && refused, "%s with a bit changed: as zlib says (%u read, %u refused)",
       kind_names[kind], read, refused);
}

/* ---- blocks by hand ------------------------------------------------------------------------------ */

static uint64_t bit_count;

static void put(uint32_t value, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++, bit_count++) {
        if (bit_count % 8 == 0)
            packed[bit_count / 8] = 0;
        packed[bit_count / 8] |= (uint8_t)((value >> k & 1) << bit_count % 8);
    }
}

/* A length is a code of four bits, the first the highest. */
static void put_length(uint32_t n) { put((n & 1) << 3 | (n & 2) << 1 | (n & 4) >> 1 | n >> 3, 4); }

/* The last block, and in it only its end, whose code is all zeros. */
static void hand_made(const char *what, uint32_t letters, const char *of_letters,
                      const char *of_distances, bool good)
{
    uint32_t of_end = 0;
    bit_count = 0;
    put(1 | 2 << 1, 3);
    put(letters - 257, 5);
    put((uint32_t)strlen(of_distances) - 1, 5);
    put(15, 4);
    for (int k = 0; k < 19; k++) /* 16, 17 and 18 come first, and have no code */
        put(k < 3 ? 0 : 4, 3);
    for (uint32_t i = 0; i < letters; i++) {
        const uint32_t behind = letters - (uint32_t)strlen(of_letters);
        const uint32_t length = i < behind ? 0 : (uint32_t)(of_letters[i - behind] - '0');
        of_end = i == 256 ? length : of_end;
        put_length(length);
    }
    for (const char *c = of_distances; *c; c++)
        put_length((uint32_t)(*c - '0'));
    put(0, of_end + 8);
    const uint64_t size = (bit_count + 7) / 8;
    ok(come_back(st_inflate_here, true, packed, size, plain, 0) == (good ? THE_SAME : REFUSED), "%s: %s",
       what, good ? "read" : "refused");
}

static void put_code(uint32_t code, uint32_t count)
{
    while (count--)
        put(code >> count & 1, 1);
}

/* With the fixed codes: some letters, a match of 20 bytes from 100 before, and more letters. */
static void hand_made_match(uint32_t before, uint32_t behind)
{
    bit_count = 0;
    put(1 | 1 << 1, 3);
    for (uint32_t k = 0; k < before; k++)
        put_code(0x30 + 'a', 8);
    put_code(269 - 256, 7);
    put(1, 2);
    put_code(13, 5);
    put(100 - 97, 5);
    for (uint32_t k = 0; k < behind; k++)
        put_code(0x30 + 'a', 8);
    put_code(0, 7);
    const uint64_t size = (bit_count + 7) / 8, made = before + 20 + behind;
    memset(plain, 'a', made);
    ok(come_back(st_inflate_here, true, packed, size, plain, made) ==
           (before >= 100 ? THE_SAME : REFUSED),
       "a match from 100 bytes before, %u behind the beginning and %u before the end", before, behind);
}

static void by_hand(void)
{
    hand_made_match(99, 10);
    hand_made_match(100, 10);
    hand_made_match(99, 1000);
    hand_made_match(100, 1000);
    hand_made("the end has the only letter's code, of one bit", 257, "1", "0", true);
    hand_made("of two bits", 257, "2", "0", false);
    hand_made("no end", 258, "01", "0", false);
    hand_made("a complete code", 258, "11", "11", true);
    hand_made("more codes than there are", 259, "111", "11", false);
    hand_made("one distance", 258, "11", "1", true);
    hand_made("one distance of two bits", 258, "11", "2", false);
    hand_made("more distances than there are", 258, "11", "111", false);
    hand_made("a letter too many", 287, "1000000000000000000000000000001", "11", false);
    hand_made("a distance too many", 258, "11", "1100000000000000000000000000000", false);
    memcpy(packed, "\1\3\0\374\377abc", 8);
    memcpy(plain, "abc", 3);
    ok(come_back(st_inflate_here, true, packed, 8, plain, 3) == THE_SAME, "a stored block");
    packed[3] ^= 1;
    ok(come_back(st_inflate_here, true, packed, 8, plain, 3) == REFUSED,
       "whose size is not what it says");
    packed[0] = 7;
    ok(come_back(st_inflate_here, true, packed, 8, plain, 3) == REFUSED,
       "a block of a kind that there is not");
}

/* Matches with what was never written: it stood in a dictionary that only the packer had. */
static void before_the_beginning(enum kind kind, uint64_t known)
{
    make(kind, plain, 60000);
    z_stream z = {.next_in = plain, .avail_in = 60000, .next_out = packed, .avail_out = sizeof packed};
    deflateInit2(&z, 6, Z_DEFLATED, -15, 8, 0);
    deflateSetDictionary(&z, plain + 60000 - known, (unsigned)known);
    deflate(&z, Z_FINISH);
    deflateEnd(&z);
    ok(refused(true, z.total_out, 60000), "%s that begin before the beginning are refused",
       kind_names[kind]);
}

static void wrapped(void)
{
    make(WAVES, plain, 20000);
    const uint64_t size = pack(packed, plain, 20000, 6, 0, false);
    bool all = true;
    for (uint64_t at = 0; at < 4; at++) {
        packed[size - 1 - at] ^= 1;
        all = all && refused(false, size, 20000);
        packed[size - 1 - at] ^= 1;
    }
    ok(all, "a wrong checksum is noticed");
    for (int bit = 0; bit < 16; bit++) {
        packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        all = all && refused(false, size, 20000);
        packed[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ok(all, "and a header with a bit changed");
    memset(packed + size, 0xaa, 9);
    ok(come_back(st_inflate, false, packed, size + 9, plain, 20000) == THE_SAME,
       "what follows the stream does not matter");
}

int main(void)
{
    for (int kind = 0; kind < KINDS; kind++)
        all_ways((enum kind)kind);
    cut_short();
    other_sizes(ZEROS);
    other_sizes(WAVES);
    other_sizes(WORDS);
    by_hand();
    damaged(WAVES, 2500, 1);
    damaged(WORDS, 2500, 3);
    damaged(SKEWED, 2500, 3);
    damaged(WAVES, 60000, 1009);
    before_the_beginning(WAVES, 15000);
    before_the_beginning(WORDS, 15000);
    wrapped();
    return done_testing();
}
