/* files.c - reads and parses small files of /proc and /sys, which stay open
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int dr_file_open(const char *root, const char *path)
{
    char name[PATH_MAX];
    if (snprintf(name, sizeof name, "%s%s", root, path) >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

void dr_file_close(int *file)
{
    if (*file >= 0)
        close(*file);
    *file = -1;
}

static bool read_text(int file, char *text, size_t room, bool whole)
{
    size_t size = 0;
    text[0] = '\0';
    if (file < 0)
        return false;
    while (size < room - 1) {
        const ssize_t got = pread(file, text + size, room - 1 - size, (off_t)size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        size += (size_t)got;
        if (got == 0 || (!whole && text[size - 1] == '\n'))
            break;
    }
    text[size] = '\0';
    return size > 0;
}

bool dr_file_text(int file, char *text, size_t room) { return read_text(file, text, room, false); }

bool dr_file_whole(int file, char *text, size_t room) { return read_text(file, text, room, true); }

bool dr_file_once(const char *root, const char *path, char *text, size_t room)
{
    int file = dr_file_open(root, path);
    const bool read = dr_file_text(file, text, room);
    dr_file_close(&file);
    return read;
}

double dr_file_number(const char *root, const char *path)
{
    char text[64], *end;
    if (!dr_file_once(root, path, text, sizeof text))
        return NAN;
    const double value = strtod(text, &end);
    return end == text ? NAN : value;
}

const char *dr_text_next(const char *text, double *number)
{
    if (!text)
        return NULL;
    while (*text == ' ' || *text == '\t')
        text++;
    const bool negative = *text == '-';
    text += negative;
    if (*text < '0' || *text > '9')
        return NULL;
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        value = 10 * value + (uint64_t)(*text - '0');
    *number = negative ? -(double)value : (double)value;
    return text;
}

double dr_text_number(const char *text, const char *word)
{
    const size_t size = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, size))
            continue;
        double value;
        if (dr_text_next(line + size, &value))
            return value;
    }
    return NAN;
}

char *dr_text_line(char *text)
{
    text[strcspn(text, "\n")] = '\0';
    text += strspn(text, " \t");
    for (size_t size = strlen(text); size && strchr(" \t", text[size - 1]); size--)
        text[size - 1] = '\0';
    return text;
}

double dr_counter_rate(struct dr_counter *counter, double now, double seconds)
{
    const bool usable = counter->known && !isnan(now) && now >= counter->before && seconds > 0;
    const double rate = usable ? (now - counter->before) / seconds : NAN;
    counter->known = !isnan(now);
    counter->before = now;
    return rate;
}
