/* gzip, zlib and zstd: whole, in several members, damaged, and made to fill memory. */
#include "source/shards/unpack.h"
#include "st_config.h"
#include "tap.h"

#include <string.h>
#include <zlib.h>
#if ST_HAVE_ZSTD
#include <zstd.h>
#endif

enum { SIZE = 300000 };
static uint8_t plain[SIZE], packed[2 * SIZE];
static struct stoker_error err;

/* Packs with zlib; bits: 15 for zlib's form, 31 for gzip's. */
static size_t pack(uint8_t *out, size_t room, const uint8_t *in, size_t size, int bits)
{
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)in,
                  .avail_in = (uInt)size,
                  .next_out = out,
                  .avail_out = (uInt)room};
    if (deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
        deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    deflateEnd(&z);
    return z.total_out;
}

/* Unpacks behind three bytes that must stay. */
static int unpack(enum st_packing packing, size_t size, uint64_t limit, struct st_buffer *out)
{
    st_buffer_free(out);
    if (!st_buffer_reserve(out, 3))
        abort();
    memcpy(out->data, "abc", 3);
    out->size = 3;
    const int rc = st_unpack(packing, (struct st_bytes){packed, size}, limit, out, "name", &err);
    return memcmp(out->data, "abc", 3) ? -100 : rc;
}

static bool is_plain(const struct st_buffer *out, size_t times)
{
    bool same = out->size == 3 + times * SIZE;
    for (size_t i = 0; i < times && same; i++)
        same = !memcmp(out->data + 3 + i * SIZE, plain, SIZE);
    return same;
}

static void deflated(void)
{
    struct st_buffer out = {0};
    const size_t zlib = pack(packed, sizeof packed, plain, SIZE, 15);
    ok(!unpack(ST_PACKED_ZLIB, zlib, SIZE, &out) && is_plain(&out, 1), "zlib");
    ok(unpack(ST_PACKED_ZLIB, zlib, SIZE - 1, &out) == STOKER_ELIMIT, "one byte too much: %s",
       err.message);
    ok(unpack(ST_PACKED_ZLIB, zlib + 1, SIZE, &out) == STOKER_ECORRUPT, "a byte behind it: %s",
       err.message);
    size_t gzip = pack(packed, sizeof packed, plain, SIZE, 31);
    ok(st_packing_of(packed, gzip) == ST_PACKED_GZIP, "gzip is known by its first bytes");
    ok(!unpack(ST_PACKED_GZIP, gzip, SIZE, &out) && is_plain(&out, 1), "gzip");
    bool refused = true;
    for (size_t size = 0; size < gzip; size += size < 40 || size > gzip - 40 ? 1 : 997)
        refused = refused && unpack(ST_PACKED_GZIP, size, SIZE, &out) == STOKER_ECORRUPT;
    ok(refused, "gzip, cut off anywhere: %s", err.message);
    packed[gzip - 8] ^= 1;
    ok(unpack(ST_PACKED_GZIP, gzip, SIZE, &out) == STOKER_ECORRUPT, "a wrong checksum: %s", err.message);
    packed[gzip - 8] ^= 1;
    const size_t second = pack(packed + gzip, sizeof packed - gzip, plain, SIZE, 31);
    gzip += second;
    ok(!unpack(ST_PACKED_GZIP, gzip, 2 * SIZE, &out) && is_plain(&out, 2),
       "two equal members, one behind the other");
    memset(packed + gzip, 0, 100);
    ok(!unpack(ST_PACKED_GZIP, gzip + 100, 2 * SIZE, &out) && is_plain(&out, 2),
       "and zeros behind them");
    ok(unpack(ST_PACKED_GZIP, gzip, 2 * SIZE - 1, &out) == STOKER_ELIMIT, "together too much: %s",
       err.message);
    st_buffer_free(&out);
}

static void bomb(void)
{
    static uint8_t zeros[1 << 20];
    struct st_buffer out = {0};
    z_stream z = {.next_out = packed, .avail_out = sizeof packed};
    deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
    for (int i = 0; i < 100; i++) {
        z.next_in = zeros;
        z.avail_in = sizeof zeros;
        deflate(&z, i < 99 ? Z_NO_FLUSH : Z_FINISH);
    }
    deflateEnd(&z);
    ok(st_unpack_limit(z.total_out) == 64u << 20 && z.total_out < 200000, "100 MiB in %lu bytes",
       z.total_out);
    ok(unpack(ST_PACKED_GZIP, z.total_out, st_unpack_limit(z.total_out), &out) == STOKER_ELIMIT,
       "is refused: %s", err.message);
    ok(out.capacity < 100u << 20, "with no more memory than the limit");
    ok(st_unpack_limit(10u << 20) == 1000ull << 20 && st_unpack_limit(UINT64_MAX) == 4ull << 30,
       "more may come out of more, up to 4 GiB");
    st_buffer_free(&out);
}

static void zstandard(void)
{
#if ST_HAVE_ZSTD
    struct st_buffer out = {0};
    size_t size = ZSTD_compress(packed, sizeof packed, plain, SIZE, 3);
    ok(st_packing_of(packed, size) == ST_PACKED_ZSTD, "zstd is known by its first bytes");
    ok(!unpack(ST_PACKED_ZSTD, size, SIZE, &out) && is_plain(&out, 1), "zstd");
    ok(unpack(ST_PACKED_ZSTD, size, SIZE - 1, &out) == STOKER_ELIMIT, "one byte too much: %s",
       err.message);
    ok(unpack(ST_PACKED_ZSTD, size - 5, SIZE, &out) == STOKER_ECORRUPT, "cut off: %s", err.message);
    size += ZSTD_compress(packed + size, sizeof packed - size, plain, SIZE, 1);
    ok(!unpack(ST_PACKED_ZSTD, size, 2 * SIZE, &out) && is_plain(&out, 2), "two frames");
    packed[0] ^= 1;
    ok(unpack(ST_PACKED_ZSTD, size, 2 * SIZE, &out) == STOKER_ECORRUPT, "not zstd: %s", err.message);
    st_buffer_free(&out);
#else
    skip("zstd", "this build has none");
#endif
}

/* What several unpack at the same time is counted together, before it is there. */
static void allowed(void)
{
    struct st_allowance allowance = {.limit = SIZE + 100};
    struct st_buffer first = {0}, second = {0};
    const size_t zlib = pack(packed, sizeof packed, plain, SIZE, 15);
    const struct st_bytes in = {packed, zlib};
    const int rc = st_unpack_allowed(ST_PACKED_ZLIB, in, &allowance, &first, "first", &err);
    ok(!rc && first.size == SIZE && !memcmp(first.data, plain, SIZE) &&
           atomic_load(&allowance.used) == first.capacity && first.capacity == SIZE,
       "what fits is counted for what it takes: %llu bytes", (unsigned long long)first.capacity);
    ok(st_unpack_allowed(ST_PACKED_ZLIB, in, &allowance, &second, "second", &err) == STOKER_ELIMIT &&
           !second.data && atomic_load(&allowance.used) == SIZE,
       "a second does not, and leaves nothing: %s", err.message);
    st_allowance_give(&allowance, first.capacity);
    ok(!st_unpack_allowed(ST_PACKED_ZLIB, in, &allowance, &second, "second", &err) &&
           !memcmp(second.data, plain, SIZE),
       "until the first is given back");
    ok(!st_allowance_take(&allowance, UINT64_MAX) && !st_allowance_take(&allowance, 101) &&
           st_allowance_take(&allowance, 100),
       "to the last byte");
    st_buffer_free(&first);
    st_buffer_free(&second);
}

int main(void)
{
    uint32_t seed = 1;
    for (size_t i = 0; i < SIZE; i++) /* packs to about a half */
        plain[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 28);
    deflated();
    allowed();
    bomb();
    zstandard();
    ok(st_packing_of((const uint8_t *)"\xfd"
                                      "7zXZ\0",
                     6) == ST_PACKED_XZ,
       "xz is known");
    struct st_buffer out = {0};
    ok(unpack(ST_PACKED_XZ, 10, 10, &out) == STOKER_EUNSUPPORTED, "and refused: %s", err.message);
    st_buffer_free(&out);
    return done_testing();
}
