/* main.c - the program `stoker`: the table of commands, help and version
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {&cmd_run,     &cmd_top,  &cmd_report, &cmd_check,
                                                 &cmd_explain, &cmd_tune, &cmd_doctor, &cmd_demo,
                                                 &cmd_bench,   &cmd_pack, &cmd_verify, &cmd_info};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

static int unknown(const char *word)
{
    const char *names[COMMANDS + 2];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i]->name;
    names[COMMANDS] = "help";
    names[COMMANDS + 1] = NULL;
    const char *near = nearest_name(word, names);
    if (near)
        return fail(EXIT_USAGE, "there is no command '%s'. Did you mean '%s'?", word, near);
    return fail(EXIT_USAGE, "there is no command '%s'. 'stoker --help' lists them.", word);
}

static void print_help(void)
{
    puts("Stoker turns folders of images into training batches, fast and the same every time.\n"
         "\n"
         "usage: stoker COMMAND [ARGUMENTS]\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-14s %s\n", commands[i]->name, commands[i]->summary);
    puts("  help COMMAND   how a command is used\n"
         "\n"
         "  --version      print the version\n"
         "  --help         print this text");
}

static int help(const char *name)
{
    if (!name) {
        print_help();
        return EXIT_OK;
    }
    const struct command *command = find(name);
    if (!command)
        return unknown(name);
    fputs(command->usage, stdout);
    return EXIT_OK;
}

static bool is_help(const char *word) { return !strcmp(word, "--help") || !strcmp(word, "-h"); }

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help();
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (is_help(word) || !strcmp(word, "help"))
        return help(argc > 2 ? argv[2] : NULL);
    if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        printf("stoker %s\n", stoker_version_string());
        return EXIT_OK;
    }
    if (word[0] == '-')
        return fail(EXIT_USAGE, "there is no option '%s'. 'stoker --help' lists what there is.", word);
    const struct command *command = find(word);
    if (!command)
        return unknown(word);
    if (argc > 2 && is_help(argv[2]) && command != &cmd_demo) /* the demo has more options of its own */
        return help(word);
    return command->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    const int code = run(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) /* a full disk must not look like success */
        return code ? code : EXIT_FAILED;
    return code;
}
