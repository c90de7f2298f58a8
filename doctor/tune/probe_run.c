/* probe_run.c - runs the command under `stoker run` with other settings
 *
 * The output of the command goes to a file: it would print the same a dozen times.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "doctor/tune/tune.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* stoker run --quiet --no-report --dir DIRECTORY -- COMMAND */
static char **arguments(const struct dr_probe_run *run)
{
    static const char *const first[] = {"stoker", "run", "--quiet", "--no-report", "--dir"};
    enum { FIRST = sizeof first / sizeof first[0] };
    uint64_t count = 0;
    while (run->command[count])
        count++;
    char **argv = st_calloc(FIRST + 2 + count + 1, sizeof *argv);
    if (!argv)
        return NULL;
    for (size_t k = 0; k < FIRST; k++)
        argv[k] = (char *)first[k]; /* execv does not modify them */
    argv[FIRST] = (char *)run->directory;
    argv[FIRST + 1] = (char *)"--";
    memcpy(argv + FIRST + 2, run->command, count * sizeof *argv);
    return argv;
}

/* In the child; does not return. */
static void become(const struct dr_probe_run *run, char **argv, int log)
{
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* which `stoker run` passes on: no run outlives us */
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 ||
        setenv("STOKER_PROBE", run->probe, 1))
        _exit(127);
    execv("/proc/self/exe", argv);
    _exit(127);
}

/* Kills the processes that `stoker run` watches; it then exits itself. Killing it would leave the
 * command running. */
static void kill_watched(pid_t supervisor)
{
    char path[64];
    int pid;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)supervisor, (int)supervisor);
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%d", &pid) == 1)
        kill(pid, SIGKILL);
    if (file)
        fclose(file);
}

bool dr_patience_lasts(struct dr_patience *patience, double now, uint64_t batches)
{
    if (batches > patience->batches) {
        patience->batches = batches;
        patience->since = now;
    }
    return now - patience->since <= patience->wait + (patience->batches ? patience->measured : 0);
}

/* Calls `each` for every file of the run whose name begins with `prefix`. */
static void for_files(const char *directory, const char *prefix,
                      void (*each)(const char *path, void *context), void *context)
{
    DIR *dir = opendir(directory);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[PATH_MAX];
        if (!strncmp(entry->d_name, prefix, strlen(prefix)) &&
            snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) < (int)sizeof path)
            each(path, context);
    }
    closedir(dir);
}

static void add_size(const char *path, void *context)
{
    struct stat about;
    if (!stat(path, &about))
        *(uint64_t *)context += (uint64_t)about.st_size;
}

/* The batches that the loaders of all ranks have reported. */
static uint64_t reported_batches(const char *directory)
{
    uint64_t batches = 0;
    for_files(directory, "batches-", add_size, &batches);
    return batches;
}

/* Waits for the child. If its loader delivers nothing for too long, ends it and sets *ended_by_us. */
static int wait_for(pid_t child, const struct dr_probe_run *run, bool *ended_by_us)
{
    const uint64_t begin = st_now_ns();
    struct dr_patience patience = {.wait = run->wait, .measured = run->seconds};
    double terminated = 0;
    int status = 0;
    bool killed = false;
    for (;;) {
        const pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child)
            return status;
        if (got < 0 && errno != EINTR)
            return -1;
        const double passed = (double)(st_now_ns() - begin) * 1e-9;
        if (*ended_by_us && !killed && passed > terminated + 5) {
            kill_watched(child);
            killed = true;
        } else if (!*ended_by_us &&
                   !dr_patience_lasts(&patience, passed, reported_batches(run->directory))) {
            kill(child, SIGTERM);
            *ended_by_us = true;
            terminated = passed;
        }
        usleep(20000);
    }
}

struct found {
    struct dr_probe_result *out;
    double rates, seconds;
    uint32_t ranks;
};

static void add_result(const char *path, void *context)
{
    struct found *found = context;
    double batches, took;
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (fscanf(file, "%lf %lf", &batches, &took) == 2 && batches >= 1 && took > 0) {
        found->ranks++;
        found->out->batches += batches;
        found->rates += batches / took;
        found->seconds += took;
    }
    fclose(file);
}

/* Reads the numbers that each rank has written. */
static bool read_results(const char *directory, struct dr_probe_result *out)
{
    struct found found = {.out = out};
    *out = (struct dr_probe_result){0};
    for_files(directory, "probe-", add_result, &found);
    if (!found.ranks)
        return false;
    out->rate = found.rates / found.ranks;
    out->seconds = found.seconds / found.ranks;
    return true;
}

/* Why nothing was measured. What ended the command is said by its status, unless it was us. */
static int explain(const struct dr_probe_run *run, int status, bool ended_by_us,
                   struct stoker_error *err)
{
    const unsigned long long batches = reported_batches(run->directory);
    const int code = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    char how[96];
    if (ended_by_us && !batches)
        return st_fail(err, STOKER_EIO,
                       "no DataLoader of the command delivered a batch within %.0f s, so tune ended it. "
                       "If it only needs longer to start, give it more time: --wait %.0f",
                       run->wait, 5 * run->wait);
    if (ended_by_us)
        return st_fail(err, STOKER_EIO,
                       "the loader of the command delivered %llu %s and then nothing for %.0f s, so "
                       "tune ended it. If its batches only take long, give it more time: --wait %.0f",
                       batches, batches == 1 ? "batch" : "batches", run->wait + run->seconds,
                       5 * run->wait);
    if (code > 128 && code < 128 + NSIG && strsignal(code - 128))
        snprintf(how, sizeof how, "was ended by signal %d (%s)", code - 128, strsignal(code - 128));
    else
        snprintf(how, sizeof how, "ended with status %d", code);
    return st_fail(err, STOKER_EIO,
                   "the command %s before enough batches could be measured: its DataLoader delivered "
                   "%llu, and at least 10 are needed",
                   how, batches);
}

int dr_probe_run(struct dr_probe_result *out, const struct dr_probe_run *run, struct stoker_error *err)
{
    bool ended_by_us = false;
    char **argv = arguments(run);
    if (!argv)
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    const int log = open(run->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (log < 0) {
        free(argv);
        return st_fail_errno(err, errno, "cannot write %s", run->log);
    }
    const pid_t child = fork();
    if (child == 0)
        become(run, argv, log);
    const int forked = errno;
    close(log);
    free(argv);
    if (child < 0)
        return st_fail_errno(err, forked, "cannot start the command");
    const int status = wait_for(child, run, &ended_by_us);
    if (read_results(run->directory, out))
        return 0;
    return explain(run, status, ended_by_us, err);
}
