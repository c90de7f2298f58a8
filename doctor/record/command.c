/* command.c - starts the watched command and acts for it: passes signals on and returns its exit code
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/record/command.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPORT_MS 50

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

static sigset_t watched_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t k = 0; k < sizeof passed_on / sizeof *passed_on; k++)
        sigaddset(&set, passed_on[k]);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGPIPE); /* a closed pipe at our end must not end the run */
    return set;
}

static int judge(const char *path)
{
    struct stat about;
    if (stat(path, &about))
        return errno == EACCES ? DR_NOT_EXECUTABLE : DR_NOT_FOUND;
    return S_ISDIR(about.st_mode) || access(path, X_OK) ? DR_NOT_EXECUTABLE : 0;
}

int dr_command_find(const char *name)
{
    char path[PATH_MAX];
    if (strchr(name, '/'))
        return judge(name);
    const char *list = getenv("PATH");
    int best = DR_NOT_FOUND;
    for (list = list ? list : "/bin:/usr/bin"; *name; list++) {
        const size_t size = strcspn(list, ":");
        if (snprintf(path, sizeof path, "%.*s%s%s", (int)size, list, size ? "/" : "", name) <
            (int)sizeof path) {
            const int here = judge(path);
            if (!here)
                return 0;
            best = here == DR_NOT_EXECUTABLE ? here : best;
        }
        list += size;
        if (!*list)
            break;
    }
    return best;
}

/* ---- the sentinel ----------------------------------------------------------------------------- */

static void watch_over(int reports, pid_t parent)
{
    const sigset_t set = watched_signals();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "stoker-sentinel");
    if (getppid() != parent)
        _exit(0);
    for (int file = 0; file <= 2; file++) /* readers of the output of the command must see its end */
        close(file);
    for (;;) {
        const int number = sigwaitinfo(&set, NULL);
        const uint8_t report = (uint8_t)number;
        if (number > 0 && write(reports, &report, 1) != 1)
            _exit(0);
    }
}

/* Without a sentinel, every signal sent by a process is passed on. */
static void start_sentinel(struct dr_command *command)
{
    int ends[2];
    const pid_t parent = getpid();
    command->reports = -1;
    if (pipe2(ends, O_CLOEXEC))
        return;
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        watch_over(ends[1], parent);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return;
    }
    command->sentinel = pid;
    command->reports = ends[0];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

/* Whether the whole group got this signal: the sentinel then reports it at once. */
static bool group_got(const struct dr_command *command, int number)
{
    uint8_t report;
    struct pollfd ready = {command->reports, POLLIN, 0};
    const uint64_t until = st_now_ns() + REPORT_MS * UINT64_C(1000000);
    while (command->reports >= 0) {
        while (read(command->reports, &report, 1) == 1)
            if (report == number)
                return true;
        const uint64_t now = st_now_ns();
        if (now >= until || poll(&ready, 1, (int)((until - now) / 1000000) + 1) < 0 ||
            ready.revents & (POLLERR | POLLHUP | POLLNVAL))
            break;
    }
    return false;
}

/* ---- the command ------------------------------------------------------------------------------ */

static void become(const struct dr_command *command, char *const *argv, int told)
{
    sigprocmask(SIG_SETMASK, &command->before, NULL);
    sigaction(SIGCHLD, &command->children, NULL);
    execvp(argv[0], argv);
    const int why = errno;
    if (write(told, &why, sizeof why) != sizeof why)
        _exit(DR_NOT_FOUND);
    _exit(why == ENOENT ? DR_NOT_FOUND : DR_NOT_EXECUTABLE);
}

int dr_command_start(struct dr_command *command, char *const *argv, struct stoker_error *err)
{
    const sigset_t set = watched_signals();
    int ends[2], why = 0;
    *command = (struct dr_command){.reports = -1, .exit_code = DR_NOT_EXECUTABLE};
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans become our children */
    sigprocmask(SIG_BLOCK, &set, &command->before);
    /* If our parent ignores it, we would not be told when the command ends. */
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &command->children);
    start_sentinel(command); /* before the pipe exists, whose end it would keep open */
    if (pipe2(ends, O_CLOEXEC)) {
        const int why_not = errno;
        dr_command_close(command);
        return st_fail_errno(err, why_not, "cannot start '%s'", argv[0]);
    }
    command->pid = fork();
    if (command->pid == 0) {
        close(ends[0]);
        become(command, argv, ends[1]);
    }
    const int fork_error = errno;
    close(ends[1]);
    ssize_t got = 0;
    while (command->pid > 0 && (got = read(ends[0], &why, sizeof why)) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    if (command->pid > 0 && got != sizeof why)
        return STOKER_OK;
    if (command->pid > 0)
        waitpid(command->pid, NULL, 0);
    else
        why = fork_error;
    command->pid = 0;
    command->exit_code = why == ENOENT ? DR_NOT_FOUND : DR_NOT_EXECUTABLE;
    dr_command_close(command);
    return st_fail_errno(err, why, "cannot start '%s'", argv[0]);
}

/* Reaps orphans too. */
static void reap(struct dr_command *command)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == command->sentinel)
            command->sentinel = 0;
        if (pid != command->pid)
            continue;
        command->ended = true;
        command->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

/* Ctrl-Z stops the command; we must stop too, or the shell would wait for us. */
static void stop_too(const struct dr_command *command, bool group)
{
    if (!group)
        kill(command->pid, SIGTSTP);
    kill(getpid(), SIGSTOP);
    kill(command->pid, SIGCONT);
}

static void pass_on(struct dr_command *command, const siginfo_t *signal)
{
    const int number = signal->si_signo;
    const bool sent = signal->si_code <= 0; /* sent by a process, not by the terminal */
    const bool group = !sent || group_got(command, number);
    if (number == SIGTSTP)
        stop_too(command, group);
    else if (!group && number != SIGPIPE)
        kill(command->pid, number);
}

bool dr_command_wait(struct dr_command *command, uint64_t until_ns)
{
    const sigset_t set = watched_signals();
    while (!command->ended) {
        const uint64_t now = st_now_ns(), left = until_ns > now ? until_ns - now : 0;
        const struct timespec timeout = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
        siginfo_t signal;
        const int number = sigtimedwait(&set, &signal, &timeout);
        if (number < 0 && errno == EAGAIN)
            break;
        if (number == SIGCHLD)
            reap(command);
        else if (number > 0)
            pass_on(command, &signal);
    }
    return command->ended;
}

void dr_command_close(struct dr_command *command)
{
    sigset_t set = watched_signals();
    while (sigtimedwait(&set, NULL, &(struct timespec){0}) > 0)
        ; /* the signal that ended the command must not end us too */
    sigdelset(&set, SIGPIPE);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    if (command->sentinel > 0 && !kill(command->sentinel, SIGKILL))
        waitpid(command->sentinel, NULL, 0);
    command->sentinel = 0;
    if (command->reports >= 0)
        close(command->reports);
    command->reports = -1;
}
