/* arguments.c - parses the arguments of a command by its table of options, and prints its usage from it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include <string.h>

/* ---- usage --------------------------------------------------------------------------------------- */

/* Ends a line that has been begun. */
static void end_line(FILE *to, size_t *at, size_t indent)
{
    if (*at > indent)
        fputc('\n', to);
    *at = 0;
}

static void put_words(FILE *to, const char *line, size_t length, size_t *at, size_t indent, size_t width)
{
    for (const char *end = line + length; line < end;) {
        const size_t size = strcspn(line, " \n");
        if (*at > indent && *at + 1 + size > width)
            end_line(to, at, indent);
        if (*at < indent)
            fprintf(to, "%*s", (int)(indent - *at), "");
        else if (*at > indent)
            fputc(' ', to);
        *at = (*at > indent ? *at + 1 : indent) + size;
        fwrite(line, 1, size, to);
        line += size + (line[size] == ' ');
    }
}

void put_text(FILE *to, const char *text, size_t at, size_t indent)
{
    const size_t width = columns_for(to);
    while (*text) {
        const size_t length = strcspn(text, "\n");
        if (!length || *text == ' ') { /* a new paragraph, or a table */
            end_line(to, &at, indent);
            fprintf(to, "%*s%.*s\n", length ? (int)indent : 0, "", (int)length, text);
        } else {
            put_words(to, text, length, &at, indent, width);
        }
        text += length + (text[length] == '\n');
    }
    end_line(to, &at, indent);
}

static size_t option_width(const struct cli_option *option)
{
    return strlen(option->name) + (option->value ? 1 + strlen(option->value) : 0);
}

void print_usage(FILE *to, const struct command *command)
{
    size_t widest = 0;
    const char *line = command->synopsis;
    for (bool first = true; first || *line; first = false) {
        const size_t length = strcspn(line, "\n");
        fprintf(to, "%s stoker %s%s%.*s\n", first ? "usage:" : "      ", command->name,
                length ? " " : "", (int)length, line);
        line += length + (line[length] == '\n');
    }
    fputc('\n', to);
    put_text(to, command->about, 0, 0);
    for (const struct cli_option *option = command->options; option->name; option++)
        if (option_width(option) > widest)
            widest = option_width(option);
    if (command->options->name)
        fputc('\n', to);
    for (const struct cli_option *option = command->options; option->name; option++) {
        fprintf(to, "  %s%s%s%*s  ", option->name, option->value ? " " : "",
                option->value ? option->value : "", (int)(widest - option_width(option)), "");
        put_text(to, option->help, widest + 4, widest + 4);
    }
    if (command->notes) {
        fputc('\n', to);
        put_text(to, command->notes, 0, 0);
    }
}

/* ---- parsing ------------------------------------------------------------------------------------- */

static const struct cli_option *find(const struct command *command, const char *word, size_t length)
{
    for (const struct cli_option *option = command->options; option->name; option++)
        if (strlen(option->name) == length && !strncmp(option->name, word, length))
            return option;
    return NULL;
}

static bool wrong(struct arguments *args)
{
    args->failed = true;
    return false;
}

static bool unknown_option(struct arguments *args, const char *word)
{
    enum { MOST = 32 };
    const char *names[MOST + 1], *command = args->command->name;
    char name[64];
    size_t count = 0;
    for (const struct cli_option *option = args->command->options; option->name && count < MOST;
         option++)
        names[count++] = option->name;
    names[count] = NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    const char *near = nearest_name(name, names);
    if (near)
        fail(EXIT_USAGE, "%s: there is no option '%s'. Did you mean '%s'?", command, word, near);
    else
        fail(EXIT_USAGE, "%s: there is no option '%s'. 'stoker help %s' lists the options.", command,
             word, command);
    return wrong(args);
}

static bool take_value(struct arguments *args, const char *equals)
{
    const struct cli_option *option = args->option;
    if (equals && !option->value) {
        fail(EXIT_USAGE, "%s: %s takes no value, but was given '%s'", args->command->name, option->name,
             equals + 1);
        return wrong(args);
    }
    args->value = equals ? equals + 1 : NULL;
    if (!option->value || equals)
        return true;
    const char *next = args->at < args->count ? args->list[args->at] : NULL;
    /* Another option in the place of the value is a forgotten value, not a file called --json. */
    if (!next || !strcmp(next, "--") || find(args->command, next, strcspn(next, "="))) {
        fail(EXIT_USAGE, "%s: %s requires a value: %s", args->command->name, option->name,
             option->allowed);
        return wrong(args);
    }
    args->value = next;
    args->at++;
    return true;
}

bool next_argument(struct arguments *args)
{
    args->option = NULL;
    args->word = args->value = NULL;
    if (args->failed || args->at >= args->count)
        return false;
    const char *word = args->list[args->at++];
    if (!args->only_words && !strcmp(word, "--")) {
        args->only_words = true;
        return next_argument(args);
    }
    if (args->only_words || word[0] != '-' || !word[1]) {
        args->word = word;
        return true;
    }
    const char *equals = strchr(word, '=');
    args->option = find(args->command, word, strcspn(word, "="));
    return args->option ? take_value(args, equals) : unknown_option(args, word);
}

bool option_is(const struct arguments *args, const char *name)
{
    return args->option && !strcmp(args->option->name, name);
}

int refuse_value(struct arguments *args)
{
    args->failed = true;
    return fail(EXIT_USAGE, "%s: %s must be %s, not '%s'", args->command->name, args->option->name,
                args->option->allowed, args->value);
}

int refuse_argument(struct arguments *args)
{
    args->failed = true;
    return fail(EXIT_USAGE, "%s: unexpected argument '%s'; usage: stoker %s %.*s", args->command->name,
                args->word, args->command->name, (int)strcspn(args->command->synopsis, "\n"),
                args->command->synopsis);
}

bool accept_value(struct arguments *args, bool good)
{
    if (!good)
        refuse_value(args);
    return good;
}
