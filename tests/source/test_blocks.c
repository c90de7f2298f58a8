/* Blocks of the cache on file systems without links: a block is kept all the same, whole or not at all, and what
 * cannot be kept is said. */
#include "source/remote/cache.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int link_errno, rename_errno; /* what the next calls fail with; 0: they do what they should */

/* In place of the C library's. */
int link(const char *from, const char *to)
{
    if (link_errno) {
        errno = link_errno;
        return -1;
    }
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int rename(const char *from, const char *to)
{
    if (rename_errno) {
        errno = rename_errno;
        return -1;
    }
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

enum { SIZE = 70000 };
static uint8_t bytes[SIZE], found[SIZE];
static char folder[] = "/tmp/stoker-blocks-XXXXXX";

/* Files under the folder whose names begin like those of blocks that are being written. */
static uint32_t temporaries(void)
{
    char command[200];
    unsigned count = 0;
    snprintf(command, sizeof command, "find %s -type f -name 't*' | wc -l", folder);
    FILE *f = popen(command, "r");
    if (!f || fscanf(f, "%u", &count) != 1)
        count = UINT32_MAX;
    if (f)
        pclose(f);
    return count;
}

static bool put_and_get(struct st_cache *cache, const char *name)
{
    struct st_cached *object = st_cached_open(cache, name, "v1", SIZE);
    memset(found, 0, sizeof found);
    if (object && st_cached_reserve(object, SIZE))
        st_cached_put(object, 0, bytes, SIZE);
    const bool there = object && st_cached_get(object, 0, 0, SIZE, found) && !memcmp(found, bytes, SIZE);
    st_cached_close(object);
    return there;
}

static void without_links(void)
{
    static const int errors[] = {EPERM, ENOTSUP, EOPNOTSUPP, EMLINK, ENOSYS, EACCES};
    struct st_cache *cache = NULL;
    bool all = !st_cache_open(&cache, folder, 1 << 30, NULL);
    for (size_t k = 0; all && k < sizeof errors / sizeof *errors; k++) {
        char name[32];
        snprintf(name, sizeof name, "object %zu", k);
        link_errno = errors[k];
        all = put_and_get(cache, name) && !st_cache_note(cache);
        link_errno = 0;
        if (!all)
            note("link fails with %s", strerror(errors[k]));
    }
    ok(all, "where there are no links, blocks are kept");
    ok(temporaries() == 0, "and nothing else is left");
    st_cache_close(cache);
    cache = NULL;
    all = !st_cache_open(&cache, folder, 1 << 30, NULL);
    struct st_cached *object = all ? st_cached_open(cache, "object 1", "v1", SIZE) : NULL;
    memset(found, 0, sizeof found);
    ok(object && st_cached_get(object, 0, 0, SIZE, found) && !memcmp(found, bytes, SIZE), "the next process finds them");
    st_cached_close(object);
    st_cache_close(cache);
}

/* Several writers of one block, as processes that know nothing of one another. */
static void *write_often(void *context)
{
    struct st_cache *cache = NULL;
    uint8_t own[SIZE];
    uintptr_t torn = st_cache_open(&cache, folder, 1 << 30, NULL) != 0;
    struct st_cached *object = torn ? NULL : st_cached_open(cache, "contended", "v1", SIZE);
    (void)context;
    for (int k = 0; object && k < 50; k++) {
        if (st_cached_reserve(object, SIZE))
            st_cached_put(object, 0, bytes, SIZE);
        torn += !st_cached_get(object, 0, 0, SIZE, own) || memcmp(own, bytes, SIZE);
    }
    torn += !object;
    st_cached_close(object);
    st_cache_close(cache);
    return (void *)torn;
}

static void side_by_side(void)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    uintptr_t torn = 0;
    link_errno = EPERM;
    for (int k = 0; k < THREADS; k++)
        if (pthread_create(&thread[k], NULL, write_often, NULL))
            abort();
    for (int k = 0; k < THREADS; k++) {
        void *result;
        pthread_join(thread[k], &result);
        torn += (uintptr_t)result;
    }
    link_errno = 0;
    ok(torn == 0, "a block that several write at once is whole whenever it is read");
}

static void nowhere(void)
{
    struct st_cache *cache = NULL;
    const int rc = st_cache_open(&cache, folder, 1 << 30, NULL);
    link_errno = EPERM;
    rename_errno = EROFS;
    const bool there = !rc && put_and_get(cache, "nowhere");
    link_errno = rename_errno = 0;
    const char *why = rc ? NULL : st_cache_note(cache);
    ok(!there && why && strstr(why, "cannot be written"), "what cannot be kept at all is said: %s", why ? why : "nothing");
    ok(temporaries() == 0, "and nothing is left of it");
    st_cache_close(cache);
}

int main(void)
{
    char command[100];
    if (!mkdtemp(folder))
        return 1;
    for (uint32_t k = 0; k < SIZE; k++)
        bytes[k] = (uint8_t)(k * 2654435761u >> 24);
    without_links();
    side_by_side();
    nowhere();
    snprintf(command, sizeof command, "rm -r %s", folder);
    return done_testing() | (system(command) != 0);
}
