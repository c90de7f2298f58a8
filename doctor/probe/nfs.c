/* nfs.c - READ requests to NFS servers: rate, bytes and round trip, from /proc/self/mountstats
 *
 * The disk probe names the file system of the run (limits.file_system, limits.disk_name: "nfs4",
 * "server:/export"). The counters here are sums over all NFS mounts, as the network's are over all
 * interfaces.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/probes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_AGAIN_NS (UINT64_C(5) * 1000000000) /* without an NFS mount */
enum { ROOM = 1 << 18, MOUNTS = 64 };

/* The counters of one mount, or their sum. Times are in milliseconds. */
struct requests {
    unsigned long long count, bytes, round_trips_ms, total_ms;
};

struct nfs {
    int file;
    bool mounted;
    uint64_t looked_ns;
    struct dr_counter count, bytes, round_trips, total;
    char text[ROOM];
};

/* "device server:/export mounted on /data with fstype nfs4 statvers=1.1"; "nfsd" is the server's own. */
static bool is_nfs(const char *line, size_t length)
{
    static const char mark[] = " with fstype nfs";
    const char *found = memmem(line, length, mark, sizeof mark - 1);
    if (!found)
        return false;
    const char next = found + sizeof mark - 1 < line + length ? found[sizeof mark - 1] : ' ';
    return next == ' ' || (next >= '0' && next <= '9');
}

/* "READ: operations transmissions timeouts bytes-sent bytes-received queue-ms round-trip-ms total-ms
 * ..." */
static void add_line(struct requests *to, const char *line)
{
    static const char *const names[] = {"READ:", "READ_PLUS:"};
    enum { OPERATIONS, RECEIVED = 4, ROUND_TRIPS = 6, TOTAL, NUMBERS };
    unsigned long long number[NUMBERS];
    line += strspn(line, " \t");
    const size_t name = strcspn(line, " \t\n");
    bool wanted = false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        wanted |= strlen(names[k]) == name && !memcmp(line, names[k], name);
    const char *at = line + name;
    for (int k = 0; wanted && k < NUMBERS; k++) {
        at += strspn(at, " \t");
        if (*at < '0' || *at > '9')
            return;
        char *end;
        number[k] = strtoull(at, &end, 10);
        at = end;
    }
    if (!wanted)
        return;
    to->count += number[OPERATIONS];
    to->bytes += number[RECEIVED];
    to->round_trips_ms += number[ROUND_TRIPS];
    to->total_ms += number[TOTAL];
}

struct mounts {
    struct requests one[MOUNTS];
    uint32_t count;
};

/* An export that is mounted at several places is listed with the same counters each time. */
static void add_mount(struct requests *sum, struct mounts *seen, const struct requests *mount)
{
    for (uint32_t k = 0; k < seen->count; k++)
        if (!memcmp(&seen->one[k], mount, sizeof *mount))
            return;
    if (seen->count < MOUNTS)
        seen->one[seen->count++] = *mount;
    sum->count += mount->count;
    sum->bytes += mount->bytes;
    sum->round_trips_ms += mount->round_trips_ms;
    sum->total_ms += mount->total_ms;
}

/* False: there is no NFS mount. */
static bool sum_up(const char *text, struct requests *sum)
{
    struct mounts seen = {.count = 0};
    struct requests mount = {0};
    bool inside = false, any = false;
    *sum = (struct requests){0};
    for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL) {
        if (!strncmp(line, "device ", 7)) {
            if (inside)
                add_mount(sum, &seen, &mount);
            mount = (struct requests){0};
            inside = is_nfs(line, strcspn(line, "\n"));
            any |= inside;
        } else if (inside) {
            add_line(&mount, line);
        }
    }
    if (inside)
        add_mount(sum, &seen, &mount);
    return any;
}

static bool nfs_open(void *state, const char *root, struct dr_limits *limits, struct dr_absent *absent)
{
    struct nfs *nfs = state;
    (void)limits;
    nfs->file = dr_file_open(root, "/proc/self/mountstats");
    if (nfs->file >= 0)
        return true;
    dr_absent_all(absent, DR_NFS_READ, DR_NFS_TIME, "cannot read /proc/self/mountstats",
                  "mount /proc as usual");
    return false;
}

static void nfs_sample(void *state, struct dr_tick *tick, const struct dr_watched *watched)
{
    struct nfs *nfs = state;
    struct requests now;
    (void)watched;
    if (!nfs->mounted && nfs->looked_ns && tick->now_ns - nfs->looked_ns < LOOK_AGAIN_NS)
        return;
    nfs->looked_ns = tick->now_ns;
    nfs->mounted = dr_file_whole(nfs->file, nfs->text, sizeof nfs->text) && sum_up(nfs->text, &now);
    if (!nfs->mounted)
        return;
    const double seconds = dr_tick_seconds(tick),
                 count = dr_counter_rate(&nfs->count, (double)now.count, seconds),
                 trips = dr_counter_rate(&nfs->round_trips, (double)now.round_trips_ms / 1e3, seconds),
                 total = dr_counter_rate(&nfs->total, (double)now.total_ms / 1e3, seconds);
    tick->machine[DR_NFS_READ] = dr_counter_rate(&nfs->bytes, (double)now.bytes, seconds);
    tick->machine[DR_NFS_READS] = count;
    tick->machine[DR_NFS_RTT] = count > 0 ? trips / count : NAN;
    tick->machine[DR_NFS_TIME] = count > 0 ? total / count : NAN;
}

static void nfs_close(void *state) { dr_file_close(&((struct nfs *)state)->file); }

const struct dr_probe dr_probe_nfs = {"nfs",      sizeof(struct nfs), nfs_open,
                                      nfs_sample, nfs_close,          .pause_ms = DR_SLOW_MS};
