/* unstuff.h - the scan's data without its stuffing, cut at the restart markers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_UNSTUFF_H
#define ST_CODEC_JPEG_UNSTUFF_H

#include "codec/jpeg/headers.h"
#include "codec/jpeg/kernels.h"

enum {
    /* A block has at most 64 symbols of at most 16 + 15 bits, 248 bytes. Readers look whether they are
     * past the end at each block's beginning, so with as many zeros and some more behind it no read is
     * outside. */
    ST_JPEG_PADDING = 512,
    ST_JPEG_SCAN_MAX = 1 << 28, /* bit positions fit into 32 bits */
};

/* Entropy-coded data, each interval between restart markers a run of bytes. */
struct st_jpeg_data {
    uint8_t *bytes;
    uint32_t *start;    /* [intervals + 1]: where each interval begins; the last is the end of all */
    uint32_t intervals; /* 1 without restart markers */
};

enum st_jpeg_reason st_jpeg_unstuff(const struct st_jpeg_kernels *kernels,
                                    const struct st_jpeg_frame *frame, struct st_arena *arena,
                                    struct st_jpeg_data *out);

#endif
