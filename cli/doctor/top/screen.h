/* screen.h - a frame of text of a fixed size, written at once
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_TOP_SCREEN_H
#define ST_DOCTOR_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dr_color { DR_PLAIN, DR_BOLD, DR_QUIET, DR_RED, DR_GREEN, DR_YELLOW, DR_BLUE, DR_CYAN, DR_MAGENTA };

struct dr_screen {
    char *text; /* with escape sequences; dr_screen_end gives its size */
    size_t size, room;
    uint32_t width, height, row, column;
    bool color, ascii;
    bool plain; /* for a file: no escape sequences, lines end where their text ends */
    bool full;  /* full: no more room, what comes is dropped */
};

/* An empty frame; false: out of memory. The text of the last one is used again. */
bool dr_screen_begin(struct dr_screen *screen, uint32_t width, uint32_t height);
/* Text at the cursor; cut at the right edge, control characters shown as '?'. */
void dr_put(struct dr_screen *screen, enum dr_color color, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void dr_put_line(struct dr_screen *screen);                /* ends the line */
void dr_put_to(struct dr_screen *screen, uint32_t column); /* spaces up to there */
/* A bar of `width` columns, `share` of which is full, in eighths of a column where that can be shown. */
void dr_put_bar(struct dr_screen *screen, enum dr_color color, uint32_t width, double share);
/* Values from oldest to newest, the highest as high as one line is. */
void dr_put_sparkline(struct dr_screen *screen, enum dr_color color, const double *values,
                      uint32_t count);
/* Fills the rest with empty lines. */
void dr_screen_end(struct dr_screen *screen);

#endif
