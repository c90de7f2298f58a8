/* psi.c - pressure: the share of time in which some task waited for a CPU, storage or memory
 *
 * Uses the numbers of the cgroup if it has them; otherwise those of the machine, which other processes
 * affect too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/probes.h"

#include "base/cpu.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KINDS = 3 };
static const char *const kinds[KINDS] = {"cpu", "io", "memory"};

struct psi {
    int file[KINDS];
    struct dr_counter waited[KINDS];
};

static double waited_seconds(const char *text)
{
    const char *some = strstr(text, "some ");
    const char *total = some ? strstr(some, "total=") : NULL;
    double microseconds;
    return total && dr_text_next(total + strlen("total="), &microseconds) ? microseconds / 1e6 : NAN;
}

static int open_readable(const char *root, const char *path)
{
    char text[512];
    int file = dr_file_open(root, path);
    if (!dr_file_text(file, text, sizeof text) || isnan(waited_seconds(text)))
        dr_file_close(&file);
    return file;
}

static bool psi_open(void *state, const char *root, struct dr_limits *limits, struct dr_absent *absent)
{
    struct psi *psi = state;
    char folder[PATH_MAX], path[PATH_MAX + 32];
    bool any = false;
    (void)limits;
    const bool grouped = st_cgroup_folder(root, NULL, 0, folder, sizeof folder);
    for (int k = 0; k < KINDS; k++) {
        psi->file[k] = -1;
        snprintf(path, sizeof path, "%s/%s.pressure", folder, kinds[k]);
        if (grouped)
            psi->file[k] = open_readable(root, path);
        snprintf(path, sizeof path, "/proc/pressure/%s", kinds[k]);
        if (psi->file[k] < 0)
            psi->file[k] = open_readable(root, path);
        any |= psi->file[k] >= 0;
        if (psi->file[k] < 0)
            dr_absent_add(absent, dr_machine_signals[DR_PSI_CPU + k].name,
                          "this kernel does not measure pressure (PSI)",
                          "boot with psi=1, on a kernel with CONFIG_PSI");
    }
    return any;
}

static void psi_sample(void *state, struct dr_tick *tick, const struct dr_watched *watched)
{
    struct psi *psi = state;
    char text[512];
    (void)watched;
    for (int k = 0; k < KINDS; k++)
        if (dr_file_text(psi->file[k], text, sizeof text)) {
            const double share =
                dr_counter_rate(&psi->waited[k], waited_seconds(text), dr_tick_seconds(tick));
            tick->machine[DR_PSI_CPU + k] =
                share > 1 ? 1 : share; /* the kernel updates it late, in bursts */
        }
}

static void psi_close(void *state)
{
    for (int k = 0; k < KINDS; k++)
        dr_file_close(&((struct psi *)state)->file[k]);
}

_Static_assert(DR_PSI_MEMORY == DR_PSI_CPU + 2, "three signals, in the order of their kinds");
const struct dr_probe dr_probe_psi = {"psi",      sizeof(struct psi), psi_open,
                                      psi_sample, psi_close,          .pause_ms = DR_SLOW_MS};
