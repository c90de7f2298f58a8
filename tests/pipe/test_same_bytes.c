/* The same bytes for any number of threads, after any restart, for any split into ranks. */
#include "pipe/harness.h"

enum { COUNT = 53, BATCH = 4, BATCHES = (COUNT + BATCH - 1) / BATCH };

static struct stoker_item *items;

static uint32_t whole_epoch(int32_t workers, uint64_t epoch, uint64_t digests[BATCHES])
{
    const struct stoker_loader_options opt = harness_options(BATCH, workers);
    struct stoker_loader *loader = harness_open(items, COUNT, train_text, &opt);
    const struct stoker_epoch which = {.size = sizeof which, .epoch = epoch};
    uint32_t taken = 0;
    if (loader && st_loader_start(loader, &which, 0, NULL) == 0)
        taken = harness_take(loader, digests, BATCHES + 1, NULL);
    st_loader_close(loader);
    return taken;
}

static void threads(const uint64_t *truth)
{
    static const int32_t counts[] = {1, 2, 7};
    for (int k = 0; k < 3; k++) {
        uint64_t digests[BATCHES + 1];
        const uint32_t taken = whole_epoch(counts[k], 3, digests);
        ok(taken == BATCHES && !memcmp(digests, truth, sizeof *truth * BATCHES),
           "%d threads give the bytes of none", counts[k]);
    }
    uint64_t other[BATCHES + 1];
    whole_epoch(2, 4, other);
    ok(memcmp(other, truth, sizeof *truth * BATCHES), "another epoch gives others");
}

static void resume(const uint64_t *truth)
{
    bool all = true;
    for (uint32_t at = 0; at <= BATCHES; at++) {
        const struct stoker_loader_options before = harness_options(BATCH, 2);
        const struct stoker_loader_options after = harness_options(BATCH, (int32_t)(at % 3));
        const struct stoker_epoch epoch = {.size = sizeof epoch, .epoch = 3};
        struct stoker_loader *first = harness_open(items, COUNT, train_text, &before);
        struct stoker_loader *second = harness_open(items, COUNT, train_text, &after);
        struct stoker_state state;
        uint64_t digests[BATCHES + 1];
        bool same = first && second && st_loader_start(first, &epoch, 0, NULL) == 0 &&
                    harness_take(first, digests, at, NULL) == at && st_loader_save(first, &state, NULL) == 0 &&
                    st_loader_restore(second, &state, NULL, NULL) == 0;
        const uint32_t rest = same ? harness_take(second, digests, BATCHES + 1, NULL) : 0;
        same = same && rest == BATCHES - at && !memcmp(digests, truth + at, rest * sizeof *truth);
        all = all && same;
        if (!same)
            note("resume at batch %u differs (%u batches came)", at, rest);
        st_loader_close(first);
        st_loader_close(second);
    }
    ok(all, "resumed at every batch boundary, with other thread counts, the rest is the same");
}

/* Marks the samples that rank `rank` of `world` gets from `base` on, `batches` of them at most. */
static uint32_t mark(uint32_t rank, uint32_t world, const struct stoker_state *from, struct stoker_state *to,
                     uint32_t batches, uint8_t seen[COUNT])
{
    struct stoker_loader_options opt = harness_options(BATCH, 1);
    opt.rank = rank;
    opt.world = world;
    struct stoker_loader *loader = harness_open(items, COUNT, "center_crop(size=8)", &opt);
    const struct stoker_batch *batch;
    uint32_t samples = 0;
    int rc = from ? st_loader_restore(loader, from, NULL, NULL) : st_loader_start(loader, NULL, 0, NULL);
    for (uint32_t k = 0; rc == 0 && k < batches && st_loader_next(loader, &batch, NULL) == 0; k++) {
        for (uint32_t row = 0; row < batch->count; row++)
            seen[batch->samples[row]]++;
        samples += batch->count;
        st_batch_release(batch, NULL);
    }
    if (to)
        st_loader_save(loader, to, NULL);
    st_loader_close(loader);
    return samples;
}

static void ranks(void)
{
    for (uint32_t world = 2; world <= 5; world++) {
        uint8_t seen[COUNT] = {0};
        uint32_t first = 0;
        bool equal = true;
        for (uint32_t rank = 0; rank < world; rank++) {
            const uint32_t got = mark(rank, world, NULL, NULL, UINT32_MAX, seen);
            first = rank ? first : got;
            equal = equal && got == first;
        }
        uint32_t missing = 0, extra = 0;
        for (uint32_t k = 0; k < COUNT; k++) {
            missing += seen[k] == 0;
            extra += seen[k] > 1;
        }
        ok(equal && !missing && extra == first * world - COUNT,
           "%u ranks: equal counts, all samples, none twice but the padding", world);
    }
}

static void elastic(void)
{
    uint8_t seen[COUNT] = {0};
    struct stoker_state states[3];
    for (uint32_t rank = 0; rank < 3; rank++)
        mark(rank, 3, NULL, &states[rank], 2, seen);
    ok(!memcmp(&states[0], &states[1], sizeof states[0]) && !memcmp(&states[0], &states[2], sizeof states[0]),
       "the state is the same on every rank");
    for (uint32_t rank = 0; rank < 2; rank++)
        mark(rank, 2, &states[0], NULL, UINT32_MAX, seen);
    uint32_t wrong = 0, twice = 0;
    for (uint32_t k = 0; k < COUNT; k++) {
        wrong += seen[k] == 0;
        twice += seen[k] > 1;
    }
    ok(wrong == 0 && twice <= 1, "two ranks finish what three began: every sample once (%u padded)", twice);
}

static void damaged_states(void)
{
    const struct stoker_loader_options opt = harness_options(BATCH, 0);
    struct stoker_loader *loader = harness_open(items, COUNT, train_text, &opt);
    struct stoker_error err;
    struct stoker_state state, bad;
    st_loader_start(loader, NULL, 0, NULL);
    st_loader_save(loader, &state, NULL);
    uint32_t refused = 0;
    for (uint32_t k = 0; k < sizeof state.bytes; k++) {
        bad = state;
        bad.bytes[k] ^= 0x10;
        refused += st_loader_restore(loader, &bad, NULL, &err) == STOKER_EINVAL;
    }
    ok(refused == sizeof state.bytes, "a state with any byte changed is refused (%s)", err.message);
    struct stoker_loader *fewer = harness_open(items, COUNT - 1, train_text, &opt);
    ok(st_loader_restore(fewer, &state, NULL, &err) == STOKER_EINVAL && strstr(err.message, "samples"),
       "and so is one of another dataset (%s)", err.message);
    st_loader_close(fewer);
    st_loader_close(loader);
}

int main(void)
{
    uint64_t truth[BATCHES + 1];
    items = test_items(COUNT);
    ok(whole_epoch(0, 3, truth) == BATCHES, "an epoch in the calling thread");
    threads(truth);
    resume(truth);
    ranks();
    elastic();
    damaged_states();
    test_items_free(items, COUNT);
    return done_testing();
}
