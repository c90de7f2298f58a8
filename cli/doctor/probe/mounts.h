/* mounts.h - which file system, and which disk, a device number stands for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_MOUNTS_H
#define ST_DOCTOR_MOUNTS_H

#include <stdbool.h>

struct dr_mount {
    char type[32];    /* "ext4", "nfs4", "fuse.sshfs" */
    char source[256]; /* "/dev/nvme0n1p2", "server:/export" */
    bool has_disk;    /* of this machine, as /proc/diskstats knows it */
    unsigned disk_major, disk_minor;
    char disk[64]; /* its name: "nvme0n1" */
};

/* By the device number that stat gives for files there; false: no such mount. */
bool dr_mount_of(const char *root, unsigned major, unsigned minor, struct dr_mount *out);
bool dr_mount_in_memory(const struct dr_mount *mount); /* tmpfs and the like */
bool dr_mount_on_network(const struct dr_mount *mount);
/* It lies on a disk, but does not say on which. */
bool dr_mount_on_unseen_disk(const struct dr_mount *mount);
/* A disk, and neither a partition of one nor a device made of files or memory. */
bool dr_is_whole_disk(const char *root, const char *name);

#endif
