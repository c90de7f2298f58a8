/* unfinished.c - weak stand-ins for parts of the model; goes away with cli/doctor/unfinished.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/facts.h"
#include "cli/doctor/simulate.h"

#include <string.h>

#define WEAK __attribute__((weak))
WEAK const char *const dr_stage_names[DR_STAGES] = {"read",      "network", "decompress", "decode",
                                                    "transform", "collate", "put",        "other"};
WEAK void dr_simulate(struct dr_outcome *out, const struct dr_trace *trace, const struct dr_plan *plan)
{
    (void)trace, (void)plan;
    *out = (struct dr_outcome){{NAN, NAN, NAN}, NAN, NAN, NAN};
}
WEAK const char *dr_said(const struct dr_process *process, const char *key)
{
    for (uint32_t i = 0; i < process->said_count; i++)
        if (!strcmp(process->said[i].key, key))
            return process->said[i].value;
    return NULL;
}
