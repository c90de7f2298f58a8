/* wait.c - calls of the engine that may take long, and signals meanwhile
 *
 * Python's own handler of a signal only makes a note of it. The functions that were set for it run when the main thread
 * asks, which it cannot while it waits in the engine: so the engine asks, here. Other threads have nothing to ask for, and
 * must not: Python ends those that come back to it while it ends itself, in the middle of whatever called it.
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
