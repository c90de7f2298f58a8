/* numbers.c - parses numbers written as text, as Python's int() and float() do
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/text/numbers.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static struct st_bytes trimmed(struct st_bytes text)
{
    while (text.size && is_space(*text.data))
        text.data++, text.size--;
    while (text.size && is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

bool st_text_int(struct st_bytes text, int64_t *out)
{
    text = trimmed(text);
    const bool minus = text.size && *text.data == '-';
    size_t i = text.size && (minus || *text.data == '+') ? 1 : 0;
    int64_t value = 0; /* negated: the negative range is larger by one */
    if (i == text.size)
        return false;
    for (bool after_digit = false; i < text.size; i++) {
        const uint8_t c = text.data[i];
        if (c == '_' && after_digit && i + 1 < text.size) {
            after_digit = false;
            continue;
        }
        if (!is_digit(c) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, c - '0', &value))
            return false;
        after_digit = true;
    }
    if (!minus && value == INT64_MIN)
        return false;
    *out = minus ? value : -value;
    return true;
}

bool st_text_float(struct st_bytes text, double *out)
{
    char copy[400], *end;
    text = trimmed(text);
    if (text.size == 0 || text.size >= sizeof copy || memchr(text.data, 'x', text.size) ||
        memchr(text.data, 'X', text.size))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return false;
    *out = strtod_l(copy, &end, c);
    freelocale(c);
    return end == copy + text.size;
}
