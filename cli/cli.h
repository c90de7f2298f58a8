/* cli.h - what the commands of the program `stoker` share
 *
 * A command is one file that ends in its `const struct command`, named in the table of main.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_CLI_H
#define ST_CLI_CLI_H

#include "stoker/stoker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the program exits with. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
    const char *name;
    const char *summary;               /* one line, for the list of commands */
    const char *usage;                 /* what `stoker help NAME` prints */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
};

extern const struct command cmd_bench, cmd_check, cmd_demo, cmd_doctor, cmd_explain, cmd_info, cmd_pack,
    cmd_report, cmd_run, cmd_top, cmd_tune, cmd_verify;

/* Prints "stoker: ..." on standard error and returns the exit code given. */
int fail(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text from data (names, messages that hold them) for the terminal: control characters, and bytes that
 * are no UTF-8, become \\xNN, so that a name can neither move the cursor nor end the line. In a buffer
 * that the caller gives, cut where that ends. */
struct shown_text {
    char text[4096];
};
const char *shown(struct shown_text *room, const char *text);
/* The bytes of the UTF-8 character that begins here; 0: it is none. */
size_t utf8_size(const char *text);

/* The value of option argv[*at]: what follows "=", or the next argument, to which *at then moves.
 * NULL when there is none. */
const char *option_value(int argc, char **argv, int *at);
/* Whether `argument` is the option `name`, alone or followed by "=". */
bool option_is(const char *argument, const char *name);
/* A whole number or a decimal within limits; false for anything else. */
bool parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *out);
bool parse_seconds(const char *text, double least, double most, double *out);

/* The nearest of `names` (NULL at the end) to a mistyped word, or NULL when none is near. */
const char *nearest_name(const char *word, const char *const *names);

/* 1234567 as "1,234,567" in a buffer that the caller gives. */
struct number_text {
    char text[32];
};
const char *with_commas(struct number_text *room, double value);
/* 1536 as "1.5 KB" and so on. */
struct bytes_text {
    char text[32];
};
const char *with_unit(struct bytes_text *room, double bytes);

/* A bar on standard error, redrawn a few times a second; nothing when that is no terminal. */
struct progress {
    const char *label;
    uint64_t drawn_ns;
    bool on;
};
void progress_begin(struct progress *bar, const char *label);
void progress_show(struct progress *bar, double share);
void progress_end(struct progress *bar);

#endif
