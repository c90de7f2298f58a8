/* timeline.h - who made which batch when, and tracks on which slices nest
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPORT_TIMELINE_H
#define ST_DOCTOR_REPORT_TIMELINE_H

#include "cli/doctor/facts.h"

/* One batch as it was made. Stages are sums over the batch, not places in time. */
struct dr_made {
    uint64_t start_ns, end_ns;
    uint32_t process; /* index in run->process */
    uint32_t batch, samples;
    uint16_t loader, lane;
    double stage[DR_STAGES]; /* seconds; 0 where it was not seen */
    double slowest;          /* seconds of the slowest sample; NaN */
    uint32_t slowest_index;  /* DR_UNKNOWN */
};

/* Whether an event lies within the run: the files of events are hostile. */
bool dr_event_sane(const struct dr_run *run, const struct dr_event *event);

/* The batches whose making overlaps [from, to], of all makers of training process `trainer` (its index;
 * -1: of all), ordered by process and start; the most recent where there are more than `most`. NULL with
 * *count 0: none, or out of memory. The caller frees it. */
struct dr_made *dr_made_between(const struct dr_run *run, int trainer, uint64_t from, uint64_t to,
                                uint64_t most, uint64_t *count);

/* Tracks on which slices nest: each slice must come by ascending start, the longer first. */
enum { DR_LANES = 32, DR_NESTED = 8 };
struct dr_lanes {
    uint64_t end[DR_LANES][DR_NESTED];
    uint32_t depth[DR_LANES];
};
/* The first track on which it is nested or alone; -1: none. */
int dr_lane_for(struct dr_lanes *lanes, uint64_t start_ns, uint64_t end_ns);

#endif
