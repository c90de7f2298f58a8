/* Every row that goes out was made for its batch, whatever a source answers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/harness.h"

enum { COUNT = 48, BATCH = 8, BATCHES = COUNT / BATCH };

static struct stoker_item *items;

/* A source that fails for every fifth sample, as it is told to. */
static int answer;

static bool fails(uint64_t sample) { return sample % 5 == 3; }

static int trouble(uint64_t sample, struct stoker_error *err)
{
    (void)err; /* says nothing */
    return fails(sample) ? answer : 0;
}

static struct stoker_loader *open_calls(enum stoker_on_error policy, int32_t workers)
{
    static struct harness_calls calls = {.count = COUNT, .trouble = trouble};
    calls.items = items;
    struct stoker_loader *loader = harness_open_calls(&calls, BATCH, policy, workers);
    if (loader)
        st_loader_start(loader, NULL, 0, NULL);
    return loader;
}

/* What the epoch delivered: rows whose label is not their sample's, and batches that failed. */
static void count_rows(struct stoker_loader *loader, uint32_t *wrong, uint32_t *blank, uint32_t *failed,
                       int *status)
{
    const struct stoker_batch *batch;
    struct stoker_error err = {0};
    int rc;
    *wrong = *blank = *failed = 0;
    *status = 0;
    while ((rc = st_loader_next(loader, &batch, &err)) != STOKER_END && *failed <= BATCHES) {
        if (rc) {
            ++*failed;
            *status = rc;
            continue;
        }
        for (uint32_t k = 0; k < batch->count; k++) {
            const int64_t label = ((const int64_t *)batch->labels.data)[k];
            *blank += label == -100;
            *wrong +=
                label != -100 && (fails(batch->samples[k]) || label != items[batch->samples[k]].label);
        }
        st_batch_release(batch, NULL);
    }
}

static void sources_do_not_cancel(int said, const char *name)
{
    const uint32_t bad = COUNT / 5 + (COUNT % 5 > 3);
    answer = said;
    for (int32_t workers = 0; workers <= 3; workers += 3) {
        uint32_t wrong, blank, failed;
        int status;
        struct stoker_stats stats = {.size = sizeof stats};
        struct stoker_loader *loader = open_calls(STOKER_ON_ERROR_SKIP, workers);
        count_rows(loader, &wrong, &blank, &failed, &status);
        st_loader_stats(loader, &stats);
        ok(!wrong && !failed && stats.bad == bad,
           "%s, %d workers, skip: %u wrong rows, %u of %u bad samples", name, workers, wrong,
           (unsigned)stats.bad, bad);
        st_loader_close(loader);
        loader = open_calls(STOKER_ON_ERROR_REPLACE, workers);
        count_rows(loader, &wrong, &blank, &failed, &status);
        ok(!wrong && !failed && blank == bad, "%s, %d workers, replace: %u wrong rows, %u of %u blank",
           name, workers, wrong, blank, bad);
        st_loader_close(loader);
        loader = open_calls(STOKER_ON_ERROR_RAISE, workers);
        count_rows(loader, &wrong, &blank, &failed, &status);
        ok(!wrong && failed && status == STOKER_EIO,
           "%s, %d workers, raise: %u batches fail, with status %d", name, workers, failed, status);
        st_loader_close(loader);
    }
}

/* The net below it all: a slot with a row that nobody made does not become a batch. */
static void unmade_rows_are_noticed(void)
{
    struct stoker_loader_options opt = harness_options(BATCH, 0);
    struct stoker_loader *loader = harness_open(items, COUNT, "center_crop(size=16); to_tensor", &opt);
    struct st_slot *slot = loader->slots;
    struct stoker_error err = {0};
    uint64_t copied;
    st_slot_begin(slot);
    for (uint32_t row = 0; row < BATCH; row++)
        if (row != 5)
            st_slot_blank(slot, row);
    slot->samples[5] = 31;
    ok(st_slot_complete(slot, 5, &copied, &err) == 0, "rows that are made make a batch");
    ok(st_slot_complete(slot, BATCH, &copied, &err) == STOKER_EINTERNAL && strstr(err.message, "sample 31"),
       "one that is not is an error (%s)", err.message);
    st_slot_blank(slot, 5);
    ok(st_slot_complete(slot, BATCH, &copied, &err) == 0, "until it is made");
    st_slot_begin(slot);
    ok(st_slot_complete(slot, 1, &copied, &err) == STOKER_EINTERNAL, "and the next batch begins with none");
    st_loader_close(loader);
}

/* Sides that are fine one by one, and whose product in bytes is a multiple of 2^64. */
static void sizes_do_not_wrap(void)
{
    enum { ROWS = 1024 };
    struct stoker_loader_options opt = harness_options(ROWS, 0);
    opt.ragged = STOKER_RAGGED_PAD;
    struct stoker_loader *loader = harness_open(items, COUNT, "to_tensor", &opt);
    struct st_slot *slot = loader->slots;
    struct stoker_error err = {0};
    struct st_place place;
    uint64_t copied;
    st_slot_begin(slot);
    for (uint32_t row = 0; row < ROWS; row++)
        st_slot_blank(slot, row);
    slot->tensor[0].shape[1] = slot->tensor[1].shape[2] = 1 << 27;
    slot->tensor[0].shape[2] = slot->tensor[1].shape[1] = 1;
    ok(st_slot_complete(slot, ROWS, &copied, &err) == STOKER_ENOMEM &&
           strstr(err.message, "134217728 x 134217728"),
       "a batch padded to 2^54 pixels is an error (%s)", err.message);
    ok(!st_slot_place(slot, 0, INT32_MAX, INT32_MAX, &place),
       "an image of (2^31 - 1)^2 pixels has no place");
    st_loader_close(loader);
}

int main(void)
{
    items = test_items(COUNT);
    sources_do_not_cancel(STOKER_ECANCELED, "a source that says ECANCELED");
    sources_do_not_cancel(STOKER_EFORK, "a source that says EFORK");
    sources_do_not_cancel(STOKER_END, "a source that says END");
    unmade_rows_are_noticed();
    sizes_do_not_wrap();
    test_items_free(items, COUNT);
    return done_testing();
}
