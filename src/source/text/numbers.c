/* numbers.c - parses numbers written as text, as Python's int() and float() do
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/text/numbers.h"

#include <locale.h>
#include <math.h>
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

/* ---- numbers with a fraction ---------------------------------------------------------------------- */

/* mantissa * 10^exponent. */
struct decimal {
    uint64_t mantissa;
    int exponent;
    bool exact; /* the mantissa holds all digits */
};

/* The quotient by a power of ten below 2^64, rounded to the nearest, to even if two are as near. */
static double divided(uint64_t mantissa, uint64_t power)
{
    const int lead = __builtin_clzll(mantissa);
    const unsigned __int128 whole = (unsigned __int128)(mantissa << lead) << 63;
    const unsigned __int128 quotient = whole / power;
    const uint64_t high = (uint64_t)(quotient >> 64), low = (uint64_t)quotient;
    const int bits = high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll(low);
    const int below = bits - 54; /* of those behind one more bit than a double has */
    const uint64_t top = (uint64_t)(quotient >> below);
    const bool more = quotient * power != whole || (quotient & (((unsigned __int128)1 << below) - 1));
    const uint64_t rounded = (top >> 1) + ((top & 1) && (more || (top & 2)));
    return ldexp((double)rounded, below + 1 - 63 - lead);
}

/* False: strtod has to do it. */
static bool fast_value(struct decimal number, double *out)
{
    static const uint64_t powers[] = {1u,
                                      10u,
                                      100u,
                                      1000u,
                                      10000u,
                                      100000u,
                                      1000000u,
                                      10000000u,
                                      100000000u,
                                      1000000000u,
                                      10000000000u,
                                      100000000000u,
                                      1000000000000u,
                                      10000000000000u,
                                      100000000000000u,
                                      1000000000000000u,
                                      10000000000000000u,
                                      100000000000000000u,
                                      1000000000000000000u,
                                      10000000000000000000u};
    enum { MOST = sizeof powers / sizeof *powers - 1 };
    const int exponent = number.exponent;
    if (!number.exact || exponent < -MOST || exponent > MOST)
        return false;
    if (number.mantissa <= 1ull << 53) { /* that is a double, and so are the powers: one rounding */
        const double whole = (double)number.mantissa;
        *out = exponent < 0 ? whole / (double)powers[-exponent] : whole * (double)powers[exponent];
        return true;
    }
    if (exponent >= 0)
        return false;
    *out = divided(number.mantissa, powers[-exponent]);
    return true;
}

static bool slow_value(const char *from, const char *end, double *out)
{
    char copy[400], *stop;
    const size_t size = (size_t)(end - from);
    if (size == 0 || size >= sizeof copy || memchr(from, 'x', size) || memchr(from, 'X', size))
        return false;
    memcpy(copy, from, size);
    copy[size] = '\0';
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return false;
    *out = strtod_l(copy, &stop, c);
    freelocale(c);
    return stop == copy + size;
}

/* Digits, of which 19 fit into the mantissa. */
static bool take_digits(struct st_text *text, struct decimal *number)
{
    const char *from = text->at;
    uint64_t mantissa = number->mantissa;
    bool exact = number->exact;
    for (; text->at < text->end && is_digit((uint8_t)*text->at); text->at++) {
        exact = exact && mantissa < 1000000000000000000u;
        mantissa = mantissa * 10 + (uint64_t)(*text->at - '0');
    }
    number->mantissa = mantissa;
    number->exact = exact;
    return text->at > from;
}

static bool is_at(const struct st_text *text, char c) { return text->at < text->end && *text->at == c; }

static bool take_exponent(struct st_text *text, struct decimal *number)
{
    struct decimal exponent = {.exact = true};
    text->at++;
    const bool minus = is_at(text, '-');
    text->at += minus || is_at(text, '+');
    if (!take_digits(text, &exponent))
        return false;
    number->exact = number->exact && exponent.exact && exponent.mantissa < 1000;
    if (number->exact)
        number->exponent += minus ? -(int)exponent.mantissa : (int)exponent.mantissa;
    return true;
}

bool st_text_take_number(struct st_text *text, double *out)
{
    const char *from = text->at;
    struct decimal number = {.exact = true};
    const bool minus = is_at(text, '-');
    text->at += minus;
    const char *first = text->at;
    if (!take_digits(text, &number) || (*first == '0' && text->at > first + 1))
        return false;
    if (is_at(text, '.')) {
        const char *point = text->at++;
        if (!take_digits(text, &number))
            return false;
        number.exponent = text->at - point < 1000 ? (int)(point + 1 - text->at) : -1000;
    }
    if ((is_at(text, 'e') || is_at(text, 'E')) && !take_exponent(text, &number))
        return false;
    if (!fast_value(number, out))
        return slow_value(from, text->at, out);
    if (minus)
        *out = -*out;
    return true;
}

bool st_text_float(struct st_bytes text, double *out)
{
    text = trimmed(text);
    const char *from = (const char *)text.data;
    struct st_text plain = {.at = from, .end = from + text.size};
    if (text.size && st_text_take_number(&plain, out) && plain.at == plain.end)
        return true;
    return slow_value(from, from + text.size, out);
}
