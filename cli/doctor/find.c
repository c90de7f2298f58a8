/* find.c - which run is meant
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/find.h"

#include "base/err.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_number(const char *text)
{
    if (!*text)
        return false;
    for (; *text; text++)
        if (!isdigit((unsigned char)*text))
            return false;
    return true;
}

/* A run says in "command" what it ran. */
static bool is_run(const char *directory)
{
    char path[PATH_MAX];
    struct stat found;
    return snprintf(path, sizeof path, "%s/command", directory) < (int)sizeof path && stat(path, &found) == 0;
}

static int newest(char *out, size_t room, struct stoker_error *err)
{
    unsigned long long most = 0;
    DIR *dir = opendir(DR_RUNS);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[PATH_MAX];
        if (!is_number(entry->d_name) || strlen(entry->d_name) > 9 ||
            snprintf(path, sizeof path, DR_RUNS "/%s", entry->d_name) >= (int)sizeof path || !is_run(path))
            continue;
        const unsigned long long number = strtoull(entry->d_name, NULL, 10);
        if (number >= most && snprintf(out, room, "%s", path) < (int)room)
            most = number;
    }
    if (dir)
        closedir(dir);
    if (!most)
        return st_fail(err, STOKER_ENOTFOUND,
                       "there is no run in " DR_RUNS " here. 'stoker run -- COMMAND' makes one; a run elsewhere is named by its directory");
    return STOKER_OK;
}

int dr_find_run(char *out, size_t room, const char *what, struct stoker_error *err)
{
    if (!what)
        return newest(out, room, err);
    if (is_number(what) && strlen(what) <= 9 &&
        snprintf(out, room, DR_RUNS "/%04lu", strtoul(what, NULL, 10)) < (int)room && is_run(out))
        return STOKER_OK;
    if (snprintf(out, room, "%s", what) < (int)room && is_run(out))
        return STOKER_OK;
    return st_fail(err, STOKER_ENOTFOUND, "%s: no run of 'stoker run' (it would hold a file named \"command\")", what);
}
