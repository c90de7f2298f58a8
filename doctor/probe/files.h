/* files.h - reads and parses small files of /proc and /sys, which stay open
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_FILES_H
#define ST_DOCTOR_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens root + path for reading; -1 on failure, with errno. */
int dr_file_open(const char *root, const char *path);
void dr_file_close(int *file); /* accepts -1; sets it to -1 */
/* Reads from the beginning, zero-terminated and truncated to the buffer. False: it cannot be read (any
 * more). For files that the kernel returns in one read, which are most. */
bool dr_file_text(int file, char *text, size_t room);
/* The same for files with one record per device or mount: a read returns only as many records as fit
 * into a page. */
bool dr_file_whole(int file, char *text, size_t room);
/* Opens, reads and closes. */
bool dr_file_once(const char *root, const char *path, char *text, size_t room);
/* The whole number at the beginning of a file; NaN. */
double dr_file_number(const char *root, const char *path);
/* Parses a whole number after blanks, and returns what follows it; NULL: there is none, or `text` is
 * NULL. Quicker than strtod and sscanf, and every tick has dozens of numbers. */
const char *dr_text_next(const char *text, double *number);
/* The whole number after a word at the beginning of a line ("MemTotal:", "throttled_usec "); NaN. */
double dr_text_number(const char *text, const char *word);
/* The first line of a text, trimmed. */
char *dr_text_line(char *text);

/* The change of a counter since the last sample, per second; NaN the first time, or if it decreased. */
struct dr_counter {
    double before;
    bool known;
};
double dr_counter_rate(struct dr_counter *counter, double now, double seconds);

#endif
