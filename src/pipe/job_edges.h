/* job_edges.h - edges of an image in the terms of a device: taps, and what is filled
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_JOB_EDGES_H
#define ST_PIPE_JOB_EDGES_H

#include "op/geometry/edges.h"
#include "op/resize/taps.h"
#include "pipe/device.h"

enum st_job_edges_fit {
    ST_JOB_EDGES_FIT,
    ST_JOB_EDGES_BACKWARDS, /* not: taps have to go on in one direction */
    ST_JOB_EDGES_NO_MEMORY,
};

/* The taps of an axis that `count` positions of a list have: those of their places in the image. Of a
 * filled position they are the nearest other one's. `taps` are the image's, with width -1 if it has only
 * places, and 0 if it stays. */
enum st_job_edges_fit st_job_edge_taps(const int32_t *from, int32_t count, struct st_arena *arena,
                                       struct st_taps *taps);
/* Sets the job's border. */
void st_job_edges_put(const struct st_edges *edges, struct st_job *job);

#endif
