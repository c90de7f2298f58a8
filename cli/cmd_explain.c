/* cmd_explain.c - `stoker explain`: what a code of the doctor means, why it happens, how to mend it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include "cli/doctor/rule.h"
#include "cli/out.h"

#include <stdio.h>
#include <string.h>

static void part(const char *title, const char *text)
{
    printf("\n%s\n", title);
    for (const char *line = text; *line;) {
        const size_t length = strcspn(line, "\n");
        /* Lines of prose are broken at 76 columns; what is broken in the text (code) keeps its lines. */
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

static void as_json(const struct dr_rule *rule)
{
    const struct {
        const char *key, *text;
    } members[] = {{"code", rule->code},
                   {"name", rule->name},
                   {"title", rule->title},
                   {"needs", rule->needs},
                   {"symptoms", rule->symptoms},
                   {"why", rule->why},
                   {"fix_torch", rule->fix_torch},
                   {"fix_stoker", rule->fix_stoker},
                   {"how_to_check", rule->how_to_check}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        printf("%s\"%s\": ", i ? ", " : "{", members[i].key);
        json_text(stdout, members[i].text);
    }
    putchar('}');
}

static void list(void)
{
    for (size_t i = 0; dr_rules[i]; i++)
        printf("%s  %-20s %s\n", dr_rules[i]->code, dr_rules[i]->name, dr_rules[i]->title);
}

static void list_json(void)
{
    for (size_t i = 0; dr_rules[i]; i++) {
        fputs(i ? ",\n " : "[", stdout);
        as_json(dr_rules[i]);
    }
    puts("]");
}

/* docs/doctor-codes.md is this; a test compares them. */
static void list_markdown(void)
{
    puts("# What the doctor can find\n\n"
         "Written by `stoker explain --markdown`; a test compares it. Codes are stable and never used "
         "again.\n"
         "`stoker explain CODE` says more: symptoms, why, the fix in torch and with Stoker, how to "
         "check.\n\n"
         "| code | name | what is the case | judged by |\n|---|---|---|---|");
    for (size_t i = 0; dr_rules[i]; i++)
        printf("| %s | %s | %s | %s |\n", dr_rules[i]->code, dr_rules[i]->name, dr_rules[i]->title,
               dr_rules[i]->needs[0] ? dr_rules[i]->needs : "the program itself");
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
        return fail(EXIT_USAGE, "there is no code or name '%s'. Did you mean '%s'?", word, near);
    return fail(EXIT_USAGE, "there is no code or name '%s'. 'stoker explain' lists them.", word);
}

static int run(int argc, char **argv)
{
    const char *word = NULL;
    bool json = false, markdown = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            json = true;
        else if (!strcmp(argv[i], "--markdown"))
            markdown = true;
        else if (argv[i][0] != '-' && !word)
            word = argv[i];
        else
            return fail(EXIT_USAGE,
                        "explain does not know what to do with '%s': see 'stoker help explain'",
                        argv[i]);
    }
    if (markdown && (json || word))
        return fail(EXIT_USAGE, "'--markdown' writes the table of all codes, and takes nothing else");
    const struct dr_rule *rule = word ? dr_rule_find(word) : NULL;
    if (word && !rule)
        return unknown(word);
    if (markdown)
        list_markdown();
    else if (rule && json) {
        as_json(rule);
        putchar('\n');
    } else if (rule)
        explain(rule);
    else if (json)
        list_json();
    else
        list();
    return EXIT_OK;
}

const struct command cmd_explain = {
    .name = "explain",
    .summary = "what a code of the doctor means, and how to mend it",
    .usage = "usage: stoker explain [CODE | NAME] [--json]\n"
             "       stoker explain --markdown\n"
             "\n"
             "Says what a finding of `stoker run` means: symptoms, why it happens, the fix in torch and "
             "with\n"
             "Stoker, and how to check it. Without a code: the list of all codes.\n"
             "\n"
             "  --json       the same, machine-readable\n"
             "  --markdown   the table of all codes, as docs/doctor-codes.md holds it\n"
             "\n"
             "example: stoker explain ST206\n",
    .run = run,
};
