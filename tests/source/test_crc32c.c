/* The checksum: known values, and the CPU's instruction against plain C. */
#include "source/checksum/crc32c.h"
#include "tap.h"

#include <string.h>

static void known(void)
{
    uint8_t bytes[32];
    ok(st_crc32c("123456789", 9) == 0xe3069283u, "the check value of the checksum");
    ok(st_crc32c("", 0) == 0, "of nothing: 0");
    memset(bytes, 0, sizeof bytes);
    ok(st_crc32c(bytes, sizeof bytes) == 0x8a9136aau, "RFC 3720: 32 zeros");
    memset(bytes, 255, sizeof bytes);
    ok(st_crc32c(bytes, sizeof bytes) == 0x62a8ab43u, "RFC 3720: 32 ones");
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    ok(st_crc32c(bytes, sizeof bytes) == 0x46dd794eu, "RFC 3720: 0 to 31");
    ok(st_crc32c_more(st_crc32c("1234", 4), "56789", 5) == 0xe3069283u, "in two parts");
}

static void variant(const char *name, st_crc32c_run *run)
{
    enum { SIZE = 30000 }; /* several runs of three streams, long and short ones, and a rest */
    static uint8_t bytes[SIZE + 16];
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    bool same = true;
    for (size_t size = 0; size <= SIZE; size += size < 1100 ? 1 : 97)
        for (size_t from = 0; from < (size < 4000 ? 9 : 2) && same; from++) {
            same = run(seed, bytes + from, size) == st_crc32c_run_c(seed, bytes + from, size);
            if (!same)
                note("%zu bytes from %zu on", size, from);
        }
    ok(same, "%s gives what plain C gives, for all sizes and alignments", name);
    same = true;
    for (size_t i = 0; i < SIZE && same; i += i % 1024 < 16 || i % 1024 >= 1008 ? 1 : 61) {
        const uint32_t before = run(0, bytes, SIZE);
        bytes[i] ^= 1;
        same = run(0, bytes, SIZE) != before && run(0, bytes, SIZE) == st_crc32c_run_c(0, bytes, SIZE);
        bytes[i] ^= 1;
    }
    ok(same, "%s: a changed byte changes it, in whichever stream it lies", name);
}

static void variants(void)
{
    st_crc32c_run *best = st_crc32c_best();
    if (best == st_crc32c_run_c)
        skip("instructions against plain C", "this CPU has none");
    else
        variant("the fastest", best);
#if defined(__x86_64__)
    if (best == st_crc32c_run_avx512)
        variant("the CRC instruction", st_crc32c_run_x86);
    else
        skip("products of 512 bits", "this CPU has none");
#endif
}

int main(void)
{
    known();
    variants();
    return done_testing();
}
