/* judged.c - finds a run by number or directory, and reads and judges it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/report.h"

#include "base/err.h"
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNS ".stoker"

static bool is_folder(const char *path)
{
    struct stat about;
    return !stat(path, &about) && S_ISDIR(about.st_mode);
}

/* The highest number in .stoker; the name of a run is its number, padded with zeros. */
static int find_newest(char out[4096], struct stoker_error *err)
{
    DIR *folder = opendir(RUNS);
    uint64_t newest = 0;
    bool found = false;
    if (!folder)
        return errno == ENOENT ? st_fail(err, STOKER_ENOTFOUND,
                                         "there is no run here: 'stoker run -- python train.py' records "
                                         "one; or name the directory of a run")
                               : st_fail_errno(err, errno, "%s", RUNS);
    for (struct dirent *entry; (entry = readdir(folder));) {
        uint64_t number;
        if (!parse_count(entry->d_name, 0, UINT32_MAX, &number) || (found && number < newest))
            continue;
        newest = number;
        found = true;
        snprintf(out, 4096, "%s/%s", RUNS, entry->d_name);
    }
    closedir(folder);
    if (!found)
        return st_fail(err, STOKER_ENOTFOUND,
                       "there is no run in %s: 'stoker run -- python train.py' records one", RUNS);
    return STOKER_OK;
}

int dr_find_run(char out[4096], const char *word, struct stoker_error *err)
{
    uint64_t number;
    if (!word)
        return find_newest(out, err);
    if (parse_count(word, 0, UINT32_MAX, &number)) {
        snprintf(out, 4096, "%s/%04llu", RUNS, (unsigned long long)number);
        if (is_folder(out))
            return STOKER_OK;
        if (!is_folder(word))
            return st_fail(err, STOKER_ENOTFOUND, "there is no run %s in %s", word, RUNS);
    }
    if (strlen(word) >= 4096 || !is_folder(word))
        return st_fail(err, STOKER_ENOTFOUND, "%s: there is no run with this number or directory", word);
    strcpy(out, word);
    return STOKER_OK;
}

int dr_judged_open(struct dr_judged **out, const char *word, struct stoker_error *err)
{
    char directory[4096];
    struct dr_judged *judged = *out = calloc(1, sizeof *judged);
    if (!judged)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a run");
    int rc = dr_find_run(directory, word, err);
    if (!rc)
        rc = dr_run_open(&judged->run, directory, err);
    if (!rc)
        rc = dr_facts_of(&judged->facts, judged->run, -1, err);
    if (!rc)
        dr_judge(&judged->verdict, &judged->facts);
    return rc;
}

void dr_judged_close(struct dr_judged *judged)
{
    if (!judged)
        return;
    dr_facts_free(&judged->facts);
    if (judged->run)
        dr_run_close(judged->run);
    free(judged);
}

struct dr_style dr_style_for(FILE *to)
{
    const bool terminal = isatty(fileno(to));
    const char *columns = getenv("COLUMNS"), *none = getenv("NO_COLOR"), *kind = getenv("TERM"),
               *locale = "";
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    struct dr_style style = {.width = 100};
    struct winsize size;
    uint64_t number;
    for (size_t i = 0; i < 3 && !*locale; i++)
        locale = getenv(names[i]) ? getenv(names[i]) : "";
    if (terminal && !ioctl(fileno(to), TIOCGWINSZ, &size) && size.ws_col)
        style.width = size.ws_col;
    else if (parse_count(columns, 20, 1000, &number))
        style.width = (uint32_t)number;
    style.color = terminal && !(none && *none) && kind && strcmp(kind, "dumb") != 0;
    style.ascii = !strcasestr(locale, "utf-8") && !strcasestr(locale, "utf8");
    return style;
}
