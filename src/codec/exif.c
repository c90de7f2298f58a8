/* exif.c - reads the orientation from EXIF data
 *
 * EXIF data is a small TIFF file: a byte order, and a list of tags, only one of which is needed here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/exif.h"

#include <stdbool.h>
#include <string.h>

enum { UPRIGHT = 1, TAG_ORIENTATION = 274, TYPE_SHORT = 3, TYPE_LONG = 4, ENTRY_BYTES = 12 };

struct reader {
    const uint8_t *data;
    bool big;
};

static uint32_t read16(const struct reader *r, size_t at)
{
    const uint8_t *p = r->data + at;
    return r->big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t read32(const struct reader *r, size_t at)
{
    const uint32_t first = read16(r, at), second = read16(r, at + 2);
    return r->big ? first << 16 | second : second << 16 | first;
}

uint32_t st_exif_orientation(const uint8_t *data, size_t size)
{
    static const char prefix[6] = "Exif\0";
    while (size >= sizeof prefix && memcmp(data, prefix, sizeof prefix) == 0) {
        data += sizeof prefix;
        size -= sizeof prefix;
    }
    if (size < 8 || (memcmp(data, "II*\0", 4) != 0 && memcmp(data, "MM\0*", 4) != 0))
        return UPRIGHT;
    const struct reader r = {data, data[0] == 'M'};
    const size_t list = read32(&r, 4);
    if (list > size - 2)
        return UPRIGHT;
    const size_t room = (size - list - 2) / ENTRY_BYTES, count = read16(&r, list);
    for (size_t k = 0; k < count && k < room; k++) {
        const size_t entry = list + 2 + k * ENTRY_BYTES;
        if (read16(&r, entry) != TAG_ORIENTATION)
            continue;
        const uint32_t type = read16(&r, entry + 2);
        if ((type != TYPE_SHORT && type != TYPE_LONG) || read32(&r, entry + 4) != 1)
            return UPRIGHT;
        const uint32_t value = type == TYPE_SHORT ? read16(&r, entry + 8) : read32(&r, entry + 8);
        return value >= 1 && value <= 8 ? value : UPRIGHT;
    }
    return UPRIGHT;
}
