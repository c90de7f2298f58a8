/* test_screen.c - frames of `stoker top`: they fit, whatever stands in them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/top/screen.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns of the widest line and number of lines, escape sequences not counted. */
static void measure(const struct dr_screen *s, uint32_t *width, uint32_t *height)
{
    uint32_t column = 0;
    *width = 0;
    *height = 1;
    for (size_t at = 0; at < s->size; at++) {
        const unsigned char c = (unsigned char)s->text[at];
        if (c == '\033') {
            while (at < s->size && !strchr("HKm", s->text[at]))
                at++;
        } else if (c == '\n') {
            ++*height;
            column = 0;
        } else if (c != '\r' && (c & 0xc0) != 0x80) {
            column++;
        }
        *width = column > *width ? column : *width;
    }
}

static void fill(struct dr_screen *s)
{
    const double values[] = {1, NAN, 3, 2, 0};
    for (int line = 0; line < 60; line++) {
        dr_put(s, DR_RED, "%s", "a name with \033[31m escapes, \x80\xff bytes, ümlauts, 日本 and \n line breaks, and no end of it at all, not here");
        dr_put_bar(s, DR_BLUE, 30, 0.77);
        dr_put_bar(s, DR_BLUE, 5, NAN);
        dr_put_sparkline(s, DR_CYAN, values, 5);
        dr_put_line(s);
    }
    dr_screen_end(s);
}

int main(void)
{
    struct dr_screen s = {.color = true};
    const uint32_t sizes[][2] = {{80, 24}, {40, 10}, {200, 60}, {1000, 1000}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (int ascii = 0; ascii < 2; ascii++) {
            uint32_t width, height;
            s.ascii = ascii;
            ok(dr_screen_begin(&s, sizes[k][0], sizes[k][1]), "a frame of %u x %u", sizes[k][0], sizes[k][1]);
            fill(&s);
            measure(&s, &width, &height);
            ok(width <= sizes[k][0] && height == sizes[k][1] && !s.full, "it is %u x %u", width, height);
        }
    s.plain = true, s.color = false, s.ascii = true;
    dr_screen_begin(&s, 80, 24);
    dr_put(&s, DR_RED, "x");
    dr_put_bar(&s, DR_RED, 4, 0.5);
    dr_put_line(&s);
    ok(s.size == 6 && !memcmp(s.text, "x##..\n", 6), "plain text for a file");
    free(s.text);
    return done_testing();
}
