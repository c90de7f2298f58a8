/* Bad samples: raised, skipped or replaced, named in the ledger, and always the same way. */
#include "pipe/harness.h"

enum { COUNT = 40, BATCH = 8, BATCHES = COUNT / BATCH };

static struct stoker_item *items;
static const uint32_t bad_ones[] = {3, 17, 18, 31};
enum { BAD = sizeof bad_ones / sizeof bad_ones[0] };

static struct stoker_loader *open_with(enum stoker_on_error policy, int32_t workers, uint64_t limit)
{
    struct stoker_loader_options opt = harness_options(BATCH, workers);
    opt.on_error = policy;
    opt.error_limit = limit;
    struct stoker_loader *loader = harness_open(items, COUNT, "center_crop(size=16); to_tensor", &opt);
    st_loader_start(loader, NULL, 0, NULL);
    return loader;
}

static bool is_bad(uint64_t sample)
{
    for (uint32_t k = 0; k < BAD; k++)
        if (bad_ones[k] == sample)
            return true;
    return false;
}

static void raise_policy(void)
{
    struct stoker_loader *loader = open_with(STOKER_ON_ERROR_RAISE, 2, UINT64_MAX);
    const struct stoker_batch *batch;
    struct stoker_error err;
    uint32_t good = 0, failed = 0;
    int rc;
    bool named = true;
    while ((rc = st_loader_next(loader, &batch, &err)) != STOKER_END) {
        if (rc == 0) {
            good++;
            st_batch_release(batch, NULL);
        } else {
            failed++;
            named = named && rc == STOKER_ECORRUPT && strstr(err.message, "sample ");
        }
    }
    ok(good + failed == BATCHES && failed >= 1 && failed <= BAD, "%u of %u batches fail", failed, BATCHES);
    ok(named, "each with a sentence that names the sample (%s)", err.message);
    st_loader_close(loader);
}

static void skip_policy(void)
{
    uint64_t one[BATCHES + 1], two[BATCHES + 1];
    struct stoker_loader *loader = open_with(STOKER_ON_ERROR_SKIP, 1, UINT64_MAX);
    const struct stoker_batch *batch;
    uint32_t rows = 0, seen_bad = 0, batches = 0;
    while (st_loader_next(loader, &batch, NULL) == 0) {
        one[batches++] = digest_batch(batch);
        rows += batch->count;
        for (uint32_t k = 0; k < batch->count; k++) {
            const int64_t label = ((const int64_t *)batch->labels.data)[k];
            seen_bad += is_bad(batch->samples[k]) || label != items[batch->samples[k]].label;
        }
        st_batch_release(batch, NULL);
    }
    ok(batches == BATCHES && rows == COUNT && seen_bad == 0, "batches stay whole, with good samples and labels only");
    struct stoker_bad_sample entry;
    uint32_t listed = 0;
    while (st_loader_bad(loader, listed, &entry))
        listed += is_bad(entry.sample) && entry.reason[0] && entry.code == STOKER_ECORRUPT;
    struct stoker_stats stats = {.size = sizeof stats};
    st_loader_stats(loader, &stats);
    ok(listed == BAD && stats.bad == BAD, "the ledger names each bad sample once (%s)", entry.reason);
    st_loader_close(loader);

    loader = open_with(STOKER_ON_ERROR_SKIP, 5, UINT64_MAX);
    ok(harness_take(loader, two, BATCHES + 1, NULL) == BATCHES && !memcmp(one, two, sizeof *one * BATCHES),
       "five threads skip as one does");
    st_loader_close(loader);

    loader = open_with(STOKER_ON_ERROR_SKIP, 2, UINT64_MAX);
    struct stoker_state state;
    harness_take(loader, two, 2, NULL);
    st_loader_save(loader, &state, NULL);
    st_loader_restore(loader, &state, NULL, NULL);
    ok(harness_take(loader, two, BATCHES, NULL) == BATCHES - 2 && !memcmp(one + 2, two, sizeof *one * (BATCHES - 2)),
       "and a resumed epoch skips as a whole one");
    st_loader_close(loader);
}

static void replace_policy(void)
{
    struct stoker_loader *loader = open_with(STOKER_ON_ERROR_REPLACE, 2, UINT64_MAX);
    const struct stoker_batch *batch;
    uint32_t blank = 0, wrong = 0;
    while (st_loader_next(loader, &batch, NULL) == 0) {
        for (uint32_t k = 0; k < batch->count; k++) {
            const float *row = (const float *)batch->images.data + k * 3 * 16 * 16;
            const int64_t label = ((const int64_t *)batch->labels.data)[k];
            bool zero = true;
            for (int i = 0; i < 3 * 16 * 16; i++)
                zero = zero && row[i] == 0;
            blank += zero && label == -100;
            wrong += is_bad(batch->samples[k]) != zero;
        }
        st_batch_release(batch, NULL);
    }
    ok(blank == BAD && wrong == 0, "bad samples become zeros with the label -100");
    st_loader_close(loader);
}

/* The state that is saved after an error names the batch that failed, unless someone has gone on since. */
static void retry(void)
{
    for (int32_t workers = 0; workers <= 2; workers += 2) {
        struct stoker_loader *loader = open_with(STOKER_ON_ERROR_RAISE, workers, UINT64_MAX);
        uint64_t digests[2][BATCHES + 1], first, again, behind;
        struct stoker_state failed, later;
        int rc;
        const uint32_t before = harness_take(loader, digests[0], BATCHES, &rc);
        st_loader_save(loader, &failed, NULL);
        const struct stoker_batch *batch = NULL;
        const int went_on = st_loader_next(loader, &batch, NULL);
        behind = batch ? digest_batch(batch) : 0;
        st_batch_release(batch, NULL);
        st_loader_save(loader, &later, NULL);

        uint8_t broken[BAD][12];
        for (uint32_t k = 0; k < BAD; k++) { /* mended, as whoever looks after the data might */
            uint8_t *bytes = (uint8_t *)(uintptr_t)items[bad_ones[k]].data;
            memcpy(broken[k], bytes, sizeof broken[k]);
            memcpy(bytes, items[0].data, sizeof broken[k]);
        }
        st_loader_restore(loader, &failed, NULL, NULL);
        const bool tried = harness_take(loader, &first, 1, NULL) == 1;
        const bool next_too = harness_take(loader, &again, 1, NULL) == 1;
        ok(rc == STOKER_ECORRUPT && tried && (went_on || (next_too && again == behind)),
           "%d workers: a state saved after an error tries batch %u again", workers, before);
        st_loader_restore(loader, &later, NULL, NULL);
        ok(harness_take(loader, digests[1], BATCHES, NULL) == BATCHES - before - (went_on ? 1 : 2),
           "one saved after going on does not");
        for (uint32_t k = 0; k < BAD; k++)
            memcpy((uint8_t *)(uintptr_t)items[bad_ones[k]].data, broken[k], sizeof broken[k]);
        st_loader_close(loader);
    }
}

static void limits(void)
{
    uint64_t digests[BATCHES + 1];
    int rc;
    struct stoker_loader *loader = open_with(STOKER_ON_ERROR_SKIP, 2, BAD);
    ok(harness_take(loader, digests, BATCHES + 1, &rc) == BATCHES && rc == STOKER_END, "as many as the limit are fine");
    st_loader_close(loader);
    loader = open_with(STOKER_ON_ERROR_SKIP, 2, BAD - 1);
    harness_take(loader, digests, BATCHES + 1, &rc);
    ok(rc == STOKER_ELIMIT, "one more is an error");
    st_loader_close(loader);
}

static void all_bad(void)
{
    static const char junk[] = "not an image";
    struct stoker_item junks[3] = {{junk, sizeof junk, 0}, {junk, sizeof junk, 0}, {junk, 0, 0}};
    struct stoker_loader_options opt = harness_options(2, 1);
    opt.on_error = STOKER_ON_ERROR_SKIP;
    struct stoker_loader *loader = harness_open(junks, 3, "to_tensor", &opt);
    struct stoker_error err = {0};
    const struct stoker_batch *batch;
    st_loader_start(loader, NULL, 0, NULL);
    ok(st_loader_next(loader, &batch, &err) == STOKER_ECORRUPT && strstr(err.message, "no good substitute"),
       "a dataset of junk ends with one sentence (%s)", err.message);
    st_loader_close(loader);
}

int main(void)
{
    items = test_items(COUNT);
    for (uint32_t k = 0; k < BAD; k++)
        memset((char *)(uintptr_t)items[bad_ones[k]].data, k % 2 ? 0 : 'x', 12);
    raise_policy();
    skip_policy();
    replace_policy();
    retry();
    limits();
    all_bad();
    test_items_free(items, COUNT);
    return done_testing();
}
