/* probe_run.c - runs the command under `stoker run` with other settings
 *
 * The output of the command goes to DIRECTORY.log: it would print the same a dozen times.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/doctor/tune/tune.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Waits for the child; after `limit` seconds it is terminated, then killed. */
static int wait_for(pid_t child, double limit)
{
    const uint64_t begin = st_now_ns();
    int status = 0, sent = 0;
    for (;;) {
        const pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child)
            return status;
        if (got < 0 && errno != EINTR)
            return -1;
        const double passed = (double)(st_now_ns() - begin) * 1e-9;
        if (passed > limit + 5 && sent == 1) {
            kill_watched(child);
            sent = 2;
        } else if (passed > limit && !sent) {
            kill(child, SIGTERM);
            sent = 1;
        }
        usleep(20000);
    }
}

/* Reads the numbers that each rank has written. */
static bool read_results(const char *directory, struct dr_probe_result *out)
{
    DIR *dir = opendir(directory);
    uint32_t ranks = 0;
    double rates = 0, seconds = 0;
    *out = (struct dr_probe_result){0};
    if (!dir)
        return false;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[PATH_MAX];
        double batches, took;
        if (strncmp(entry->d_name, "probe-", 6) ||
            snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) >= (int)sizeof path)
            continue;
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        if (fscanf(file, "%lf %lf", &batches, &took) == 2 && batches >= 1 && took > 0) {
            ranks++;
            out->batches += batches;
            rates += batches / took;
            seconds += took;
        }
        fclose(file);
    }
    closedir(dir);
    if (!ranks)
        return false;
    out->rate = rates / ranks;
    out->seconds = seconds / ranks;
    return true;
}

/* The last lines of what the command printed, for the message. */
static void tail(const char *log, char *out, size_t room)
{
    out[0] = '\0';
    FILE *file = fopen(log, "re");
    if (!file)
        return;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long size = ftell(file), from = size > (long)room - 1 ? size - ((long)room - 1) : 0;
        if (size > 0 && fseek(file, from, SEEK_SET) == 0)
            out[fread(out, 1, room - 1, file)] = '\0';
    }
    fclose(file);
    for (size_t end = strlen(out); end > 0 && out[end - 1] == '\n';)
        out[--end] = '\0';
}

int dr_probe_run(struct dr_probe_result *out, const struct dr_probe_run *run, struct stoker_error *err)
{
    char log_path[PATH_MAX], printed[600];
    if (snprintf(log_path, sizeof log_path, "%s.log", run->directory) >= (int)sizeof log_path)
        return st_fail(err, STOKER_EINVAL, "%s: the name is too long", run->directory);
    char **argv = arguments(run);
    if (!argv)
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    const int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (log < 0) {
        free(argv);
        return st_fail_errno(err, errno, "cannot write %s", log_path);
    }
    const pid_t child = fork();
    if (child == 0)
        become(run, argv, log);
    const int forked = errno;
    close(log);
    free(argv);
    if (child < 0)
        return st_fail_errno(err, forked, "cannot start the command");
    const int status = wait_for(child, run->limit);
    if (read_results(run->directory, out))
        return 0;
    tail(log_path, printed, sizeof printed);
    return st_fail(
        err, STOKER_EIO,
        "the command ended (status %d) before its loader had delivered enough batches; its last "
        "output:\n%s",
        status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1, printed[0] ? printed : "(nothing)");
}
