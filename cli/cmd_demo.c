/* cmd_demo.c - `stoker demo`: starts the demonstration, a Python program
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

/* Prefers the interpreter next to this program, so that the virtual environment need not be active. */
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

/* The Python program parses them again; here they are checked, with the other commands' messages. */
static bool check_arguments(int argc, char **argv)
{
    struct arguments args = ARGUMENTS(&cmd_demo, argc, argv);
    while (next_argument(&args)) {
        uint64_t number;
        if (args.word)
            refuse_argument(&args);
        else if (args.value && !option_is(&args, "--data"))
            accept_value(&args, parse_count(args.value, 1, INT_MAX, &number));
    }
    return !args.failed;
}

static int demo_run(int argc, char **argv)
{
    char beside[PATH_MAX];
    if (!check_arguments(argc, argv))
        return EXIT_USAGE;
    const char *python = python_beside_us(beside) ? beside : "python3";
    const char **args = calloc((size_t)argc + 3, sizeof *args);
    if (!args)
        return fail(EXIT_FAILED, "out of memory");
    args[0] = python;
    args[1] = "-c";
    args[2] =
        "import importlib.util, runpy, sys\n"
        "if importlib.util.find_spec('stoker') is None:\n"
        "    sys.exit(f'stoker: demo: {sys.executable} does not have the Python package stoker: '\n"
        "             'install it there, or activate the environment that has it')\n"
        "runpy.run_module('stoker.demo', run_name='__main__', alter_sys=True)\n";
    for (int i = 1; i < argc; i++)
        args[2 + i] = argv[i];
    fflush(NULL);
    execvp(python, (char *const *)args);
    const int why = errno;
    free(args);
    return fail(EXIT_FAILED,
                "demo: cannot start %s: %s. The demo needs Python and the stoker package.", python,
                strerror(why));
}

/* A test compares them with those of the Python program. */
static const struct cli_option options[] = {
    {"--data", "DIR", "a folder with one sub-folder per class (default: generated images)",
     "a folder with one sub-folder per class", .completes = COMPLETES_FOLDERS},
    {"--images", "N", "the number of images to generate (default 512)", "a whole number of at least 1"},
    {"--workers", "N", "workers of each loader (default: the CPUs this process may use)",
     "a whole number of at least 1"},
    {"--batch-size", "N", "samples per batch (default 32)", "a whole number of at least 1"},
    {"--json", NULL, "print the measurements as JSON"},
    {NULL},
};

const struct command cmd_demo = {
    .name = "demo",
    .summary = "load a small dataset with torch's DataLoader and with Stoker, and compare",
    .synopsis = "[OPTIONS]",
    .about = "Generates a small realistic image set (kept for the next run), loads one epoch of it\n"
             "with torch's DataLoader and one with Stoker, with the same transforms and the same\n"
             "number of workers, and compares images per second, time to the first batch, CPU time\n"
             "and memory.",
    .options = options,
    .notes = "The comparison needs torch, torchvision and Pillow; without them Stoker is shown\n"
             "alone.",
    .run = demo_run,
};
