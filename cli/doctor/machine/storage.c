/* storage.c - what the data lie on, and how fast they are read, cold and warm
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/machine/machine.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cli/doctor/probe/files.h"
#include "cli/doctor/probe/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define READ_NS UINT64_C(1000000000) /* for each of the two */
enum { BLOCK = 1 << 20, LOOKED_AT = 4000 };

/* nftw has no argument for its visitor. */
static struct {
    char path[PATH_MAX];
    off_t size;
    uint32_t looked;
} largest;

static int visit(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)where;
    if (kind == FTW_F && S_ISREG(about->st_mode) && about->st_size > largest.size) {
        largest.size = about->st_size;
        snprintf(largest.path, sizeof largest.path, "%s", path);
    }
    return ++largest.looked >= LOOKED_AT;
}

/* Bytes a second, for at most READ_NS; NaN: it cannot be read. */
static double read_for_a_moment(int file, void *block)
{
    const uint64_t began = st_now_ns();
    uint64_t now = began;
    double bytes = 0;
    for (off_t at = 0; now - began < READ_NS;) {
        const ssize_t got = pread(file, block, BLOCK, at);
        now = st_now_ns();
        if (got < 0)
            return NAN;
        if (got == 0)
            break;
        bytes += (double)got;
        at += got;
    }
    return bytes > 0 && now > began ? bytes / ((double)(now - began) / 1e9) : NAN;
}

static void check_reading(struct dr_checks *checks, const char *data)
{
    largest.size = 0;
    largest.looked = 0;
    nftw(data, visit, 16, FTW_PHYS | FTW_MOUNT);
    if (!largest.size) {
        dr_check_add(checks, DR_NOT_HERE, "reading", "name a folder with files by --data",
                     "%.200s holds no file that has anything in it", data);
        return;
    }
    const int file = open(largest.path, O_RDONLY | O_CLOEXEC);
    void *block = st_alloc_aligned(BLOCK);
    double cold = NAN, warm = NAN;
    if (file >= 0 && block) {
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED); /* what is clean leaves the page cache */
        cold = read_for_a_moment(file, block);
        warm = read_for_a_moment(file, block);
    }
    if (isnan(cold) || isnan(warm))
        dr_check_add(checks, DR_BROKEN, "reading", "check its permissions, and the disk",
                     "%.300s cannot be read", largest.path);
    else
        dr_check_add(checks, cold < 100e6 ? DR_IMPROVE : DR_GOOD, "reading",
                     cold < 100e6 ? "copy the data to a faster disk, or pack small files: stoker pack"
                                  : "",
                     "%.0f MB/s from the disk, %.0f MB/s from the page cache (%.1f MB of %.200s)",
                     cold / 1e6, warm / 1e6, (double)largest.size / 1e6, largest.path);
    free(block);
    if (file >= 0)
        close(file);
}

static bool rotates(const struct dr_mount *mount)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/queue/rotational", mount->disk_major,
             mount->disk_minor);
    double value = dr_file_number("", path);
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/../queue/rotational", mount->disk_major,
             mount->disk_minor);
    if (isnan(value)) /* a partition: the disk knows */
        value = dr_file_number("", path);
    return value == 1;
}

void dr_check_storage(struct dr_checks *checks, const char *data)
{
    struct stat about;
    struct dr_mount mount;
    const char *place = data ? data : ".";
    if (stat(place, &about)) {
        dr_check_add(checks, DR_BROKEN, "storage", "name the data set's folder by --data", "%.300s: %s",
                     place, strerror(errno));
        return;
    }
    if (!dr_mount_of("", major(about.st_dev), minor(about.st_dev), &mount)) {
        dr_check_add(checks, DR_NOT_HERE, "storage", "", "%.300s: its file system is not to be seen",
                     place);
    } else {
        const bool network = dr_mount_on_network(&mount), slow = mount.has_disk && rotates(&mount);
        dr_check_add(
            checks, network || slow ? DR_IMPROVE : DR_GOOD, "storage",
            network ? "copy the data to a local disk, or pack them into shards: each open costs a round "
                      "trip"
            : slow  ? "a rotating disk: pack small files into shards (stoker pack), read in order"
                    : "",
            "%.300s: %s on %.64s%s", place, mount.type, mount.has_disk ? mount.disk : mount.source,
            slow ? ", rotating" : "");
    }
    if (data)
        check_reading(checks, data);
}
