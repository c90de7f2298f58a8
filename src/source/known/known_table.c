/* known_table.c - a table of files that are known to decode, and the file that keeps it
 *
 * The file is a header of 32 bytes (magic, number of samples, what the dataset is, by which rules its
 * files were judged, a checksum of these), then the numbers in little-endian order. It is read, not
 * mapped, because truncating a mapped file would kill the process with SIGBUS; a file that is too short
 * is one whose last numbers are 0, and it grows as pages are written. Several processes read, merge and
 * write its pages without locks: a page that two of them write at the same time may lose numbers of one,
 * which that one notices when it reads the page again, and repairs. At worst a number is lost, and the
 * sample is learned again.
 *
 * A page of the table is CLEAN, DIRTY (it has numbers that were not written) or WHOLE (the file has a
 * number for every sample: there is nothing to gain from reading it).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/known/known_table.h"
#include "base/file.h"
#include "source/checksum/crc32c.h"
#include "source/index/keep.h"
#include "source/little.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = ST_KNOWN_HEAD, ENTRY = 4 }; /* bytes */
enum { PAGE = 1024 };          /* entries */
enum { STRETCH = 64 };         /* pages that are read at once */
enum page { CLEAN, DIRTY, WHOLE };
/* In the table only: unknown, and what the file has is out of date. */
#define FORGOTTEN UINT32_MAX

/* ---- the table ---------------------------------------------------------------------------------- */

uint32_t st_known_sum(struct st_bytes file)
{
    const uint32_t sum = st_crc32c(file.data, file.size);
    return sum && sum != FORGOTTEN ? sum : 1;
}

uint32_t st_known_table_get(const struct st_known *table, uint64_t sample)
{
    const uint32_t sum = atomic_load_explicit(&table->sums[sample], memory_order_relaxed);
    return sum != FORGOTTEN ? sum : 0;
}

/* A sample's number has changed. */
static void count_known(struct st_known *table, uint32_t before, uint32_t now)
{
    const bool was = before && before != FORGOTTEN, is = now && now != FORGOTTEN;
    if (was != is)
        atomic_fetch_add_explicit(&table->known, is ? 1 : UINT64_MAX, memory_order_relaxed);
}

void st_known_table_put(struct st_known *table, uint64_t sample, uint32_t sum)
{
    sum = sum ? sum : FORGOTTEN;
    if (atomic_load_explicit(&table->sums[sample], memory_order_relaxed) == sum)
        return;
    const uint32_t before = atomic_exchange_explicit(&table->sums[sample], sum, memory_order_relaxed);
    count_known(table, before, sum);
    /* After the number, so that whoever finds the page dirty writes the number too. */
    atomic_store_explicit(&table->pages[sample / PAGE], DIRTY, memory_order_release);
}

/* ---- the file ----------------------------------------------------------------------------------- */

static void put_little(uint8_t *at, uint64_t value, int bytes)
{
    for (int k = 0; k < bytes; k++)
        at[k] = (uint8_t)(value >> 8 * k);
}

static void make_head(uint8_t head[HEAD], uint64_t count, uint64_t key)
{
    memset(head, 0, HEAD);
    memcpy(head, "STKNOWN1", 8);
    put_little(head + 8, count, 8);
    put_little(head + 16, key, 8);
    put_little(head + 24, ST_KNOWN_RULES, 4);
    put_little(head + 28, st_crc32c(head, 28), 4);
}

/* Zeros take the place of what is past the end of the file. */
static bool read_at(int fd, uint8_t *into, uint64_t size, uint64_t offset)
{
    uint64_t done = 0;
    while (done < size) {
        const ssize_t got = pread(fd, into + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        done += (uint64_t)got;
    }
    memset(into + done, 0, size - done);
    return true;
}

/* Opens the file if it is a table of this dataset. -1: it is not, or cannot be opened. */
static int open_table(const struct st_known *known, int flags, struct stat *info)
{
    uint8_t head[HEAD];
    const int fd = st_file_open(known->file, flags | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    if (!fstat(fd, info) && S_ISREG(info->st_mode) &&
        (uint64_t)info->st_size <= HEAD + known->count * ENTRY && read_at(fd, head, HEAD, 0) &&
        !memcmp(head, known->head, HEAD))
        return fd;
    close(fd);
    return -1;
}

/* Opens the file, for reading only if it cannot be written; makes a new one if there is none that is
 * valid and there is something to write. */
static int open_or_make(const struct st_known *known, bool unwritten, bool *writable, struct stat *info)
{
    int fd = open_table(known, O_RDWR, info);
    *writable = fd >= 0;
    if (fd < 0)
        fd = open_table(known, O_RDONLY, info);
    if (fd < 0 && unwritten && st_keep_replace(known->file, known->head, HEAD, false)) {
        fd = open_table(known, O_RDWR, info);
        *writable = fd >= 0;
    }
    return fd;
}

/* ---- sharing ------------------------------------------------------------------------------------ */

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static enum page page_state(const struct st_known *known, uint64_t page)
{
    return (enum page)atomic_load_explicit(&known->pages[page], memory_order_relaxed);
}

static bool any_page(const struct st_known *known, uint64_t from, uint64_t end, enum page state)
{
    while (from < end && page_state(known, from) != state)
        from++;
    return from < end;
}

/* Merges a page of the file and the table, whose own numbers win. Returns whether the file's page lacked
 * one; *whole: now it has all of them. */
static bool merge_page(struct st_known *known, uint64_t page, uint8_t *bytes, bool *whole)
{
    const uint64_t first = page * PAGE, end = smaller(first + PAGE, known->count);
    bool lacked = false;
    *whole = true;
    for (uint64_t i = first; i < end; i++, bytes += ENTRY) {
        const uint32_t kept = st_u32(bytes) != FORGOTTEN ? st_u32(bytes) : 0;
        uint32_t own = atomic_load_explicit(&known->sums[i], memory_order_relaxed);
        if (!own && kept &&
            atomic_compare_exchange_strong_explicit(&known->sums[i], &own, kept, memory_order_relaxed,
                                                    memory_order_relaxed))
            count_known(known, 0, kept);
        lacked = lacked || (own && own != FORGOTTEN && !kept);
        if (own)
            put_little(bytes, own != FORGOTTEN ? own : 0, ENTRY);
        *whole = *whole && own != FORGOTTEN && (own || kept);
    }
    return lacked;
}

/* Takes the marks of dirty pages away. Before the numbers are looked at: one that is learned meanwhile
 * makes its page dirty again. */
static void take_marks(struct st_known *known, uint64_t from, uint64_t end, bool was_dirty[STRETCH])
{
    for (uint64_t page = from; page < end; page++) {
        uint8_t dirty = DIRTY;
        was_dirty[page - from] = atomic_compare_exchange_strong_explicit(
            &known->pages[page], &dirty, CLEAN, memory_order_acquire, memory_order_relaxed);
    }
}

/* Unless the page has become dirty meanwhile. */
static void mark(struct st_known *known, uint64_t page, enum page state)
{
    uint8_t clean = CLEAN;
    atomic_compare_exchange_strong_explicit(&known->pages[page], &clean, (uint8_t)state,
                                            memory_order_relaxed, memory_order_relaxed);
}

/* Reads a stretch of pages, merges them, and writes those from the first to the last with numbers that
 * the file lacks. False: that failed. */
static bool share_stretch(struct st_known *known, uint64_t from, uint64_t end, int fd, bool writable,
                          uint8_t *bytes)
{
    enum { PAGE_BYTES = PAGE * ENTRY };
    const uint64_t offset = HEAD + from * PAGE_BYTES;
    const uint64_t size = smaller((end - from) * PAGE_BYTES, (known->count - from * PAGE) * ENTRY);
    uint64_t first = end, last = from;
    bool unwritten[STRETCH] = {false}, whole[STRETCH] = {false};
    if (writable)
        take_marks(known, from, end, unwritten);
    bool good = read_at(fd, bytes, size, offset);
    for (uint64_t page = from; page < end && good; page++) {
        const uint64_t k = page - from;
        const bool lacked = merge_page(known, page, bytes + k * PAGE_BYTES, &whole[k]);
        unwritten[k] = writable && (unwritten[k] || lacked);
        if (unwritten[k]) {
            first = smaller(first, page);
            last = page + 1;
        }
    }
    if (first < last) {
        const uint64_t start = (first - from) * PAGE_BYTES;
        good = st_file_write(fd, offset + start, bytes + start,
                             smaller((last - from) * PAGE_BYTES, size) - start);
    }
    for (uint64_t page = from; page < end; page++)
        if (!good && unwritten[page - from])
            mark(known, page, DIRTY);
        else if (good && whole[page - from])
            mark(known, page, WHOLE);
    return good;
}

/* Begins to read the file again from the first page to the last if it has changed. One that is shorter
 * than before is another one, too: inodes are used again. */
static void begin_round(struct st_known *known, const struct stat *info, uint64_t stretches)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t modified_ns = (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
    const int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (info->st_dev != known->device || info->st_ino != known->inode || info->st_size < known->size) {
        for (uint64_t page = 0; page < known->page_count; page++) {
            uint8_t whole = WHOLE;
            atomic_compare_exchange_strong_explicit(&known->pages[page], &whole, CLEAN,
                                                    memory_order_relaxed, memory_order_relaxed);
        }
        known->seen_ns = INT64_MIN;
        known->left = 0;
    }
    if (known->left || modified_ns == known->seen_ns)
        return;
    known->left = stretches;
    /* A file that changed moments ago may change again without a new time. */
    known->seen_ns = modified_ns < now_ns - ST_KEEP_SETTLED_NS ? modified_ns : INT64_MIN;
}

static void exchange(struct st_known *known, uint64_t limit)
{
    const uint64_t stretches = (known->page_count + STRETCH - 1) / STRETCH;
    struct stat info;
    bool writable;
    const int fd = open_or_make(known, any_page(known, 0, known->page_count, DIRTY), &writable, &info);
    if (fd < 0)
        return;
    uint8_t *bytes = st_alloc_aligned(smaller(known->page_count, STRETCH) * PAGE * ENTRY);
    bool good = bytes != NULL;
    begin_round(known, &info, stretches);
    for (uint64_t i = 0; i < stretches && limit && good; i++) {
        const uint64_t from = known->stretch * STRETCH, end = smaller(from + STRETCH, known->page_count);
        const bool dirty = any_page(known, from, end, DIRTY);
        if ((writable && dirty) || (known->left && (dirty || any_page(known, from, end, CLEAN)))) {
            good = share_stretch(known, from, end, fd, writable, bytes);
            limit--;
        }
        /* Also after a failure, so that one page that cannot be read does not keep all others from it.
         */
        known->stretch = (known->stretch + 1) % stretches;
        known->left -= known->left > 0;
    }
    if (!fstat(fd, &info)) {
        known->device = info.st_dev;
        known->inode = info.st_ino;
        known->size = info.st_size;
    }
    free(bytes);
    close(fd);
}

/* One thread at a time. A forked child takes over from a thread that only its parent has. */
void st_known_table_share(struct st_known *known, uint64_t limit)
{
    const long own = (long)getpid();
    long holder = atomic_load(&known->sharing);
    if (!known->file || !known->page_count || holder == own ||
        !atomic_compare_exchange_strong(&known->sharing, &holder, own))
        return;
    exchange(known, limit);
    atomic_store(&known->sharing, 0);
}

/* ---- making and freeing ------------------------------------------------------------------------- */

void st_known_table_free(struct st_known *table)
{
    if (table) {
        free(table->parts);
        free((void *)(uintptr_t)table->sums);
        free((void *)(uintptr_t)table->pages);
    }
    free(table);
}

struct st_known *st_known_table_new(uint64_t count, const char *file, uint64_t key)
{
    struct st_known *table = st_calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->count = count;
    table->page_count = (count + PAGE - 1) / PAGE;
    table->file = file;
    table->seen_ns = INT64_MIN;
    make_head(table->head, count, key);
    table->sums = st_calloc(count, sizeof *table->sums);
    table->pages = st_calloc(table->page_count, sizeof *table->pages);
    if (table->sums && table->pages)
        return table;
    st_known_table_free(table);
    return NULL;
}

void st_known_drop(struct stoker_dataset *data)
{
    struct st_known *known = atomic_load(&data->known);
    if (known && !known->whole && any_page(known, 0, known->page_count, DIRTY))
        st_known_table_share(known, UINT64_MAX);
    st_known_table_free(known);
    free(data->known_file);
}
