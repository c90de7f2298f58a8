/* cli.h - what the commands of the program `stoker` share
 *
 * A command is one file that ends in its `const struct command`, listed in the table of main.c. Its
 * options are a table too: parsing, help, error messages and shell completion all come from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_CLI_H
#define ST_CLI_CLI_H

#include "st_config.h"
#include "stoker/stoker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The exit codes of every command. `stoker help` prints this table, and the man page repeats it. The one
 * exception is `run`, which exits with the code of the command that it ran. */
#define EXIT_CODES(X)                                                                                   \
    X(EXIT_OK, 0, "success")                                                                            \
    X(EXIT_FAILED, 1, "failed: something could not be read, written, measured or judged")               \
    X(EXIT_USAGE, 2, "usage error: unknown option, missing argument, or a value that is not allowed")   \
    X(EXIT_FOUND, 3,                                                                                    \
      ST_HAVE_DOCTOR                                                                                    \
          ? "finished and found a problem: a limit exceeded (check), bad samples (verify, pack),\n"     \
            "something broken (doctor)"                                                                 \
          : "finished and found a problem: bad samples (verify, pack)")

#define EXIT_CODE(name, code, meaning) name = code,
enum exit_code { EXIT_CODES(EXIT_CODE) };
#undef EXIT_CODE

/* ---- commands and their options ------------------------------------------------------------------ */

/* What shell completion offers for a value or an argument, beside any words. */
enum completes { COMPLETES_NOTHING, COMPLETES_FILES, COMPLETES_FOLDERS, COMPLETES_COMMANDS };

struct cli_option {
    const char *name;    /* "--workers"; NULL ends the table */
    const char *value;   /* its placeholder, "N"; NULL: the option takes no value */
    const char *help;    /* the first line must make sense alone: completion shows only that */
    const char *allowed; /* "a whole number from 1 to 1024"; NULL where there is no value */
    const char *words;   /* all allowed values, separated by spaces, where they are few; or NULL */
    enum completes completes;
};

struct command {
    const char *name;
    const char *summary;  /* one line, for the list of commands */
    const char *synopsis; /* follows "usage: stoker NAME"; one line per form */
    const char *about;
    const struct cli_option *options;
    const char *notes;                 /* printed after the options; or NULL */
    enum completes arguments;          /* what completion offers for arguments that are not options */
    /* Prints words that complete an argument, each after a space; or NULL. */
    void (*words)(FILE *to);
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
};

extern const struct command cmd_bench, cmd_check, cmd_completion, cmd_demo, cmd_doctor, cmd_explain,
    cmd_help, cmd_info, cmd_pack, cmd_report, cmd_run, cmd_top, cmd_tune, cmd_verify;
/* The table of main.c, which `stoker completion` writes scripts for; NULL at the end. */
extern const struct command *const *completed_commands;

/* Prints words in lines as wide as the terminal (or 80 columns), indented, from column `at` on. Empty
 * lines and those that begin with a space stay as they are. */
void put_text(FILE *to, const char *text, size_t at, size_t indent);
/* What `stoker help NAME` prints. */
void print_usage(FILE *to, const struct command *command);

/* Goes through the arguments of a command. */
struct arguments {
    const struct command *command;
    int count;
    char **list;
    int at; /* index of the next argument */

    /* The current argument. */
    const struct cli_option *option; /* NULL: it is not an option */
    const char *word;                /* the argument itself, where it is not an option */
    const char *value;               /* the option's value, never NULL where it takes one */

    bool only_words; /* "--" was seen: no options follow */
    bool failed;     /* an error was printed: exit with EXIT_USAGE */
};
#define ARGUMENTS(of, argc, argv)                                                                       \
    ((struct arguments){.command = (of), .count = (argc), .list = (argv), .at = 1})
/* Moves to the next argument. False at the end, and after an error, which it prints. */
bool next_argument(struct arguments *args);
bool option_is(const struct arguments *args, const char *name);
/* Print what is wrong with the current argument; both set `failed` and return EXIT_USAGE. */
int refuse_value(struct arguments *args);
int refuse_argument(struct arguments *args);
/* For parsers in a chain: `good`, or the value is refused. */
bool accept_value(struct arguments *args, bool good);

/* A whole number or a decimal within limits; false for anything else. */
bool parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *out);
bool parse_seconds(const char *text, double least, double most, double *out);

/* The name nearest to a mistyped word (names end with NULL), or NULL when none is near. */
const char *nearest_name(const char *word, const char *const *names);

/* ---- messages and numbers ------------------------------------------------------------------------ */

/* Prints "stoker: ..." on standard error and returns the given exit code. */
int fail(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes text from data (names, messages that contain them) safe for a terminal: see base/text.h. Text
 * that does not fit into the buffer is truncated. */
struct shown_text {
    char text[4096];
};
const char *shown(struct shown_text *room, const char *text);
/* Whether an error's message, in which names are made safe, contains this name. */
bool mentions(const char *message, const char *name);

/* 1234567 as "1,234,567". */
struct number_text {
    char text[32];
};
const char *with_commas(struct number_text *room, double value);
/* 1536 as "1.5 KB". */
struct bytes_text {
    char text[32];
};
const char *with_unit(struct bytes_text *room, double bytes);

/* Seconds of all CPUs at work, by the first line of /proc/stat, and those of them that the host of a
 * virtual machine withheld (if `stolen` is not NULL); NaN: it does not say. */
double busy_cpu_seconds(const char *stat, double *stolen);
/* Those of the CPUs k for which allowed[k], `count` in number, by the lines that follow; NaN: some are
 * missing there. */
double allowed_cpu_seconds(const char *stat, const bool *allowed, uint32_t room, uint32_t count);
/* Room for /proc/stat up to the last line of a CPU, on machines with a thousand of them. */
enum { STAT_ROOM = 1 << 17, STAT_CPUS = 4096 };

/* What other programs use of the CPUs that this process may use, measured for a quarter of a second. */
struct others {
    double used;    /* NaN: unknown */
    double allowed; /* by the affinity */
    double paid;    /* of these, by the quota of the cgroup */
};
struct others cpus_of_others(void);
/* Whether they use so much that measurements suffer; says so in `out`. */
bool others_text(char *out, size_t room, const struct others *others);

/* The columns of a terminal, from 40 to 100; 80 if this is none. */
size_t columns_for(FILE *to);
/* Whether standard error is a terminal that can redraw a line; and redraws it, cut to the columns of the
 * terminal. The line must be ASCII. */
bool can_redraw(void);
void redraw(const char *line);

/* A progress bar on standard error, redrawn a few times per second; off when that is not a terminal. */
struct progress {
    const char *label;
    uint64_t drawn_ns;
    bool on;
};
void progress_begin(struct progress *bar, const char *label);
void progress_show(struct progress *bar, double share);
void progress_end(struct progress *bar);

#endif
