/* Names sort as Python sorts them, extensions are compared in lower case, and the checksum is CRC-32C.
 */
#include "source/checksum/crc32c.h"
#include "source/text/names.h"
#include "tap.h"

#include <string.h>

static int compare(const char *a, const char *b) { return st_name_compare(a, strlen(a), b, strlen(b)); }

/* Each must sort before the next. Checked with Python's sorted(os.fsdecode(name)). */
static const char *const ordered[] = {
    "", "-", ".", "A", "B.jpg", "_", "a", "a-b", "a.jpg", "a/b", "ab", "b", "\xc3\xa9",
};

static void order_of_plain_names(void)
{
    for (size_t i = 0; i + 1 < sizeof ordered / sizeof *ordered; i++)
        ok(compare(ordered[i], ordered[i + 1]) < 0 && compare(ordered[i + 1], ordered[i]) > 0,
           "\"%s\" comes before \"%s\"", ordered[i], ordered[i + 1]);
    ok(compare("same", "same") == 0, "a name equals itself");
}

static void order_of_escaped_bytes(void)
{
    static const char *const names[] = {
        "z",
        "\xc3\xa9",         /* U+00E9 */
        "\xed\x9f\xbf",     /* U+D7FF */
        "\x80",             /* not UTF-8: U+DC80 */
        "\xc3",             /* a lead byte alone: U+DCC3 */
        "\xc3\x41",         /* and a letter */
        "\xed\xa0\x80",     /* a surrogate is not UTF-8: U+DCED U+DCA0 U+DC80 */
        "\xf5\x80\x80\x80", /* beyond U+10FFFF */
        "\xff",
        "\xee\x80\x80",     /* U+E000 */
        "\xef\xbf\xbd",     /* U+FFFD */
        "\xf0\x9f\x98\x80", /* U+1F600 */
    };
    const size_t count = sizeof names / sizeof *names;
    int wrong = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            char a[16], b[16];
            snprintf(a, sizeof a, "x%s", names[i]);
            snprintf(b, sizeof b, "x%s", names[j]);
            const int got = compare(a, b), want = (i > j) - (i < j);
            wrong += (got > 0) - (got < 0) != want;
        }
    ok(wrong == 0, "bytes that are not UTF-8 sort between U+D7FF and U+E000 (%d pairs wrong)", wrong);
    ok(compare("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x81") < 0, "a difference in a character's last byte");
    ok(compare("\xf0\x9f\x98\x80", "\xf0\x9f\x98") > 0, "against the same cut short: U+1F600 > U+DCF0");
    ok(compare("\xc0\xaf", "\xc2\x80") > 0, "an overlong form is two bytes escaped");
}

static bool is_image(const char *name)
{
    return st_name_has_extension(name, strlen(name), st_image_extensions);
}

static void extensions(void)
{
    static const char *const yes[] = {"a.jpg", "A.JPG",  ".jpg",  "x.JpEg", "x.tar.png", "x.webp",
                                      "x.tif", "x.TIFF", "x.ppm", "x.pgm",  "x.bmp"};
    static const char *const no[] = {"jpg",   "ajpg", "x.jpg ", "x.jpgx", "x.gif",
                                     "x.pbm", "",     ".",      "x.jp"};
    int wrong = 0;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        wrong += !is_image(yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        wrong += is_image(no[i]);
    ok(wrong == 0, "the nine extensions of ImageFolder, in any case, and no other");
    static const char *const upper[] = {".JPG", NULL};
    ok(!st_name_has_extension("a.JPG", 5, upper),
       "an extension given in upper case never matches, as there");
}

static void sorting(void)
{
    enum { COUNT = 3000 };
    static char text[COUNT * 16];
    static uint64_t offsets[COUNT], scratch[2 * COUNT];
    for (int ascii = 0; ascii < 2; ascii++) {
        uint64_t used = 0;
        uint32_t random = 7;
        for (int i = 0; i < COUNT; i++) {
            random = random * 1664525 + 1013904223;
            offsets[i] = used | (i % 5 == 0 ? 1ull << 63 : 0);
            used += (uint64_t)snprintf(text + used, 16, "n01_%u%s", (random >> 8) % 100000,
                                       ascii          ? ""
                                       : random >> 31 ? "\x80"
                                                      : "\xee\x80\x80") +
                    1;
        }
        st_names_sort(text, offsets, COUNT, ascii, scratch);
        int wrong = 0, marked = 0;
        for (int i = 0; i < COUNT; i++) {
            marked += offsets[i] >> 63;
            wrong += i && compare(text + (offsets[i - 1] & ST_NAME_OFFSET),
                                  text + (offsets[i] & ST_NAME_OFFSET)) > 0;
        }
        ok(wrong == 0, "%d names with a common beginning are sorted (ascii: %d)", COUNT, ascii);
        ok(marked == COUNT / 5, "and keep their marks");
    }
}

static void checksum(void)
{
    uint8_t zeros[32] = {0}, ones[32], up[32];
    memset(ones, 255, sizeof ones);
    for (uint8_t i = 0; i < 32; i++)
        up[i] = i;
    ok(st_crc32c("123456789", 9) == 0xe3069283u, "CRC-32C of 123456789");
    ok(st_crc32c(zeros, 32) == 0x8a9136aau && st_crc32c(ones, 32) == 0x62a8ab43u &&
           st_crc32c(up, 32) == 0x46dd794eu,
       "the vectors of RFC 3720");
    ok(st_crc32c("", 0) == 0, "of nothing");
}

int main(void)
{
    order_of_plain_names();
    order_of_escaped_bytes();
    extensions();
    sorting();
    checksum();
    return done_testing();
}
