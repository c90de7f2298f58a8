/* cmd_doctor.c - `stoker doctor`: the machine alone, before any run: what is good, what to improve
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/doctor/machine/machine.h"
#include "cli/doctor/report/json.h"

#include <stdio.h>
#include <string.h>

static void print_text(const struct dr_checks *checks)
{
    struct shown_text room;
    for (uint32_t k = 0; k < checks->count; k++) {
        const struct dr_check *check = &checks->check[k];
        printf("%-8s %-13s %s\n", dr_grade_names[check->grade], check->topic, shown(&room, check->text));
        if (check->remedy[0])
            printf("%-8s %-13s -> %s\n", "", "", shown(&room, check->remedy));
    }
}

static void print_json(const struct dr_checks *checks, enum dr_grade worst)
{
    struct dr_json json = {.to = stdout};
    dr_json_open(&json, NULL, '{');
    dr_json_text(&json, "worst", dr_grade_names[worst]);
    dr_json_open(&json, "checks", '[');
    for (uint32_t k = 0; k < checks->count; k++) {
        dr_json_open(&json, NULL, '{');
        dr_json_text(&json, "topic", checks->check[k].topic);
        dr_json_text(&json, "grade", dr_grade_names[checks->check[k].grade]);
        dr_json_text(&json, "text", checks->check[k].text);
        dr_json_text(&json, "remedy", checks->check[k].remedy[0] ? checks->check[k].remedy : NULL);
        dr_json_close(&json, '}');
    }
    dr_json_close(&json, ']');
    dr_json_close(&json, '}');
    putchar('\n');
}

static int doctor_run(int argc, char **argv)
{
    static struct dr_checks checks;
    const char *data = NULL;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (!strcmp(option, "--json")) {
            json = true;
        } else if (option_is(option, "--data")) {
            data = option_value(argc, argv, &i);
            if (!data)
                return fail(EXIT_USAGE, "--data wants a folder or a file: see 'stoker help doctor'");
        } else {
            return fail(EXIT_USAGE, "doctor does not know '%s': see 'stoker help doctor'", option);
        }
    }
    dr_check_machine(&checks);
    dr_check_storage(&checks, data);
    dr_check_gpu(&checks);
    dr_check_build(&checks);
    enum dr_grade worst = DR_GOOD;
    for (uint32_t k = 0; k < checks.count; k++)
        if (checks.check[k].grade != DR_NOT_HERE && checks.check[k].grade > worst)
            worst = checks.check[k].grade;
    if (json)
        print_json(&checks, worst);
    else
        print_text(&checks);
    return worst == DR_BROKEN ? EXIT_FAILED : EXIT_OK;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "look at the machine alone: CPUs, memory, storage, GPU, libraries",
    .usage =
        "usage: stoker doctor [OPTIONS]\n"
        "\n"
        "Looks at what training needs of this machine, before any run: CPUs and quota, shared memory,\n"
        "limits, NUMA, storage, page cache, the GPU, its link and copy speed, the libraries and codecs\n"
        "of this build, the kernel and the environment. Each line is good, improve, broken or n/a, and\n"
        "says what to do.\n"
        "\n"
        "  --data PATH    the data set's folder or file: its disk is looked at and read for a moment\n"
        "  --json         the same for programs\n"
        "\n"
        "Exits with 1 if something is broken, else with 0.\n",
    .run = doctor_run,
};
