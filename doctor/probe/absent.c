/* absent.c - the list of signals that the probes could not provide
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/probes.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void dr_absent_add(struct dr_absent *absent, const char *signal, const char *why, const char *remedy)
{
    struct dr_missing *more = st_grow(absent->missing, absent->count + 1, sizeof *more);
    if (!more)
        return;
    absent->missing = more;
    const struct dr_missing copy = {strdup(signal), strdup(why), strdup(remedy)};
    if (copy.signal && copy.why && copy.remedy) {
        absent->missing[absent->count++] = copy;
        return;
    }
    free((char *)copy.signal), free((char *)copy.why), free((char *)copy.remedy);
}

void dr_absent_all(struct dr_absent *absent, uint32_t from, uint32_t to, const char *why,
                   const char *remedy)
{
    for (uint32_t k = from; k <= to; k++)
        dr_absent_add(absent, dr_machine_signals[k].name, why, remedy);
}

void dr_absent_free(struct dr_absent *absent)
{
    for (uint32_t k = 0; k < absent->count; k++) {
        free((char *)absent->missing[k].signal);
        free((char *)absent->missing[k].why);
        free((char *)absent->missing[k].remedy);
    }
    free(absent->missing);
    *absent = (struct dr_absent){0};
}
