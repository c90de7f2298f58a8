/* A store that takes 20 ms for each sample does not stall two workers that take 0.5 ms: reading ahead
 * has a depth of its own. It is checked again from time to time. */
#include "base/clock.h"
#include "source/reader/ring.h"
#include "tap.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 800, STORE_US = 20000, WORK_US = 500, WORKERS = 2 };

static int slow_read(void *cookie, uint64_t sample, void *buffer, size_t capacity, size_t *size,
                     struct stoker_error *err)
{
    (void)cookie, (void)err;
    usleep(STORE_US);
    *size = sizeof sample;
    if (capacity >= sizeof sample)
        memcpy(buffer, &sample, sizeof sample);
    return 0;
}

struct run {
    struct st_reader *reader;
    atomic_ullong next;
    atomic_int wrong;
};

static uint64_t plan(void *context, uint64_t ticket)
{
    (void)context;
    return SAMPLES - 1 - ticket;
}

static void *work(void *argument)
{
    struct run *run = argument;
    uint64_t ticket, sample;
    struct st_buffer own = {0};
    while ((ticket = atomic_fetch_add(&run->next, 1)) < SAMPLES) {
        struct st_bytes bytes;
        if (st_reader_get_into(run->reader, ticket, &own, &bytes, NULL) || bytes.size != sizeof sample) {
            atomic_fetch_add(&run->wrong, 1);
            continue;
        }
        memcpy(&sample, bytes.data, sizeof sample);
        atomic_fetch_add(&run->wrong, sample != SAMPLES - 1 - ticket);
        usleep(WORK_US);
        st_reader_done(run->reader, ticket);
    }
    st_buffer_free(&own);
    return NULL;
}

/* Samples a second; 0: no reader. */
static double pace(bool eager, struct run *run, struct st_reader_stats *stats)
{
    const struct stoker_callbacks store = {.size = sizeof store, .count = SAMPLES, .read = slow_read};
    struct stoker_dataset *data;
    struct stoker_error err;
    pthread_t threads[WORKERS];
    if (st_dataset_from_callbacks(&data, &store, NULL, &err) ||
        st_reader_open(&run->reader, data, ST_READER_AUTO, 64, &err)) {
        note("%s", err.message);
        return 0;
    }
    if (eager)
        st_reader_eager(run->reader);
    st_reader_start(run->reader, SAMPLES, plan, run, &err);
    const uint64_t begin = st_now_ns();
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, work, run))
            abort();
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    const double seconds = (double)(st_now_ns() - begin) / 1e9;
    st_reader_stop(run->reader);
    st_reader_stats(run->reader, stats);
    st_reader_close(run->reader);
    st_dataset_drop(data);
    return SAMPLES / seconds;
}

static void check(bool eager, const char *where)
{
    const double store_rate = WORKERS * 1e6 / STORE_US, work_rate = WORKERS * 1e6 / WORK_US;
    struct st_reader_stats stats = {0};
    struct run run = {0};
    const double rate = pace(eager, &run, &stats);
    note("%s: %.0f samples/s; two workers that read by themselves would do %.0f, without reading %.0f", where,
         rate, store_rate, work_rate);
    ok(run.wrong == 0, "%s: every sample as asked for", where);
    /* Workers that read by themselves have as many as there are workers. */
    ok(stats.in_flight_max >= 8 * WORKERS, "%s: %llu reads at once", where,
       (unsigned long long)stats.in_flight_max);
}

/* A backend may report every read as one that slept, although all files are in memory. */
static void check_again(void)
{
    const struct stoker_callbacks store = {.size = sizeof store, .count = SAMPLES, .read = slow_read};
    struct stoker_dataset *data;
    struct st_reader *reader;
    struct stoker_error err;
    int reads = 0;
    if (st_dataset_from_callbacks(&data, &store, NULL, &err) ||
        st_reader_open(&reader, data, ST_READER_AUTO, 64, &err) ||
        st_reader_start(reader, 0, plan, NULL, &err)) /* no tickets: only this thread reports reads */
        abort();
    for (; !reader->ahead && reads < 10; reads++)
        st_ring_watch(reader, true);
    ok(reader->ahead && reads <= 2, "reading ahead starts after %d reads that slept", reads);
    for (reads = 0; reader->ahead && reads < 100000; reads++)
        st_ring_watch(reader, true);
    ok(!reader->ahead && reads > 1000, "and stops after %d more, so that callers check", reads);
    st_ring_watch(reader, false);
    ok(!reader->ahead, "a read that does not sleep leaves it so");
    st_ring_watch(reader, true);
    st_ring_watch(reader, true);
    ok(reader->ahead, "reads that sleep resume it");
    st_reader_stop(reader);
    st_reader_close(reader);
    st_dataset_drop(data);
}

int main(void)
{
    check_again();
    check(false, "reading ahead once reads have slept");
    check(true, "always reading ahead");
    return done_testing();
}
