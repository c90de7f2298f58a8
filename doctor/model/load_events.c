/* load_events.c - unrolls the ring buffer of events of a process, which may still be written to
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/load.h"

#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_RECORDS (UINT64_C(1) << 20) /* sixteen times what a training process writes */
#define LONGEST_NS   (UINT64_C(1) << 60)

enum { UNDER_WAY = 8 }; /* one, and more in case another CPU sees the count before the records */

/* Reads all of it, or returns false. */
static bool read_at(int file, void *to, uint64_t size, uint64_t offset)
{
    uint8_t *at = to;
    while (size) {
        const ssize_t got = pread(file, at, size < (1 << 30) ? size : 1 << 30, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        offset += (uint64_t)got;
        size -= (uint64_t)got;
    }
    return true;
}

static bool is_kind(uint16_t kind)
{
    return (kind >= DR_NEXT && kind <= DR_TRIED_STOKER) || (kind >= DR_FETCH && kind < DR_KINDS);
}

/* Copies records `from` to `to` into `out`, the oldest first. */
static bool copy_ring(int file, struct dr_event *out, uint64_t from, uint64_t to, uint64_t capacity)
{
    const uint64_t first = from % capacity, count = to - from;
    const uint64_t here = count < capacity - first ? count : capacity - first;
    return read_at(file, out, here * sizeof *out, DR_EVENTS_HEADER + first * sizeof *out) &&
           read_at(file, out + here, (count - here) * sizeof *out, DR_EVENTS_HEADER);
}

static int read_ring(int file, const char *path, struct dr_blocks *blocks, struct dr_process *process,
                     struct stoker_error *err)
{
    struct stat status;
    struct dr_events_header header;
    if (fstat(file, &status))
        return st_fail_errno(err, errno, "cannot read %s", path);
    const uint64_t size = (uint64_t)status.st_size;
    if (size < DR_EVENTS_HEADER || !read_at(file, &header, sizeof header, 0) || !header.magic[0])
        return STOKER_OK; /* still being created */
    if (memcmp(header.magic, DR_EVENTS_MAGIC, sizeof header.magic) ||
        header.record_size != sizeof(struct dr_event))
        return st_fail(err, STOKER_ECORRUPT,
                       "%s: not an events file of this version. Record the run again.", path);
    if (!header.capacity || header.capacity > MOST_RECORDS ||
        header.capacity > (size - DR_EVENTS_HEADER) / sizeof(struct dr_event))
        return st_fail(
            err, STOKER_ECORRUPT,
            "%s: offset 16: %llu records do not fit into a file of %llu bytes. Record the run again.",
            path, (unsigned long long)header.capacity, (unsigned long long)size);
    const uint64_t to = header.written, capacity = header.capacity;
    uint64_t from = to > capacity ? to - capacity : 0;
    struct dr_event *events = dr_blocks_new(blocks, to - from, sizeof *events);
    if (!events)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory for %llu events", path,
                       (unsigned long long)(to - from));
    if (!copy_ring(file, events, from, to, capacity) || !read_at(file, &header, sizeof header, 0))
        return st_fail(err, STOKER_EIO, "%s became shorter while it was read", path);
    /* The writer may have continued, and may be writing records beyond the counted ones, in the place of
     * the oldest. */
    uint64_t skipped = 0;
    if (header.written >= capacity && header.written - capacity + UNDER_WAY > from)
        skipped = header.written - capacity + UNDER_WAY - from;
    if (skipped > to - from)
        skipped = to - from;
    uint64_t kept = 0;
    for (uint64_t k = skipped; k < to - from; k++)
        if (is_kind(events[k].kind) && events[k].start_ns < LONGEST_NS && events[k].dur_ns < LONGEST_NS)
            events[kept++] = events[k];
    process->events = events;
    process->event_count = kept;
    process->events_lost = from + skipped;
    process->watch_spent_ns = header.spent_ns < LONGEST_NS ? header.spent_ns : 0;
    return STOKER_OK;
}

int dr_read_events(const char *path, struct dr_blocks *blocks, struct dr_process *process,
                   struct stoker_error *err)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT ? STOKER_OK : st_fail_errno(err, errno, "cannot open %s", path);
    const int rc = read_ring(file, path, blocks, process, err);
    close(file);
    return rc;
}
