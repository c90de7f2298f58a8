/* json_text.c - the characters of JSON strings
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/table/json_text.h"
#include "source/text/utf8.h"

static bool take_hex(struct st_text *text, uint32_t *out)
{
    *out = 0;
    if (text->end - text->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const char c = *text->at++;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* \uXXXX, or a surrogate pair of them. A lone surrogate stays one, as in Python. */
static bool take_escaped_point(struct st_text *text, char **to)
{
    uint32_t point, low;
    if (!take_hex(text, &point))
        return false;
    struct st_text second = *text;
    if (point >= 0xd800 && point < 0xdc00 && st_text_take_word(&second, "\\u") &&
        take_hex(&second, &low) && low >= 0xdc00 && low < 0xe000) {
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        *text = second;
    }
    if (point < 0xd800 || point >= 0xe000) {
        *to = (char *)st_put_utf8((uint8_t *)*to, point);
        return true;
    }
    const uint8_t surrogate[3] = {0xed, (uint8_t)(0x80 | (point >> 6 & 0x3f)),
                                  (uint8_t)(0x80 | (point & 0x3f))};
    memcpy(*to, surrogate, sizeof surrogate);
    *to += sizeof surrogate;
    return true;
}

char *st_json_take_text(struct st_text *text, char *to)
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    while (text->at < text->end && *text->at != '"') {
        const char c = *text->at++;
        if ((unsigned char)c < 0x20)
            return NULL;
        if (c != '\\') {
            *to++ = c;
            continue;
        }
        if (text->at == text->end)
            return NULL;
        const char kind = *text->at++;
        const char *known = kind ? strchr(escapes, kind) : NULL;
        if (known)
            *to++ = meanings[known - escapes];
        else if (kind != 'u' || !take_escaped_point(text, &to))
            return NULL;
    }
    return st_text_take(text, '"') ? to : NULL;
}
