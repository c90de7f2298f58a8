/* doctor.c - `stoker doctor`: checks the machine before any run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/json.h"
#include "doctor/machine/machine.h"

#include <stdio.h>

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
    struct json json = {.to = stdout};
    json_open(&json, NULL, '{');
    json_string(&json, "worst", dr_grade_names[worst]);
    json_open(&json, "checks", '[');
    for (uint32_t k = 0; k < checks->count; k++) {
        json_open(&json, NULL, '{');
        json_string(&json, "topic", checks->check[k].topic);
        json_string(&json, "grade", dr_grade_names[checks->check[k].grade]);
        json_string(&json, "text", checks->check[k].text);
        json_string(&json, "remedy", checks->check[k].remedy[0] ? checks->check[k].remedy : NULL);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
}

static int doctor_run(int argc, char **argv)
{
    static struct dr_checks checks;
    const char *data = NULL;
    bool json = false;
    struct arguments args = ARGUMENTS(&cmd_doctor, argc, argv);
    while (next_argument(&args)) {
        if (option_is(&args, "--json"))
            json = true;
        else if (option_is(&args, "--data"))
            data = args.value;
        else
            refuse_argument(&args);
    }
    if (args.failed)
        return EXIT_USAGE;
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
    return worst == DR_BROKEN ? EXIT_FOUND : EXIT_OK;
}

static const struct cli_option options[] = {
    {"--data", "PATH",
     "a folder or file of the dataset: checks the disk it is on, and reads it\nfor up to two seconds",
     "the folder or a file of a dataset", .completes = COMPLETES_FILES},
    {"--json", NULL, "print the checks as JSON"},
    {NULL},
};

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "check the machine: CPUs, memory, storage, GPU, libraries",
    .synopsis = "[--data PATH] [--json]",
    .about = "Checks what training needs from this machine, before any run: CPUs and CPU quota,\n"
             "shared memory, limits, NUMA, storage, page cache, the GPU with its PCIe link and copy\n"
             "speed, the libraries and codecs of this build, the kernel and the environment. Each\n"
             "line is graded good, improve, broken or n/a, and says what to do.",
    .options = options,
    .notes = "Exit codes: 0 nothing is broken, 2 usage error, 3 something is broken.",
    .run = doctor_run,
};
