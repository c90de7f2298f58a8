/* A sample that comes more than once in an epoch is augmented anew each time, and the same for any
 * number of threads and after any restart. */
#include "pipe/harness.h"

enum { IMAGES = 6, LENGTH = 24, BATCH = 4, BATCHES = LENGTH / BATCH };

static struct stoker_item *items;
static const uint64_t sequence[LENGTH] = {3, 3, 0, 5, 3, 1, 0, 2, 2, 4, 5, 3,
                                          1, 1, 1, 0, 5, 4, 3, 2, 0, 4, 2, 1};

static struct stoker_loader *open_given(int32_t workers)
{
    struct stoker_loader_options opt = harness_options(BATCH, workers);
    opt.order = STOKER_ORDER_GIVEN;
    return harness_open(items, IMAGES, train_text, &opt);
}

/* The digest of each row of the epoch's batches; 0 where none came. */
static void take_rows(struct stoker_loader *loader, uint64_t rows[LENGTH], uint64_t *first_index)
{
    const struct stoker_batch *batch;
    uint32_t at = 0;
    memset(rows, 0, LENGTH * sizeof *rows);
    while (at < LENGTH && st_loader_next(loader, &batch, NULL) == STOKER_OK) {
        const size_t bytes = tensor_bytes(&batch->images) / batch->count;
        if (!at && first_index)
            *first_index = batch->index;
        for (uint32_t k = 0; k < batch->count && at < LENGTH; k++)
            rows[at++] = digest_bytes(1, (const uint8_t *)batch->images.data + k * bytes, bytes);
        st_batch_release(batch, NULL);
    }
}

static void epoch_rows(const struct stoker_epoch *epoch, int32_t workers, uint64_t rows[LENGTH],
                       uint64_t *first_index)
{
    struct stoker_loader *loader = open_given(workers);
    memset(rows, 0, LENGTH * sizeof *rows);
    if (loader && !st_loader_start(loader, epoch, 0, NULL))
        take_rows(loader, rows, first_index);
    st_loader_close(loader);
}

static bool came_before(uint64_t position)
{
    for (uint64_t k = 0; k < position; k++)
        if (sequence[k] == sequence[position])
            return true;
    return false;
}

static void within_a_list(const uint64_t *truth, const uint64_t *once)
{
    bool first = true, others = true;
    for (uint64_t k = 0; k < LENGTH; k++) {
        if (!came_before(k))
            first = first && truth[k] == once[sequence[k]];
        for (uint64_t j = 0; j < k; j++)
            others = others && truth[j] != truth[k];
    }
    ok(first, "a sample's first time is that of an order without repeats");
    ok(others, "and each further time is drawn for anew");
}

static void threads_and_restarts(const struct stoker_epoch *epoch, const uint64_t *truth)
{
    uint64_t rows[LENGTH];
    epoch_rows(epoch, 3, rows, NULL);
    ok(!memcmp(rows, truth, sizeof rows), "three threads give the bytes of none");
    bool all = true;
    for (uint32_t at = 0; at <= BATCHES; at++) {
        struct stoker_loader *first = open_given(2), *second = open_given((int32_t)(at % 3));
        struct stoker_state state;
        uint64_t digests[BATCHES];
        all = all && !st_loader_start(first, epoch, 0, NULL) &&
              harness_take(first, digests, at, NULL) == at && !st_loader_save(first, &state, NULL) &&
              !st_loader_restore(second, &state, epoch, NULL);
        take_rows(second, rows, NULL);
        all = all && !memcmp(rows, truth + at * BATCH, (LENGTH - at * BATCH) * sizeof *rows);
        st_loader_close(first);
        st_loader_close(second);
    }
    ok(all, "and so does the rest after every batch, with other numbers of threads");
}

/* An epoch given in two lists is the same as in one. */
static void in_parts(const struct stoker_epoch *whole, const uint64_t *truth)
{
    enum { HALF = LENGTH / 2 };
    uint64_t rows[LENGTH], index = 0;
    uint8_t repeated[HALF];
    struct stoker_epoch part = *whole;
    part.index_count = HALF;
    epoch_rows(&part, 1, rows, &index);
    ok(!memcmp(rows, truth, HALF * sizeof *rows) && index == 0, "the first part");
    for (uint64_t k = 0; k < HALF; k++)
        repeated[k] = came_before(HALF + k);
    part.indices = sequence + HALF;
    part.repeated = repeated;
    part.first_position = HALF;
    part.first_batch = HALF / BATCH;
    epoch_rows(&part, 2, rows, &index);
    ok(!memcmp(rows, truth + HALF, HALF * sizeof *rows), "the second, which is told what came before");
    ok(index == HALF / BATCH, "its batches count on");
}

static void drawn_by_weight(void)
{
    struct stoker_loader_options opt = harness_options(BATCH, 1);
    const double weights[IMAGES] = {1, 0, 0, 0, 0, 0};
    opt.order = STOKER_ORDER_WEIGHTED;
    opt.weights = weights;
    opt.draws = LENGTH;
    struct stoker_loader *loader = harness_open(items, IMAGES, train_text, &opt);
    uint64_t rows[LENGTH];
    bool others = loader && !st_loader_start(loader, NULL, 0, NULL);
    take_rows(loader, rows, NULL);
    for (uint64_t k = 0; k < LENGTH; k++)
        for (uint64_t j = 0; j < k; j++)
            others = others && rows[j] != rows[k];
    ok(others && rows[0], "draws by weight of one sample differ too");
    st_loader_close(loader);
}

static void refused(void)
{
    struct stoker_loader_options opt = harness_options(BATCH, 0);
    struct stoker_loader *loader = harness_open(items, IMAGES, train_text, &opt);
    const struct stoker_epoch epoch = {.size = sizeof epoch, .first_position = 4};
    struct stoker_error err = {0};
    ok(st_loader_start(loader, &epoch, 0, &err) == STOKER_EINVAL, "parts are for given orders: %s",
       err.message);
    st_loader_close(loader);
}

int main(void)
{
    static const uint64_t each[IMAGES] = {0, 1, 2, 3, 4, 5};
    const struct stoker_epoch epoch = {
        .size = sizeof epoch, .epoch = 2, .indices = sequence, .index_count = LENGTH};
    const struct stoker_epoch plain = {
        .size = sizeof plain, .epoch = 2, .indices = each, .index_count = IMAGES};
    uint64_t truth[LENGTH], once[LENGTH];
    items = test_items(IMAGES);
    epoch_rows(&epoch, 0, truth, NULL);
    epoch_rows(&plain, 0, once, NULL);
    within_a_list(truth, once);
    threads_and_restarts(&epoch, truth);
    in_parts(&epoch, truth);
    drawn_by_weight();
    refused();
    test_items_free(items, IMAGES);
    return done_testing();
}
