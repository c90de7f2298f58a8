/* unfinished.c - weak stand-ins for commands that are being written; goes away with the last of them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#define WEAK __attribute__((weak))
static int nothing(int argc, char **argv)
{
    (void)argc;
    return fail(EXIT_FAILED, "'%s' is not written yet", argv[0]);
}
WEAK const struct command cmd_run = {"run", "", "", nothing};
WEAK const struct command cmd_top = {"top", "", "", nothing};
WEAK const struct command cmd_report = {"report", "", "", nothing};
WEAK const struct command cmd_check = {"check", "", "", nothing};
WEAK const struct command cmd_explain = {"explain", "", "", nothing};
WEAK const struct command cmd_tune = {"tune", "", "", nothing};
WEAK const struct command cmd_doctor = {"doctor", "", "", nothing};

