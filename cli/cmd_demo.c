/* cmd_demo.c - `stoker demo`: hands over to the demonstration, which is written in Python
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The interpreter beside this program, so that a virtual environment need not be activated. */
static bool python_beside_us(char path[PATH_MAX])
{
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    const size_t room = slash ? (size_t)(path + PATH_MAX - slash) : 0;
    if (room < sizeof "/python3")
        return false;
    memcpy(slash, "/python3", sizeof "/python3");
    return access(path, X_OK) == 0;
}

static int demo_run(int argc, char **argv)
{
    char beside[PATH_MAX];
    const char *python = python_beside_us(beside) ? beside : "python3";
    const char **args = calloc((size_t)argc + 3, sizeof *args);
    if (!args)
        return fail(EXIT_FAILED, "out of memory");
    args[0] = python;
    args[1] = "-m";
    args[2] = "stoker.demo";
    for (int i = 1; i < argc; i++)
        args[2 + i] = argv[i];
    fflush(NULL);
    execvp(python, (char *const *)args);
    const int why = errno;
    free(args);
    return fail(EXIT_FAILED,
                "%s could not be started: %s. The demo needs Python and the stoker package.", python,
                strerror(why));
}

const struct command cmd_demo = {
    .name = "demo",
    .summary = "make a small data set, load it with torch's loader and with Stoker, show both",
    .usage =
        "usage: stoker demo [ARGUMENTS]\n"
        "\n"
        "Makes a small realistic image set (kept for the next time), loads one epoch of it with\n"
        "torch's DataLoader and with Stoker, with the same transforms and the same number of workers,\n"
        "and shows the rates, the first batch, the CPU time and the memory of both.\n"
        "'stoker demo --help' lists the arguments.\n",
    .run = demo_run,
};
