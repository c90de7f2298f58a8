/* What is read ahead has a budget in bytes, and buffers shrink again after one huge sample. */
#include "source/reader/reader.h"
#include "tap.h"
#include "tree.h"

enum { BIG = 1 << 20, HUGE_SAMPLE = 24 << 20 };

/* Samples of a megabyte that take a millisecond to come; or small ones, the first of which is huge. */
static int big_read(void *cookie, uint64_t sample, void *buffer, size_t capacity, size_t *size,
                    struct stoker_error *err)
{
    (void)err;
    *size = !cookie ? BIG : sample ? 4096 : HUGE_SAMPLE;
    if (capacity < *size)
        return 0;
    usleep(cookie ? 0 : 1000);
    memset(buffer, (int)(sample & 0x7F), *size);
    return 0;
}

static uint64_t in_order(void *context, uint64_t ticket)
{
    (void)context;
    return ticket;
}

static struct st_reader *big_reader(bool huge, uint64_t samples, uint64_t budget)
{
    const struct stoker_callbacks store = {.size = sizeof store, .count = samples, .read = big_read};
    struct stoker_dataset *data;
    struct stoker_error err;
    struct st_reader *reader;
    static int yes;
    if (st_dataset_from_callbacks(&data, &store, huge ? &yes : NULL, &err) ||
        st_reader_open(&reader, data, ST_READER_AUTO, 128, &err))
        abort();
    st_dataset_drop(data);
    if (budget)
        st_reader_budget(reader, budget, NULL);
    st_reader_eager(reader);
    if (st_reader_start(reader, samples, in_order, NULL, &err))
        abort();
    return reader;
}

/* `pause_us`: of the consumer, from time to time; long enough to read far ahead. */
static bool eat(struct st_reader *reader, uint64_t first, uint64_t end, useconds_t pause_us)
{
    bool good = true;
    for (uint64_t t = first; t < end; t++) {
        struct st_bytes bytes;
        good = good && !st_reader_get(reader, t, &bytes, NULL) && bytes.data[0] == (t & 0x7F) &&
               bytes.data[bytes.size - 1] == (t & 0x7F);
        if (t % 32 == 0 && t < 200)
            usleep(pause_us);
        st_reader_done(reader, t);
    }
    return good;
}

static void budget(void)
{
    static const uint64_t budgets[] = {1, 8 * BIG, 40 * BIG};
    struct st_reader_stats stats;
    for (int k = 0; k < 3; k++) {
        bool good = true, used = false;
        /* On a busy machine the backend may need longer to get a CPU. */
        for (useconds_t pause_us = 20000; good && !used && pause_us < 10000000; pause_us *= 2) {
            struct st_reader *reader = big_reader(false, 200, budgets[k]);
            good = eat(reader, 0, 200, pause_us);
            st_reader_stats(reader, &stats);
            good = good && stats.buffer_bytes_max <= budgets[k] + 3 * BIG;
            used = !k || (stats.ahead > 20 && stats.in_flight_max >= 3);
            st_reader_close(reader);
        }
        /* One that goes alone, one that the caller holds or reads itself. */
        ok(good,
           "a budget of %llu bytes: every sample, %llu bytes held at most, %llu at once",
           (unsigned long long)budgets[k], (unsigned long long)stats.buffer_bytes_max,
           (unsigned long long)stats.in_flight_max);
        if (k)
            ok(used, "and it is used: %llu of 200 were read ahead", (unsigned long long)stats.ahead);
    }
    struct st_reader *reader = big_reader(true, 10000, 0);
    const bool good = eat(reader, 0, 10000, 20000);
    st_reader_stats(reader, &stats);
    ok(good && stats.buffer_bytes_max >= HUGE_SAMPLE && stats.buffer_bytes < HUGE_SAMPLE,
       "one huge sample took %llu bytes, %llu are left afterwards",
       (unsigned long long)stats.buffer_bytes_max, (unsigned long long)stats.buffer_bytes);
    st_reader_close(reader);
}

/* How much samples take is learnt from the backend's own reads: it goes on before anyone has asked. */
static void goes_on(enum st_reader_backend backend, const char *name)
{
    char path[300];
    const char *list[200];
    struct stoker_dataset *data;
    struct stoker_error err;
    struct st_reader *reader;
    struct st_reader_stats stats = {0};
    snprintf(path, sizeof path, "%s", at("d/alike.jpg"));
    tree_file(path, 3000, 3);
    for (int i = 0; i < 200; i++)
        list[i] = path;
    if (st_dataset_from_files(&data, list, NULL, 200, &err))
        abort();
    if (st_reader_open(&reader, data, backend, 64, &err)) {
        skip(name, "not on this machine");
        st_dataset_drop(data);
        return;
    }
    st_reader_budget(reader, BIG, NULL);
    st_reader_eager(reader);
    st_reader_start(reader, 200, in_order, NULL, &err);
    for (int k = 0; k < 40000 && stats.ahead < 32; k++) {
        usleep(5000);
        st_reader_stats(reader, &stats);
    }
    ok(stats.ahead >= 32, "%s: %llu small files are read ahead of the first that is asked for", name,
       (unsigned long long)stats.ahead);
    st_reader_close(reader);
    st_dataset_drop(data);
}

/* The buffer of a caller that reads for itself shrinks again after one huge sample. */
static void shrinks(void)
{
    char names[2][300];
    struct stoker_dataset *data;
    struct stoker_error err;
    struct st_reader *reader;
    struct st_buffer own = {0};
    snprintf(names[0], sizeof names[0], "%s", at("d/huge.jpg"));
    snprintf(names[1], sizeof names[1], "%s", at("d/small.jpg"));
    tree_file(names[0], HUGE_SAMPLE, 1);
    tree_file(names[1], 3000, 2);
    const char *list[20000];
    for (int i = 0; i < 20000; i++)
        list[i] = names[i > 0];
    if (st_dataset_from_files(&data, list, NULL, 20000, &err) ||
        st_reader_open(&reader, data, ST_READER_INLINE, 8, &err) ||
        st_reader_start(reader, 20000, in_order, NULL, &err))
        abort();
    bool good = true;
    uint64_t most = 0;
    for (uint64_t t = 0; t < 20000; t++) {
        struct st_bytes bytes;
        good = good && !st_reader_get_into(reader, t, &own, &bytes, &err);
        most = own.capacity > most ? own.capacity : most;
        st_reader_done(reader, t);
    }
    ok(good && most >= HUGE_SAMPLE && own.capacity < BIG,
       "a buffer of %llu bytes is given back when samples are small again", (unsigned long long)most);
    st_buffer_free(&own);
    st_reader_close(reader);
    st_dataset_drop(data);
}

int main(void)
{
    tree_make();
    budget();
    goes_on(ST_READER_URING, "io_uring");
    goes_on(ST_READER_POOL, "the pool");
    shrinks();
    tree_remove();
    return done_testing();
}
