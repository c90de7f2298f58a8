/* The filters of HDF5 that are undone here: LZF against the plainest reader of it, and the shuffle. */
#include "source/hdf5/filters.h"
#include "tap.h"

#include <string.h>

enum { LARGEST = 6000 };

static uint32_t seed = 1;
static uint32_t chance(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)seed * below >> 32);
}

/* Byte by byte: how many come out, or -1. */
static int64_t plainly(const uint8_t *in, uint64_t size, uint8_t *out)
{
    int64_t made = 0;
    for (uint64_t at = 0; at < size;) {
        const uint32_t control = in[at++];
        uint32_t left = control < 32 ? control + 1 : control >> 5, distance = 0;
        if (control >= 32) {
            if (left == 7)
                left += at < size ? in[at++] : 1000;
            left += 2;
            distance = (control & 31) * 256 + (at < size ? in[at] : 0) + 1;
            if (at++ >= size || distance > made)
                return -1;
        }
        for (; left; left--, made++) {
            if ((!distance && at >= size) || made >= LARGEST)
                return -1;
            out[made] = distance ? out[made - distance] : in[at++];
        }
    }
    return made;
}

/* Runs and matches of all sizes and distances, of those that are possible at that place. */
static uint64_t write_stream(uint8_t *in, uint64_t wanted)
{
    uint64_t size = 0, made = 0;
    while (made < wanted) {
        if (made < 2 || chance(2)) {
            const uint32_t run = 1 + chance(chance(3) ? 4 : 32);
            in[size++] = (uint8_t)(run - 1);
            for (uint32_t k = 0; k < run; k++)
                in[size++] = (uint8_t)chance(256);
            made += run;
        } else {
            const uint32_t most = made < 8192 ? (uint32_t)made : 8192;
            const uint32_t distance = chance(chance(3) && most > 12 ? 12 : most),
                           length = 1 + chance(chance(9) ? 8 : 262);
            in[size++] = (uint8_t)((length < 7 ? length : 7) << 5 | distance >> 8);
            if (length >= 7)
                in[size++] = (uint8_t)(length - 7);
            in[size++] = (uint8_t)distance;
            made += length + 2;
        }
    }
    return size;
}

static bool agrees(const uint8_t *stream, uint64_t size)
{
    static uint8_t expected[LARGEST];
    const int64_t made = plainly(stream, size, expected);
    const uint64_t room = made < 0 ? LARGEST : (uint64_t)made;
    uint8_t *in = malloc(size ? size : 1),
            *out = malloc(room + 1); /* a sanitizer sees each byte beyond */
    memcpy(in, stream, size);
    bool same = st_h5_unlzf((struct st_bytes){in, size}, out, room) == (made >= 0);
    if (made >= 0)
        same = same && !memcmp(out, expected, room) &&
               !st_h5_unlzf((struct st_bytes){in, size}, out, room + 1) &&
               (!room || !st_h5_unlzf((struct st_bytes){in, size}, out, room - 1));
    free(in);
    free(out);
    return same;
}

static void lzf(void)
{
    static uint8_t stream[2 * LARGEST];
    bool whole = true, damaged = true, cut = true;
    for (int round = 0; round < 400; round++) {
        const uint64_t size = write_stream(stream, chance(round % 4 ? 300 : LARGEST - 300));
        whole = whole && agrees(stream, size);
        for (int k = 0; k < 20 && size; k++) {
            const uint32_t at = chance((uint32_t)size);
            const uint8_t was = stream[at];
            stream[at] = (uint8_t)chance(256);
            damaged = damaged && agrees(stream, size);
            stream[at] = was;
            cut = cut && agrees(stream, at);
        }
    }
    ok(whole, "LZF: runs and matches of all sizes, and only with the right size");
    ok(damaged, "LZF: bytes changed");
    ok(cut, "LZF: cut short");
}

static void shuffle(void)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 8, 16};
    uint8_t in[1003], out[1003];
    bool same = true;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)chance(256);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (uint32_t bytes = 0; bytes <= sizeof in; bytes += 59) {
            const uint32_t count = bytes / sizes[s];
            st_h5_unshuffle(out, in, bytes, sizes[s]);
            for (uint32_t i = 0; i < bytes && same; i++)
                same = out[i] == in[i < count * sizes[s] ? i % sizes[s] * count + i / sizes[s] : i];
        }
    ok(same, "shuffled bytes come back to their elements, and those behind the last stay");
}

int main(void)
{
    lzf();
    shuffle();
    return done_testing();
}
