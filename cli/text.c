/* text.c - parses numbers, prints messages, formats numbers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *shown(struct shown_text *room, const char *text)
{
    st_escape(room->text, sizeof room->text, text);
    return room->text;
}

bool mentions(const char *message, const char *name)
{
    struct shown_text room;
    return strstr(message, shown(&room, name));
}

int fail(int exit_code, const char *format, ...)
{
    va_list args;
    char message[3072];
    struct shown_text room;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fprintf(stderr, "stoker: %s\n", shown(&room, message));
    return exit_code;
}

bool parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    if (!text || !isdigit((unsigned char)text[0]))
        return false;
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || value < least || value > most)
        return false;
    *out = value;
    return true;
}

bool parse_seconds(const char *text, double least, double most, double *out)
{
    if (!text || !text[0])
        return false;
    char *end;
    const double value = strtod(text, &end);
    if (*end || !isfinite(value) || value < least || value > most)
        return false;
    *out = value;
    return true;
}

/* Levenshtein distance; words of more than 31 letters are never near. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[32];
    const size_t columns = strlen(b);
    if (strlen(a) > 31 || columns > 31)
        return 99;
    for (size_t j = 0; j <= columns; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; a[i - 1]; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= columns; j++) {
            const unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            const unsigned shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < shift ? change : shift;
        }
    }
    return row[columns];
}

const char *nearest_name(const char *word, const char *const *names)
{
    const char *best = NULL;
    unsigned best_distance = 3;
    for (; *names; names++) {
        const unsigned d = distance(word, *names);
        if (d < best_distance) {
            best = *names;
            best_distance = d;
        }
    }
    return best;
}

const char *with_commas(struct number_text *room, double value)
{
    char plain[32];
    snprintf(plain, sizeof plain, "%.0f", value < 1e15 ? value : 1e15);
    const size_t digits = strlen(plain);
    size_t to = 0;
    for (size_t i = 0; i < digits; i++) {
        if (i > 0 && (digits - i) % 3 == 0 && plain[i - 1] != '-')
            room->text[to++] = ',';
        room->text[to++] = plain[i];
    }
    room->text[to] = '\0';
    return room->text;
}

const char *with_unit(struct bytes_text *room, double bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    size_t unit = 0;
    for (; bytes >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1000;
    snprintf(room->text, sizeof room->text, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return room->text;
}

size_t columns_for(FILE *to)
{
    enum { LEAST = 40, USUAL = 80, MOST = 100 };
    struct winsize size;
    if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &size) || !size.ws_col)
        return USUAL;
    return size.ws_col < LEAST ? LEAST : size.ws_col > MOST ? MOST : size.ws_col;
}

bool can_redraw(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

void redraw(const char *line)
{
    struct winsize size;
    const bool known = !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 1;
    /* A line that reached the last column would be continued on the next one, which stays. */
    fprintf(stderr, "\r%.*s\033[K", known ? size.ws_col - 1 : 79, line);
    fflush(stderr);
}

void progress_begin(struct progress *bar, const char *label)
{
    bar->label = label;
    bar->drawn_ns = 0;
    bar->on = can_redraw();
}

void progress_show(struct progress *bar, double share)
{
    enum { WIDTH = 30 };
    if (!bar->on || st_now_ns() - bar->drawn_ns < 100000000)
        return;
    bar->drawn_ns = st_now_ns();
    const int full = (int)(WIDTH * (share < 0 ? 0 : share > 1 ? 1 : share));
    char drawn[WIDTH + 1], line[128];
    memset(drawn, '.', WIDTH);
    memset(drawn, '#', (size_t)full);
    drawn[WIDTH] = '\0';
    snprintf(line, sizeof line, "%-24s [%s]", bar->label, drawn);
    redraw(line);
}

void progress_end(struct progress *bar)
{
    if (bar->on)
        redraw("");
}
