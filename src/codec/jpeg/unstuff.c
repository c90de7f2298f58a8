/* unstuff.c - removes the scan's byte stuffing and splits it at the restart markers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/unstuff.h"

#include <string.h>

enum { RST0 = 0xD0, EOI = 0xD9 };

static bool is_restart(uint8_t marker) { return (marker & ~7) == RST0; }

enum st_jpeg_reason st_jpeg_unstuff(const struct st_jpeg_kernels *kernels,
                                    const struct st_jpeg_frame *frame, uint64_t mcus,
                                    struct st_arena *arena, struct st_jpeg_data *out,
                                    struct st_bytes *behind)
{
    struct st_bytes in = frame->scan;
    const uint64_t interval = frame->restart_interval;
    if (in.size > ST_JPEG_SCAN_MAX)
        return ST_JPEG_SIZE;
    out->intervals = interval ? (uint32_t)((mcus + interval - 1) / interval) : 1;
    out->bytes = st_arena_take(arena, in.size + ST_JPEG_PADDING);
    out->start = st_arena_take(arena, ((uint64_t)out->intervals + 1) * sizeof *out->start);
    if (!out->bytes || !out->start)
        return ST_JPEG_MEMORY;
    uint32_t written = 0;
    for (uint32_t k = 0;; k++) {
        size_t used;
        out->start[k] = written;
        written += (uint32_t)kernels->unstuff(out->bytes + written, in.data, in.size, &used);
        if (in.size - used < 2)
            return ST_JPEG_DATA;
        const uint8_t marker = in.data[used + 1];
        in = (struct st_bytes){in.data + used, in.size - used};
        if (!is_restart(marker) && marker != EOI && !behind)
            return ST_JPEG_MARKER;
        if (!is_restart(marker) && k + 1 == out->intervals)
            break;
        if (marker != RST0 + (k & 7) || k + 1 == out->intervals)
            return ST_JPEG_RESTART;
        in = (struct st_bytes){in.data + 2, in.size - 2};
    }
    if (behind)
        *behind = in;
    out->start[out->intervals] = written;
    memset(out->bytes + written, 0, ST_JPEG_PADDING);
    return ST_JPEG_OURS;
}
