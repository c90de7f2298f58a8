/* text.c - text from data (names, messages that contain them), made safe to show
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"

#include <stdbool.h>
#include <string.h>

size_t st_utf8_size(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    const size_t size = at[0] < 0x80 ? 1 : at[0] >= 0xf0 && at[0] < 0xf5 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] >= 0x80 && (at[0] < 0xc2 || at[0] >= 0xf5))
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90))
        return 0;
    return size;
}

static uint32_t code_point(const unsigned char *at, size_t size)
{
    uint32_t point = size == 1 ? at[0] : at[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++)
        point = point << 6 | (at[i] & 0x3f);
    return point;
}

static bool is_plain(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } others[] = {
        {0x0000, 0x001f}, {0x007f, 0x009f}, {0x061c, 0x061c}, /* Arabic letter mark */
        {0x200b, 0x200b}, /* zero-width space; the joiners after it belong to words and emoji */
        {0x200e, 0x200f}, /* marks of direction */
        {0x2028, 0x202e}, /* ends of lines and paragraphs; embedded and reversed text */
        {0x2060, 0x206f}, /* invisible ones; isolated text */
        {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others && point >= others[i].first; i++)
        if (point <= others[i].last)
            return false;
    return true;
}

size_t st_plain_size(const char *text, uint32_t *point)
{
    const size_t size = st_utf8_size(text);
    *point = size ? code_point((const unsigned char *)text, size) : 0;
    return size && is_plain(*point) ? size : 0;
}

void st_escape(char *out, size_t room, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t used = 0;
    uint32_t point;
    while (*text) {
        const size_t plain = st_plain_size(text, &point), whole = plain ? plain : st_utf8_size(text);
        const size_t size = whole ? whole : 1;
        if (used + (plain ? plain : 4 * size) >= room)
            break;
        for (size_t k = 0; k < size; k++, text++) {
            const unsigned char c = (unsigned char)*text;
            if (plain) {
                out[used++] = *text;
                continue;
            }
            memcpy(out + used, (const char[]){'\\', 'x', digits[c >> 4], digits[c & 15]}, 4);
            used += 4;
        }
    }
    if (room)
        out[used] = '\0';
}

void st_escape_in(char *text, size_t room)
{
    char escaped[4096];
    uint32_t point;
    const char *at = text;
    for (size_t size; *at && (size = st_plain_size(at, &point)); at += size)
        ;
    if (!*at)
        return; /* nearly always */
    st_escape(escaped, room < sizeof escaped ? room : sizeof escaped, text);
    memcpy(text, escaped, strlen(escaped) + 1);
}
