/* replay.h - one pass of a loader and a training loop over given batch and step times
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPLAY_H
#define ST_DOCTOR_REPLAY_H

#include "cli/doctor/simulate.h"

/* Times of `count` batches and the steps that follow them, each finite and not negative. */
struct dr_replay {
    const double *wall, *cpu, *step;
    uint32_t count;
    double step_cpu, hand_over, pin, put, start_worker;
    uint32_t epoch_batches; /* 0: no end of an epoch within these batches */
};

/* Of all steps, starts of epochs included; and of the first count / 4 of them, in which the queue fills.
 */
struct dr_replayed {
    double seconds, early_seconds;
    double wait, early_wait;     /* in next() */
    uint32_t ready, early_ready; /* calls that found their batch */
    double cpu;                  /* CPU seconds of all */
};

static inline uint32_t dr_replay_early(const struct dr_replay *in) { return in->count / 4; }

/* False: no memory. */
bool dr_replay(struct dr_replayed *out, const struct dr_replay *in, const struct dr_plan *plan);

#endif
