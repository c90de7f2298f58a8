/* unstuff.h - removes the scan's byte stuffing and splits it at the restart markers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_UNSTUFF_H
#define ST_CODEC_JPEG_UNSTUFF_H

#include "codec/jpeg/headers.h"
#include "codec/jpeg/kernels.h"

enum {
    /* A block has at most 64 symbols of at most 16 + 15 bits, 248 bytes. Readers check for the end at
     * the start of each block, so this many zeros, and some more, after the data keep every read in
     * bounds. */
    ST_JPEG_PADDING = 512,
    ST_JPEG_SCAN_MAX = 1 << 28, /* so that bit positions fit into 32 bits */
};

/* Entropy-coded data; each interval between restart markers is a contiguous run of bytes. */
struct st_jpeg_data {
    uint8_t *bytes;
    uint32_t *start;    /* [intervals + 1]: start of each interval; the last entry is the end of all */
    uint32_t intervals; /* 1 without restart markers */
};

/* Of a scan that has `mcus`. Unless `behind` is NULL, the scan may end with any marker, and *behind
 * starts there; otherwise it has to be the image's end. */
enum st_jpeg_reason st_jpeg_unstuff(const struct st_jpeg_kernels *kernels,
                                    const struct st_jpeg_frame *frame, uint64_t mcus,
                                    struct st_arena *arena, struct st_jpeg_data *out,
                                    struct st_bytes *behind);

#endif
