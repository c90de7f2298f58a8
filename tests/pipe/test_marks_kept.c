/* Marks that loaders keep of JPEG files: for the bytes they were noted in, within their memory, and with
 * the same pixels as without.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/threads.h"
#include "pipe/harness.h"
#include "pipe/marks_kept.h"

enum { MOST = 1 << 20, SAMPLES = 100, THREADS = 4, COUNT = 12, BATCH = 4, BATCHES = COUNT / BATCH, EPOCHS = 5 };

static struct st_marks_kept *kept;
static _Atomic uint32_t wrong;

/* ---- the table ---------------------------------------------------------------------------------- */

/* Marks by which a sample and its file can be told. */
static struct st_jpeg_marks marks_of(uint64_t sample, uint32_t count)
{
    struct st_jpeg_marks marks = {.count = count};
    for (uint32_t k = 0; k < count; k++)
        marks.mark[k] = (sample + 1) * 1000 + k;
    return marks;
}

static bool has(uint64_t sample, struct st_bytes file, uint32_t count)
{
    const struct st_jpeg_marks want = marks_of(sample, count);
    struct st_jpeg_marks got;
    st_marks_kept_get(kept, sample, file, &got);
    return got.count == count && !memcmp(got.mark, want.mark, count * sizeof *got.mark);
}

static void put(uint64_t sample, struct st_bytes file, uint32_t count)
{
    const struct st_jpeg_marks marks = marks_of(sample, count);
    st_marks_kept_put(kept, sample, file, &marks);
}

static void table(void)
{
    static const uint8_t first[] = "a file", other[] = "A file", longer[] = "a file.";
    const struct st_bytes file = {first, 6}, changed = {other, 6}, grown = {longer, 7};
    struct st_budget budget = {0};
    kept = st_marks_kept_new(SAMPLES, MOST, &budget);
    if (!ok(kept != NULL, "a table"))
        return;
    ok(has(3, file, 0), "at first nothing is known");
    put(3, file, 5);
    ok(has(3, file, 5) && has(4, file, 0), "then what was put there, for its sample only");
    ok(has(3, changed, 0) && has(3, grown, 0), "and for its bytes only");
    put(3, file, 2);
    ok(has(3, file, 5), "fewer marks do not take the place of more");
    put(3, file, ST_JPEG_MARKS_MAX);
    ok(has(3, file, ST_JPEG_MARKS_MAX), "more do");
    put(3, changed, 1);
    ok(has(3, changed, 1) && has(3, file, 0), "and so do those of other bytes");
    put(SAMPLES, file, 5);
    put(UINT64_MAX, file, 5);
    ok(has(SAMPLES, file, 0) && has(UINT64_MAX, file, 0), "samples out of range have none");
    st_marks_kept_free(kept);
    ok(atomic_load(&budget.allocated) == 0, "all is given back");
    ok(!st_marks_kept_new(SAMPLES, SAMPLES, &budget) && !st_marks_kept_new(UINT64_MAX, UINT64_MAX, &budget) &&
           !st_marks_kept_new(UINT64_MAX / 8, MOST, &budget),
       "no table where the pointers alone would take too much");
    st_marks_kept_free(NULL);
}

static void within_memory(void)
{
    enum { LIMIT = 8192 };
    const struct st_bytes file = {(const uint8_t *)"x", 1};
    struct st_budget budget = {0};
    uint32_t there = 0;
    bool within = true;
    kept = st_marks_kept_new(SAMPLES, LIMIT, &budget);
    for (uint64_t sample = 0; kept && sample < SAMPLES; sample++) {
        put(sample, file, 20);
        there += has(sample, file, 20);
        within = within && atomic_load(&budget.allocated) <= LIMIT;
    }
    ok(kept && within && there > 10 && there < SAMPLES, "%u of %d samples fit into %d bytes", there, SAMPLES, LIMIT);
    for (uint64_t sample = 0; kept && sample < SAMPLES; sample++)
        put(sample, file, 1); /* until not even these fit */
    put(0, file, ST_JPEG_MARKS_MAX);
    ok(has(0, file, 20), "a sample that would need more keeps what it has");
    st_marks_kept_free(kept);
    ok(atomic_load(&budget.allocated) == 0, "all is given back");
}

static void *use(void *argument)
{
    const uint32_t start = *(const uint32_t *)argument;
    const struct st_bytes file = {(const uint8_t *)"shared", 6};
    for (uint32_t k = 0; k < share_of(40) * SAMPLES; k++) {
        const uint64_t sample = (start + k) % SAMPLES;
        struct st_jpeg_marks got, want;
        put(sample, file, 1 + (start + k) % ST_JPEG_MARKS_MAX);
        st_marks_kept_get(kept, sample, file, &got);
        want = marks_of(sample, got.count);
        wrong += got.count == 0 || memcmp(got.mark, want.mark, got.count * sizeof *got.mark);
    }
    return NULL;
}

static void by_threads(void)
{
    static const uint32_t starts[THREADS] = {0, 1, 33, 66};
    struct st_budget budget = {0};
    pthread_t threads[THREADS];
    kept = st_marks_kept_new(SAMPLES, MOST, &budget);
    for (int k = 0; kept && k < THREADS; k++)
        if (st_thread_start(&threads[k], use, (void *)(uintptr_t)&starts[k], "marks"))
            abort();
    for (int k = 0; kept && k < THREADS; k++)
        pthread_join(threads[k], NULL);
    ok(kept && !wrong, "threads that use the same samples get whole entries");
    st_marks_kept_free(kept);
}

/* ---- loaders ------------------------------------------------------------------------------------ */

static struct stoker_item items[COUNT];

/* Mostly of the size of photographs; also a PPM, a progressive file, a tiny one and a large one. */
static void make_items(void)
{
    for (uint32_t k = 0; k < COUNT; k++)
        items[k] = k == 5    ? test_ppm(k, 90, 120)
                   : k == 7  ? test_jpeg_progressive(k, 300, 200)
                   : k == 9  ? test_jpeg(k, 40, 30)
                   : k == 11 ? test_jpeg(k, 1600, 1300)
                             : test_jpeg(k, 500 - (int)k, 375 + (int)k);
}

static struct stoker_loader *open_loader(int32_t workers)
{
    struct stoker_loader_options opt = harness_options(BATCH, workers);
    opt.pixel_limit = 1 << 22;
    return harness_open(items, COUNT, train_text, &opt);
}

static bool take_epoch(struct stoker_loader *loader, uint64_t number, uint64_t digests[BATCHES])
{
    const struct stoker_epoch epoch = {.size = sizeof epoch, .epoch = number};
    return loader && !st_loader_start(loader, &epoch, 0, NULL) && harness_take(loader, digests, BATCHES, NULL) == BATCHES;
}

static uint64_t data_bytes(struct stoker_loader *loader)
{
    struct stoker_stats stats = {.size = sizeof stats};
    st_loader_stats(loader, &stats);
    return stats.data_bytes;
}

/* Damages a file's data without changing its size, or mends it. */
static void flip(uint32_t item)
{
    uint8_t *data = (uint8_t *)(uintptr_t)items[item].data;
    for (size_t at = items[item].size / 3; at < items[item].size / 2; at += 511)
        data[at] ^= 0x10;
}

static void epochs(int32_t workers)
{
    struct stoker_loader *loader = open_loader(workers);
    const uint64_t before = loader ? data_bytes(loader) : 0;
    bool same = loader, grew = false;
    for (uint64_t epoch = 0; same && epoch < EPOCHS; epoch++) {
        uint64_t kept_digests[BATCHES], digests[BATCHES];
        if (epoch == 3 || epoch == 4)
            flip(2);
        same = take_epoch(loader, epoch, kept_digests);
        grew = grew || data_bytes(loader) > before + 1000;
        struct stoker_loader *fresh = open_loader(workers);
        same = same && take_epoch(fresh, epoch, digests) && !memcmp(digests, kept_digests, sizeof digests);
        st_loader_close(fresh);
    }
    ok(same, "%d workers: every epoch has the pixels of a new loader, also when a file changes", workers);
    ok(grew, "and marks were kept: %llu bytes more", (unsigned long long)(loader ? data_bytes(loader) - before : 0));
    st_loader_close(loader);
}

int main(void)
{
    table();
    within_memory();
    by_threads();
    make_items();
    epochs(0);
    epochs(3);
    for (uint32_t k = 0; k < COUNT; k++)
        free((void *)(uintptr_t)items[k].data);
    return done_testing();
}
