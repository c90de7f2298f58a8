/* screen.h - a text frame of fixed size, written at once
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
    char *text; /* with escape sequences; dr_screen_end sets its size */
    size_t size, room;
    uint32_t width, height, row, column;
    bool color, ascii;
    bool plain; /* for a file: no escape sequences, no trailing spaces */
    bool full;  /* no more room: further text is dropped */
};

/* Starts an empty frame; false: out of memory. Reuses the memory of the last one. */
bool dr_screen_begin(struct dr_screen *screen, uint32_t width, uint32_t height);
/* Writes text at the cursor, truncated at the right edge; control characters become '?'. */
void dr_put(struct dr_screen *screen, enum dr_color color, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void dr_put_line(struct dr_screen *screen);                /* ends the line */
void dr_put_to(struct dr_screen *screen, uint32_t column); /* spaces up to this column */
/* A bar of `width` columns, filled to `share`, in eighths of a column if the terminal can show them. */
void dr_put_bar(struct dr_screen *screen, enum dr_color color, uint32_t width, double share);
/* Values from oldest to newest, scaled so that the highest fills the line. */
void dr_put_sparkline(struct dr_screen *screen, enum dr_color color, const double *values,
                      uint32_t count);
/* Fills the rest of the frame with empty lines. */
void dr_screen_end(struct dr_screen *screen);

#endif
