/* storage.c - what the data are stored on, and how fast they are read, cold and warm
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/machine/machine.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "doctor/probe/files.h"
#include "doctor/probe/mounts.h"

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

#define READ_NS UINT64_C(1000000000) /* for each of the two passes */
enum { BLOCK = 1 << 20, LOOKED_AT = 4000, FILES = 256 };

/* A global, because nftw passes no context to its callback. */
static struct {
    char *path[FILES];
    uint32_t count, looked;
} found;

static int visit(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)where;
    if (kind == FTW_F && S_ISREG(about->st_mode) && about->st_size > 0 &&
        (found.path[found.count] = strdup(path)))
        found.count++;
    return found.count == FILES || ++found.looked >= LOOKED_AT;
}

struct speed {
    double bytes, seconds;
    uint32_t files;
};

static bool read_file(const char *path, void *block, uint64_t until_ns, struct speed *speed)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOATIME);
    const int opened =
        file >= 0 ? file : open(path, O_RDONLY | O_CLOEXEC); /* O_NOATIME is for own files only */
    if (opened < 0)
        return false;
    ssize_t got = 1;
    for (off_t at = 0; got > 0 && st_now_ns() < until_ns; at += got) {
        got = pread(opened, block, BLOCK, at);
        speed->bytes += got > 0 ? (double)got : 0;
    }
    close(opened);
    speed->files++;
    return got >= 0;
}

/* Reads file by file, for at most READ_NS. */
static bool read_files(struct speed *speed)
{
    void *block = st_alloc_aligned(BLOCK);
    const uint64_t began = st_now_ns();
    bool fine = block != NULL;
    for (uint32_t k = 0; k < found.count && fine && st_now_ns() < began + READ_NS; k++)
        fine = read_file(found.path[k], block, began + READ_NS, speed);
    speed->seconds = (double)(st_now_ns() - began) / 1e9;
    free(block);
    return fine && speed->bytes > 0 && speed->seconds > 0;
}

static void cool_down(void)
{
    for (uint32_t k = 0; k < found.count; k++) {
        const int file = open(found.path[k], O_RDONLY | O_CLOEXEC);
        if (file < 0)
            continue;
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED); /* evicts clean pages from the page cache */
        close(file);
    }
}

static void check_reading(struct dr_checks *checks, const char *data)
{
    struct speed cold = {0}, warm = {0};
    memset(&found, 0, sizeof found);
    nftw(data, visit, 16, FTW_PHYS | FTW_MOUNT);
    if (!found.count) {
        dr_check_add(checks, DR_NOT_HERE, "reading", "pass a folder with files as --data",
                     "%.200s contains no files with data", data);
        return;
    }
    cool_down();
    if (!read_files(&cold) || !read_files(&warm)) {
        dr_check_add(checks, DR_BROKEN, "reading", "check the permissions and the disk",
                     "cannot read files in %.300s", data);
    } else {
        const double speed = cold.bytes / cold.seconds, small = 256 * 1024;
        const bool slow = speed < 100e6;
        dr_check_add(
            checks, slow ? DR_IMPROVE : DR_GOOD, "reading",
            !slow                             ? ""
            : cold.bytes / cold.files < small ? "many small files: pack them into shards (stoker pack)"
                                              : "copy the data to a faster disk",
            "%.0f MB/s from the disk, %.0f MB/s from the page cache, one thread (%u file%s, %.2f MB "
            "each)",
            speed / 1e6, warm.bytes / warm.seconds / 1e6, cold.files, st_s(cold.files),
            cold.bytes / cold.files / 1e6);
    }
    for (uint32_t k = 0; k < found.count; k++)
        free(found.path[k]);
}

static bool rotates(const struct dr_mount *mount)
{
    char path[128];
    if (!strncmp(mount->disk, "vd", 2) || !strncmp(mount->disk, "xvd", 3))
        return false; /* virtual disks always claim to rotate */
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/queue/rotational", mount->disk_major,
             mount->disk_minor);
    double value = dr_file_number("", path);
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/../queue/rotational", mount->disk_major,
             mount->disk_minor);
    if (isnan(value)) /* a partition: ask the disk */
        value = dr_file_number("", path);
    return value == 1;
}

void dr_check_storage(struct dr_checks *checks, const char *data)
{
    struct stat about;
    struct dr_mount mount;
    const char *place = data ? data : ".";
    if (stat(place, &about)) {
        dr_check_add(checks, DR_BROKEN, "storage", "pass the folder of the dataset as --data",
                     "%.300s: %s", place, strerror(errno));
        return;
    }
    if (!dr_mount_of("", major(about.st_dev), minor(about.st_dev), &mount)) {
        dr_check_add(checks, DR_NOT_HERE, "storage", "", "%.300s: cannot determine the file system",
                     place);
    } else {
        const bool network = dr_mount_on_network(&mount), slow = mount.has_disk && rotates(&mount);
        dr_check_add(
            checks, network || slow ? DR_IMPROVE : DR_GOOD, "storage",
            network
                ? "copy the data to a local disk, or pack them into shards: every open costs a round "
                  "trip"
            : slow ? "pack small files into shards (stoker pack) and read them in order: seeks on a "
                     "rotating disk are slow"
                   : "",
            "%.300s: %s on %.64s%s", place, mount.type, mount.has_disk ? mount.disk : mount.source,
            slow ? ", rotating" : "");
    }
    if (data)
        check_reading(checks, data);
}
