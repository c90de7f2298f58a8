/* mounts.h - the file system and the disk of a device number
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_MOUNTS_H
#define ST_DOCTOR_MOUNTS_H

#include <stdbool.h>

struct dr_mount {
    char type[32];    /* "ext4", "nfs4", "fuse.sshfs" */
    char source[256]; /* "/dev/nvme0n1p2", "server:/export" */
    bool has_disk;    /* a disk of this machine, listed in /proc/diskstats */
    unsigned disk_major, disk_minor;
    char disk[64]; /* its name: "nvme0n1" */
};

/* Finds a mount by the device number that stat returns for its files; false: there is none. */
bool dr_mount_of(const char *root, unsigned major, unsigned minor, struct dr_mount *out);
bool dr_mount_in_memory(const struct dr_mount *mount); /* tmpfs and the like */
bool dr_mount_on_network(const struct dr_mount *mount);
/* It is on a disk, but it is unknown on which one. */
bool dr_mount_on_unseen_disk(const struct dr_mount *mount);
/* A whole disk: not a partition, and not a device backed by files or memory. */
bool dr_is_whole_disk(const char *root, const char *name);

#endif
