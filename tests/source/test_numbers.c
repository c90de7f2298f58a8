/* test_numbers.c - numbers written as text have the value that the C library gives them, to the last bit
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/text/numbers.h"
#include "tap.h"

#include <math.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) % bound);
}

static bool read_all(const char *word, double *out)
{
    struct st_text text = {.at = word, .end = word + strlen(word)};
    return st_text_take_number(&text, out) && text.at == text.end;
}

static bool same(const char *word)
{
    double got = 0, other = 0;
    const double want = strtod(word, NULL);
    const struct st_bytes bytes = {(const uint8_t *)word, strlen(word)};
    const bool good = read_all(word, &got) && st_text_float(bytes, &other) &&
                      !memcmp(&got, &want, sizeof got) && !memcmp(&other, &want, sizeof other);
    if (!good)
        note("%s: %.17g, not %.17g", word, got, want);
    return good;
}

static void test_random(const char *what, unsigned whole, unsigned fraction, unsigned exponent)
{
    bool good = true;
    for (unsigned k = 0; k < share_of(200000) && good; k++) {
        char word[100];
        int at = sprintf(word, "%s%u", draw(3) ? "" : "-", draw(10));
        for (unsigned digits = draw(whole); digits && word[at - 1] != '0'; digits--)
            at += sprintf(word + at, "%u", draw(10));
        for (unsigned digits = 1 + draw(fraction), first = digits; digits; digits--)
            at += sprintf(word + at, "%s%u", digits == first ? "." : "", draw(10));
        if (exponent)
            at += sprintf(word + at, "e%d", (int)draw(2 * exponent) - (int)exponent);
        good = same(word);
    }
    ok(good, "%s", what);
}

/* Numbers in the middle between two doubles, and beside it, in 17 to 19 digits. */
static void test_middles(void)
{
    bool good = true;
    for (unsigned k = 0; k < share_of(100000) && good; k++) {
        const uint64_t odd = (1ull << 53) + 2 * (uint64_t)draw(1u << 30) * draw(1u << 22) + 1;
        char digits[40], word[80];
        const int size = sprintf(digits, "%llu", (unsigned long long)(odd + draw(3) - 1)),
                  point = (int)draw(16) + 1;
        sprintf(word, "%.*s.%s", point, digits, point < size ? digits + point : "0");
        good = same(word) && same(digits);
    }
    ok(good, "numbers between two doubles");
}

int main(void)
{
    static const char *const plain[] = {"0",
                                        "-0",
                                        "0.0",
                                        "0.00000000000000000000",
                                        "1e22",
                                        "1e23",
                                        "123456789012345678901234567890",
                                        "9007199254740993",
                                        "5e-324",
                                        "1.7976931348623157e308",
                                        "1e400",
                                        "1e-400",
                                        "0.1",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "99999999999999999999.5",
                                        "1e99999999999999999999",
                                        "500.4899999999999",
                                        "702.1057499999998"};
    static const char *const damaged[] = {"",   "-",   ".5",   "1.",  "01",  "1e", "1e+",
                                          "+1", "0x1", "1.e5", "NaN", "--1", "1 "};
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
        ok(same(plain[k]), "%s", plain[k]);
    for (size_t k = 0; k < sizeof damaged / sizeof *damaged; k++) {
        double value;
        ok(!read_all(damaged[k], &value), "'%s' is none", damaged[k]);
    }
    test_random("two decimals", 4, 2, 0);
    test_random("many decimals", 4, 17, 0);
    test_random("up to 25 digits", 10, 15, 0);
    test_random("exponents", 6, 12, 30);
    test_random("large exponents", 6, 12, 330);
    test_middles();
    return done_testing();
}
