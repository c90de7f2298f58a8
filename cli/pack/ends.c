/* ends.c - whether an image file is there to its end, as far as its bytes show without decoding
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include <string.h>

/* Where the data of the first scan of a JPEG begins; its size if there is none. Before that, a thumbnail
 * may have an end marker of its own. */
static size_t first_scan(struct st_bytes b)
{
    enum { SOS = 0xda };
    size_t at = 2;
    while (at + 4 <= b.size) {
        const uint8_t mark = b.data[at + 1];
        if (b.data[at] != 0xff)
            return at; /* not as expected: the rest is searched */
        if (mark == 0xff) {
            at++; /* a fill byte */
            continue;
        }
        if (mark == SOS)
            return at;
        const bool alone = mark == 0x01 || (mark >= 0xd0 && mark <= 0xd7);
        at += 2 + (alone ? 0 : (size_t)b.data[at + 2] << 8 | b.data[at + 3]);
    }
    return b.size;
}

static bool jpeg_ends(struct st_bytes b)
{
    if (b.size >= 2 && b.data[b.size - 2] == 0xff && b.data[b.size - 1] == 0xd9)
        return true; /* almost always */
    const size_t from = first_scan(b);
    return from < b.size && memmem(b.data + from, b.size - from, "\xff\xd9", 2);
}

static bool png_ends(struct st_bytes b)
{
    return b.size >= 12 && !memcmp(b.data + b.size - 8, "IEND", 4);
}

bool pack_image_ends(struct st_bytes bytes)
{
    const char *type = pack_image_type(bytes);
    if (!type)
        return false;
    if (!strcmp(type, "jpg"))
        return jpeg_ends(bytes);
    if (!strcmp(type, "png"))
        return png_ends(bytes);
    return !strcmp(type, "webp"); /* its header has its size, which the codec compares */
}
