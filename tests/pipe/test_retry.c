/* Failures of the machine or the network: tried again, never written down as bad samples, and no
 * obstacle to closing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/harness.h"

#include <unistd.h>

enum { COUNT = 40, BATCH = 8, BATCHES = COUNT / BATCH, FAILING = 11, WATCHED_FROM = 6 };

static struct stoker_item *items;

/* What the source does. */
static struct {
    int answer; /* for sample FAILING, or for all */
    bool all;
    _Atomic int times; /* so often; then it recovers */
    _Atomic uint32_t reads;
    struct stoker_loader *_Atomic watched; /* from WATCHED_FROM on, reads last until it stops; */
    _Atomic uint32_t late;                 /* so many were begun after that */
} source;

static int trouble(uint64_t sample, struct stoker_error *err)
{
    struct stoker_loader *watched = source.watched;
    source.reads++;
    source.late += watched && atomic_load(&watched->stopping);
    while (watched && source.reads >= WATCHED_FROM && !atomic_load(&watched->stopping))
        usleep(200);
    if ((!source.all && sample != FAILING) || source.times <= 0)
        return 0;
    source.times--;
    return st_fail(err, source.answer, "the line is dead");
}

static struct stoker_loader *open_calls(enum stoker_on_error policy, int32_t workers)
{
    static struct harness_calls calls = {.count = COUNT, .trouble = trouble};
    calls.items = items;
    return harness_open_calls(&calls, BATCH, policy, workers);
}

static uint64_t whole[BATCHES + 1]; /* the epoch when nothing fails */

static uint64_t bad_of(struct stoker_loader *loader)
{
    struct stoker_stats stats = {.size = sizeof stats};
    st_loader_stats(loader, &stats);
    return stats.bad;
}

static void recovers(enum stoker_on_error policy, int32_t workers, int answer)
{
    uint64_t digests[BATCHES + 1];
    int rc;
    struct stoker_loader *loader = open_calls(policy, workers);
    source.answer = answer;
    source.times = 3;
    st_loader_start(loader, NULL, 0, NULL);
    const uint32_t taken = harness_take(loader, digests, BATCHES + 1, &rc);
    ok(taken == BATCHES && rc == STOKER_END && !memcmp(digests, whole, BATCHES * sizeof *whole) &&
           !bad_of(loader) && !source.times,
       "policy %d, %d workers: what fails three times and then comes (%d) is as if it had not failed",
       (int)policy, workers, answer);
    st_loader_close(loader);
}

static void stops(enum stoker_on_error policy, int32_t workers, int answer)
{
    uint64_t digests[2 * BATCHES + 1];
    struct stoker_bad_sample entry;
    struct stoker_state state;
    struct stoker_error err = {0};
    const struct stoker_batch *batch;
    struct stoker_loader *loader = open_calls(policy, workers);
    int rc;
    source.answer = answer;
    source.times = 1 << 30;
    st_loader_start(loader, NULL, 0, NULL);
    const uint32_t before = harness_take(loader, digests, BATCHES + 1, &rc);
    const int again = st_loader_next(loader, &batch, &err);
    ok(before < BATCHES && rc == STOKER_ETRANSIENT && again == rc &&
           strstr(err.message, "the line is dead"),
       "policy %d, %d workers: what goes on failing stops the epoch (%s)", (int)policy, workers,
       err.message);
    ok(!bad_of(loader) && !st_loader_bad(loader, 0, &entry), "and is no bad sample");
    source.times = 0;
    st_loader_save(loader, &state, NULL);
    st_loader_restore(loader, &state, NULL, NULL);
    ok(harness_take(loader, digests + before, BATCHES + 1, &rc) == BATCHES - before &&
           rc == STOKER_END && !memcmp(digests, whole, BATCHES * sizeof *whole),
       "its state goes on with batch %u once the line is up", before);
    st_loader_close(loader);
}

/* An error of the library itself is no bad sample either, and no policy hides it. */
static void internal(enum stoker_on_error policy)
{
    struct stoker_loader *loader = open_calls(policy, 2);
    uint64_t digests[BATCHES + 1];
    int rc;
    source.answer = STOKER_EINTERNAL;
    source.times = 1;
    st_loader_start(loader, NULL, 0, NULL);
    const uint32_t before = harness_take(loader, digests, BATCHES + 1, &rc);
    ok(before < BATCHES && rc == STOKER_EINTERNAL, "policy %d: an internal error is returned", (int)policy);
    source.times = 0;
    st_loader_close(loader);
}

/* Closing while samples are made, tried again, or substitutes are looked for, in threads that are in the middle of it:
 * nothing more is begun, but for what a thread was about to begin. One that looked at all 40 samples would. */
static void closes(int answer, const char *what)
{
    enum { WORKERS = 3 };
    struct stoker_loader *loader = open_calls(STOKER_ON_ERROR_SKIP, WORKERS);
    source.answer = answer;
    source.all = true;
    source.times = answer ? 1 << 30 : 0;
    source.reads = source.late = 0;
    source.watched = loader;
    st_loader_start(loader, NULL, 0, NULL);
    while (source.reads < WATCHED_FROM)
        usleep(1000);
    st_loader_close(loader);
    ok(source.late <= WORKERS, "closing while %s: %u more are begun", what, source.late);
    source.watched = NULL;
    source.all = false;
    source.times = 0;
}

int main(void)
{
    items = test_items(COUNT);
    struct stoker_loader *loader = open_calls(STOKER_ON_ERROR_RAISE, 2);
    st_loader_start(loader, NULL, 0, NULL);
    ok(harness_take(loader, whole, BATCHES + 1, NULL) == BATCHES, "an epoch without failures");
    st_loader_close(loader);
    for (int32_t workers = 0; workers <= 2; workers += 2)
        for (int policy = STOKER_ON_ERROR_RAISE; policy <= STOKER_ON_ERROR_REPLACE; policy++)
            recovers((enum stoker_on_error)policy, workers,
                     policy % 2 ? STOKER_ETRANSIENT : STOKER_ETIMEOUT);
    for (int policy = STOKER_ON_ERROR_RAISE; policy <= STOKER_ON_ERROR_REPLACE; policy++)
        stops((enum stoker_on_error)policy, policy, policy % 2 ? STOKER_ETRANSIENT : STOKER_ETIMEOUT);
    for (int policy = STOKER_ON_ERROR_RAISE; policy <= STOKER_ON_ERROR_REPLACE; policy++)
        internal((enum stoker_on_error)policy);
    closes(STOKER_OK, "samples are made");
    closes(STOKER_ETRANSIENT, "samples are tried again");
    closes(STOKER_ECORRUPT, "substitutes are looked for");
    test_items_free(items, COUNT);
    return done_testing();
}
