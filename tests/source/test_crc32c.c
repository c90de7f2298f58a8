/* The checksum: known values, and the CPU's instruction against plain C. */
#include "source/crc32c.h"
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

static void variants(void)
{
    enum { SIZE = 30000 }; /* several runs of three streams, long and short ones, and a rest */
    static uint8_t bytes[SIZE + 16];
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    st_crc32c_run *best = st_crc32c_best();
    if (best == st_crc32c_run_c) {
        skip("an instruction against plain C", "this CPU has none");
        return;
    }
    bool same = true;
    for (size_t size = 0; size <= SIZE; size += size < 600 ? 1 : 97)
        for (size_t from = 0; from < (size < 4000 ? 9 : 2) && same; from++) {
            same = best(seed, bytes + from, size) == st_crc32c_run_c(seed, bytes + from, size);
            if (!same)
                note("%zu bytes from %zu on", size, from);
        }
    ok(same, "the instruction gives what plain C gives, for all sizes and alignments");
    same = true;
    for (size_t i = 0; i < SIZE && same; i += i % 1024 < 16 || i % 1024 >= 1008 ? 1 : 61) {
        const uint32_t before = best(0, bytes, SIZE);
        bytes[i] ^= 1;
        same = best(0, bytes, SIZE) != before && best(0, bytes, SIZE) == st_crc32c_run_c(0, bytes, SIZE);
        bytes[i] ^= 1;
    }
    ok(same, "a changed byte changes it, in whichever stream it lies");
}

int main(void)
{
    known();
    variants();
    return done_testing();
}
