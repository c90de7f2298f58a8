/* command.h - starts the watched command and acts for it: passes signals on and returns its exit code
 *
 * The command runs in our process group, with our terminal and our standard streams. A signal to the
 * whole group (Ctrl-C) reaches it without us; a signal to us alone is passed on. A sentinel tells which
 * of the two it was: a process of the same group that only reports its signals.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_COMMAND_H
#define ST_DOCTOR_COMMAND_H

#include "stoker/stoker.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum { DR_NOT_FOUND = 127, DR_NOT_EXECUTABLE = 126 }; /* exit codes of shells */

struct dr_command {
    pid_t pid;
    pid_t sentinel;            /* 0: none */
    int reports;               /* the signals received by the sentinel, one byte each */
    sigset_t before;           /* the signals that were blocked at the start */
    struct sigaction children; /* the disposition of SIGCHLD at the start */
    bool ended;
    int exit_code; /* 128 + N if signal N killed it */
};

/* Looks a program up as a shell does: 0, DR_NOT_FOUND or DR_NOT_EXECUTABLE. */
int dr_command_find(const char *name);
/* Starts the command with the current environment. Blocks the signals that dr_command_wait handles. On
 * failure, `exit_code` is the one a shell would return. */
int dr_command_start(struct dr_command *command, char *const *argv, struct stoker_error *err);
/* Handles signals and ended processes until the given time at most; true: the command has ended. */
bool dr_command_wait(struct dr_command *command, uint64_t until_ns);
/* Restores the signal handling. */
void dr_command_close(struct dr_command *command);

#endif
