/* directory.h - creates the directory of a run and its initial files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_DIRECTORY_H
#define ST_DOCTOR_DIRECTORY_H

#include "stoker/stoker.h"

#include <limits.h>

struct dr_directory {
    char shown[PATH_MAX]; /* as given by the user, or ".stoker/0007" */
    char path[PATH_MAX];  /* absolute */
};

/* Creates `wanted`, which must not exist or be empty; NULL: the next .stoker/NNNN. Writes the command
 * line, the folders for watched processes, and the code that is injected into them. */
int dr_directory_make(struct dr_directory *out, const char *wanted, char *const *argv,
                      struct stoker_error *err);
/* Removes what dr_directory_make created, and nothing else. */
void dr_directory_undo(const struct dr_directory *directory);
/* Sets STOKER_RUN and PYTHONPATH for the command. */
int dr_directory_environment(const struct dr_directory *directory, struct stoker_error *err);

#endif
