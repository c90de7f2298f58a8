/* files.h - small files of /proc and /sys: kept open, read again and again, taken apart
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_FILES_H
#define ST_DOCTOR_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens root + path for reading; -1, with errno. */
int dr_file_open(const char *root, const char *path);
void dr_file_close(int *file); /* safe for -1; makes it -1 */
/* From its beginning, ended by a zero byte, cut to the room. False: it cannot be read (any more). */
bool dr_file_text(int file, char *text, size_t room);
/* The same in one go. */
bool dr_file_once(const char *root, const char *path, char *text, size_t room);
/* A whole number that a file begins with; NaN. */
double dr_file_number(const char *root, const char *path);
/* The number behind a word at the beginning of a line ("MemTotal:", "throttled_usec "); NaN. */
double dr_text_number(const char *text, const char *word);
/* The text up to the end of its first line, without spaces at its ends. */
char *dr_text_line(char *text);

/* The change of a counter from one tick to the next, each second; NaN the first time, and where it went
 * back. */
struct dr_counter {
    double before;
    bool known;
};
double dr_counter_rate(struct dr_counter *counter, double now, double seconds);

#endif
