/* probes.h - the probes, and what they share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_PROBES_H
#define ST_DOCTOR_PROBES_H

#include "doctor/probe/files.h"
#include "doctor/probe/probe.h"

extern const struct dr_probe dr_probe_cgroup, dr_probe_cpu, dr_probe_disk, dr_probe_gpu, dr_probe_memory,
    dr_probe_net, dr_probe_nfs, dr_probe_psi, dr_probe_shm;

/* Reports signals `from` to `to` of the machine as missing, for one reason. */
void dr_absent_all(struct dr_absent *absent, uint32_t from, uint32_t to, const char *why,
                   const char *remedy);

/* Bytes per second of a PCIe link in one direction; NaN: unknown. */
double dr_link_bytes(double generation, double width);

/* For probes whose means matter, and whose files take the kernel 5 to 15 us to write. */
enum { DR_SLOW_MS = 500 };

static inline double dr_tick_seconds(const struct dr_tick *tick)
{
    return tick->now_ns > tick->before_ns ? (double)(tick->now_ns - tick->before_ns) / 1e9 : 0;
}

#endif
