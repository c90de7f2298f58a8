/* pull.c - reads JSON value by value, as the caller expects them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/pull.h"
#include "source/table/json.h"
#include "source/table/json_text.h"
#include "source/text/numbers.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

bool st_pull_fail(struct st_pull *pull, const char *at, const char *format, ...)
{
    char sentence[300];
    va_list args;
    va_start(args, format);
    if (vsnprintf(sentence, sizeof sentence, format, args) < 0)
        sentence[0] = '\0';
    va_end(args);
    if (!pull->rc)
        pull->rc = st_fail(pull->err, STOKER_ECORRUPT, "%.500s: %s, at byte %llu", pull->path, sentence,
                           (unsigned long long)(at - pull->begin));
    return false;
}

bool st_pull_no_memory(struct st_pull *pull)
{
    if (!pull->rc)
        pull->rc =
            st_fail(pull->err, STOKER_ENOMEM, "%.500s: out of memory for its annotations", pull->path);
    return false;
}

static bool fail_expected(struct st_pull *pull, const char *what, const char *kind)
{
    if (pull->text.at == pull->text.end)
        return st_pull_fail(pull, pull->text.at, "the file ends where %s should be", what);
    return st_pull_fail(pull, pull->text.at, "%s is not %s", what, kind);
}

char st_pull_peek(struct st_pull *pull)
{
    st_text_skip_blanks(&pull->text);
    return pull->text.at < pull->text.end ? *pull->text.at : '\0';
}

bool st_pull_is_null(struct st_pull *pull)
{
    return st_pull_peek(pull) == 'n' && st_text_take_word(&pull->text, "null");
}

/* ---- lists and objects ---------------------------------------------------------------------------- */

bool st_pull_enter(struct st_pull *pull, char open, const char *what)
{
    return st_text_take(&pull->text, open) ||
           fail_expected(pull, what, open == '{' ? "an object" : "a list");
}

static bool next(struct st_pull *pull, bool *began, char close)
{
    if (pull->rc || st_text_take(&pull->text, close))
        return false;
    if (*began && !st_text_take(&pull->text, ','))
        return pull->text.at == pull->text.end
                   ? st_pull_fail(pull, pull->text.at, "the file ends within a value")
                   : st_pull_fail(pull, pull->text.at, "a comma or '%c' is missing", close);
    *began = true;
    return true;
}

bool st_pull_item(struct st_pull *pull, bool *began) { return next(pull, began, ']'); }

/* A key that was written with escapes, if it can be one of those that are looked for. */
static struct st_bytes unescaped(struct st_pull *pull, struct st_bytes key)
{
    struct st_text text = {.at = (const char *)key.data, .end = (const char *)key.data + key.size + 1};
    if (key.size >= sizeof pull->key)
        return key;
    const char *end = st_json_take_text(&text, pull->key);
    return end ? (struct st_bytes){(const uint8_t *)pull->key, (size_t)(end - pull->key)} : key;
}

bool st_pull_member(struct st_pull *pull, bool *began, struct st_bytes *key)
{
    if (!next(pull, began, '}'))
        return false;
    const bool quoted = st_pull_peek(pull) == '"';
    const char *from = pull->text.at;
    if (!quoted || !st_json_skip(&pull->text, 1))
        return fail_expected(pull, "the key of a member", "a string");
    *key = (struct st_bytes){(const uint8_t *)from + 1, (size_t)(pull->text.at - from) - 2};
    if (memchr(key->data, '\\', key->size))
        *key = unescaped(pull, *key);
    return st_text_take(&pull->text, ':') || st_pull_fail(pull, pull->text.at, "a colon is missing");
}

/* ---- values --------------------------------------------------------------------------------------- */

bool st_pull_skip(struct st_pull *pull)
{
    if (pull->rc || st_json_skip(&pull->text, ST_JSON_DEPTH))
        return !pull->rc;
    if (pull->text.deep)
        return st_pull_fail(pull, pull->text.at, "lists and objects are nested more than %d deep",
                            ST_JSON_DEPTH);
    return st_pull_fail(pull, pull->text.at, "the JSON is damaged");
}

static bool ends_number(const struct st_text *text)
{
    return text->at == text->end || !strchr("0123456789.eE+-", *text->at) || !*text->at;
}

bool st_pull_number(struct st_pull *pull, const char *what, double *out)
{
    st_text_skip_blanks(&pull->text);
    const char *from = pull->text.at;
    if (st_text_take_number(&pull->text, out) && ends_number(&pull->text) && isfinite(*out))
        return true;
    pull->text.at = from;
    return fail_expected(pull, what, "a finite number");
}

bool st_pull_int(struct st_pull *pull, const char *what, int64_t *out)
{
    st_text_skip_blanks(&pull->text);
    const char *from = pull->text.at, *at = from, *end = pull->text.end;
    const bool minus = at < end && *at == '-';
    int64_t value = 0; /* negated: the negative range is larger by one */
    bool fits = true;
    for (at += minus; at < end && *at >= '0' && *at <= '9'; at++)
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_sub_overflow(value, *at - '0', &value);
    const bool zero = at > from + minus && from[minus] == '0';
    const bool digits = at > from + minus && (!zero || at == from + minus + 1);
    const bool plain = at == end || (*at != '.' && *at != 'e' && *at != 'E');
    if (digits && plain && fits && (minus || value != INT64_MIN)) {
        *out = minus ? value : -value;
        pull->text.at = at;
        return true;
    }
    double real; /* 3.0 is 3 */
    const double limit = 9007199254740992.0;
    if (digits && !plain && st_pull_number(pull, what, &real) && real == rint(real) &&
        fabs(real) <= limit) {
        *out = (int64_t)real;
        return true;
    }
    pull->text.at = from;
    return fail_expected(pull, what, "a whole number of 64 bits");
}

bool st_pull_flag(struct st_pull *pull, const char *what, bool *out)
{
    double number = 0;
    const char first = st_pull_peek(pull);
    if (first == 't' || first == 'f') {
        *out = first == 't';
        return st_pull_skip(pull);
    }
    if (!st_pull_number(pull, what, &number))
        return false;
    *out = number != 0;
    return true;
}

bool st_pull_text(struct st_pull *pull, const char *what, struct st_buffer *out)
{
    const bool quoted = st_pull_peek(pull) == '"';
    const char *from = pull->text.at;
    if (!quoted || !st_json_skip(&pull->text, 1)) {
        pull->text.at = quoted ? pull->text.at : from;
        return fail_expected(pull, what, "a string");
    }
    const uint64_t room = (uint64_t)(pull->text.at - from);
    struct st_text text = {.at = from + 1, .end = pull->text.at};
    if (!st_buffer_keep(out, out->size + room))
        return st_pull_no_memory(pull);
    char *to = (char *)out->data + out->size, *end = st_json_take_text(&text, to);
    if (!end || memchr(to, '\0', (size_t)(end - to)))
        return st_pull_fail(pull, from, "%s contains a NUL character", what);
    *end = '\0';
    out->size += (uint64_t)(end - to) + 1;
    return true;
}
