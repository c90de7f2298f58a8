/* find.h - which run is meant
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_FIND_H
#define ST_DOCTOR_FIND_H

#include "stoker/stoker.h"

/* Where runs are kept, below the current directory. */
#define DR_RUNS ".stoker"

/* The directory of the run that `what` names: a path, or a number under .stoker; NULL: the newest there. */
int dr_find_run(char *out, size_t room, const char *what, struct stoker_error *err);

#endif
