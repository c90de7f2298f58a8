/* mounts.c - the file system and the disk of a device number
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/mounts.h"

#include "doctor/probe/files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

bool dr_mount_in_memory(const struct dr_mount *mount)
{
    static const char *const types[] = {"tmpfs", "ramfs", "devtmpfs", "proc", "sysfs", "hugetlbfs"};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (!strcmp(mount->type, types[k]))
            return true;
    return false;
}

bool dr_mount_on_network(const struct dr_mount *mount)
{
    static const char *const types[] = {"nfs",    "cifs", "smb", "fuse",   "9p",        "ceph",
                                        "lustre", "gpfs", "afs", "beegfs", "glusterfs", "virtiofs"};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (begins(mount->type, types[k]) && strcmp(mount->type, "fuseblk"))
            return true;
    return false;
}

bool dr_mount_on_unseen_disk(const struct dr_mount *mount)
{
    return !mount->has_disk && !dr_mount_in_memory(mount) && !dr_mount_on_network(mount);
}

bool dr_is_whole_disk(const char *root, const char *name)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/sys/block/%s/device", root, name) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

/* The name is the last component of the target of /sys/dev/block/MAJOR:MINOR. */
static bool find_disk(const char *root, unsigned major, unsigned minor, struct dr_mount *out)
{
    char path[PATH_MAX], target[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/sys/dev/block/%u:%u", root, major, minor) >= (int)sizeof path)
        return false;
    const ssize_t size = readlink(path, target, sizeof target - 1);
    if (size <= 0)
        return false;
    target[size] = '\0';
    const char *slash = strrchr(target, '/');
    out->has_disk = true;
    out->disk_major = major;
    out->disk_minor = minor;
    snprintf(out->disk, sizeof out->disk, "%.63s", slash ? slash + 1 : target);
    return true;
}

/* btrfs, ZFS and others use their own device numbers; the source of the mount may be a device. */
static void find_source(const char *root, struct dr_mount *out)
{
    char path[PATH_MAX];
    struct stat about;
    if (begins(out->source, "/dev/") &&
        snprintf(path, sizeof path, "%s%s", root, out->source) < (int)sizeof path &&
        !stat(path, &about) && S_ISBLK(about.st_mode))
        find_disk(root, major(about.st_rdev), minor(about.st_rdev), out);
}

bool dr_mount_of(const char *root, unsigned major_number, unsigned minor_number, struct dr_mount *out)
{
    char name[PATH_MAX], *line = NULL;
    size_t room = 0;
    bool found = false;
    memset(out, 0, sizeof *out);
    if (snprintf(name, sizeof name, "%s/proc/self/mountinfo", root) >= (int)sizeof name)
        return false;
    FILE *file = fopen(name, "re");
    while (file && !found && getline(&line, &room, file) > 0) {
        unsigned mount_major, mount_minor;
        const char *rest = strstr(line, " - ");
        if (!rest || sscanf(line, "%*d %*d %u:%u", &mount_major, &mount_minor) != 2 ||
            mount_major != major_number || mount_minor != minor_number)
            continue;
        found = sscanf(rest, " - %31s %255s", out->type, out->source) == 2;
    }
    free(line);
    if (file)
        fclose(file);
    if (!find_disk(root, major_number, minor_number, out) && found)
        find_source(root, out);
    if (!found && out->has_disk)
        snprintf(out->type, sizeof out->type, "unknown");
    return found || out->has_disk;
}
