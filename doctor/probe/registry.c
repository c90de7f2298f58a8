/* registry.c - all probes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/probes.h"

const struct dr_probe *const dr_probes[] = {&dr_probe_cpu,    &dr_probe_cgroup, &dr_probe_psi,
                                            &dr_probe_memory, &dr_probe_shm,    &dr_probe_disk,
                                            &dr_probe_net,    &dr_probe_nfs,    &dr_probe_gpu,
                                            NULL};
_Static_assert(sizeof dr_probes / sizeof dr_probes[0] - 1 <= DR_PROBES_MOST,
               "the recorder has room for DR_PROBES_MOST probes");
