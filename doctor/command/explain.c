/* explain.c - `stoker explain`: explains a code of the doctor, and how to fix what it stands for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include "cli/json.h"
#include "doctor/rule/rule.h"

#include <stdio.h>
#include <string.h>

static void part(const char *title, const char *text)
{
    printf("\n%s\n", title);
    for (const char *line = text; *line;) {
        const size_t length = strcspn(line, "\n");
        /* Prose is wrapped at 76 columns; line breaks in the text (code) are kept. */
        const size_t indent = strspn(line, " ");
        size_t at = 0;
        for (const char *word = line; word < line + length;) {
            const size_t blanks = strspn(word, " "), bytes = strcspn(word + blanks, " \n");
            if (at + blanks + bytes > 76 && at > 0) {
                printf("\n");
                at = 0;
                word += blanks;
                continue;
            }
            if (at == 0)
                printf("  %*s", word == line ? 0 : (int)indent, "");
            printf("%.*s", (int)(blanks + bytes), word);
            at += blanks + bytes;
            word += blanks + bytes;
        }
        putchar('\n');
        line += length + (line[length] == '\n');
    }
}

static void explain(const struct dr_rule *rule)
{
    printf("%s  %s\n%s\n", rule->code, rule->name, rule->title);
    part("Symptoms", rule->symptoms);
    part("Why", rule->why);
    part("Fix in torch", rule->fix_torch);
    part("Fix with Stoker", rule->fix_stoker);
    part("How to check", rule->how_to_check);
}

static void write_rule(struct json *json, const struct dr_rule *rule)
{
    json_open(json, NULL, '{');
    json_string(json, "code", rule->code);
    json_string(json, "name", rule->name);
    json_string(json, "title", rule->title);
    json_string(json, "needs", rule->needs);
    json_string(json, "symptoms", rule->symptoms);
    json_string(json, "why", rule->why);
    json_string(json, "fix_torch", rule->fix_torch);
    json_string(json, "fix_stoker", rule->fix_stoker);
    json_string(json, "how_to_check", rule->how_to_check);
    json_close(json, '}');
}

static void list(void)
{
    for (size_t i = 0; dr_rules[i]; i++)
        printf("%s  %-20s %s\n", dr_rules[i]->code, dr_rules[i]->name, dr_rules[i]->title);
}

static void list_json(void)
{
    struct json json = {.to = stdout};
    json_open(&json, NULL, '[');
    for (size_t i = 0; dr_rules[i]; i++)
        write_rule(&json, dr_rules[i]);
    json_close(&json, ']');
}

/* Writes docs/doctor-codes.md; a test compares them. */
static void list_markdown(void)
{
    puts("# What the doctor can find\n\n"
         "`stoker explain --markdown` writes this table, and a test compares them. Codes are stable\n"
         "and never reused. `stoker explain CODE` tells more: symptoms, cause, the fix in torch and\n"
         "with Stoker, and how to check it.\n\n"
         "| code | name | finding | judged by |\n|---|---|---|---|");
    for (size_t i = 0; dr_rules[i]; i++)
        printf("| %s | %s | %s | %s |\n", dr_rules[i]->code, dr_rules[i]->name, dr_rules[i]->title,
               dr_rules[i]->needs[0] ? dr_rules[i]->needs : "the program itself");
}

/* For completion. */
static void list_words(FILE *to)
{
    for (size_t i = 0; dr_rules[i]; i++)
        fprintf(to, " %s %s", dr_rules[i]->code, dr_rules[i]->name);
}

static int unknown(const char *word)
{
    const char *names[2 * 64 + 1];
    size_t count = 0;
    for (size_t i = 0; dr_rules[i] && count + 2 < sizeof names / sizeof *names; i++) {
        names[count++] = dr_rules[i]->code;
        names[count++] = dr_rules[i]->name;
    }
    names[count] = NULL;
    const char *near = nearest_name(word, names);
    if (near)
        return fail(EXIT_USAGE, "explain: there is no code or name '%s'. Did you mean '%s'?", word,
                    near);
    return fail(EXIT_USAGE, "explain: there is no code or name '%s'. 'stoker explain' lists all codes.",
                word);
}

static int run(int argc, char **argv)
{
    const char *word = NULL;
    bool json = false, markdown = false;
    struct arguments args = ARGUMENTS(&cmd_explain, argc, argv);
    while (next_argument(&args)) {
        if (option_is(&args, "--json"))
            json = true;
        else if (option_is(&args, "--markdown"))
            markdown = true;
        else if (word)
            refuse_argument(&args);
        else
            word = args.word;
    }
    if (args.failed)
        return EXIT_USAGE;
    if (markdown && (json || word))
        return fail(EXIT_USAGE,
                    "explain: --markdown prints the table of all codes: give it alone, without '%s'",
                    word ? word : "--json");
    const struct dr_rule *rule = word ? dr_rule_find(word) : NULL;
    if (word && !rule)
        return unknown(word);
    if (markdown)
        list_markdown();
    else if (rule && json)
        write_rule(&(struct json){.to = stdout}, rule);
    else if (rule)
        explain(rule);
    else if (json)
        list_json();
    else
        list();
    return EXIT_OK;
}

static const struct cli_option options[] = {
    {"--json", NULL, "print the same as JSON"},
    {"--markdown", NULL, "print the table of all codes, as in docs/doctor-codes.md"},
    {NULL},
};

const struct command cmd_explain = {
    .name = "explain",
    .summary = "explain a code of the doctor: symptoms, cause, fix",
    .synopsis = "[CODE | NAME] [--json]\n--markdown",
    .about = "Explains a finding of 'stoker run': its symptoms, its cause, the fix in torch and with\n"
             "Stoker, and how to check it. Without a code: lists all codes.",
    .options = options,
    .notes = "Example: stoker explain ST206",
    .words = list_words,
    .run = run,
};
