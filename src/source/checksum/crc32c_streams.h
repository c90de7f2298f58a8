/* crc32c_streams.h - CRC-32C by an instruction of the CPU, three streams at once
 *
 * The instruction has a latency of 2 or 3 cycles, but a new one can start in every cycle, so one chain
 * of them leaves the unit idle most of the time. Long runs are cut into three streams of equal length,
 * whose registers are then combined. A register is a polynomial over GF(2), reflected: bit 31 is x^0.
 * Appending n bytes to a stream multiplies its register by x^(8n) modulo the polynomial of the checksum,
 * then adds the register of those n bytes alone.
 *
 * The including file defines take_word and take_byte by its instructions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_CHECKSUM_CRC32C_STREAMS_H
#define ST_SOURCE_CHECKSUM_CRC32C_STREAMS_H

#include "source/checksum/crc32c.h"

#include <string.h>

#if defined(__x86_64__)
typedef uint64_t crc_register; /* as the instruction has it: narrowing it each time would cost a cycle */
#else
typedef uint32_t crc_register;
#endif
static inline crc_register take_word(crc_register crc, uint64_t word);
static inline uint32_t take_byte(uint32_t crc, uint8_t byte);

/* The length of one of three streams, and the powers of x that append one and two streams. A combination
 * takes about 100 cycles: short streams are worthwhile, much shorter ones would not be. */
struct streams {
    size_t length;
    uint32_t once, twice;
};
static const struct streams long_streams = {4096, 0x35d73a62u, 0x28461564u};
static const struct streams short_streams = {1024, 0xe4172b16u, 0x0d65762au};

/* Two independent products at once, so that they take no longer than one. */
static inline uint32_t combined(uint32_t first, uint32_t by_first, uint32_t second, uint32_t by_second)
{
    uint32_t sum = 0;
    for (int bit = 0; bit < 32; bit++) {
        sum ^= (by_first & -(first >> 31)) ^ (by_second & -(second >> 31));
        first <<= 1;
        second <<= 1;
        by_first = by_first >> 1 ^ (ST_CRC32C_POLYNOMIAL & -(by_first & 1));
        by_second = by_second >> 1 ^ (ST_CRC32C_POLYNOMIAL & -(by_second & 1));
    }
    return sum;
}

static inline uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint32_t run_three(uint32_t crc, const uint8_t *at, const struct streams *of)
{
    crc_register first = crc, second = 0, third = 0;
    for (const uint8_t *end = at + of->length; at < end; at += 8) {
        first = take_word(first, word_at(at));
        second = take_word(second, word_at(at + of->length));
        third = take_word(third, word_at(at + 2 * of->length));
    }
    return combined((uint32_t)first, of->twice, (uint32_t)second, of->once) ^ (uint32_t)third;
}

static inline uint32_t run_streams(uint32_t crc, const uint8_t *at, size_t size)
{
    for (; size >= 3 * long_streams.length;
         size -= 3 * long_streams.length, at += 3 * long_streams.length)
        crc = run_three(crc, at, &long_streams);
    for (; size >= 3 * short_streams.length;
         size -= 3 * short_streams.length, at += 3 * short_streams.length)
        crc = run_three(crc, at, &short_streams);
    crc_register last = crc;
    for (; size >= 8; size -= 8, at += 8)
        last = take_word(last, word_at(at));
    crc = (uint32_t)last;
    for (; size; size--, at++)
        crc = take_byte(crc, *at);
    return crc;
}

#endif
