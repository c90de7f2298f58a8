/* script.h - which Python program a command line runs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_SCRIPT_H
#define ST_DOCTOR_SCRIPT_H

#include <stdbool.h>

struct dr_script {
    const char *launcher; /* "python", "torchrun" */
    const char *name;     /* of the script, or of the module behind -m */
    bool is_module;
    bool with_stoker; /* by python -m stoker */
};

/* False: it runs none that can be told from here. argv ends with NULL; NULL itself is allowed. */
bool dr_script_of(struct dr_script *out, char *const *argv);

#endif
