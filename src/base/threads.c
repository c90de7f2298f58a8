/* threads.c - starts threads that do not disturb the host program
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/threads.h"

#include "base/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    THREADS_MAX = 64,
    NICE_STEP = 5, /* nice increment: about a third of the CPU share of a thread with nice 0 */
};

int st_thread_start(pthread_t *out, void *(*body)(void *), void *argument, const char *name)
{
    /* Not blocked: a blocked fault would kill the process before a handler could report where. */
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
        pthread_setname_np(*out, name); /* only for debugging: failure does not matter */
    return failed;
}

void st_thread_lower_priority(void)
{
    const id_t self = (id_t)gettid();
    errno = 0;
    const int now = getpriority(PRIO_PROCESS, self);
    if (errno == 0)
        (void)setpriority(PRIO_PROCESS, self, now + NICE_STEP); /* best effort: it may be refused */
}

struct shared_work {
    void (*work)(void *);
    void *context;
    struct st_interrupt_shared interrupt;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    uint32_t running; /* other threads still running */
};

static void *run_shared(void *argument)
{
    struct shared_work *shared = argument;
    st_interrupt_join(&shared->interrupt);
    shared->work(shared->context);
    pthread_mutex_lock(&shared->lock);
    shared->running--;
    pthread_cond_signal(&shared->ended);
    pthread_mutex_unlock(&shared->lock);
    return NULL;
}

void st_threads_run(uint32_t threads, void (*work)(void *), void *context)
{
    struct shared_work shared = {.work = work,
                                 .context = context,
                                 .lock = PTHREAD_MUTEX_INITIALIZER,
                                 .ended = PTHREAD_COND_INITIALIZER};
    pthread_t others[THREADS_MAX];
    uint32_t started = 0;
    st_interrupt_share(&shared.interrupt);
    pthread_mutex_lock(&shared.lock);
    while (started + 1 < threads && started < THREADS_MAX &&
           !st_thread_start(&others[started], run_shared, &shared, "stoker-scan"))
        started++;
    shared.running = started;
    pthread_mutex_unlock(&shared.lock);
    work(context);
    pthread_mutex_lock(&shared.lock);
    while (shared.running) /* stays interruptible: the threads may be waiting for a server */
        st_interrupt_wait(&shared.ended, &shared.lock);
    pthread_mutex_unlock(&shared.lock);
    while (started)
        pthread_join(others[--started], NULL);
    st_interrupt_unshare(&shared.interrupt);
    pthread_cond_destroy(&shared.ended);
    pthread_mutex_destroy(&shared.lock);
}
