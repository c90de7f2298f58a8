/* hdf5_filters.c - the filters of HDF5 that are undone without its library
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5_filters.h"

#include <string.h>

/* The compiler makes vectors of the common sizes. */
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

/* A byte below 32 stands before that many literal bytes and one more. Any other holds, in its upper
 * three bits and the next byte if they are all set, the length of a repetition less 2, and in the rest
 * and one byte more its distance. */
bool st_h5_unlzf(struct st_bytes in, uint8_t *out, uint64_t size)
{
    const uint8_t *at = in.data, *const end = in.data + in.size;
    uint64_t made = 0;
    while (at < end) {
        const uint32_t control = *at++;
        if (control < 32) {
            const uint64_t run = control + 1;
            if (run > (uint64_t)(end - at) || run > size - made)
                return false;
            memcpy(out + made, at, run);
            at += run;
            made += run;
            continue;
        }
        uint64_t length = control >> 5;
        if (length == 7) {
            if (at == end)
                return false;
            length += *at++;
        }
        length += 2;
        if (at == end)
            return false;
        const uint64_t distance = ((control & 31) << 8) + *at++ + 1;
        if (distance > made || length > size - made)
            return false;
        for (uint64_t k = 0; k < length; k++) /* it may overlap itself */
            out[made + k] = out[made + k - distance];
        made += length;
    }
    return made == size;
}

static uint32_t fold(uint32_t sum) { return (sum & 0xffff) + (sum >> 16); }

uint32_t st_h5_fletcher32(const uint8_t *data, uint64_t size)
{
    enum { SAFE = 360 }; /* so many numbers cannot overflow the second sum */
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
