/* tune.h - parts of `stoker tune`: runs of the command with other settings, and what follows from them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_TUNE_TUNE_H
#define ST_DOCTOR_TUNE_TUNE_H

#include "cli/doctor/rule.h"

struct dr_scale_point {
    double workers, rate; /* batches a second, the loader alone */
};
struct dr_scale {
    double one, contention, crosstalk;
};
/* The law through the points; false: none of use. */
bool dr_scale_fit(struct dr_scale *out, const struct dr_scale_point *points, uint32_t count);
double dr_scale_at(const struct dr_scale *scale, double workers);

/* One run of the command under `stoker run`, with STOKER_PROBE set. */
struct dr_probe_run {
    const char *directory; /* of this run: made by it */
    const char *probe;     /* STOKER_PROBE */
    char *const *command;  /* NULL at the end */
    double limit;          /* seconds after which it is ended; what it had measured by then is lost */
};
struct dr_probe_result {
    double batches, seconds; /* summed over ranks, and the mean of them */
    double rate;             /* batches a second of each rank, mean */
};
/* Fails with the end of what the command printed where it measured nothing. */
int dr_probe_run(struct dr_probe_result *out, const struct dr_probe_run *run, struct stoker_error *err);

#endif
