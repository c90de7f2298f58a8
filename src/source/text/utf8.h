/* utf8.h - a code point as UTF-8
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TEXT_UTF8_H
#define ST_SOURCE_TEXT_UTF8_H

#include <stdint.h>

/* Writes up to four bytes and returns the address after them. An invalid code point becomes U+FFFD. */
static inline uint8_t *st_put_utf8(uint8_t *to, uint32_t point)
{
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        point = 0xfffd;
    if (point < 0x80) {
        *to++ = (uint8_t)point;
        return to;
    }
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    *to++ = (uint8_t)(~(0x7fu >> more) | point >> 6 * more);
    for (int k = more - 1; k >= 0; k--)
        *to++ = (uint8_t)(0x80 | (point >> 6 * k & 0x3f));
    return to;
}

#endif
