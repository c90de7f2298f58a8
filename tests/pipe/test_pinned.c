/* Pinned batches on the CPU: memory that is still being copied from is not written to. */
#include "pipe/harness.h"

#include <unistd.h>

enum { COUNT = 40, BATCH = 4, BATCHES = COUNT / BATCH, STREAM = 5, OTHER = 6, MARKED_MOST = 8 };

static struct stoker_item *items;
static atomic_bool refuse, hold;
static _Atomic uint32_t taken, marks, waited;

static void *pin_take(uint64_t bytes, struct stoker_error *err)
{
    if (refuse) {
        st_fail(err, STOKER_ENOMEM, "no page can be locked");
        return NULL;
    }
    taken++;
    return st_alloc_aligned(bytes);
}

static void pin_give(void *memory)
{
    taken--;
    free(memory);
}

/* The streams that were marked since the memory was waited for. */
struct marked {
    uint32_t count;
    uintptr_t stream[MARKED_MOST];
};

static void pin_mark(void **mark, uintptr_t stream)
{
    if (!*mark) {
        *mark = calloc(1, sizeof(struct marked));
        marks++;
    }
    struct marked *marked = *mark;
    if (marked->count < MARKED_MOST)
        marked->stream[marked->count++] = stream;
}

static bool is_marked(const struct marked *marked, uintptr_t stream)
{
    bool found = false;
    for (uint32_t k = 0; k < marked->count; k++)
        found |= marked->stream[k] == stream;
    return found;
}

static bool pin_done(void *mark, bool wait)
{
    struct marked *marked = mark;
    waited++;
    while (wait && hold && is_marked(marked, STREAM))
        usleep(500);
    marked->count = 0;
    return !hold;
}

static void pin_mark_free(void *mark)
{
    marks--;
    free(mark);
}

static const struct st_pinned_kind kind = {pin_take, pin_give, pin_mark, pin_done, pin_mark_free};
static const struct st_devices devices = {.ordinal = -1, .pinned = &kind};
static const char text[] = "center_crop(size=16); to_tensor";

static struct stoker_loader *open_pinned(struct stoker_loader_options opt)
{
    struct stoker_error err = {0};
    opt.pin_memory = true;
    struct stoker_loader *loader = harness_open_on(&devices, items, COUNT, text, &opt, &err);
    if (!loader)
        note("%s", err.message);
    else
        st_loader_start(loader, NULL, 0, NULL);
    return loader;
}

static void same_bytes(void)
{
    uint64_t plain[BATCHES + 1], pinned[BATCHES + 1];
    const struct stoker_loader_options opt = harness_options(BATCH, 2);
    const struct stoker_batch *batch;
    struct stoker_stats stats = {.size = sizeof stats};
    struct stoker_loader *loader = harness_open(items, COUNT, text, &opt);
    st_loader_start(loader, NULL, 0, NULL);
    harness_take(loader, plain, BATCHES + 1, NULL);
    st_loader_close(loader);
    loader = open_pinned(opt);
    const uint32_t n = harness_take(loader, pinned, BATCHES + 1, NULL);
    st_loader_stats(loader, &stats);
    ok(n == BATCHES && !memcmp(plain, pinned, sizeof *plain * BATCHES), "pinned batches have the same bytes");
    ok(stats.pinned_bytes == stats.slot_bytes && !stats.pinned_note, "all of their memory is pinned");
    st_loader_start(loader, NULL, 0, NULL);
    st_loader_next(loader, &batch, NULL);
    ok(batch->device_type == 3 && batch->device_id == 0, "and they say so");
    st_batch_release(batch, NULL);
    st_loader_close(loader);
    ok(taken == 0 && marks == 0, "it is given back");
}

/* A stream has a part of the batch; the rest of it is let go later, in another stream, or in none. */
static void in_flight(int after)
{
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    const struct stoker_batch *batch;
    opt.max_memory = 5 * BATCH * 3 * 16 * 16 * 4; /* a half of it is for batches: two */
    struct stoker_loader *loader = open_pinned(opt);
    st_loader_next(loader, &batch, NULL);
    const void *memory = batch->images.data;
    const size_t bytes = tensor_bytes(&batch->images);
    void *copy = malloc(bytes);
    memcpy(copy, memory, bytes);
    hold = true;
    waited = 0;
    if (after != STREAM)
        st_batch_mark(batch, STREAM);
    if (after)
        st_batch_release(batch, &(uintptr_t){(uintptr_t)after});
    else
        st_batch_release(batch, NULL);
    st_loader_next(loader, &batch, NULL); /* the other slot */
    st_batch_release(batch, NULL);
    for (int ms = 0; ms < 60000 && !waited; ms++)
        usleep(1000);
    usleep(20000); /* time enough to write to it */
    ok(waited > 0 && !memcmp(copy, memory, bytes), "a slot whose copy is under way is waited for, not written to (%d)",
       after);
    hold = false;
    uint64_t digests[BATCHES + 1];
    ok(harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES - 2, "then the rest comes");
    st_loader_close(loader);
    ok(taken == 0 && marks == 0, "and all is given back");
    free(copy);
}

static void refused(void)
{
    struct stoker_stats stats = {.size = sizeof stats};
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    const struct stoker_batch *batch;
    refuse = true;
    struct stoker_loader *loader = open_pinned(opt);
    st_loader_next(loader, &batch, NULL);
    st_loader_stats(loader, &stats);
    ok(batch->device_type == 1 && stats.pinned_bytes == 0 && stats.pinned_note && strstr(stats.pinned_note, "locked"),
       "without pinned memory there is pageable memory, and a note (%s)", stats.pinned_note ? stats.pinned_note : "");
    st_batch_release(batch, &(uintptr_t){STREAM});
    st_loader_close(loader);
    refuse = false;
    opt.pinned_limit = BATCH * 3 * 16 * 16 * 4;
    loader = open_pinned(opt);
    st_loader_next(loader, &batch, NULL);
    st_batch_release(batch, NULL);
    st_loader_stats(loader, &stats);
    ok(stats.pinned_bytes == opt.pinned_limit && stats.slots > 1 && strstr(stats.pinned_note, "pinned_limit"),
       "one slot within the budget (%s)", stats.pinned_note);
    st_loader_close(loader);
    opt.pinned_limit = 0;
    opt.pin_memory = true;
    loader = harness_open(items, COUNT, text, &opt);
    st_loader_stats(loader, &stats);
    ok(loader && strstr(stats.pinned_note, "no support for pinned memory"), "nobody to pin it: %s", stats.pinned_note);
    st_loader_close(loader);
    struct stoker_error err;
    loader = harness_open_on(&devices, items, COUNT, "to_tensor", &opt, &err);
    st_loader_stats(loader, &stats);
    ok(loader && strstr(stats.pinned_note, "vary in size"), "%s", stats.pinned_note);
    st_loader_close(loader);
}

int main(void)
{
    items = test_items(COUNT);
    same_bytes();
    in_flight(STREAM);
    in_flight(OTHER);
    in_flight(0);
    refused();
    test_items_free(items, COUNT);
    return done_testing();
}
