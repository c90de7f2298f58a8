/* screen.c - a text frame of fixed size, written at once
 *
 * Each line is followed by "erase to end of line", and nothing is cleared first: this avoids flicker.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/top/screen.h"

#include "base/mem.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const color_codes[] = {
    [DR_PLAIN] = "",        [DR_BOLD] = "\033[1m",   [DR_QUIET] = "\033[2m",
    [DR_RED] = "\033[31m",  [DR_GREEN] = "\033[32m", [DR_YELLOW] = "\033[33m",
    [DR_BLUE] = "\033[34m", [DR_CYAN] = "\033[36m",  [DR_MAGENTA] = "\033[35m"};

static void add(struct dr_screen *screen, const char *bytes, size_t size)
{
    if (size > screen->room - screen->size) {
        screen->full = true;
        return;
    }
    memcpy(screen->text + screen->size, bytes, size);
    screen->size += size;
}

static void add_text(struct dr_screen *screen, const char *text) { add(screen, text, strlen(text)); }

bool dr_screen_begin(struct dr_screen *screen, uint32_t width, uint32_t height)
{
    /* a cell takes at most 4 bytes, and the escape sequences of its colour at most 10 */
    const uint64_t room = (uint64_t)width * height * 16 + 4096;
    if (room > screen->room) {
        char *text = st_grow(screen->text, room, 1);
        if (!text)
            return false;
        screen->text = text;
        screen->room = room;
    }
    screen->size = 0;
    screen->width = width;
    screen->height = height;
    screen->row = screen->column = 0;
    screen->full = false;
    if (!screen->plain)
        add_text(screen, "\033[H");
    return true;
}

/* Writes one whole character, if there is a column for it. */
static void put_character(struct dr_screen *screen, const char *bytes, size_t size)
{
    if (screen->column >= screen->width)
        return;
    screen->column++;
    if (screen->row >= screen->height)
        return;
    if ((unsigned char)bytes[0] >= 128 && screen->ascii)
        add(screen, "?", 1);
    else
        add(screen, bytes, size);
}

void dr_put(struct dr_screen *screen, enum dr_color color, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (screen->color && color)
        add_text(screen, color_codes[color]);
    for (const char *at = text; *at;) {
        uint32_t point;
        const size_t plain = st_plain_size(at, &point), size = st_utf8_size(at);
        put_character(screen, plain ? at : "?", plain ? plain : 1);
        at += size ? size : 1;
    }
    if (screen->color && color)
        add_text(screen, "\033[0m");
}

void dr_put_line(struct dr_screen *screen)
{
    if (screen->row >= screen->height)
        return;
    if (!screen->plain)
        add_text(screen, "\033[K");
    if (++screen->row < screen->height || screen->plain)
        add_text(screen, screen->plain ? "\n" : "\r\n");
    screen->column = 0;
}

void dr_put_to(struct dr_screen *screen, uint32_t column)
{
    while (screen->column < column && screen->column < screen->width)
        put_character(screen, " ", 1);
}

void dr_put_bar(struct dr_screen *screen, enum dr_color color, uint32_t width, double share)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double full = isnan(share) ? 0 : fmin(1, fmax(0, share)) * width;
    const uint32_t whole = (uint32_t)full;
    const uint32_t rest = screen->ascii ? 0 : (uint32_t)((full - whole) * 8);
    char text[1024] = "";
    size_t size = 0;
    for (uint32_t k = 0; k < whole && size < sizeof text - 8; k++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s", screen->ascii ? "#" : "█");
    if (rest)
        snprintf(text + size, sizeof text - size, "%s", eighths[rest]);
    const uint32_t end = screen->column + width;
    dr_put(screen, color, "%s", text);
    for (; screen->column < end && screen->column < screen->width;)
        dr_put(screen, DR_QUIET, "%s", screen->ascii ? "." : "░");
}

void dr_put_sparkline(struct dr_screen *screen, enum dr_color color, const double *values,
                      uint32_t count)
{
    static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {"_", "_", ".", ".", "-", "-", "=", "#"};
    double most = 0;
    for (uint32_t k = 0; k < count; k++)
        most = fmax(most, isnan(values[k]) ? 0 : values[k]);
    for (uint32_t k = 0; k < count; k++) {
        const double share = most > 0 && !isnan(values[k]) ? fmax(0, values[k]) / most : 0;
        const int level = (int)fmin(7, share * 8);
        dr_put(screen, color, "%s", isnan(values[k]) ? " " : (screen->ascii ? plain : heights)[level]);
    }
}

void dr_screen_end(struct dr_screen *screen)
{
    while (screen->row < screen->height)
        dr_put_line(screen);
}
