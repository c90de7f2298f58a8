/* main.c - the program `stoker`: the table of commands, help and version
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/json.h"

#include <errno.h>
#include <string.h>

#define COMMANDS_OF_THE_DOCTOR(X) X(run) X(top) X(report) X(check) X(explain) X(tune) X(doctor)
#define PRESENT(name) &cmd_##name,
#define ABSENT(name)  #name,

static const struct command *const commands[] = {
#if ST_HAVE_DOCTOR
    COMMANDS_OF_THE_DOCTOR(PRESENT)
#endif
    &cmd_demo, &cmd_bench, &cmd_pack, &cmd_verify, &cmd_info, &cmd_completion, &cmd_help, NULL,
};
/* What this build lacks, by name. */
static const char *const absent[] = {
#if !ST_HAVE_DOCTOR
    COMMANDS_OF_THE_DOCTOR(ABSENT)
#endif
    NULL,
};
enum { COMMANDS = sizeof commands / sizeof commands[0] - 1 };

static const struct {
    int code;
    const char *meaning;
} exit_codes[] = {
#define LIST(name, code, meaning) {code, meaning},
    EXIT_CODES(LIST)
#undef LIST
};
enum { CODES = sizeof exit_codes / sizeof exit_codes[0] };

static const struct command *command_named(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

static int unknown(const char *word)
{
    enum { OPTIONS = 2 };
    const char *names[COMMANDS + OPTIONS + 1] = {"--help", "--version"};
    const char *what = word[0] == '-' ? "option" : "command";
    for (size_t i = 0; absent[i]; i++)
        if (!strcmp(absent[i], word))
            return fail(EXIT_USAGE,
                        "%s: this build has no doctor, because it was configured with "
                        "-Ddoctor=disabled; build Stoker without that option to have it",
                        word);
    for (size_t i = 0; i < COMMANDS; i++)
        names[OPTIONS + i] = commands[i]->name;
    const char *near = nearest_name(word, names);
    if (near)
        return fail(EXIT_USAGE, "there is no %s '%s'. Did you mean '%s'?", what, word, near);
    return fail(EXIT_USAGE, "there is no %s '%s'. 'stoker help' lists commands and options.", what,
                word);
}

/* ---- help ---------------------------------------------------------------------------------------- */

static void print_help(FILE *to)
{
    enum { NAME = 15 };
    put_text(to,
             ST_HAVE_DOCTOR
                 ? "Stoker turns datasets of encoded images and sounds into training batches, fast and "
                   "reproducibly, and finds out why a training run waits for its data."
                 : "Stoker turns datasets of encoded images and sounds into training batches, fast and "
                   "reproducibly.",
             0, 0);
    fputs("\nusage: stoker COMMAND [ARGUMENTS]\n\n", to);
    for (size_t i = 0; i < COMMANDS; i++) {
        fprintf(to, "  %-12s ", commands[i]->name);
        put_text(to, commands[i]->summary, NAME, NAME);
    }
    fputs("\n"
          "  --version    print the version\n"
          "  --help       print this text\n"
          "\n",
          to);
    fputs(ST_HAVE_DOCTOR ? "Exit codes (run is different: it exits with the code of its command):\n"
                         : "Exit codes:\n",
          to);
    for (size_t i = 0; i < CODES; i++) {
        fprintf(to, "  %d  ", exit_codes[i].code);
        put_text(to, exit_codes[i].meaning, 5, 5);
    }
    fputs("\n'stoker help COMMAND' shows how a command is used, 'man stoker' all of them.\n", to);
}

static void write_option(struct json *json, const struct cli_option *option)
{
    json_open(json, NULL, '{');
    json_string(json, "name", option->name);
    json_string(json, "value", option->value);
    json_string(json, "allowed", option->allowed);
    json_string(json, "help", option->help);
    json_close(json, '}');
}

static void write_command(struct json *json, const struct command *command)
{
    json_open(json, NULL, '{');
    json_string(json, "name", command->name);
    json_string(json, "summary", command->summary);
    json_string(json, "synopsis", command->synopsis);
    json_open(json, "options", '[');
    for (const struct cli_option *option = command->options; option->name; option++)
        write_option(json, option);
    json_close(json, ']');
    json_close(json, '}');
}

/* All commands, or one of them. */
static void write_help(const struct command *only)
{
    struct json json = {.to = stdout};
    json_open(&json, NULL, '{');
    json_string(&json, "version", stoker_version_string());
    json_open(&json, "commands", '[');
    for (size_t i = 0; i < COMMANDS; i++)
        if (!only || commands[i] == only)
            write_command(&json, commands[i]);
    json_close(&json, ']');
    json_open(&json, "exit_codes", '[');
    for (size_t i = 0; i < CODES; i++) {
        json_open(&json, NULL, '{');
        json_count(&json, "code", (uint64_t)exit_codes[i].code);
        json_string(&json, "meaning", exit_codes[i].meaning);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
}

static void list_commands(FILE *to)
{
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, " %s", commands[i]->name);
}

static int help_run(int argc, char **argv)
{
    const char *name = NULL;
    bool json = false;
    struct arguments args = ARGUMENTS(&cmd_help, argc, argv);
    while (next_argument(&args)) {
        if (option_is(&args, "--json"))
            json = true;
        else if (name)
            return refuse_argument(&args);
        else
            name = args.word;
    }
    if (args.failed)
        return EXIT_USAGE;
    const struct command *command = name ? command_named(name) : NULL;
    if (name && !command)
        return unknown(name);
    if (json)
        write_help(command);
    else if (command)
        print_usage(stdout, command);
    else
        print_help(stdout);
    return EXIT_OK;
}

static const struct cli_option help_options[] = {
    {"--json", NULL, "print commands, options and exit codes as JSON"},
    {NULL},
};

const struct command cmd_help = {
    .name = "help",
    .summary = "show how a command is used",
    .synopsis = "[COMMAND] [--json]",
    .about = "Without COMMAND: lists the commands and the exit codes.",
    .options = help_options,
    .words = list_commands,
    .run = help_run,
};

/* ---- the program --------------------------------------------------------------------------------- */

static bool is_help(const char *word) { return !strcmp(word, "--help") || !strcmp(word, "-h"); }

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (is_help(word))
        return help_run(argc - 1, argv + 1);
    if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        printf("stoker %s\n", stoker_version_string());
        return EXIT_OK;
    }
    const struct command *command = command_named(word);
    if (!command)
        return unknown(word);
    if (argc > 2 && is_help(argv[2])) {
        print_usage(stdout, command);
        return EXIT_OK;
    }
    return command->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    completed_commands = commands;
    const int code = run(argc, argv);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fail(0, "cannot write to standard output%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
    return code ? code : EXIT_FAILED; /* a full disk must not look like success */
}
