/* callbacks.c - samples read by the caller's functions
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/kinds.h"
#include "source/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* Serializes `label`, as the API promises. */
struct turn {
    pthread_mutex_t lock;
    _Atomic pid_t owner; /* the process whose threads use the lock */
};

struct callbacks {
    struct stoker_callbacks calls;
    void *cookie;
    struct turn *labels, turn;
};

/* The first call offers this much room, so that most samples need only one call. */
enum { FIRST_ROOM = 128 * 1024, ATTEMPTS = 8 };

static uint64_t callbacks_count(const void *self)
{
    return ((const struct callbacks *)self)->calls.count;
}

/* A forked child gets a lock of its own: in this one a thread may be that does not exist there. */
static void take_turn(struct turn *turn)
{
    const pid_t process = getpid();
    if (atomic_load(&turn->owner) != process) {
        st_process_lock(ST_LOCK_CACHES);
        if (atomic_load(&turn->owner) != process) {
            pthread_mutex_init(&turn->lock, NULL);
            atomic_store(&turn->owner, process);
        }
        st_process_unlock(ST_LOCK_CACHES);
    }
    pthread_mutex_lock(&turn->lock);
}

static int64_t callbacks_label(const void *self, uint64_t sample)
{
    const struct callbacks *own = self;
    if (!own->calls.label)
        return 0;
    take_turn(own->labels);
    const int64_t label = own->calls.label(own->cookie, sample);
    pthread_mutex_unlock(&own->labels->lock);
    return label;
}

/* Only the loader itself reports cancellation, the end of an epoch or forks: if a callback returns one
 * of these codes, its read has failed. */
static int status_of(int returned)
{
    const bool own = returned == STOKER_ECANCELED || returned == STOKER_EFORK;
    return returned < 0 && returned >= STOKER_EINTERNAL && !own ? returned : STOKER_EIO;
}

static int read_failed(int status, uint64_t sample, struct stoker_error *said, struct stoker_error *err)
{
    char name[40];
    const int code = status_of(status);
    st_name_by_number(NULL, sample, name, sizeof name);
    said->message[sizeof said->message - 1] = '\0';
    if (said->message[0])
        return st_fail(err, code, "%s: %.900s", name, said->message);
    return st_fail(err, code, "%s: the read callback returned %d without a message", name, status);
}

static int callbacks_read(void *self, uint64_t sample, struct st_buffer *into, struct stoker_error *err)
{
    const struct callbacks *own = self;
    const uint64_t allowed = into->limit / 2;
    uint64_t needed = allowed && allowed < FIRST_ROOM ? allowed : FIRST_ROOM;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct stoker_error said = {0};
        size_t size = 0;
        if (!st_buffer_reserve(into, needed))
            return st_fail(err, STOKER_ENOMEM, "sample %llu: out of memory for %llu bytes",
                           (unsigned long long)sample, (unsigned long long)needed);
        const int status =
            own->calls.read(own->cookie, sample, into->data, into->capacity, &size, &said);
        if (status)
            return read_failed(status, sample, &said, err);
        if (size <= into->capacity) {
            into->size = size;
            return 0;
        }
        needed = size;
    }
    return st_fail(err, STOKER_EIO, "sample %llu: the read callback asked for a larger buffer %d times",
                   (unsigned long long)sample, ATTEMPTS);
}

static void callbacks_close(void *self)
{
    struct callbacks *own = self;
    if (own->calls.close)
        own->calls.close(own->cookie);
    if (own->labels && own->labels->owner == getpid())
        pthread_mutex_destroy(&own->labels->lock);
}

static const struct st_source st_source_callbacks = {
    .scheme = "callbacks",
    .self_size = sizeof(struct callbacks),
    .count = callbacks_count,
    .label = callbacks_label,
    .name = st_name_by_number,
    .read = callbacks_read,
    .close = callbacks_close,
};

int st_dataset_from_callbacks(struct stoker_dataset **out, const struct stoker_callbacks *callbacks,
                              void *cookie, struct stoker_error *err)
{
    if (!callbacks->read)
        return st_fail(err, STOKER_EINVAL, "a callback dataset requires a read function");
    struct stoker_dataset *data = st_dataset_new(&st_source_callbacks);
    if (!data)
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    struct callbacks *own = data->self;
    pthread_mutex_init(&own->turn.lock, NULL);
    own->turn.owner = getpid();
    own->labels = &own->turn;
    own->calls = *callbacks;
    own->cookie = cookie;
    *out = data;
    return 0;
}
