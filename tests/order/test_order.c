/* Orders of every kind: ranks share them out as DistributedSampler does, and resume anywhere. */
#include "order/order.h"
#include "base/clock.h"
#include "stat.h"

#include <inttypes.h>
#include <string.h>

enum { LONGEST = 64 };

/* Opens and starts, or ends the test: for what must work. */
static struct stoker_order *started(uint64_t count, struct stoker_order_options opt, uint64_t epoch,
                                    uint64_t base, const uint64_t *indices, uint64_t index_count)
{
    struct stoker_order *order;
    struct stoker_error err;
    if (st_order_open(&order, count, &opt, &err) < 0 ||
        st_order_start(order, epoch, base, indices, index_count, &err) < 0) {
        ok(false, "%s", err.message);
        exit(done_testing());
    }
    return order;
}

static const double some_weights[LONGEST] = {[0] = 1, [2] = 0.5, [3] = 7};
static const uint64_t some_indices[LONGEST] = {0, 0, 1, 0, 3, 2, 0, 5, 5, 1, 9, 0, 2};
static const char *const kind_names[] = {"sequential", "shuffle", "torch", "weighted", "given"};

static struct stoker_order *started_kind(enum stoker_order_kind kind, uint64_t count, uint32_t rank,
                                         uint32_t world, bool drop, uint64_t base)
{
    const struct stoker_order_options opt = {.kind = kind,
                                             .seed = 5,
                                             .rank = rank,
                                             .world = world,
                                             .drop_uneven = drop,
                                             .weights =
                                                 kind == STOKER_ORDER_WEIGHTED ? some_weights : NULL};
    uint64_t indices[LONGEST];
    for (uint64_t i = 0; i < count; i++)
        indices[i] = some_indices[i] % count;
    const bool given = kind == STOKER_ORDER_GIVEN;
    return started(count, opt, 2, base, given ? indices : NULL, given ? count : 0);
}

/* What DistributedSampler does to the list `whole`, after `base` of it are gone, written the slow way.
 */
static uint64_t expected_share(const uint64_t *whole, uint64_t total, uint64_t base, uint32_t rank,
                               uint32_t world, bool drop, uint64_t *share)
{
    uint64_t rest[2 * LONGEST], count = 0, length = 0;
    for (uint64_t i = base; i < total; i++)
        rest[count++] = whole[i];
    if (drop)
        count -= count % world;
    for (uint64_t i = 0; count % world != 0; i++)
        rest[count++] = whole[i % total];
    for (uint64_t i = rank; i < count; i += world)
        share[length++] = rest[i];
    return length;
}

static bool share_is(enum stoker_order_kind kind, const uint64_t *whole, uint64_t total, uint64_t base,
                     uint32_t rank, uint32_t world, bool drop)
{
    uint64_t share[2 * LONGEST];
    const uint64_t length = expected_share(whole, total, base, rank, world, drop, share);
    struct stoker_order *order = started_kind(kind, total, rank, world, drop, base);
    bool same = st_order_length(order) == length && st_order_total(order) == total &&
                st_order_world(order) == world;
    for (uint64_t i = 0; same && i < length; i++)
        same = st_order_at(order, i) == share[i];
    st_order_close(order);
    return same;
}

/* Every kind, count, world, rank, and every place to resume at: also those that only another world size,
 * which the run was saved with, can have led to. */
static void shares_and_resume(enum stoker_order_kind kind)
{
    static const uint64_t totals[] = {1, 2, 3, 7, 12, 13, 40};
    uint64_t whole[LONGEST];
    bool fresh = true, resumed = true;
    for (size_t k = 0; k < sizeof totals / sizeof *totals; k++) {
        const uint64_t total = totals[k];
        struct stoker_order *order = started_kind(kind, total, 0, 1, false, 0);
        for (uint64_t i = 0; i < total; i++)
            whole[i] = st_order_at(order, i);
        st_order_close(order);
        for (uint32_t world = 1; world <= 9; world++)
            for (uint32_t rank = 0; rank < world; rank++)
                for (int drop = 0; drop < 2; drop++) {
                    fresh &= share_is(kind, whole, total, 0, rank, world, drop);
                    for (uint64_t base = 1; base <= total + world; base++)
                        resumed &= share_is(kind, whole, total, base, rank, world, drop);
                }
        fresh &= share_is(kind, whole, total, 0, 49, 50, false) &&
                 share_is(kind, whole, total, 0, 49, 50, true);
    }
    ok(fresh, "%s: ranks share the epoch out as torch does", kind_names[kind]);
    ok(resumed, "%s: any world goes on at any place", kind_names[kind]);
}

/* Said without the model above: together the ranks have every sample once, and a resumed rank goes on
 * with exactly what it would have had. */
static void disjoint_whole_and_continued(void)
{
    enum { TOTAL = 60, WORLD = 4 };
    uint64_t uninterrupted[WORLD][TOTAL / WORLD];
    int times[TOTAL] = {0};
    bool once = true, same = true;
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        struct stoker_order *order = started_kind(STOKER_ORDER_SHUFFLE, TOTAL, rank, WORLD, false, 0);
        for (uint64_t i = 0; i < TOTAL / WORLD; i++)
            times[uninterrupted[rank][i] = st_order_at(order, i)]++;
        st_order_close(order);
    }
    for (int i = 0; i < TOTAL; i++)
        once &= times[i] == 1;
    ok(once, "ranks are disjoint and whole");
    for (uint64_t steps = 0; steps <= TOTAL / WORLD; steps++)
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            struct stoker_order *order =
                started_kind(STOKER_ORDER_SHUFFLE, TOTAL, rank, WORLD, false, steps * WORLD);
            same &= st_order_length(order) == TOTAL / WORLD - steps;
            for (uint64_t i = steps; same && i < TOTAL / WORLD; i++)
                same = st_order_at(order, i - steps) == uninterrupted[rank][i];
            st_order_close(order);
        }
    ok(same, "a resumed rank goes on with the rest of its uninterrupted sequence");
}

static void huge_counts(void)
{
    static const enum stoker_order_kind kinds[] = {STOKER_ORDER_SEQUENTIAL, STOKER_ORDER_SHUFFLE};
    for (size_t k = 0; k < 2; k++) {
        struct stoker_order *order =
            started(UINT64_MAX, (struct stoker_order_options){.kind = kinds[k], .rank = 6, .world = 7},
                    0, 0, NULL, 0);
        struct stoker_order *whole =
            started(UINT64_MAX, (struct stoker_order_options){.kind = kinds[k]}, 0, 0, NULL, 0);
        const uint64_t last =
            UINT64_MAX / 7; /* 2^64 - 1 = 7 * last + 1: six of the last seven are padding */
        ok(st_order_length(order) == last + 1 && st_order_at(order, last) == st_order_at(whole, 5) &&
               st_order_at(order, last - 1) == st_order_at(whole, UINT64_MAX - 2),
           "%s: 2^64 - 1 samples over 7 ranks, padding included", kind_names[kinds[k]]);
        st_order_close(order);
        st_order_close(whole);
    }
}

/* Opening must not depend on the count. A pass over 10^9 samples takes 300 ms and more; the system may interrupt a
 * single opening for as long, so the quickest of several counts. */
static void quick_start(void)
{
    enum { ASKED = 100000, OPENINGS = 10, LIMIT_NS = 50000000 };
    uint64_t quickest = UINT64_MAX, opened = 0, sum = 0;
    struct stoker_order *order = NULL;
    struct stoker_error err;
    bool shuffled = true;
    for (int i = 0; i < OPENINGS && shuffled; i++) {
        st_order_close(order);
        const uint64_t before = st_now_ns();
        shuffled =
            st_order_open(&order, 1000000000,
                          &(struct stoker_order_options){.kind = STOKER_ORDER_SHUFFLE, .seed = 1},
                          &err) == STOKER_OK &&
            st_order_start(order, 3, 0, NULL, 0, &err) == STOKER_OK;
        sum = shuffled ? st_order_at(order, 0) : 0;
        opened = st_now_ns();
        if (opened - before < quickest)
            quickest = opened - before;
    }
    if (!ok(shuffled, "10^9 samples are shuffled"))
        return;
    for (uint64_t i = 0; i < ASKED; i++)
        sum += st_order_at(order, i);
    note("open, start and first sample: %" PRIu64 " ns; then %.1f ns each (sum %" PRIu64 ")", quickest,
         (double)(st_now_ns() - opened) / ASKED, sum);
    ok(quickest < LIMIT_NS, "and opening does not depend on their count");
    st_order_close(order);
}

static bool torch_is(uint64_t count, struct stoker_order_options opt, uint64_t epoch,
                     const uint64_t *want, uint64_t length)
{
    opt.kind = STOKER_ORDER_TORCH;
    struct stoker_order *order = started(count, opt, epoch, 0, NULL, 0);
    bool same = st_order_length(order) == length;
    for (uint64_t i = 0; same && i < length; i++)
        same = st_order_at(order, i) == want[i];
    st_order_close(order);
    return same;
}

/* A few answers written down; tests/python/test_order.py asks torch itself. */
static void torch_order(void)
{
    static const uint64_t zero[] = {4, 1, 7, 5, 3, 9, 0, 8, 6, 2},
                          three[] = {6, 0, 3, 7, 8, 5, 1, 9, 2, 4};
    static const uint64_t sampler[] = {3, 1, 0, 2, 1, 3, 2, 0, 0, 3};
    typedef struct stoker_order_options options;
    ok(torch_is(10, (options){.seed = 0}, 0, zero, 10), "randperm(10) under seed 0");
    ok(torch_is(10, (options){.seed = 1}, 2, three, 10), "seed 1 in epoch 2 is seed 3");
    ok(torch_is(10, (options){.seed = 3, .epoch_fixed = true}, 2, three, 10),
       "unless the epoch is left out");
    ok(torch_is(4, (options){.seed = 5, .draws = 10}, 0, sampler, 10),
       "RandomSampler of 4 with num_samples=10");
    struct stoker_order *order =
        started(100000, (options){.kind = STOKER_ORDER_TORCH, .seed = 123}, 0, 0, NULL, 0);
    uint64_t hash = HASH_START;
    for (uint64_t i = 0; i < 100000; i++)
        hash = hash_bits(hash, st_order_at(order, i));
    ok(hash == 0x2515e104da73f159u, "randperm(100000) under seed 123");
    st_order_close(order);
}

static void weighted_draws(const char *what, const double *weights, uint64_t count)
{
    enum { DRAWS = 200000, MOST = 200 };
    uint64_t counts[MOST] = {0};
    double largest = 0, sum = 0, chi = 0;
    int possible = 0;
    bool never = true;
    struct stoker_order *order =
        started(count,
                (struct stoker_order_options){
                    .kind = STOKER_ORDER_WEIGHTED, .seed = 3, .weights = weights, .draws = DRAWS},
                1, 0, NULL, 0);
    for (uint64_t i = 0; i < DRAWS; i++)
        counts[st_order_at(order, i)]++;
    st_order_close(order);
    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, weights[i]);
    for (uint64_t i = 0; i < count; i++)
        sum += weights[i] / largest;
    for (uint64_t i = 0; i < count; i++) {
        const double expected = DRAWS * (weights[i] / largest / sum);
        if (expected > 5) {
            chi += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
            possible++;
        }
        never &= weights[i] > 0 || counts[i] == 0;
    }
    if (possible > 1)
        ok_likely(chi_deviate(chi, possible - 1), "weighted, %s: as often as the weights say", what);
    ok(never, "weighted, %s: what weighs nothing is never drawn", what);
}

static void weighted(void)
{
    double weights[200];
    for (int i = 0; i < 200; i++)
        weights[i] = i % 5 == 0 ? 0 : 1.0 / (1 + i);
    weighted_draws("falling, some 0", weights, 200);
    for (int i = 0; i < 200; i++)
        weights[i] = 0.1;
    weighted_draws("equal", weights, 200);
    weighted_draws("equal, odd count", weights, 13);
    for (int i = 0; i < 200; i++)
        weights[i] = i % 2 ? 1.7e308 : 0.4e308;
    weighted_draws("too large to sum", weights, 200);
    for (int i = 0; i < 200; i++)
        weights[i] = (double)(i % 7) * 5e-324;
    weighted_draws("denormal", weights, 200);
    weighted_draws("one heavy", (double[]){0, 1e-300, 1e300, 0}, 4);
    weighted_draws("the last only", (double[]){0, 0, 0, 2}, 4);
    weighted_draws("a single sample", (double[]){0.3}, 1);

    weights[0] = 1;
    weights[1] = 0;
    struct stoker_order *order =
        started(2, (struct stoker_order_options){.kind = STOKER_ORDER_WEIGHTED, .weights = weights}, 0,
                0, NULL, 0);
    weights[0] = 0;
    ok(st_order_length(order) == 2 && st_order_at(order, 0) == 0 && st_order_at(order, 1) == 0,
       "weights are copied, and an epoch has as many draws as samples");
    st_order_close(order);
}

static void given(void)
{
    uint64_t indices[] = {4, 0, 4, 2};
    struct stoker_error err;
    struct stoker_order *order =
        started(5, (struct stoker_order_options){.kind = STOKER_ORDER_GIVEN}, 0, 0, indices, 4);
    memset(indices, 0, sizeof indices);
    ok(st_order_length(order) == 4 && st_order_at(order, 0) == 4 && st_order_at(order, 3) == 2,
       "indices are copied");

    const uint64_t bad[] = {0, 1, 5, 2};
    ok(st_order_start(order, 1, 0, bad, 4, &err) == STOKER_EINVAL && strstr(err.message, "position 2") &&
           strstr(err.message, "5 samples"),
       "an index past the end is refused: %s", err.message);
    ok(st_order_length(order) == 0, "and leaves no epoch to read from");
    ok(st_order_start(order, 1, 0, NULL, 4, &err) == STOKER_EINVAL, "so are indices that are not there");
    ok(st_order_start(order, 1, 0, NULL, 0, &err) == STOKER_OK && st_order_length(order) == 0,
       "no indices, no samples");
    ok(st_order_start(order, 1, 1, (uint64_t[]){3, 1, 0, 0, 0, 2}, 6, &err) == STOKER_OK &&
           st_order_length(order) == 5 && st_order_at(order, 4) == 2,
       "a longer list afterwards");
    st_order_close(order);
}

static bool refused(uint64_t count, struct stoker_order_options opt, const char *said)
{
    struct stoker_error err = {0};
    struct stoker_order *order;
    const int rc = st_order_open(&order, count, &opt, &err);
    const bool as_told = rc == STOKER_EINVAL && order == NULL && strstr(err.message, said);
    if (!as_told)
        note("status %d, message: %s", rc, err.message);
    st_order_close(order);
    return as_told;
}

static void refusals(void)
{
    typedef struct stoker_order_options options;
    const enum stoker_order_kind weighted = STOKER_ORDER_WEIGHTED;
    struct stoker_error err;
    ok(refused(9, (options){.rank = 2, .world = 2}, "rank 2 is out of range for a world size of 2"), "a rank that is not there");
    ok(refused(9, (options){.rank = 1}, "rank 1 is out of range for a world size of 0"), "a rank without a world");
    ok(refused(9, (options){.kind = (enum stoker_order_kind)17}, "17"), "an unknown kind");
    ok(refused(9, (options){.kind = weighted}, "requires weights"), "no weights");
    ok(refused(9, (options){.kind = STOKER_ORDER_SHUFFLE, .weights = some_weights}, "weights"),
       "needless weights");
    ok(refused(9, (options){.draws = 4}, "draws"), "draws where nothing is drawn");
    ok(refused(0, (options){.kind = weighted, .draws = 4}, "empty"), "draws from nothing");
    ok(refused(2, (options){.kind = weighted, .weights = (double[]){1, NAN}}, "position 1"),
       "a weight of NaN");
    ok(refused(2, (options){.kind = weighted, .weights = (double[]){INFINITY, 1}}, "position 0"),
       "an infinite one");
    ok(refused(2, (options){.kind = weighted, .weights = (double[]){1, -0.5}}, "position 1"),
       "a negative one");
    ok(refused(2, (options){.kind = weighted, .weights = (double[]){0, 0}}, "all of them (2) are 0"),
       "weights that are all 0");

    struct stoker_order *order = started(9, (options){.kind = STOKER_ORDER_SHUFFLE}, 0, 0, NULL, 0);
    ok(st_order_start(order, 0, 0, some_indices, 3, &err) == STOKER_EINVAL &&
           st_order_length(order) == 0,
       "indices for a shuffle: %s", err.message);
    st_order_close(order);
    if (ok(st_order_open(&order, UINT64_MAX, &(options){.kind = STOKER_ORDER_TORCH}, &err) == STOKER_OK,
           "torch's order of 2^64 - 1 samples can be asked for")) {
        ok(st_order_start(order, 0, 0, NULL, 0, &err) == STOKER_ENOMEM, "but not had: %s", err.message);
        st_order_close(order);
    }
    st_order_close(NULL);
}

static void empty(void)
{
    for (int kind = STOKER_ORDER_SEQUENTIAL; kind <= STOKER_ORDER_GIVEN; kind++) {
        struct stoker_order *order = started(
            0,
            (struct stoker_order_options){.kind = (enum stoker_order_kind)kind, .rank = 1, .world = 3},
            0, 0, NULL, 0);
        ok(st_order_length(order) == 0 && st_order_total(order) == 0, "%s: of nothing is empty",
           kind_names[kind]);
        st_order_close(order);
    }
}

/* Each batch of samples comes once for each view, whose draws are its own. */
static void several_views(void)
{
    enum { COUNT = 23, BATCH = 4, VIEWS = 3 };
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint64_t base = 0; base <= 16; base += 8) {
            const struct stoker_order_options opt = {
                .kind = STOKER_ORDER_SHUFFLE, .seed = 5, .rank = rank, .world = 2};
            struct stoker_order *plain = started(COUNT, opt, 3, base, NULL, 0);
            struct stoker_order *order = started(COUNT, opt, 3, 0, NULL, 0);
            st_order_set_views(order, VIEWS, BATCH);
            bool same = !st_order_start(order, 3, base, NULL, 0, NULL), own = true;
            const uint64_t length = st_order_length(plain);
            same = same && st_order_length(order) == VIEWS * length;
            for (uint64_t first = 0; same && first < length; first += BATCH) {
                const uint64_t count = length - first < BATCH ? length - first : BATCH;
                for (uint64_t k = 0; k < count * VIEWS; k++) {
                    const uint64_t at = first * VIEWS + k;
                    same = same && st_order_at(order, at) == st_order_at(plain, first + k % count) &&
                           st_order_view_at(order, at) == k / count;
                    own = own && (st_order_seed_at(order, at) == 5) == (k < count);
                    own = own && (k < count || st_order_seed_at(order, at) != st_order_seed_at(order, at - count));
                }
            }
            ok(same, "rank %u from %d on: each batch has all samples once for each view", rank, (int)base);
            ok(own, "and the first view has the draws of a single one");
            st_order_close(plain);
            st_order_close(order);
        }
    struct stoker_order *order = started(UINT64_MAX, (struct stoker_order_options){0}, 0, 0, NULL, 0);
    struct stoker_error err = {0};
    st_order_set_views(order, 2, 1);
    ok(st_order_start(order, 0, 0, NULL, 0, &err) == STOKER_ELIMIT && st_order_length(order) == 0, "%s", err.message);
    st_order_close(order);
}

int main(void)
{
    several_views();
    for (int kind = STOKER_ORDER_SEQUENTIAL; kind <= STOKER_ORDER_GIVEN; kind++)
        shares_and_resume((enum stoker_order_kind)kind);
    disjoint_whole_and_continued();
    huge_counts();
    quick_start();
    torch_order();
    weighted();
    given();
    refusals();
    empty();
    return done_testing();
}
