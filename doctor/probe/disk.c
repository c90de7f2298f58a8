/* disk.c - the disks that hold the open files of the run: throughput, requests, latency
 *
 * Once per second, the file descriptors of some processes, by turns, are inspected: the file systems of
 * regular files count, except for standard input and output. Until one is seen, the file system of the
 * working directory counts. A file system without a visible disk (overlay) stands for all disks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/mounts.h"
#include "doctor/probe/probes.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define SECOND UINT64_C(1000000000)
enum { DISKS = 16, PROCESSES_LOOKED_AT = 4, FILES_LOOKED_AT = 256, PLACES = 16 };

/* A file system with open files of the run. */
struct place {
    unsigned major, minor;
    uint64_t seen;
};

struct disk {
    unsigned major, minor;
    struct dr_counter reads, bytes, waited, busy;
};

struct disks {
    char root[PATH_MAX];
    int stats;
    struct dr_limits *limits;
    struct dr_absent *absent;
    struct place place[PLACES];
    uint32_t places, described; /* described: number of places whose disk is known */
    uint64_t looked_ns, most_seen;
    struct disk disk[DISKS];
    uint32_t disks;
    bool all; /* all disks of the machine count */
    bool said;
    uint32_t next; /* process to inspect first */
};

static void see(struct disks *disks, unsigned major, unsigned minor)
{
    for (uint32_t k = 0; k < disks->places; k++)
        if (disks->place[k].major == major && disks->place[k].minor == minor) {
            disks->place[k].seen++;
            return;
        }
    if (disks->places < PLACES)
        disks->place[disks->places++] = (struct place){major, minor, 1};
}

/* Without a request to a server that may be slow. */
static bool look_at(const char *path, bool regular, unsigned *major, unsigned *minor)
{
    struct statx about;
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &about) ||
        (regular && !S_ISREG(about.stx_mode)))
        return false;
    *major = about.stx_dev_major;
    *minor = about.stx_dev_minor;
    return true;
}

static void look_at_process(struct disks *disks, int pid)
{
    char path[PATH_MAX + 300];
    unsigned major, minor;
    snprintf(path, sizeof path, "%s/proc/%d/fd", disks->root, pid);
    DIR *folder = opendir(path);
    if (!folder)
        return;
    uint32_t looked = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) && looked < FILES_LOOKED_AT;) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) <= 2)
            continue;
        looked++;
        snprintf(path, sizeof path, "%s/proc/%d/fd/%s", disks->root, pid, entry->d_name);
        if (look_at(path, true, &major, &minor))
            see(disks, major, minor);
    }
    closedir(folder);
}

static void add_disk(struct disks *disks, unsigned major, unsigned minor)
{
    for (uint32_t k = 0; k < disks->disks; k++)
        if (disks->disk[k].major == major && disks->disk[k].minor == minor)
            return;
    if (disks->disks < DISKS)
        disks->disk[disks->disks++] = (struct disk){.major = major, .minor = minor};
}

static void say_absent(struct disks *disks, const char *file_system)
{
    char why[128];
    if (disks->said)
        return;
    disks->said = true;
    snprintf(why, sizeof why, "the files are on %.64s, which is not a disk of this machine",
             file_system);
    dr_absent_all(disks->absent, DR_DISK_READ, DR_DISK_BUSY, why,
                  "copy the data to a local disk, or watch the server that stores them");
}

static void describe(struct disks *disks, struct place place)
{
    struct dr_mount mount;
    if (!dr_mount_of(disks->root, place.major, place.minor, &mount))
        return;
    const bool main = place.seen >= disks->most_seen && !dr_mount_in_memory(&mount);
    if (main) {
        disks->most_seen = place.seen;
        snprintf(disks->limits->file_system, sizeof disks->limits->file_system, "%s", mount.type);
        snprintf(disks->limits->disk_name, sizeof disks->limits->disk_name, "%.95s",
                 mount.has_disk ? mount.disk : mount.source);
    }
    if (mount.has_disk)
        add_disk(disks, mount.disk_major, mount.disk_minor);
    else if (dr_mount_on_unseen_disk(&mount))
        disks->all = true;
    else if (main)
        say_absent(disks, mount.type);
}

static void look_around(struct disks *disks, const struct dr_watched *watched)
{
    const uint32_t count =
        watched->processes < PROCESSES_LOOKED_AT ? watched->processes : PROCESSES_LOOKED_AT;
    for (uint32_t k = 0; k < count; k++)
        look_at_process(disks, watched->process[disks->next++ % watched->processes].pid);
    char path[PATH_MAX + 64];
    unsigned major, minor;
    if (!disks->places && watched->processes) {
        snprintf(path, sizeof path, "%s/proc/%d/cwd", disks->root, watched->process[0].pid);
        if (look_at(path, false, &major, &minor)) {
            see(disks, major, minor);
            disks->place[0].seen = 0; /* the first file seen replaces the guess */
        }
    }
    for (uint32_t k = 0; k < disks->places; k++)
        if (k >= disks->described || disks->place[k].seen > disks->most_seen)
            describe(disks, disks->place[k]);
    disks->described = disks->places;
}

/* One line of /proc/diskstats. */
struct line {
    unsigned major, minor;
    char name[64];
    double reads, sectors, read_ms, busy_ms;
};

static bool parse(const char *text, struct line *line)
{
    double major, minor;
    /* After the name: reads, merged, sectors, ms; the same for writes; in flight, busy ms. */
    double field[10];
    text = dr_text_next(dr_text_next(text, &major), &minor);
    if (!text)
        return false;
    text += strspn(text, " ");
    const size_t length = strcspn(text, " \n");
    snprintf(line->name, sizeof line->name, "%.*s", (int)length, text);
    text += length;
    for (int k = 0; k < 10 && text; k++)
        text = dr_text_next(text, &field[k]);
    if (!text)
        return false;
    line->major = (unsigned)major;
    line->minor = (unsigned)minor;
    line->reads = field[0];
    line->sectors = field[2];
    line->read_ms = field[3];
    line->busy_ms = field[9];
    return true;
}

/* Sums over disks; the busy share is that of the busiest disk. */
struct sums {
    double reads, bytes, waited, busy;
    bool known;
};

static void add(struct sums *sums, struct disk *disk, const struct line *line, double seconds)
{
    const double reads = dr_counter_rate(&disk->reads, line->reads, seconds),
                 bytes = dr_counter_rate(&disk->bytes, 512.0 * line->sectors, seconds),
                 waited = dr_counter_rate(&disk->waited, line->read_ms / 1e3, seconds),
                 busy = dr_counter_rate(&disk->busy, line->busy_ms / 1e3, seconds);
    if (isnan(reads) || isnan(bytes) || isnan(waited) || isnan(busy))
        return;
    sums->known = true;
    sums->reads += reads;
    sums->bytes += bytes;
    sums->waited += waited;
    sums->busy = fmax(sums->busy, fmin(1, busy));
}

static void sample_disks(struct disks *disks, struct dr_tick *tick)
{
    char text[1 << 16];
    struct sums sums = {0};
    if (!dr_file_whole(disks->stats, text, sizeof text))
        return;
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL) {
        struct line line;
        if (!parse(at, &line))
            continue;
        if (disks->all && line.reads > 0 && dr_is_whole_disk(disks->root, line.name))
            add_disk(disks, line.major, line.minor);
        for (uint32_t k = 0; k < disks->disks; k++)
            if (disks->disk[k].major == line.major && disks->disk[k].minor == line.minor)
                add(&sums, &disks->disk[k], &line, dr_tick_seconds(tick));
    }
    disks->all = false; /* they have been added */
    if (!sums.known)
        return;
    tick->machine[DR_DISK_READ] = sums.bytes;
    tick->machine[DR_DISK_READS] = sums.reads;
    tick->machine[DR_DISK_AWAIT] = sums.reads > 0 ? sums.waited / sums.reads : NAN;
    tick->machine[DR_DISK_BUSY] = sums.busy;
}

static bool disk_open(void *state, const char *root, struct dr_limits *limits, struct dr_absent *absent)
{
    struct disks *disks = state;
    disks->limits = limits;
    disks->absent = absent;
    snprintf(disks->root, sizeof disks->root, "%s", root);
    disks->stats = dr_file_open(root, "/proc/diskstats");
    if (disks->stats >= 0)
        return true;
    dr_absent_all(absent, DR_DISK_READ, DR_DISK_BUSY, "cannot read /proc/diskstats",
                  "mount /proc as usual");
    return false;
}

static void disk_sample(void *state, struct dr_tick *tick, const struct dr_watched *watched)
{
    struct disks *disks = state;
    if (watched->processes && tick->now_ns - disks->looked_ns >= SECOND) {
        disks->looked_ns = tick->now_ns;
        look_around(disks, watched);
    }
    sample_disks(disks, tick);
}

static void disk_close(void *state) { dr_file_close(&((struct disks *)state)->stats); }

const struct dr_probe dr_probe_disk = {"disk",      sizeof(struct disks), disk_open,
                                       disk_sample, disk_close,           .pause_ms = DR_SLOW_MS};
