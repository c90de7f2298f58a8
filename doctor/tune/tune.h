/* tune.h - parts of `stoker tune`: probe runs of the command, and the scaling law fitted to them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_TUNE_TUNE_H
#define ST_DOCTOR_TUNE_TUNE_H

#include "doctor/rule/rule.h"

struct dr_scale_point {
    double workers, rate; /* batches per second of the loader alone */
};
struct dr_scale {
    double one, contention, crosstalk;
};
/* Fits the law to the points; false: there are no usable points. */
bool dr_scale_fit(struct dr_scale *out, const struct dr_scale_point *points, uint32_t count);
double dr_scale_at(const struct dr_scale *scale, double workers);

/* The results, for the page (report/html_tune.c). Rates are batches per second. */
enum { DR_TUNED_SIDES = 3 };
struct dr_tuned_side {
    const char *name;
    double rate, spread; /* NaN: not measured */
    double predicted;    /* speed-up; NaN: none was predicted */
};
struct dr_tuned {
    const struct dr_scale_point *point;
    uint32_t points;
    const struct dr_scale *scale; /* NULL: not fitted */
    uint32_t workers; /* of the chosen settings; 0: none were chosen, or the training process loads */
    double before, floor;         /* seconds per step: now; with a loader that is always ready */
    struct dr_tuned_side side[DR_TUNED_SIDES]; /* the first is the loader as it is */
    const char *advice;
};

/* How long a run may take. Its loader may need minutes for the first batch (imports, a scan of the data,
 * compilation), so only a loader that delivers nothing for long is given up. */
struct dr_patience {
    double wait;      /* seconds without a new batch */
    double measured;  /* seconds that a run measures, in which batches are not reported */
    double since;     /* when the last batch was reported; 0 at first: when the run began */
    uint64_t batches; /* reported so far */
};
/* `now`: seconds since the run began. `batches`: reported until now. False: the run is to be ended. */
bool dr_patience_lasts(struct dr_patience *patience, double now, uint64_t batches);

/* One run of the command under `stoker run`, with STOKER_PROBE set. */
struct dr_probe_run {
    const char *directory; /* of this run, which creates it */
    const char *log;       /* the file for the output of the command */
    const char *probe;     /* STOKER_PROBE */
    char *const *command;  /* NULL at the end */
    double seconds;        /* that are measured */
    double wait;           /* for the first batch, at most, and between batches */
};
struct dr_probe_result {
    double batches, seconds; /* sum over ranks; mean over ranks */
    double rate;             /* batches per second and rank, mean */
};
/* Fails if nothing was measured; the message says who ended the command. */
int dr_probe_run(struct dr_probe_result *out, const struct dr_probe_run *run, struct stoker_error *err);

#endif
