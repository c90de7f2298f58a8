/* shm.c - /dev/shm, through which worker processes pass batches
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/probes.h"

#include <limits.h>
#include <stdio.h>
#include <sys/statvfs.h>

struct shm {
    char path[PATH_MAX];
};

static bool shm_open_(void *state, const char *root, struct dr_limits *limits, struct dr_absent *absent)
{
    struct shm *shm = state;
    struct statvfs about;
    if (snprintf(shm->path, sizeof shm->path, "%s/dev/shm", root) >= (int)sizeof shm->path ||
        statvfs(shm->path, &about)) {
        dr_absent_all(absent, DR_SHM_USED, DR_SHM_FREE, "there is no /dev/shm",
                      "mount a tmpfs there: worker processes need it");
        return false;
    }
    limits->shm = (double)about.f_blocks * (double)about.f_frsize;
    return true;
}

static void shm_sample(void *state, struct dr_tick *tick, const struct dr_watched *watched)
{
    struct shm *shm = state;
    struct statvfs about;
    (void)watched;
    if (statvfs(shm->path, &about))
        return;
    tick->machine[DR_SHM_USED] = (double)(about.f_blocks - about.f_bfree) * (double)about.f_frsize;
    tick->machine[DR_SHM_FREE] = (double)about.f_bavail * (double)about.f_frsize;
}

static void shm_close(void *state) { (void)state; }

const struct dr_probe dr_probe_shm = {"shm", sizeof(struct shm), shm_open_, shm_sample, shm_close};
