/* test_text.c - names from data are made safe to show
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/err.h"
#include "base/text.h"
#include "tap.h"

#include <errno.h>
#include <string.h>

static void becomes(const char *text, const char *want, const char *what)
{
    char out[256];
    st_escape(out, sizeof out, text);
    if (!ok(!strcmp(out, want), "%s", what))
        fprintf(stderr, "%s\n", out);
    st_escape(out, sizeof out, want);
    ok(!strcmp(out, want), "once: %s", what);
}

static void characters(void)
{
    becomes("naïve 日本 😀 \xe2\x80\x8d.jpg", "naïve 日本 😀 \xe2\x80\x8d.jpg", "words and joined emoji stay");
    becomes("a\x1b[31m\r\n\tb\x7f", "a\\x1b[31m\\x0d\\x0a\\x09b\\x7f", "control characters");
    becomes("a\xc2\x9b" "31m\xc2\x85", "a\\xc2\\x9b31m\\xc2\\x85", "control characters of C1");
    becomes("\xe2\x80\xae" "gpj.exe", "\\xe2\\x80\\xaegpj.exe", "reversed text");
    becomes("\xe2\x81\xa6x\xe2\x81\xa9\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\xe2\\x81\\xa6x\\xe2\\x81\\xa9\\xe2\\x80\\x8e\\xe2\\x80\\x8f\\xd8\\x9c",
            "isolated text and marks of direction");
    becomes("a\xe2\x80\xa8" "b\xe2\x80\xa9\xef\xbb\xbf", "a\\xe2\\x80\\xa8b\\xe2\\x80\\xa9\\xef\\xbb\\xbf", "ends of lines, a byte order mark");
    becomes("\x9b\xff\xc0\xaf\xed\xa0\x80\xe2\x80", "\\x9b\\xff\\xc0\\xaf\\xed\\xa0\\x80\\xe2\\x80", "what is not UTF-8");
}

/* Every code point: those that Unicode calls control characters, or that change the direction or the line, are escaped. */
static void all(void)
{
    unsigned escaped = 0, wrong = 0;
    for (uint32_t point = 1; point < 0x110000; point++) {
        char text[5] = {0}, out[32];
        if (point >= 0xd800 && point < 0xe000)
            continue;
        const int more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
        text[0] = (char)(more ? (0xf0u << (3 - more)) | point >> 6 * more : point);
        for (int k = 0; k < more; k++)
            text[k + 1] = (char)(0x80 | (point >> 6 * (more - 1 - k) & 0x3f));
        uint32_t got;
        const bool control = point < 32 || (point >= 127 && point < 160);
        const bool line = point == 0x2028 || point == 0x2029;
        const bool direction = point == 0x61c || point == 0x200e || point == 0x200f || (point >= 0x202a && point <= 0x202e) ||
                               (point >= 0x2066 && point <= 0x2069);
        st_escape(out, sizeof out, text);
        wrong += (control || line || direction) && !strcmp(out, text);
        wrong += st_utf8_size(text) != (size_t)more + 1 || (st_plain_size(text, &got) == 0) != (strcmp(out, text) != 0) || got != point;
        escaped += strcmp(out, text) != 0;
    }
    ok(!wrong, "every code point is measured, and none that is dangerous is plain: %u", wrong);
    ok(escaped < 110, "few are escaped: %u", escaped);
}

static void rooms(void)
{
    char out[64];
    bool fits = true;
    for (size_t room = 1; room < sizeof out; room++) {
        memset(out, 'x', sizeof out);
        st_escape(out, room, "ab\xe2\x80\xae" "cd\x1b" "日本");
        fits = fits && strlen(out) < room && (room == sizeof out || out[room] == 'x') && !strstr(out, "\x1b");
        for (const char *at = out; *at && fits; at += st_utf8_size(at))
            fits = st_utf8_size(at);
    }
    ok(fits, "text is cut between characters, within its room");
}

static void messages(void)
{
    struct stoker_error err;
    char path[2000];
    st_fail(&err, STOKER_EIO, "%s: short read", "x\x1b[2J\xe2\x80\xae.jpg");
    ok(!strcmp(err.message, "x\\x1b[2J\\xe2\\x80\\xae.jpg: short read"), "names in messages: %s", err.message);
    st_fail_in(&err, STOKER_EIO, "y\n");
    ok(!strncmp(err.message, "y\\x0a: x\\x1b", 11), "prefixes of messages: %s", err.message);
    st_fail_errno(&err, ENOENT, "%s", "\xc2\x9bz");
    ok(!strcmp(err.message, "\\xc2\\x9bz: No such file or directory"), "messages of the system: %s", err.message);
    memset(path, '\x1b', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    st_fail_errno(&err, ENOENT, "%s", path);
    ok(strstr(err.message, "\\x1b: No such file") != NULL, "a very long path leaves room for the reason");
    st_fail(&err, STOKER_EIO, "short read");
    st_fail_in(&err, STOKER_EIO, path);
    ok(strstr(err.message, "\\x1b: short read") != NULL, "and so does a prefix");
}

int main(void)
{
    characters();
    all();
    rooms();
    messages();
    ok(!strcmp(st_s(1), "") && !strcmp(st_s(0), "s") && !strcmp(st_es(2), "es") && !strcmp(st_es(1), ""), "1 file, 2 files");
    return done_testing();
}
