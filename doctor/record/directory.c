/* directory.c - creates the directory of a run and its initial files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/record/directory.h"

#include "base/err.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* doctor/inject */
extern const char dr_inject_source[];
extern const size_t dr_inject_size;

enum { RUNS_MOST = 9999 };

/* The default directory: the highest existing number plus one, so that numbers are in order of time. */
static int make_numbered(char *out, struct stoker_error *err)
{
    if (mkdir(".stoker", 0777) && errno != EEXIST)
        return st_fail_errno(err, errno,
                             "cannot create the folder .stoker here; choose another with --dir");
    int highest = 0;
    DIR *folder = opendir(".stoker");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        const int number = strspn(entry->d_name, "0123456789") == 4 ? atoi(entry->d_name) : 0;
        highest = number > highest ? number : highest;
    }
    if (folder)
        closedir(folder);
    for (int number = highest + 1; number <= RUNS_MOST; number++) {
        snprintf(out, PATH_MAX, ".stoker/%04d", number);
        if (mkdir(out, 0777) == 0)
            return STOKER_OK;
        if (errno != EEXIST) /* another run may have started at the same time */
            return st_fail_errno(err, errno, "cannot create %s", out);
    }
    return st_fail(err, STOKER_ELIMIT,
                   ".stoker has reached run %04d: remove old runs, or choose a folder with --dir",
                   RUNS_MOST);
}

static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    bool empty = folder != NULL;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            empty = false;
    if (folder)
        closedir(folder);
    return empty;
}

static int make_named(char *out, const char *wanted, struct stoker_error *err)
{
    if (strlen(wanted) + 64 > PATH_MAX)
        return st_fail(err, STOKER_EINVAL, "the name given with --dir is too long");
    snprintf(out, PATH_MAX, "%s", wanted);
    if (mkdir(out, 0777) == 0)
        return STOKER_OK;
    if (errno != EEXIST)
        return st_fail_errno(err, errno, "cannot create %s", wanted);
    if (is_empty(out))
        return STOKER_OK;
    return st_fail(err, STOKER_EINVAL,
                   "%s is not empty: --dir must be a new or empty folder", wanted);
}

static int write_file(const struct dr_directory *directory, const char *name, const char *data,
                      size_t size, struct stoker_error *err)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", directory->path, name);
    FILE *file = fopen(path, "we");
    if (!file)
        return st_fail_errno(err, errno, "cannot write %s", path);
    const bool written = fwrite(data, 1, size, file) == size;
    if ((fclose(file) != 0) | !written)
        return st_fail_errno(err, errno, "cannot write %s", path);
    return STOKER_OK;
}

/* One argument per line; line breaks and backslashes are written as "\n" and "\\". */
static void put_line(FILE *to, const char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", to);
        else if (*text == '\\')
            fputs("\\\\", to);
        else
            putc(*text, to);
    putc('\n', to);
}

static int write_command(const struct dr_directory *directory, char *const *argv,
                         struct stoker_error *err)
{
    char *text = NULL, cwd[PATH_MAX];
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return st_fail(err, STOKER_ENOMEM, "out of memory for the command line");
    for (; *argv; argv++)
        put_line(memory, *argv);
    put_line(memory, getcwd(cwd, sizeof cwd) ? cwd : "");
    const bool whole = fclose(memory) == 0;
    const int rc = whole ? write_file(directory, "command", text, size, err)
                         : st_fail(err, STOKER_ENOMEM, "out of memory for the command line");
    free(text);
    return rc;
}

static int make_folder(const struct dr_directory *directory, const char *name, struct stoker_error *err)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", directory->path, name);
    return mkdir(path, 0777) ? st_fail_errno(err, errno, "cannot create %s", path) : STOKER_OK;
}

static int fill(const struct dr_directory *directory, char *const *argv, struct stoker_error *err)
{
    static const char *const folders[] = {"process", "events", "inject"};
    int rc = STOKER_OK;
    for (size_t k = 0; k < sizeof folders / sizeof *folders && !rc; k++)
        rc = make_folder(directory, folders[k], err);
    if (!rc)
        rc = write_command(directory, argv, err);
    if (!rc)
        rc = write_file(directory, "inject/sitecustomize.py", dr_inject_source, dr_inject_size, err);
    return rc;
}

int dr_directory_make(struct dr_directory *out, const char *wanted, char *const *argv,
                      struct stoker_error *err)
{
    char absolute[PATH_MAX];
    int rc = wanted ? make_named(out->shown, wanted, err) : make_numbered(out->shown, err);
    if (rc)
        return rc;
    if (!realpath(out->shown, absolute) || strlen(absolute) + 64 > PATH_MAX) {
        rmdir(out->shown);
        return st_fail(err, STOKER_EINVAL, "%s: the absolute path is too long", out->shown);
    }
    snprintf(out->path, sizeof out->path, "%s", absolute);
    if (strchr(out->path, ':')) { /* PYTHONPATH cannot contain it */
        rmdir(out->shown);
        return st_fail(
            err, STOKER_EINVAL,
            "%s: Python cannot find a folder with a colon in its name; choose another with --dir",
            out->path);
    }
    rc = fill(out, argv, err);
    if (rc)
        dr_directory_undo(out);
    return rc;
}

void dr_directory_undo(const struct dr_directory *directory)
{
    static const char *const files[] = {"inject/sitecustomize.py", "command", "samples"},
                             *const folders[] = {"inject", "events", "process", ""};
    char path[PATH_MAX + 64];
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        snprintf(path, sizeof path, "%s/%s", directory->path, files[k]);
        unlink(path);
    }
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        snprintf(path, sizeof path, "%s/%s", directory->path, folders[k]);
        rmdir(path);
    }
}

int dr_directory_environment(const struct dr_directory *directory, struct stoker_error *err)
{
    const char *before = getenv("PYTHONPATH");
    char *path = NULL;
    const bool has = before && *before;
    if (asprintf(&path, "%s/inject%s%s", directory->path, has ? ":" : "", has ? before : "") < 0)
        return st_fail(err, STOKER_ENOMEM, "out of memory for the environment of the command");
    const bool set = !setenv("PYTHONPATH", path, 1) && !setenv("STOKER_RUN", directory->path, 1);
    free(path);
    return set ? STOKER_OK
               : st_fail(err, STOKER_ENOMEM, "out of memory for the environment of the command");
}
