/* regular.c - checks that a JPEG is regular, without decoding it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/baseline.h"
#include "codec/jpeg/headers.h"

#include <string.h>

enum { RST0 = 0xD0, EOI = 0xD9, DC_SYMBOL_MAX = 15 };

/* libjpeg's conditions for a valid Huffman table. */
static bool code_is_valid(const struct st_jpeg_code *code, bool dc)
{
    uint32_t next = 0;
    for (uint32_t length = 1; length <= 16; length++, next <<= 1) {
        next += code->counts[length - 1];
        if (code->counts[length - 1] && next >= 1u << length)
            return false;
    }
    for (uint32_t k = 0; dc && k < code->total; k++)
        if (code->symbols[k] > DC_SYMBOL_MAX)
            return false;
    return true;
}

/* Whether the scan ends with its end marker and has exactly the expected restart markers. */
static bool scan_is_regular(const struct st_jpeg_frame *frame)
{
    const uint64_t mcus = (uint64_t)frame->mcus_across * frame->mcus_down,
                   interval = frame->restart_interval;
    const uint64_t restarts = interval ? (mcus + interval - 1) / interval - 1 : 0;
    const uint8_t *at = frame->scan.data, *end = at + frame->scan.size;
    for (uint64_t seen = 0; end - at >= 2;) {
        at = memchr(at, 0xFF, (size_t)(end - at - 1));
        if (!at)
            return false;
        const uint8_t marker = at[1];
        at += 2;
        if (marker == 0)
            continue;
        if (marker == EOI)
            return seen == restarts;
        if (marker != RST0 + (seen & 7) || seen++ == restarts)
            return false;
    }
    return false;
}

bool st_jpeg_is_regular(struct st_bytes in, uint32_t *width, uint32_t *height, uint32_t *components)
{
    struct st_jpeg_frame frame;
    if (st_jpeg_headers(in, &frame) != ST_JPEG_OURS)
        return false;
    for (uint32_t k = 0; k < frame.components; k++)
        if (!code_is_valid(&frame.dc[frame.component[k].dc], true) ||
            !code_is_valid(&frame.ac[frame.component[k].ac], false))
            return false;
    *width = frame.width;
    *height = frame.height;
    *components = frame.components;
    return scan_is_regular(&frame);
}
