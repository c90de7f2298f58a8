/* replay.h - one pass of a loader and a training loop over given batch and step times
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPLAY_H
#define ST_DOCTOR_REPLAY_H

#include "doctor/model/simulate.h"

/* Times of `count` batches and the steps after them, all finite and not negative. */
struct dr_replay {
    const double *wall, *cpu, *step;
    uint32_t count;
    double step_cpu, hand_over, pin, put, start_worker;
    uint32_t epoch_batches; /* 0: no epoch ends within these batches */
};

/* Of all steps, including starts of epochs; and of the first count / 4 steps, in which the
 * queue fills. */
struct dr_replayed {
    double seconds, early_seconds;
    double wait, early_wait;     /* in next() */
    uint32_t ready, early_ready; /* calls that found their batch ready */
    double cpu;                  /* CPU seconds of all actors */
};

static inline uint32_t dr_replay_early(const struct dr_replay *in) { return in->count / 4; }

/* False: out of memory. */
bool dr_replay(struct dr_replayed *out, const struct dr_replay *in, const struct dr_plan *plan);

#endif
