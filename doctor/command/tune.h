/* tune.h - what `stoker tune` measures and decides, for the files that do it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_COMMAND_TUNE_H
#define ST_DOCTOR_COMMAND_TUNE_H

#include "doctor/tune/tune.h"

#include <limits.h>

enum { TUNE_POINTS = 3, TUNE_ROUNDS = 3 };

/* One contestant of the confirming runs. */
struct tune_side {
    char settings[192];
    double rate[TUNE_ROUNDS]; /* batches per second */
    uint32_t rounds;
    double median, spread; /* spread: half the range, as a share of the median */
};
enum { TUNE_NOW, TUNE_BEST, TUNE_STOKER, TUNE_SIDES };

struct tune {
    char *const *command;
    char directory[PATH_MAX - 64]; /* holds all probe runs */
    char log[PATH_MAX];            /* the output of the command in the latest run */
    double seconds;                /* measured in each run; 0: by default */
    double wait;                   /* seconds without a batch after which a run is ended */
    bool apply, quick, json;
    uint32_t runs;
    struct dr_run *run; /* the first run, with unchanged settings */
    struct dr_facts facts;
    struct dr_trace trace;
    struct dr_plan now, then;
    char at[600]; /* FILE:LINE of the DataLoader call */
    struct dr_scale_point point[TUNE_POINTS];
    uint32_t points;
    struct dr_scale scale;
    bool scaled;
    double before, floor; /* seconds per batch: with unchanged settings, with an ideal loader */
    double predicted;     /* speed-up by the best settings; NaN: not computed */
    struct tune_side side[TUNE_SIDES];
    bool better, stoker; /* the best settings, or Stoker's loader, beat the noise */
    char why_not[256];   /* why nothing is recommended; "" */
};

/* Prints the recommendation, as text or JSON, and applies it on request. Returns the exit code. */
int tune_result(struct tune *t);

#endif
