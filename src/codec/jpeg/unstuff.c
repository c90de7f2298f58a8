/* unstuff.c - removes the scan's byte stuffing and splits it at the restart markers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/unstuff.h"

#include <string.h>

enum { RST0 = 0xD0, EOI = 0xD9 };

static uint32_t count_intervals(const struct st_jpeg_frame *frame)
{
    const uint64_t mcus = (uint64_t)frame->mcus_across * frame->mcus_down,
                   interval = frame->restart_interval;
    return interval ? (uint32_t)((mcus + interval - 1) / interval) : 1;
}

enum st_jpeg_reason st_jpeg_unstuff(const struct st_jpeg_kernels *kernels,
                                    const struct st_jpeg_frame *frame, struct st_arena *arena,
                                    struct st_jpeg_data *out)
{
    struct st_bytes in = frame->scan;
    const uint64_t mcus = (uint64_t)frame->mcus_across * frame->mcus_down;
    if (in.size > ST_JPEG_SCAN_MAX)
        return ST_JPEG_SIZE;
    if (in.size < mcus * frame->mcu_blocks / 4) /* a block has two codes of at least one bit each */
        return ST_JPEG_DATA;
    out->intervals = count_intervals(frame);
    out->bytes = st_arena_take(arena, in.size + ST_JPEG_PADDING);
    out->start = st_arena_take(arena, ((uint64_t)out->intervals + 1) * sizeof *out->start);
    if (!out->bytes || !out->start)
        return ST_JPEG_MEMORY;
    uint32_t written = 0;
    for (uint32_t interval = 0;; interval++) {
        size_t used;
        out->start[interval] = written;
        written += (uint32_t)kernels->unstuff(out->bytes + written, in.data, in.size, &used);
        if (in.size - used < 2)
            return ST_JPEG_DATA;
        const uint8_t marker = in.data[used + 1];
        in = (struct st_bytes){in.data + used + 2, in.size - used - 2};
        if (marker == EOI && interval + 1 == out->intervals)
            break;
        if (marker == EOI || (marker & ~7) == RST0) {
            if (marker != RST0 + (interval & 7) || interval + 1 >= out->intervals)
                return ST_JPEG_RESTART;
        } else {
            return ST_JPEG_MARKER;
        }
    }
    out->start[out->intervals] = written;
    memset(out->bytes + written, 0, ST_JPEG_PADDING);
    return ST_JPEG_OURS;
}
