/* wait.c - handles signals during long calls of the engine
 *
 * Python's C-level signal handler only sets a flag. The Python functions for a signal run when the main
 * thread checks that flag, which it cannot do while it waits in the engine: so the engine calls back
 * here to check it. Other threads need not check, and must not: while Python shuts down, it ends threads
 * that try to enter it, in the middle of their caller.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <unistd.h>

static bool look_for_signals(void *context)
{
    struct ext_wait *wait = context;

    PyEval_RestoreThread(wait->thread);
    wait->raised = PyErr_CheckSignals() < 0;
    wait->thread = PyEval_SaveThread();
    return wait->raised;
}

void ext_wait_begin(struct ext_wait *wait)
{
    wait->raised = false;
    wait->thread = PyEval_SaveThread();
    if (gettid() == getpid())
        stoker_thread_on_wait(look_for_signals, wait);
}

bool ext_wait_end(struct ext_wait *wait)
{
    stoker_thread_on_wait(NULL, NULL);
    PyEval_RestoreThread(wait->thread);
    return wait->raised;
}
