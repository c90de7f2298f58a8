/* What is JSON, and where what is not is damaged. Python's json.loads reads all that passes here: see
 * tests/python/test_sources_read.py. */
#include "source/table/json.h"
#include "tap.h"

#include <stdlib.h>

static bool deep;

static bool whole(const char *text, size_t size, uint64_t *at)
{
    uint8_t *exact = malloc(size ? size : 1); /* of the exact size: a sanitizer sees every overrun */
    memcpy(exact, text, size);
    const bool answer = st_json_is_whole((struct st_bytes){exact, size}, at, &deep);
    free(exact);
    return answer;
}

static const char *const good[] = {
    "0",
    "-0",
    "1.5e+10",
    "-1E-2",
    " [ ] ",
    "{}",
    "\"\"",
    "true",
    "false",
    "null",
    "NaN",
    "-Infinity",
    "Infinity",
    "[1, [2, {\"a\": {\"b\": []}}]]\n",
    "\xef\xbb\xbf{}",
    "{\"a\": 1, \"a\": 2}",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\ud800\\uABcd\"",
    "\"\x7f\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\"",
};

static const struct {
    const char *text;
    uint64_t at;
} bad[] = {
    {"", 0},
    {" ", 1},
    {"{'a': 1}", 1},
    {"[1, ]", 4},
    {"[1", 2},
    {"{\"a\" 1}", 5},
    {"{\"a\": 1", 7},
    {"{1: 2}", 1},
    {"01", 2},
    {"1.", 2},
    {"-", 1},
    {".5", 0},
    {"1e", 2},
    {"+1", 0},
    {"tru", 0},
    {"nul", 0},
    {"-NaN", 1},
    {"\"a", 2},
    {"\"\\", 2},
    {"\"\\x\"", 3},
    {"\"\\u12g4\"", 5},
    {"\"\\u12", 3},
    {"\"a\nb\"", 2},
    {"1 2", 2},
    {"\"\x80\"", 1},
    {"\"\xc0\x80\"", 1},
    {"\"\xe0\x80\x80\"", 1},
    {"\"\xf5\x80\x80\x80\"", 1},
    {"\"\xc3", 1},
    {"\"\xf4\x90\x80\x80\"", 1},
    {"\"\xc3\"", 1},
    {"[}", 1},
    {"]", 0},
    {"{\"a\": 1,}", 8},
};

static void test_depth(void)
{
    uint64_t at;
    char text[1200];
    for (int depth = ST_JSON_DEPTH - 2; depth <= ST_JSON_DEPTH + 2; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        const bool fits = depth <= ST_JSON_DEPTH;
        const bool answer = whole(text, (size_t)depth * 2, &at);
        ok(answer == fits && deep == !fits, "%d lists in one another are %s", depth,
           fits ? "read" : "too many, and not damaged");
    }
}

static void test_digits(void)
{
    uint64_t at;
    char text[4400];
    memset(text, '7', sizeof text);
    ok(whole(text, 4300, &at), "a number of 4300 digits, as many as Python reads");
    ok(!whole(text, 4301, &at), "none of more");
    text[4301] = '.';
    ok(whole(text, 4303, &at), "but with a point, as that is rounded");
}

int main(void)
{
    uint64_t at;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ok(whole(good[i], strlen(good[i]), &at), "JSON: %zu", i);
    ok(!whole("1\0", 2, &at) && at == 1, "a zero byte is none");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const bool passes = whole(bad[i].text, strlen(bad[i].text), &at);
        if (!ok(!passes && at == bad[i].at, "damaged: %zu", i))
            note("%s: %s, at %llu, not %llu", bad[i].text, passes ? "passes" : "refused",
                 (unsigned long long)at, (unsigned long long)bad[i].at);
    }
    test_depth();
    test_digits();
    return done_testing();
}
