/* json.c - validates JSON (RFC 8259) by skipping over it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/table/json.h"

/* Python refuses to parse integers with more digits. */
enum { DIGITS_MAX = 4300 };

static bool is_next(const struct st_text *text, char c)
{
    return text->at < text->end && *text->at == c;
}

static ptrdiff_t skip_digits(struct st_text *text)
{
    const char *from = text->at;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9')
        text->at++;
    return text->at - from;
}

static bool skip_number(struct st_text *text)
{
    bool integer = true;
    if (is_next(text, '-'))
        text->at++;
    if (is_next(text, 'I'))
        return st_text_take_word(text, "Infinity");
    const bool zero = is_next(text, '0');
    const ptrdiff_t digits = skip_digits(text);
    if (digits == 0 || (zero && digits > 1))
        return false;
    if (is_next(text, '.')) {
        integer = false;
        text->at++;
        if (!skip_digits(text))
            return false;
    }
    if (is_next(text, 'e') || is_next(text, 'E')) {
        integer = false;
        text->at++;
        if (is_next(text, '+') || is_next(text, '-'))
            text->at++;
        if (!skip_digits(text))
            return false;
    }
    return !integer || digits <= DIGITS_MAX;
}

/* ---- strings ------------------------------------------------------------------------------------ */

/* A multi-byte character; only the shortest encoding, and none beyond U+10FFFF. */
static bool skip_utf8(struct st_text *text)
{
    const unsigned char first = (unsigned char)*text->at;
    const int more = first >= 0xc2 && first < 0xe0   ? 1
                     : first >= 0xe0 && first < 0xf0 ? 2
                     : first >= 0xf0 && first < 0xf5 ? 3
                                                     : 0;
    if (!more || text->end - text->at <= more)
        return false;
    for (int i = 1; i <= more; i++)
        if (((unsigned char)text->at[i] & 0xc0) != 0x80)
            return false;
    const unsigned char second = (unsigned char)text->at[1];
    if ((first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90) ||
        (first == 0xf4 && second >= 0x90))
        return false;
    text->at += more + 1;
    return true;
}

static bool skip_escape(struct st_text *text)
{
    text->at++;
    if (text->at == text->end)
        return false;
    const char kind = *text->at++;
    if (kind != 'u')
        return kind && strchr("\"\\/bfnrt", kind);
    if (text->end - text->at < 4)
        return false;
    for (int i = 0; i < 4; i++, text->at++)
        if (!*text->at || !strchr("0123456789abcdefABCDEF", *text->at))
            return false;
    return true;
}

/* Moves from the opening quote to after the closing one. */
static bool skip_string(struct st_text *text)
{
    text->at++;
    while (text->at < text->end && *text->at != '"') {
        const unsigned char c = (unsigned char)*text->at;
        if (c == '\\' ? !skip_escape(text) : c >= 0x80 ? !skip_utf8(text) : c < 0x20)
            return false;
        if (c != '\\' && c < 0x80)
            text->at++;
    }
    return st_text_take(text, '"');
}

/* ---- values ------------------------------------------------------------------------------------- */

static bool skip_members(struct st_text *text, char close, int depth)
{
    text->at++;
    if (st_text_take(text, close))
        return true;
    do {
        st_text_skip_blanks(text);
        if (close == '}' && (!is_next(text, '"') || !skip_string(text) || !st_text_take(text, ':')))
            return false;
        if (!st_json_skip(text, depth))
            return false;
    } while (st_text_take(text, ','));
    return st_text_take(text, close);
}

bool st_json_skip(struct st_text *text, int depth)
{
    st_text_skip_blanks(text);
    text->deep = text->deep || depth <= 0;
    if (text->at == text->end || text->deep)
        return false;
    switch (*text->at) {
    case '"':
        return skip_string(text);
    case '{':
        return skip_members(text, '}', depth - 1);
    case '[':
        return skip_members(text, ']', depth - 1);
    case 't':
        return st_text_take_word(text, "true");
    case 'f':
        return st_text_take_word(text, "false");
    case 'n':
        return st_text_take_word(text, "null");
    case 'N':
        return st_text_take_word(text, "NaN");
    default:
        return skip_number(text);
    }
}

bool st_json_is_whole(struct st_bytes bytes, uint64_t *at, bool *deep)
{
    const char *begin = bytes.size ? (const char *)bytes.data : "";
    struct st_text text = {.at = begin, .end = begin + bytes.size};
    (void)st_text_take_word(&text, "\xef\xbb\xbf"); /* a byte order mark */
    const bool value = st_json_skip(&text, ST_JSON_DEPTH);
    if (value)
        st_text_skip_blanks(&text);
    *at = (uint64_t)(text.at - begin);
    *deep = text.deep;
    return value && text.at == text.end;
}
