/* kernels.h - the inner loops, one table for each kind of CPU
 *
 * The C version is complete and is the specification; every other variant gives the same bytes, and
 * tests/op/test_kernels compares them over all small widths, with guard bytes around the output.
 *
 * Kernels may read up to 64 bytes past the end of an input row, but not before its start; they write
 * only their output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_KERNELS_KERNELS_H
#define ST_OP_KERNELS_KERNELS_H

#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct st_finish;

/* Weights are fixed point with this many fractional bits. The sum of weight * byte fits into 32 bits, so
 * partial sums may wrap. */
enum { ST_WEIGHT_BITS = 22 };

/* Along one axis of an image: the input pixels that contribute to each output pixel, and their
 * weights. */
struct st_taps {
    int32_t count;         /* output pixels */
    int32_t width;         /* taps per output pixel; unused weights are 0 */
    const int32_t *first;  /* [count]; first + width stays within the input */
    const int32_t *weight; /* [count][width] */
};

struct st_kernels {
    const char *name;
    /* Horizontal pass over rows of interleaved pixels (1 or 3 channels). The taps are first rearranged
     * to suit the loop, in `across_size` bytes of memory, aligned to a cache line; the taps themselves
     * must stay valid. */
    uint64_t (*across_size)(const struct st_taps *taps, int32_t channels);
    void (*across_plan)(void *plan, const struct st_taps *taps, int32_t channels);
    void (*across)(const void *plan, uint8_t *const *out, const uint8_t *const *in, int32_t rows);
    /* Vertical pass: one row of `bytes` bytes from `taps` rows. */
    void (*down)(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, int32_t taps,
                 size_t bytes);
    /* Converts a row of interleaved pixels to the final type and layout; `plane` is the distance in
     * bytes between the planes of two channels (NCHW). `mirror`: with its pixels reversed. */
    void (*finish)(const struct st_finish *finish, void *out, size_t plane, const uint8_t *in,
                   int32_t width, bool mirror);
};

/* The table for a level, or for the next lower one in this build. */
const struct st_kernels *st_kernels_for(enum st_cpu_level level);

#endif
