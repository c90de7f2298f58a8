/* A loader's life with a device that is late: nothing is overwritten while it is lent or on its way, whoever
 * closes, fails, restarts or keeps at whatever moment. */
#include "pipe/harness.h"
#include "pipe/host_device.h"

enum { COUNT = 47, BATCH = 4, BATCHES = (COUNT + BATCH - 1) / BATCH };

static struct stoker_item *items;

static struct stoker_loader *open_host(struct stoker_loader_options opt)
{
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(&host_devices, items, COUNT, train_text, &opt, &err);
    if (!loader)
        note("%s", err.message);
    return loader;
}

static void truth_of(uint64_t digests[BATCHES + 1])
{
    const struct stoker_loader_options opt = harness_options(BATCH, 0);
    struct stoker_loader *loader = harness_open(items, COUNT, train_text, &opt);
    st_loader_start(loader, NULL, 0, NULL);
    harness_take(loader, digests, BATCHES + 1, NULL);
    st_loader_close(loader);
}

static void threads(const uint64_t *truth)
{
    static const int32_t counts[] = {0, 1, 2, 7};
    uint64_t digests[BATCHES + 1];
    for (uint32_t k = 0; k < 8; k++) {
        host.delay_us = k < 4 ? 0 : 1500;
        struct stoker_loader *loader = open_host(harness_options(BATCH, counts[k % 4]));
        bool same = true;
        for (int epoch = 0; epoch < 2; epoch++) {
            st_loader_start(loader, NULL, 0, NULL);
            same = same && harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES &&
                   !memcmp(digests, truth, BATCHES * sizeof *truth);
        }
        ok(same, "%d threads, a device %u us late: the bytes of none", counts[k % 4], host.delay_us);
        st_loader_close(loader);
    }
    host.delay_us = 0;
}

static void described(void)
{
    struct stoker_loader *loader = open_host(harness_options(BATCH, 2));
    const struct stoker_batch *batch;
    const uint32_t joined = host.joined;
    st_loader_start(loader, NULL, 0, NULL);
    st_loader_next(loader, &batch, NULL);
    ok(batch->device_type == 1 && batch->device_id == HOST_ORDINAL && batch->images.ndim == 4 &&
           batch->images.shape[0] == BATCH && batch->labels.shape[0] == BATCH,
       "a batch says which device it is on");
    ok(st_batch_join(batch, 17, NULL) == 0 && host.joined == joined + 1, "a stream joins it");
    const uint32_t marked = host.marked;
    st_batch_mark(batch, 19);
    ok(host.marked == marked + 1 && host.joined == joined + 1, "one is marked that has it no longer");
    st_batch_release(batch, &(uintptr_t){18});
    ok(host.joined == joined + 2, "and another one as it lets go");
    st_loader_close(loader);
}

static void resume(const uint64_t *truth)
{
    bool all = true;
    for (uint32_t at = 0; at <= BATCHES; at += 3) {
        struct stoker_loader *first = open_host(harness_options(BATCH, 2));
        struct stoker_loader *second = open_host(harness_options(BATCH, (int32_t)(at % 4)));
        uint64_t digests[BATCHES + 1];
        struct stoker_state state;
        st_loader_start(first, NULL, 0, NULL);
        bool same = harness_take(first, digests, at, NULL) == at && st_loader_save(first, &state, NULL) == 0 &&
                    st_loader_restore(second, &state, NULL, NULL) == 0;
        const uint32_t rest = same ? harness_take(second, digests, BATCHES + 1, NULL) : 0;
        all = all && rest == BATCHES - at && !memcmp(digests, truth + at, rest * sizeof *truth);
        st_loader_close(first);
        st_loader_close(second);
    }
    ok(all, "resumed anywhere, the rest is the same");
}

/* Batches are kept over the epoch and beyond the loader; others come and go meanwhile. */
static void keep(const uint64_t *truth)
{
    const struct stoker_batch *kept[BATCHES];
    uint64_t digests[BATCHES + 1];
    struct stoker_loader *loader = open_host(harness_options(BATCH, 3));
    uint32_t n = 0;
    host.delay_us = 500;
    st_loader_start(loader, NULL, 0, NULL);
    while (n < BATCHES && st_loader_next(loader, &kept[n], NULL) == 0)
        n++;
    bool same = n == BATCHES;
    for (uint32_t k = 1; k < n; k += 2) {
        st_batch_sync(kept[k], NULL);
        same = same && digest_batch(kept[k]) == truth[k];
        st_batch_release(kept[k], NULL);
    }
    st_loader_start(loader, NULL, 0, NULL);
    same = same && harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES &&
           !memcmp(digests, truth, BATCHES * sizeof *truth);
    const uint32_t slots = loader->slot_count;
    st_loader_close(loader);
    for (uint32_t k = 0; k < n; k += 2) {
        same = same && digest_batch(kept[k]) == truth[k];
        st_batch_release(kept[k], NULL);
    }
    ok(same, "kept batches stay as they are, also after the loader is closed");
    ok(slots < 2 * BATCHES && host.slots == 0 && host.open == 0, "slots that were made for them are given back");
    host.delay_us = 0;
}

/* Memory for a few slots only: the device is always late, and every slot is waited for. */
static void scarce(const uint64_t *truth)
{
    struct stoker_loader_options opt = harness_options(BATCH, 3);
    struct stoker_loader *loader = open_host(opt);
    opt.max_memory = 2 * st_slot_bytes(&loader->shape) + 4096;
    st_loader_close(loader);
    host.delay_us = 2000;
    loader = open_host(opt);
    uint64_t digests[BATCHES + 1];
    st_loader_start(loader, NULL, 0, NULL);
    const bool same = harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES &&
                      !memcmp(digests, truth, BATCHES * sizeof *truth);
    struct stoker_stats stats = {.size = sizeof stats};
    st_loader_stats(loader, &stats);
    ok(same && stats.slot_bytes <= opt.max_memory, "%u slots, within max_memory, give the same", stats.slots);
    st_loader_close(loader);
    host.delay_us = 0;
}

static void any_moment(void)
{
    for (uint32_t k = 0; k < 2 * share_of(20); k++) {
        host.delay_us = k % 3 * 400;
        harness_abandon(open_host(harness_options(3, (int32_t)(k % 4))), k);
    }
    host.delay_us = 0;
    ok(host.slots == 0 && host.open == 0, "closed at any moment, in flight or lent out");
}

/* Whoever opens or asks for more is told. */
static void no_device(void)
{
    struct stoker_error err = {0};
    const struct stoker_loader_options opt = harness_options(BATCH, 2);
    host.open_fails = true;
    ok(!harness_open_on(&host_devices, items, COUNT, train_text, &opt, &err) && strstr(err.message, "out of order"),
       "a device that does not open: %s", err.message);
    host.open_fails = false;
    host.slot_calls = 0;
    host.slot_fails = 2;
    ok(!harness_open_on(&host_devices, items, COUNT, train_text, &opt, &err) && strstr(err.message, "is full") &&
           host.slots == 0 && host.open == 0,
       "one without memory: %s", err.message);
    host.slot_fails = 0;
}

static void no_memory(int32_t workers)
{
    const struct stoker_batch *kept[BATCHES];
    uint64_t digests[BATCHES + 1];
    struct stoker_error err = {0};
    uint32_t n = 0;
    int rc = 0;
    host.slot_calls = 0;
    host.slot_fails = 4;
    struct stoker_loader *loader = open_host(harness_options(BATCH, workers));
    st_loader_start(loader, NULL, 0, NULL);
    while (n < BATCHES && (rc = st_loader_next(loader, &kept[n], &err)) == 0)
        n++;
    ok(rc == STOKER_ELIMIT && n == 3 && strstr(err.message, "is full"), "%d workers, %u batches kept: %s", workers, n,
       err.message);
    for (uint32_t k = 0; k < n; k++)
        st_batch_release(kept[k], NULL);
    ok(harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES - 3, "the rest comes in what slots there are");
    host.slot_fails = 0;
    st_loader_close(loader);
}

static void no_copy(int32_t workers)
{
    uint64_t digests[BATCHES + 1];
    int rc = 0;
    host.submitted = 0;
    host.submit_fails = 3;
    struct stoker_loader *loader = open_host(harness_options(BATCH, workers));
    st_loader_start(loader, NULL, 0, NULL);
    const uint32_t n = harness_take(loader, digests, BATCHES + 1, &rc);
    ok(rc == STOKER_EIO && n <= 3, "%d workers: a copy that fails ends the epoch, after %u batches", workers, n);
    host.submit_fails = 0;
    st_loader_start(loader, NULL, 0, NULL);
    ok(harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES, "and not the next one");
    st_loader_close(loader);
}

static void failures(void)
{
    no_device();
    no_memory(0);
    no_memory(2);
    no_copy(0);
    no_copy(2);
    ok(host.slots == 0 && host.open == 0, "nothing is lost by any of it");
}

static void refused(void)
{
    struct stoker_error err = {0};
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    ok(!harness_open_on(&host_devices, items, COUNT, "resize(size=20); to_tensor", &opt, &err) &&
           strstr(err.message, "center_crop"),
       "images that differ in size: %s", err.message);
    opt.augment_on = STOKER_PLACE_DEVICE;
    ok(!harness_open_on(NULL, items, COUNT, train_text, &opt, &err) && strstr(err.message, "no device"), "%s", err.message);
    opt.augment_on = (enum stoker_place)9;
    ok(!harness_open_on(&host_devices, items, COUNT, train_text, &opt, &err), "a place that does not exist");
    opt = harness_options(UINT32_MAX, 1);
    ok(!harness_open_on(&host_devices, items, COUNT, "resize(size=[30000,30000]); to_tensor; random_erasing(value=random)",
                        &opt, &err),
       "batches beyond all memory (%s)", err.message);
}

static void budget(void)
{
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    struct stoker_stats stats = {.size = sizeof stats};
    struct stoker_loader *loader = open_host(opt);
    st_loader_stats(loader, &stats);
    ok(stats.pinned_bytes == stats.slot_bytes && stats.pinned_bytes > 0 && !stats.pinned_note, "slots are pinned");
    st_loader_close(loader);
    opt.pinned_limit = 20000;
    loader = open_host(opt);
    st_loader_stats(loader, &stats);
    ok(stats.pinned_bytes <= 20000 && stats.pinned_note && strstr(stats.pinned_note, "pinned_limit"),
       "as far as the budget goes (%s)", stats.pinned_note ? stats.pinned_note : "");
    st_loader_close(loader);
    host.no_pin = true;
    opt.pinned_limit = 0;
    loader = open_host(opt);
    st_loader_stats(loader, &stats);
    ok(stats.pinned_bytes == 0 && stats.pinned_note && strstr(stats.pinned_note, "pageable"),
       "and where the system allows it (%s)", stats.pinned_note ? stats.pinned_note : "");
    st_loader_close(loader);
    host.no_pin = false;
}

int main(void)
{
    uint64_t truth[BATCHES + 1];
    items = test_items(COUNT);
    truth_of(truth);
    threads(truth);
    described();
    resume(truth);
    keep(truth);
    scarce(truth);
    any_moment();
    failures();
    refused();
    budget();
    ok(host.wrong == 0, "the device saw nothing wrong");
    test_items_free(items, COUNT);
    return done_testing();
}
