/* filters.c - HDF5 filters that are reversed without the library
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/filters.h"

#include <string.h>

/* The compiler vectorizes the common sizes. */
#define UNSHUFFLE(size_)                                                                                \
    for (uint64_t i = 0; i < count; i++)                                                                \
        for (uint32_t k = 0; k < (size_); k++)                                                          \
            out[i * (size_) + k] = in[k * count + i];

void st_h5_unshuffle(uint8_t *restrict out, const uint8_t *restrict in, uint64_t bytes, uint32_t size)
{
    const uint64_t count = bytes / size;
    switch (size) {
    case 2:
        UNSHUFFLE(2) break;
    case 4:
        UNSHUFFLE(4) break;
    case 8:
        UNSHUFFLE(8) break;
    default:
        for (uint32_t k = 0; k < size; k++)
            for (uint64_t i = 0; i < count; i++)
                out[i * size + k] = in[k * count + i];
    }
    memcpy(out + count * size, in + count * size, bytes - count * size);
}

enum { RUN_MAX = 32, LENGTH_MORE = 7 };

struct unpacker {
    const uint8_t *in, *in_end;
    uint8_t *out, *out_begin, *out_end;
};

/* One run or match, with all checks. */
static bool unlzf_one(struct unpacker *s)
{
    const uint32_t control = *s->in++;
    if (control < RUN_MAX) {
        const uint64_t run = control + 1;
        if (run > (uint64_t)(s->in_end - s->in) || run > (uint64_t)(s->out_end - s->out))
            return false;
        memcpy(s->out, s->in, run);
        s->in += run;
        s->out += run;
        return true;
    }
    uint64_t length = control >> 5;
    if (length == LENGTH_MORE) {
        if (s->in == s->in_end)
            return false;
        length += *s->in++;
    }
    length += 2;
    if (s->in == s->in_end)
        return false;
    const uint64_t distance = ((control & 31) << 8) + *s->in++ + 1;
    if (distance > (uint64_t)(s->out - s->out_begin) || length > (uint64_t)(s->out_end - s->out))
        return false;
    for (uint64_t k = 0; k < length; k++, s->out++) /* source and destination may overlap */
        *s->out = *(s->out - distance);
    return true;
}

/* Far from both ends, runs and short matches are all copied as 32 bytes. The source is selected without
 * a branch, because it is unpredictable; the empty asm statement keeps the compiler from adding one.
 * Stops at anything else. */
static void unlzf_fast(struct unpacker *s)
{
    const uint8_t *in = s->in;
    uint8_t *out = s->out;
    while (s->in_end - in > RUN_MAX && s->out_end - out >= RUN_MAX) {
        const uint32_t control = in[0];
        const bool run = __builtin_expect_with_probability(control < RUN_MAX, 1, 0.5);
        const uint64_t distance = ((control & 31) << 8) + in[1] + 1;
        const uint64_t size = run ? control + 1 : (control >> 5) + 2;
        if ((control >> 5 == LENGTH_MORE) |
            ((control >= RUN_MAX) & ((distance < size) | (distance > (uint64_t)(out - s->out_begin)))))
            break;
        const uint8_t *from = (const uint8_t *)((uintptr_t)out - distance);
        __asm__("" : "+r"(from));
        from = run ? in + 1 : from;
        uint8_t bytes[RUN_MAX];
        memcpy(bytes, from, RUN_MAX);
        memcpy(out, bytes, RUN_MAX);
        out += size;
        in += run ? size + 1 : 2;
    }
    s->in = in;
    s->out = out;
}

/* The format: a byte n below 32 is followed by n + 1 literal bytes. Any other byte starts a repetition:
 * its upper three bits (plus the next byte if all three are set) are the length minus 2; the rest and
 * one more byte are the distance minus 1. */
bool st_h5_unlzf(struct st_bytes in, uint8_t *out, uint64_t size)
{
    struct unpacker s = {in.data, in.data + in.size, out, out, out + size};
    for (;;) {
        unlzf_fast(&s);
        if (s.in == s.in_end)
            return s.out == s.out_end;
        if (!unlzf_one(&s))
            return false;
    }
}

static uint32_t fold(uint32_t sum) { return (sum & 0xffff) + (sum >> 16); }

uint32_t st_h5_fletcher32(const uint8_t *data, uint64_t size)
{
    enum { SAFE = 360 }; /* this many numbers cannot overflow the second sum */
    uint32_t first = 0, second = 0;
    for (uint64_t words = size / 2; words;) {
        const uint64_t run = words < SAFE ? words : SAFE;
        words -= run;
        for (uint64_t i = 0; i < run; i++, data += 2) {
            first += (uint32_t)data[0] << 8 | data[1];
            second += first;
        }
        first = fold(first);
        second = fold(second);
    }
    if (size % 2) {
        first += (uint32_t)data[0] << 8;
        second += first;
        first = fold(first);
        second = fold(second);
    }
    return fold(second) << 16 | fold(first);
}
