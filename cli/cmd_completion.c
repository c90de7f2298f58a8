/* cmd_completion.c - `stoker completion`: completion scripts for shells, from the table of commands
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include <string.h>

const struct command *const *completed_commands;

/* The first line of a help text. */
static int first_line(const char *help) { return (int)strcspn(help, "\n"); }

static void put_options(FILE *to, const struct command *command)
{
    for (const struct cli_option *option = command->options; option->name; option++)
        fprintf(to, " %s", option->name);
    fputs(" --help", to);
}

/* ---- bash ---------------------------------------------------------------------------------------- */

static const char *bash_action(enum completes completes)
{
    static const char *const actions[] = {
        [COMPLETES_NOTHING] = ":",
        [COMPLETES_FILES] = "_stoker_files -f",
        [COMPLETES_FOLDERS] = "_stoker_files -d",
        [COMPLETES_COMMANDS] = ":", /* _stoker_command has done it */
    };
    return actions[completes];
}

static void bash_values(FILE *to, const struct command *command)
{
    fputs("        case $previous in\n", to);
    for (const struct cli_option *option = command->options; option->name; option++) {
        if (!option->value)
            continue;
        fprintf(to, "        %s) ", option->name);
        if (option->words)
            fprintf(to, "_stoker_words \"%s\"", option->words);
        else
            fputs(bash_action(option->completes), to);
        fputs("; return ;;\n", to);
    }
    fputs("        esac\n", to);
}

static void bash_command(FILE *to, const struct command *command)
{
    bool values = false;
    for (const struct cli_option *option = command->options; option->name; option++)
        values |= option->value != NULL;
    fprintf(to, "    %s)\n", command->name);
    if (command->arguments == COMPLETES_COMMANDS)
        fprintf(to, "        _stoker_command %s && return\n", command->name);
    if (values)
        bash_values(to, command);
    fputs("        if [[ $current == -* ]]; then _stoker_words \"", to);
    put_options(to, command);
    fputs("\"; return; fi\n", to);
    if (command->words) {
        fputs("        _stoker_words \"", to);
        command->words(to);
        fputs("\"\n", to);
    } else {
        fprintf(to, "        %s\n", bash_action(command->arguments));
    }
    fputs("        ;;\n", to);
}

/* Skips the values of options in front of the user's own command. */
static void bash_skip_values(FILE *to)
{
    for (size_t i = 0; completed_commands[i]; i++)
        for (const struct cli_option *option = completed_commands[i]->options;
             completed_commands[i]->arguments == COMPLETES_COMMANDS && option->name; option++)
            if (option->value)
                fprintf(to, "        %s:%s) ((i++)); [[ ${COMP_WORDS[i]-} == = ]] && ((i++)) ;;\n",
                        completed_commands[i]->name, option->name);
}

static void bash(FILE *to)
{
    fputs("# bash completion for stoker, written by 'stoker completion bash'\n"
          "_stoker_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$current\")); }\n"
          "_stoker_files() {\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$current\")\n"
          "}\n"
          "# Completes the command that run and tune start; fails in front of it.\n"
          "_stoker_command() {\n"
          "    local i word\n"
          "    for ((i = 2; i <= COMP_CWORD; i++)); do\n"
          "        word=${COMP_WORDS[i]}\n"
          "        if [[ $word == -- ]]; then ((i++)); break; fi\n"
          "        [[ $word == -* ]] || break\n"
          "        case $1:$word in\n",
          to);
    bash_skip_values(to);
    fputs("        esac\n"
          "    done\n"
          "    ((i <= COMP_CWORD)) || return 1\n"
          "    if declare -F _comp_command_offset >/dev/null; then _comp_command_offset \"$i\"\n"
          "    elif declare -F _command_offset >/dev/null; then _command_offset \"$i\"\n"
          "    elif ((i == COMP_CWORD)); then mapfile -t COMPREPLY < <(compgen -c -- \"$current\")\n"
          "    else _stoker_files -f; fi\n"
          "    return 0\n"
          "}\n"
          "_stoker() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    COMPREPLY=()\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        _stoker_words \"",
          to);
    for (size_t i = 0; completed_commands[i]; i++)
        fprintf(to, " %s", completed_commands[i]->name);
    fputs(" --help --version\"\n"
          "        return\n"
          "    fi\n"
          "    # bash splits --option=value into three words.\n"
          "    if [[ $current == = ]]; then current=\n"
          "    elif [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          to);
    for (size_t i = 0; completed_commands[i]; i++)
        bash_command(to, completed_commands[i]);
    fputs("    esac\n"
          "}\n"
          "complete -F _stoker stoker\n",
          to);
}

/* ---- zsh ----------------------------------------------------------------------------------------- */

/* Help inside [...] of a single-quoted specification. */
static void zsh_help(FILE *to, const char *help)
{
    for (int i = 0; i < first_line(help); i++)
        if (help[i] == '\'')
            fputs("'\\''", to);
        else
            fprintf(to, strchr("[]:\\", help[i]) ? "\\%c" : "%c", help[i]);
}

static const char *zsh_action(enum completes completes)
{
    static const char *const actions[] = {
        [COMPLETES_NOTHING] = " ",
        [COMPLETES_FILES] = "_files",
        [COMPLETES_FOLDERS] = "_files -/",
        [COMPLETES_COMMANDS] = "_command_names -e",
    };
    return actions[completes];
}

static void zsh_command(FILE *to, const struct command *command)
{
    fprintf(to, "        %s)\n            _arguments -S", command->name);
    for (const struct cli_option *option = command->options; option->name; option++) {
        fprintf(to, " \\\n                '%s%s[", option->name, option->value ? "=" : "");
        zsh_help(to, option->help);
        fputc(']', to);
        if (option->value && option->words)
            fprintf(to, ":%s:(%s)", option->value, option->words);
        else if (option->value)
            fprintf(to, ":%s:%s", option->value, zsh_action(option->completes));
        fputc('\'', to);
    }
    if (command->words) {
        fputs(" \\\n                '1:argument:(", to);
        command->words(to);
        fputs(")'", to);
    } else if (command->arguments == COMPLETES_COMMANDS) {
        fputs(" \\\n                '(-)1:command:_command_names -e' '*::arguments:_normal'", to);
    } else if (command->arguments != COMPLETES_NOTHING) {
        fprintf(to, " \\\n                '*:argument:%s'", zsh_action(command->arguments));
    }
    fputs("\n            ;;\n", to);
}

static void zsh(FILE *to)
{
    fputs("#compdef stoker\n"
          "# zsh completion for stoker, written by 'stoker completion zsh'\n"
          "_stoker() {\n"
          "    local context state line\n"
          "    local -a commands\n"
          "    commands=(\n",
          to);
    for (size_t i = 0; completed_commands[i]; i++) {
        fprintf(to, "        '%s:", completed_commands[i]->name);
        zsh_help(to, completed_commands[i]->summary);
        fputs("'\n", to);
    }
    fputs("    )\n"
          "    _arguments -C '(- *)--help[show the commands]' '(- *)--version[print the version]' \\\n"
          "        '1:command:->command' '*::argument:->argument'\n"
          "    case $state in\n"
          "    command) _describe command commands ;;\n"
          "    argument)\n"
          "        case $line[1] in\n",
          to);
    for (size_t i = 0; completed_commands[i]; i++)
        zsh_command(to, completed_commands[i]);
    fputs("        esac\n"
          "        ;;\n"
          "    esac\n"
          "}\n"
          "if [[ $funcstack[1] == _stoker ]]; then _stoker \"$@\"; else compdef _stoker stoker; fi\n",
          to);
}

/* ---- fish ---------------------------------------------------------------------------------------- */

static void fish_text(FILE *to, const char *text)
{
    fputc('\'', to);
    for (int i = 0; i < first_line(text); i++)
        fprintf(to, text[i] == '\'' || text[i] == '\\' ? "\\%c" : "%c", text[i]);
    fputc('\'', to);
}

static void fish_command(FILE *to, const struct command *command)
{
    char condition[96];
    snprintf(condition, sizeof condition, "complete -c stoker -n '__fish_seen_subcommand_from %s'",
             command->name);
    for (const struct cli_option *option = command->options; option->name; option++) {
        fprintf(to, "%s -l %s", condition, option->name + 2);
        if (option->words)
            fprintf(to, " -x -a '%s'", option->words);
        else if (option->value && option->completes == COMPLETES_NOTHING)
            fputs(" -x", to);
        else if (option->value && option->completes == COMPLETES_FOLDERS)
            fputs(" -x -a '(__fish_complete_directories)'", to);
        else if (option->value)
            fputs(" -r -F", to);
        fputs(" -d ", to);
        fish_text(to, option->help);
        fputc('\n', to);
    }
    if (command->words) {
        fprintf(to, "%s -a '", condition);
        command->words(to);
        fputs("'\n", to);
    } else if (command->arguments == COMPLETES_COMMANDS) {
        fprintf(to, "%s -x -a '(__fish_complete_subcommand --fcs-skip=2)'\n", condition);
    } else if (command->arguments == COMPLETES_FOLDERS) {
        fprintf(to, "%s -a '(__fish_complete_directories)'\n", condition);
    } else if (command->arguments == COMPLETES_FILES) {
        fprintf(to, "%s -F\n", condition);
    }
}

static void fish(FILE *to)
{
    fputs("# fish completion for stoker, written by 'stoker completion fish'\n"
          "complete -c stoker -f\n"
          "complete -c stoker -n __fish_use_subcommand -l help -d 'show the commands'\n"
          "complete -c stoker -n __fish_use_subcommand -l version -d 'print the version'\n",
          to);
    for (size_t i = 0; completed_commands[i]; i++) {
        fprintf(to, "complete -c stoker -n __fish_use_subcommand -a %s -d ",
                completed_commands[i]->name);
        fish_text(to, completed_commands[i]->summary);
        fputc('\n', to);
    }
    for (size_t i = 0; completed_commands[i]; i++)
        fish_command(to, completed_commands[i]);
}

/* ---- the command --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*write)(FILE *to);
} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
enum { SHELLS = sizeof shells / sizeof shells[0] };

static void list_shells(FILE *to)
{
    for (size_t i = 0; i < SHELLS; i++)
        fprintf(to, " %s", shells[i].name);
}

static int run(int argc, char **argv)
{
    const char *shell = NULL;
    struct arguments args = ARGUMENTS(&cmd_completion, argc, argv);
    while (next_argument(&args)) {
        if (shell)
            refuse_argument(&args);
        shell = args.word;
    }
    if (args.failed)
        return EXIT_USAGE;
    for (size_t i = 0; shell && i < SHELLS; i++)
        if (!strcmp(shells[i].name, shell)) {
            shells[i].write(stdout);
            return EXIT_OK;
        }
    return fail(EXIT_USAGE, "completion: name a shell: bash, zsh or fish%s%s%s", shell ? ", not '" : "",
                shell ? shell : "", shell ? "'" : "");
}

static const struct cli_option options[] = {{NULL}};

const struct command cmd_completion = {
    .name = "completion",
    .summary = "print a completion script for bash, zsh or fish",
    .synopsis = "bash | zsh | fish",
    .about = "Prints a script that completes the commands of stoker, their options and values.\n"
             "'pip install' and 'meson install' install all three; elsewhere:\n"
             "\n"
             "  bash   source <(stoker completion bash)   # in ~/.bashrc\n"
             "  zsh    source <(stoker completion zsh)    # in ~/.zshrc, after compinit\n"
             "  fish   stoker completion fish > ~/.config/fish/completions/stoker.fish",
    .options = options,
    .words = list_shells,
    .run = run,
};
