/* Taps that are kept: the same as those made anew, for all threads, within their bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/threads.h"
#include "op/resize/taps_kept.h"
#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 300, THREADS = 4, ROUNDS = 2 };

static struct st_side sides[SIDES];
static struct st_taps_kept *kept;
static _Atomic uint32_t different;

/* Mostly sizes of crops, resized to 224; also parts of results, other filters and boxes. */
static void draw_sides(void)
{
    static const enum st_filter filters[] = {ST_FILTER_BILINEAR, ST_FILTER_BICUBIC, ST_FILTER_BOX,
                                             ST_FILTER_LANCZOS};
    for (int32_t k = 0; k < SIDES; k++) {
        const int32_t in = 20 + k * 13 % 500, out = k % 9 ? 224 : 1 + k % 300;
        sides[k] = (struct st_side){.filter = filters[k % 31 ? 0 : k % 4],
                                    .in = in,
                                    .out = out,
                                    .count = k % 7 ? out : (out + 1) / 2,
                                    .span = {k % 11 ? 0 : 3.25, k % 11 ? in : in - 7.5}};
        sides[k].from = k % 14 ? 0 : out - sides[k].count;
    }
}

static bool same_taps(const struct st_taps *a, const struct st_taps *b)
{
    return a->count == b->count && a->width == b->width &&
           !memcmp(a->first, b->first, (size_t)a->count * sizeof *a->first) &&
           !memcmp(a->weight, b->weight, (size_t)a->count * (size_t)a->width * sizeof *a->weight);
}

static void *use(void *argument)
{
    struct st_arena arena = {0};
    const uint32_t start = *(const uint32_t *)argument;
    for (uint32_t k = 0; k < ROUNDS * SIDES; k++) {
        const struct st_side *side = &sides[(start + k) % SIDES];
        struct st_taps made, found;
        st_arena_reset(&arena);
        if (!st_side_taps(side, false, &arena, &made) || !st_taps_kept_find(kept, side, &arena, &found) ||
            !same_taps(&made, &found))
            different++;
    }
    st_arena_free(&arena);
    return NULL;
}

static void use_by_all(void)
{
    static const uint32_t starts[THREADS] = {0, 1, 100, 200};
    pthread_t threads[THREADS];
    different = 0;
    for (int k = 0; k < THREADS; k++)
        if (st_thread_start(&threads[k], use, (void *)(uintptr_t)&starts[k], "taps"))
            abort();
    for (int k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
}

/* Whether a second request for this side is answered with the same memory. */
static bool is_kept(const struct st_side *side)
{
    struct st_arena arena = {0};
    struct st_taps first, second;
    const bool found = st_taps_kept_find(kept, side, &arena, &first) &&
                       st_taps_kept_find(kept, side, &arena, &second) && first.weight == second.weight;
    st_arena_free(&arena);
    return found;
}

static uint32_t count_kept(void)
{
    uint32_t count = 0;
    for (int k = 0; k < SIDES; k++)
        count += is_kept(&sides[k]);
    return count;
}

int main(void)
{
    struct st_budget budget = {.limit = 1 << 30};
    _Atomic uint64_t *counted = &budget.by[ST_MEMORY_SCRATCH];
    draw_sides();

    kept = st_taps_kept_new(8 << 20, &budget);
    use_by_all();
    ok(different == 0, "%d threads find what is made anew", THREADS);
    const uint32_t all = count_kept();
    ok(all >= SIDES - SIDES / 20, "%u of %d sides are kept", all, SIDES);
    const uint64_t bytes = atomic_load(counted);
    ok(bytes > 100000 && bytes < 8 << 20 && atomic_load(&budget.held) == bytes, "and counted: %llu bytes",
       (unsigned long long)bytes);
    st_taps_kept_free(kept);
    ok(atomic_load(counted) == 0, "until they are freed");

    kept = st_taps_kept_new(100000, &budget);
    use_by_all();
    const uint32_t some = count_kept();
    ok(different == 0 && some > 5 && some < all && atomic_load(counted) <= 100000,
       "%u of them in 100,000 bytes", some);
    st_taps_kept_free(kept);

    kept = st_taps_kept_new(10, &budget);
    different = 0;
    use(&(uint32_t){0});
    ok(different == 0 && count_kept() == 0 && atomic_load(counted) == 0, "none in 10");
    st_taps_kept_free(kept);

    kept = NULL;
    use(&(uint32_t){0});
    ok(different == 0 && count_kept() == 0, "and none without a table");
    st_taps_kept_free(kept);
    return done_testing();
}
