/* A loader whose workers, batches kept ready and depth of reading ahead are moved while it runs: the
 * same bytes, in the same order, within its memory; and workers that rest come back when they are
 * needed. */
#include "pipe/harness.h"
#include "pipe/tuning.h"
#include "source/reader/ring.h"

#include <unistd.h>

enum { COUNT = 600, BATCH = 8, BATCHES = COUNT / BATCH, WORKERS = 8, PATIENCE_S = 120 };

static struct stoker_item *items;
static struct harness_calls calls;

static int slow_store(uint64_t sample, struct stoker_error *err)
{
    (void)err;
    usleep(sample % 3 ? 100 : 900);
    return 0;
}

static struct stoker_loader *open_loader(bool slow, int32_t workers, uint32_t prefetch,
                                         uint64_t max_memory)
{
    struct stoker_loader_options opt = harness_options(BATCH, workers);
    opt.prefetch = prefetch;
    opt.max_memory = max_memory;
    return slow ? harness_open_calls(&calls, BATCH, STOKER_ON_ERROR_RAISE, workers)
                : harness_open(items, COUNT, train_text, &opt);
}

/* ---- any trajectory ------------------------------------------------------------------------------- */

struct mover {
    struct stoker_loader *loader;
    atomic_bool done;
    uint32_t seed, moves;
};

static uint32_t draw(struct mover *mover, uint32_t most)
{
    mover->seed = mover->seed * 1664525 + 1013904223;
    return 1 + (mover->seed >> 16) % most;
}

static void *move_levers(void *argument)
{
    struct mover *mover = argument;
    for (; !atomic_load(&mover->done); mover->moves++) {
        const uint32_t depth = draw(mover, 256);
        pthread_mutex_lock(&mover->loader->lock);
        st_tuning_set(mover->loader, ST_TUNE_WORKERS, draw(mover, WORKERS));
        st_tuning_set(mover->loader, ST_TUNE_PREFETCH, draw(mover, 8));
        st_tuning_set(mover->loader, ST_TUNE_DEPTH, depth);
        pthread_mutex_unlock(&mover->loader->lock);
        st_reader_limit(mover->loader->reader, depth);
        usleep(draw(mover, 500));
    }
    return NULL;
}

static uint32_t moved_epoch(struct mover *mover, uint64_t *digests, uint32_t most)
{
    pthread_t thread;
    atomic_store(&mover->done, false);
    if (pthread_create(&thread, NULL, move_levers, mover))
        abort();
    const uint32_t taken = st_loader_start(mover->loader, NULL, 0, NULL)
                               ? 0
                               : harness_take(mover->loader, digests, most, NULL);
    atomic_store(&mover->done, true);
    pthread_join(thread, NULL);
    return taken;
}

static void same_bytes(bool slow)
{
    static uint64_t truth[BATCHES + 1], digests[BATCHES + 1];
    struct stoker_loader *alone = open_loader(slow, 0, 2, 0);
    if (!alone || st_loader_start(alone, NULL, 0, NULL) ||
        harness_take(alone, truth, BATCHES + 1, NULL) != BATCHES)
        abort();
    st_loader_close(alone);

    struct mover mover = {.loader = open_loader(slow, WORKERS, 2, 0), .seed = 1};
    const uint32_t epochs = 4 * share_of(3);
    bool same = true;
    for (uint32_t k = 0; mover.loader && k < epochs; k++) { /* every fourth epoch is left in the middle */
        const uint32_t most = k % 4 == 3 ? BATCHES / 3 : BATCHES + 1,
                       taken = moved_epoch(&mover, digests, most);
        same = same && taken == (most < BATCHES ? most : BATCHES) &&
               !memcmp(digests, truth, taken * sizeof *truth);
    }
    ok(mover.loader && same && mover.moves > epochs,
       "%s: %u moves, and the bytes and the order of no worker at all",
       slow ? "a store that sleeps" : "samples in memory", mover.moves);
    st_loader_close(mover.loader);
}

/* ---- memory --------------------------------------------------------------------------------------- */

static void within_memory(void)
{
    static uint64_t digests[BATCHES + 1];
    const uint64_t batch = BATCH * 3 * 32 * 32 * 4;
    struct stoker_loader *loader =
        open_loader(false, WORKERS, 0, 32 * batch); /* a quarter: eight batches */
    struct stoker_stats stats = {.size = sizeof stats};
    const struct st_lever *prefetch = &loader->tuning.tune.lever[ST_TUNE_PREFETCH];
    ok(prefetch->now == 2 && prefetch->least == 2 && prefetch->most == 8,
       "2 to 8 batches are kept ready where nobody says");
    ok(loader->gate.sample_limit <= 32 * batch / 8 * 7 - 8 * batch &&
           loader->gate.shared_limit <= 32 * batch / 4 * 3 - 8 * batch,
       "what one sample may take, alone and beside others, leaves room for them");
    struct mover mover = {.loader = loader, .seed = 2};
    bool within = true;
    for (uint32_t k = 0; k < 2 * share_of(3); k++) {
        within = within && moved_epoch(&mover, digests, BATCHES + 1) == BATCHES;
        st_loader_stats(loader, &stats);
        within = within && stats.memory_peak <= stats.memory_allowed &&
                 stats.slot_bytes <= stats.memory_allowed / 2;
    }
    ok(within, "whatever they are moved to, %.2f of %.2f MB are held at most",
       (double)stats.memory_peak / 1e6, (double)stats.memory_allowed / 1e6);
    st_loader_close(loader);

    loader = open_loader(false, WORKERS, 3, 0);
    prefetch = &loader->tuning.tune.lever[ST_TUNE_PREFETCH];
    const struct st_lever *workers = &loader->tuning.tune.lever[ST_TUNE_WORKERS];
    ok(prefetch->least == 3 && prefetch->most == 3 && workers->least == WORKERS &&
           workers->most == WORKERS,
       "numbers that the caller gave are not moved");
    st_loader_close(loader);
}

/* ---- rest ----------------------------------------------------------------------------------------- */

static uint64_t made_by_others(const struct stoker_loader *loader)
{
    uint64_t samples = 0;
    for (uint32_t k = 1; k < loader->worker_count; k++)
        samples += atomic_load(&loader->worker[k].samples);
    return samples;
}

/* Until the workers have nothing more to begin. */
static void await_full(struct stoker_loader *loader)
{
    for (bool full = false; !full;) {
        usleep(200);
        pthread_mutex_lock(&loader->lock);
        uint32_t ready = 0;
        for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
            ready += slot->state == ST_SLOT_READY;
        full = !loader->busy && (ready > st_tuned(&loader->tuning, ST_TUNE_PREFETCH) ||
                                 loader->next_ticket == loader->epoch.tickets);
        pthread_mutex_unlock(&loader->lock);
    }
}

/* One of eight works as long as batches are ready; all of them when they are not. */
static void rest(void)
{
    struct stoker_loader *loader = open_loader(false, WORKERS, 2, 0);
    const struct stoker_batch *batch;
    pthread_mutex_lock(&loader->lock);
    st_tuning_set(loader, ST_TUNE_WORKERS, 1);
    pthread_mutex_unlock(&loader->lock);
    st_loader_start(loader, NULL, 0, NULL);
    await_full(loader);
    const uint64_t first = made_by_others(loader);
    uint32_t taken = 0;
    for (; taken < BATCHES / 2 && st_loader_next(loader, &batch, NULL) == 0; taken++) {
        st_batch_release(batch, NULL);
        await_full(loader);
    }
    const uint64_t then = made_by_others(loader);
    ok(taken == BATCHES / 2 && then == first,
       "workers rest while batches are ready: the others made %llu samples, before",
       (unsigned long long)first);
    uint64_t later = then; /* a consumer that does nothing else waits before long */
    for (uint32_t k = 0; later == then && k < 1000; k++) {
        while (st_loader_next(loader, &batch, NULL) == 0)
            st_batch_release(batch, NULL);
        later = made_by_others(loader);
        st_loader_start(loader, NULL, 0, NULL);
    }
    ok(later > then, "and help when the consumer waits (%llu)", (unsigned long long)(later - then));
    st_loader_close(loader);
}

/* ---- by itself ------------------------------------------------------------------------------------ */

/* A consumer that takes its time, in short windows: workers are released; and one that does not gets
 * them back. */
static void by_itself(void)
{
    struct stoker_loader *loader = open_loader(false, WORKERS, 0, 0);
    struct stoker_stats stats = {.size = sizeof stats};
    const struct stoker_batch *batch;
    const uint64_t until = st_now_ns() + PATIENCE_S * 1000000000ull;
    uint32_t least = WORKERS;
    pthread_mutex_lock(&loader->lock);
    st_tune_lever(&loader->tuning.tune, ST_TUNE_WORKERS, 1, WORKERS, WORKERS);
    loader->tuning.window_seconds = 0.01;
    pthread_mutex_unlock(&loader->lock);
    while (least == WORKERS && st_now_ns() < until && !st_loader_start(loader, NULL, 0, NULL))
        while (least == WORKERS && st_loader_next(loader, &batch, NULL) == 0) {
            st_batch_release(batch, NULL);
            await_full(loader);
            st_loader_stats(loader, &stats);
            least = stats.tuned_workers;
        }
    ok(least < WORKERS && stats.tuning_moves >= 1 && strstr(stats.tuning_last, "workers 8 -> "),
       "a slow consumer: %u of %d workers (%s)", least, WORKERS, stats.tuning_last);
    while (stats.tuned_workers < WORKERS && st_now_ns() < until &&
           !st_loader_start(loader, NULL, 0, NULL)) {
        while (st_loader_next(loader, &batch, NULL) == 0)
            st_batch_release(batch, NULL);
        st_loader_stats(loader, &stats);
    }
    ok(stats.tuned_workers == WORKERS, "a fast one: %u again after %u moves (%s)", stats.tuned_workers,
       stats.tuning_moves, stats.tuning_last);
    st_loader_close(loader);
}

/* A store whose reads take long, and a depth too small for it. */
static int late_store(uint64_t sample, struct stoker_error *err)
{
    (void)sample;
    (void)err;
    usleep(4000);
    return 0;
}

static void reads_ahead(void)
{
    struct harness_calls late = {items, COUNT, late_store};
    struct stoker_loader *loader = harness_open_calls(&late, 2, STOKER_ON_ERROR_RAISE, 2);
    struct stoker_stats stats = {.size = sizeof stats};
    const struct stoker_batch *batch;
    const uint64_t until = st_now_ns() + PATIENCE_S * 1000000000ull;
    pthread_mutex_lock(&loader->lock);
    st_tune_lever(&loader->tuning.tune, ST_TUNE_DEPTH, 4, 4, 32);
    loader->tuning.window_seconds = 0.01;
    pthread_mutex_unlock(&loader->lock);
    st_reader_limit(loader->reader, 4);
    do {
        st_loader_start(loader, NULL, 0, NULL);
        while (st_loader_next(loader, &batch, NULL) == 0)
            st_batch_release(batch, NULL);
        st_loader_stats(loader, &stats);
    } while (stats.tuned_read_ahead <= 8 && st_now_ns() < until);
    ok(stats.tuned_read_ahead > 8 && loader->reader->limit == stats.tuned_read_ahead,
       "a store that sleeps: a depth of 4 becomes %u (%s)", stats.tuned_read_ahead, stats.tuning_last);
    st_loader_close(loader);
}

int main(void)
{
    items = test_items(COUNT);
    calls = (struct harness_calls){items, COUNT, slow_store};
    same_bytes(false);
    same_bytes(true);
    within_memory();
    rest();
    by_itself();
    reads_ahead();
    test_items_free(items, COUNT);
    return done_testing();
}
