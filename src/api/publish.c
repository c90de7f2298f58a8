/* publish.c - a loader's counters, where another process may read them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/publish.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint64_t PERIOD_NS = 100000000;

struct st_published {
    int fd;
    struct st_published_page *page;
    uint64_t written_ns;
};

struct st_published *st_publish_open(void)
{
    struct st_published *published = st_calloc(1, sizeof *published);
    if (!published)
        return NULL;
    published->fd = memfd_create(ST_PUBLISHED_NAME, MFD_CLOEXEC);
    if (published->fd < 0 || ftruncate(published->fd, sizeof *published->page)) {
        st_publish_close(published);
        return NULL;
    }
    published->page =
        mmap(NULL, sizeof *published->page, PROT_READ | PROT_WRITE, MAP_SHARED, published->fd, 0);
    if (published->page == MAP_FAILED) {
        published->page = NULL;
        st_publish_close(published);
        return NULL;
    }
    memcpy(published->page->magic, ST_PUBLISHED_MAGIC, sizeof published->page->magic);
    return published;
}

static uint32_t describe(char *text, size_t room, const struct stoker_stats *s, uint64_t batches,
                         uint64_t now)
{
    const int size = snprintf(
        text, room,
        "pid %d\nnow_ns %llu\nbatches %llu\nepoch_batches %llu\nsamples %llu\nbytes %llu\nbad %llu\n"
        "read_ns %llu\ndecode_ns %llu\naugment_ns %llu\nslot_ns %llu\nwait_ns %llu\n"
        "workers %u\nslots %u\nslots_lent %u\nmemory_held %llu\nmemory_allowed %llu\nreader %s\n",
        (int)getpid(), (unsigned long long)now, (unsigned long long)s->batches,
        (unsigned long long)batches, (unsigned long long)s->samples,
        (unsigned long long)s->bytes, (unsigned long long)s->bad,
        (unsigned long long)s->stage_ns[STOKER_STAGE_READ],
        (unsigned long long)s->stage_ns[STOKER_STAGE_DECODE],
        (unsigned long long)s->stage_ns[STOKER_STAGE_AUGMENT],
        (unsigned long long)s->stage_ns[STOKER_STAGE_SLOT], (unsigned long long)s->wait_ns, s->workers,
        s->slots, s->slots_lent, (unsigned long long)s->memory_held,
        (unsigned long long)s->memory_allowed, s->reader ? s->reader : "");
    return size < 0 ? 0 : (size_t)size < room ? (uint32_t)size : (uint32_t)room - 1;
}

bool st_publish_is_due(const struct st_published *published)
{
    return published && st_now_ns() - published->written_ns >= PERIOD_NS;
}

void st_publish(struct st_published *published, const struct stoker_stats *stats, uint64_t batches)
{
    struct st_published_page *page = published->page;
    published->written_ns = st_now_ns();
    const uint32_t sequence = atomic_load_explicit(&page->sequence, memory_order_relaxed);
    atomic_store_explicit(&page->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    page->size = describe(page->text, sizeof page->text, stats, batches, published->written_ns);
    atomic_store_explicit(&page->sequence, sequence + 2, memory_order_release);
}

void st_publish_close(struct st_published *published)
{
    if (!published)
        return;
    if (published->page)
        munmap(published->page, sizeof *published->page);
    if (published->fd >= 0)
        close(published->fd);
    free(published);
}
