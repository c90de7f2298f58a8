/* Threads of the library leave signals to the host, but not those of their own faults. */
#include "base/threads.h"
#include "tap.h"

#include <signal.h>
#include <string.h>

static void *look(void *argument)
{
    pthread_sigmask(SIG_SETMASK, NULL, argument);
    return NULL;
}

int main(void)
{
    sigset_t mask;
    pthread_t thread;
    sigemptyset(&mask);
    ok(!st_thread_start(&thread, look, &mask, "look") && !pthread_join(thread, NULL),
       "a thread is started");
    ok(sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1 &&
           sigismember(&mask, SIGCHLD) == 1 && sigismember(&mask, SIGUSR1) == 1 &&
           sigismember(&mask, SIGPIPE) == 1,
       "what is sent to the process is for the host's threads");
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        ok(sigismember(&mask, faults[i]) == 0, "%s is not blocked: a handler can say where it was",
           strsignal(faults[i]));
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ok(sigismember(&mask, SIGINT) == 0, "the caller's own mask is as it was");
    return done_testing();
}
