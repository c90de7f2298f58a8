/* cgroup.c - how much the CPU quota throttles the run; cgroup version 1 or 2, including parent groups
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/probes.h"

#include "base/cpu.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

enum { LEVELS = 16 };

struct level {
    int file; /* cpu.stat */
    struct dr_counter seconds, periods, held;
};

struct cgroup {
    struct level level[LEVELS];
    uint32_t levels;
};

static void add_levels(struct cgroup *cgroup, const char *root, const char *controller)
{
    char folder[PATH_MAX], path[PATH_MAX + 16];
    for (uint32_t k = 0;
         cgroup->levels < LEVELS && st_cgroup_folder(root, controller, k, folder, sizeof folder); k++) {
        char text[1024];
        snprintf(path, sizeof path, "%s/cpu.stat", folder);
        const int file = dr_file_open(root, path);
        if (dr_file_text(file, text, sizeof text) && !isnan(dr_text_number(text, "nr_throttled ")))
            cgroup->level[cgroup->levels++].file = file;
        else
            dr_file_close(&(int){file});
    }
}

static bool cgroup_open(void *state, const char *root, struct dr_limits *limits,
                        struct dr_absent *absent)
{
    struct cgroup *cgroup = state;
    (void)limits;
    add_levels(cgroup, root, NULL);
    add_levels(cgroup, root, "cpu");
    if (!cgroup->levels)
        dr_absent_add(absent, dr_machine_signals[DR_CPU_THROTTLED].name,
                      isinf(st_cgroup_quota(root))
                          ? "no cgroup with a CPU controller is visible, and no quota is set"
                          : "cannot read cpu.stat of the cgroup",
                      "mount the cgroup of this process at /sys/fs/cgroup, as containers do");
    return cgroup->levels > 0;
}

/* The kernel sums the throttled time over CPUs, so that many CPUs count many times. The share of periods
 * with any throttling is an upper bound without this effect. */
static double throttled(struct level *level, double seconds)
{
    char text[1024];
    if (!dr_file_text(level->file, text, sizeof text))
        return NAN;
    double held = dr_text_number(text, "throttled_usec ") / 1e6; /* version 2 */
    if (isnan(held))
        held = dr_text_number(text, "throttled_time ") / 1e9;
    const double share = dr_counter_rate(&level->seconds, held, seconds);
    const double periods =
        dr_counter_rate(&level->periods, dr_text_number(text, "nr_periods "), seconds);
    const double with = dr_counter_rate(&level->held, dr_text_number(text, "nr_throttled "), seconds);
    if (isnan(share))
        return NAN;
    return fmin(share, periods > 0 && with > 0 ? fmin(1, with / periods) : 1);
}

static void cgroup_sample(void *state, struct dr_tick *tick, const struct dr_watched *watched)
{
    struct cgroup *cgroup = state;
    (void)watched;
    for (uint32_t k = 0; k < cgroup->levels; k++) {
        const double share = throttled(&cgroup->level[k], dr_tick_seconds(tick));
        tick->machine[DR_CPU_THROTTLED] = fmax(tick->machine[DR_CPU_THROTTLED], share);
    }
}

static void cgroup_close(void *state)
{
    struct cgroup *cgroup = state;
    for (uint32_t k = 0; k < cgroup->levels; k++)
        dr_file_close(&cgroup->level[k].file);
}

const struct dr_probe dr_probe_cgroup = {"cgroup", sizeof(struct cgroup), cgroup_open, cgroup_sample,
                                         cgroup_close};
