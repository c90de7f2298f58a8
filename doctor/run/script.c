/* script.c - which Python program a command line runs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/run/script.h"

#include <string.h>

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t all = strlen(text), part = strlen(end);
    return all >= part && !strcmp(text + all - part, end);
}

/* Behind the options of python, or of torchrun, whose options have values that are hard to tell from a
 * script. */
static char *const *behind_options(char *const *at, bool ranks)
{
    for (; *at && strcmp(*at, "-m") != 0 && strcmp(*at, "-c") != 0; at++) {
        if (ranks ? ends_with(*at, ".py") : **at != '-')
            break;
        at += (!strcmp(*at, "-W") || !strcmp(*at, "-X")) && at[1];
    }
    return at;
}

bool dr_script_of(struct dr_script *out, char *const *argv)
{
    *out = (struct dr_script){0};
    if (!argv || !argv[0])
        return false;
    const bool ranks = !strcmp(base_of(argv[0]), "torchrun");
    if (!ranks && strncmp(base_of(argv[0]), "python", 6) != 0)
        return false;
    char *const *at = behind_options(argv + 1, ranks);
    if (*at && !strcmp(*at, "-m") && at[1] && !strcmp(at[1], "stoker")) {
        out->with_stoker = true;
        at += 2;
    }
    if (!*at || !strcmp(*at, "-c"))
        return false;
    out->is_module = !strcmp(*at, "-m");
    out->name = out->is_module ? at[1] : *at;
    out->launcher = ranks ? "torchrun" : "python";
    return out->name != NULL;
}
