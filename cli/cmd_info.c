/* cmd_info.c - `stoker info`: what this build can do on this machine
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static void print_features(void)
{
    struct stoker_feature feature;
    const char *kind = "";
    for (uint32_t i = 0; stoker_feature_at(i, &feature); i++) {
        if (strcmp(kind, feature.kind))
            printf("\n%s\n", feature.kind);
        kind = feature.kind;
        printf("  %-14s %-4s %s\n", feature.name, feature.present ? "yes" : "no",
               feature.detail ? feature.detail : "");
    }
}

static void print_ops(void)
{
    struct stoker_op_info op;
    puts("\nops");
    for (uint32_t i = 0; stoker_op_at(i, &op); i++)
        printf("  %-24s %s\n", op.name, op.help ? op.help : "");
}

static int info_run(int argc, char **argv)
{
    if (argc > 1)
        return fail(EXIT_USAGE, "info takes no arguments, and got '%s'", argv[1]);
    printf("stoker %s\n", stoker_version());
    printf("CPUs this process may use: %u\n", stoker_cpus());
    print_features();
    print_ops();
    return EXIT_OK;
}

const struct command cmd_info = {
    .name = "info",
    .summary = "what this build can do on this machine: libraries, codecs, kernels, ops",
    .usage = "usage: stoker info\n"
             "\n"
             "Lists the codecs and libraries of this build, the kernels chosen for this CPU, how files\n"
             "are read, how many CPUs this process may use, and the ops that a pipeline can name.\n",
    .run = info_run,
};
