/* command.h - starts the watched command and stands in for it: signals go in, its exit code comes out
 *
 * The command runs in our process group, with our terminal and our standard streams. A signal that the
 * whole group gets (Ctrl-C) reaches it without us; one that only we get is passed on. Which of the two
 * it was is told by a sentinel, a process of the same group that does nothing but report its signals.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_COMMAND_H
#define ST_DOCTOR_COMMAND_H

#include "stoker/stoker.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum { DR_NOT_FOUND = 127, DR_NOT_EXECUTABLE = 126 }; /* as shells exit */

struct dr_command {
    pid_t pid;
    pid_t sentinel;            /* 0: none */
    int reports;               /* the signals that the sentinel got, a byte each */
    sigset_t before;           /* what was blocked when we began */
    struct sigaction children; /* what became of SIGCHLD then */
    bool ended;
    int exit_code; /* 128 + signal where one ended it */
};

/* Whether a shell would find such a program: 0, DR_NOT_FOUND or DR_NOT_EXECUTABLE. */
int dr_command_find(const char *name);
/* Blocks the signals that dr_command_wait takes. The environment is as it is now. On failure `exit_code`
 * is what a shell would exit with. */
int dr_command_start(struct dr_command *command, char *const *argv, struct stoker_error *err);
/* Waits until then, at most, handling signals and processes that end; true: the command has ended. */
bool dr_command_wait(struct dr_command *command, uint64_t until_ns);
/* From here on signals are ours again. */
void dr_command_close(struct dr_command *command);

#endif
