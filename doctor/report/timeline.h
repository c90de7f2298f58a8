/* timeline.h - which process made which batch when; tracks on which slices nest
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPORT_TIMELINE_H
#define ST_DOCTOR_REPORT_TIMELINE_H

#include "doctor/model/facts.h"

/* How one batch was made. Stages are sums over the batch, not positions in time. */
struct dr_made {
    uint64_t start_ns, end_ns;
    uint32_t process; /* index in run->process */
    uint32_t batch, samples;
    uint16_t loader, lane;
    double stage[DR_STAGES]; /* seconds; 0 if it was not observed */
    double slowest;          /* seconds of the slowest sample; NaN */
    uint32_t slowest_index;  /* DR_UNKNOWN */
};

/* Whether an event lies within the run: files of events are hostile input. */
bool dr_event_sane(const struct dr_run *run, const struct dr_event *event);

/* The batches that were being made in [from, to] for training process `trainer` (its index; -1: all),
 * sorted by process and start; the most recent if there are more than `most`. NULL with *count 0: none,
 * or out of memory. The caller frees it. */
struct dr_made *dr_made_between(const struct dr_run *run, int trainer, uint64_t from, uint64_t to,
                                uint64_t most, uint64_t *count);

/* Tracks on which slices nest. Slices must be added by ascending start, the longer one first. */
enum { DR_LANES = 32, DR_NESTED = 8 };
struct dr_lanes {
    uint64_t end[DR_LANES][DR_NESTED];
    uint32_t depth[DR_LANES];
};
/* The first track on which the slice is nested or alone; -1: none. */
int dr_lane_for(struct dr_lanes *lanes, uint64_t start_ns, uint64_t end_ns);

#endif
