/* sounds.h - small sounds for tests, whose every sample follows from its place
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_SOUNDS_H
#define ST_TESTS_SOUNDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WAV_HEADER = 44, WAV_RATE = 8000 };

static inline int16_t wav_value(uint32_t sound, uint32_t frame, uint32_t channel)
{
    return (int16_t)(frame * 5 + sound * 100 + channel * 1000);
}

static inline void wav_put(uint8_t *at, uint32_t value, int bytes)
{
    for (int k = 0; k < bytes; k++)
        at[k] = (uint8_t)(value >> (8 * k));
}

/* A WAV of 16 bits; returns its size. */
static inline size_t wav_write(uint8_t *to, uint32_t sound, uint32_t frames, uint32_t channels)
{
    const uint32_t bytes = frames * channels * 2;
    memcpy(to, "RIFF....WAVEfmt ....................data....", WAV_HEADER);
    wav_put(to + 4, 36 + bytes, 4);
    wav_put(to + 16, 16, 4);
    wav_put(to + 20, 1, 2);
    wav_put(to + 22, channels, 2);
    wav_put(to + 24, WAV_RATE, 4);
    wav_put(to + 28, WAV_RATE * channels * 2, 4);
    wav_put(to + 32, channels * 2, 2);
    wav_put(to + 34, 16, 2);
    wav_put(to + 40, bytes, 4);
    for (uint32_t k = 0; k < frames * channels; k++)
        wav_put(to + WAV_HEADER + 2 * k, (uint16_t)wav_value(sound, k / channels, k % channels), 2);
    return WAV_HEADER + bytes;
}

#endif
