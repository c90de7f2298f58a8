/* threads.c - starting threads that do not disturb the host program
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/threads.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    THREADS_MAX = 64,
    STAND_BACK = 5, /* steps of niceness: a third of the share of a thread that has none */
};

int st_thread_start(pthread_t *out, void *(*body)(void *), void *argument, const char *name)
{
    /* A fault is the thread's own: blocked, it would end the process before any handler could say where.
     */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&all, faults[i]);
    const int masked = pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(out, NULL, body, argument);
    if (!masked)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        pthread_setname_np(*out, name); /* only for those who look on: no matter when it fails */
    return failed;
}

void st_thread_stand_back(void)
{
    const id_t self = (id_t)gettid();
    errno = 0;
    const int now = getpriority(PRIO_PROCESS, self);
    if (errno == 0)
        (void)setpriority(PRIO_PROCESS, self, now + STAND_BACK); /* a wish: it may be refused */
}

struct shared_work {
    void (*work)(void *);
    void *context;
};

static void *run_shared(void *argument)
{
    const struct shared_work *shared = argument;
    shared->work(shared->context);
    return NULL;
}

void st_threads_run(uint32_t threads, void (*work)(void *), void *context)
{
    struct shared_work shared = {work, context};
    pthread_t others[THREADS_MAX];
    uint32_t started = 0;
    while (started + 1 < threads && started < THREADS_MAX &&
           !st_thread_start(&others[started], run_shared, &shared, "stoker-scan"))
        started++;
    work(context);
    while (started)
        pthread_join(others[--started], NULL);
}
