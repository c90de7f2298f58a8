/* The arena gives aligned, separate memory, and stops allocating once it knows its size. */
#include "base/budget.h"
#include "base/mem.h"
#include "base/threads.h"
#include "tap.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static void arena_pieces(void)
{
    struct st_arena arena = {0};
    uint8_t *a = st_arena_take(&arena, 100), *b = st_arena_take(&arena, 1 << 20);
    ok(a && b, "an empty arena gives memory");
    ok((uintptr_t)a % ST_CACHE_LINE == 0 && (uintptr_t)b % ST_CACHE_LINE == 0, "aligned to a cache line");
    memset(a, 1, 100 + 64);
    memset(b, 2, (1 << 20) + 64);
    ok(a[99] == 1 && b[0] == 2, "pieces do not overlap, 64 bytes behind each included");
    st_arena_reset(&arena);
    const uint64_t size = arena.size;
    for (int round = 0; round < 3; round++) {
        st_arena_take(&arena, 100);
        st_arena_take(&arena, 1 << 20);
        ok(arena.extra == NULL, "round %d fits into the block", round);
        st_arena_reset(&arena);
    }
    ok(arena.size == size, "the block keeps its size");
    ok(st_arena_take(&arena, UINT64_MAX) == NULL, "an absurd size is refused");
    st_arena_free(&arena);
    ok(arena.block == NULL && arena.size == 0, "a freed arena is empty");
}

static void arena_rewinds(void)
{
    enum { ROUNDS = 100, SIZE = 1 << 20 };
    struct st_budget budget = {.limit = 4 * SIZE};
    struct st_account account = {.budget = &budget, .kind = ST_MEMORY_SCRATCH};
    struct st_arena arena = {.account = &account};
    bool given = true, same = true;
    for (int pass = 0; pass < 2; pass++) { /* with extra blocks, and in the block */
        uint8_t *kept = st_arena_take(&arena, 100), *first = NULL;
        memset(kept, 7, 100);
        for (int round = 0; round < ROUNDS; round++) {
            const struct st_arena_mark mark = st_arena_mark(&arena);
            uint8_t *some = st_arena_take(&arena, SIZE);
            given = given && some && st_arena_take(&arena, SIZE / 2);
            memset(some, round, given ? SIZE : 0);
            first = first ? first : some;
            same = same && (!pass || some == first);
            st_arena_rewind(&arena, mark);
        }
        given = given && kept[0] == 7 && kept[99] == 7;
        st_arena_reset(&arena);
    }
    ok(given && budget.peak <= 4 * SIZE, "what is rewound does not add up, and what came before stays");
    ok(same && arena.size >= SIZE + SIZE / 2 && arena.size < 3 * SIZE, "the block is as large as the most at a time: %llu",
       (unsigned long long)arena.size);
    st_arena_free(&arena);
    ok(!budget.held, "all is freed");
}

/* Bytes of this process that are in memory. */
static uint64_t resident(void)
{
    unsigned long long all = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%llu %llu", &all, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void arena_shrinks(void)
{
    enum { HUGE = 64 << 20, SMALL = 100 << 10, ENOUGH = 200 };
    struct st_budget budget = {.limit = UINT64_MAX};
    struct st_account account = {.budget = &budget, .kind = ST_MEMORY_SCRATCH};
    struct st_arena arena = {.account = &account};
    const uint64_t before = resident();
    memset(st_arena_take(&arena, HUGE), 1, HUGE);
    st_arena_reset(&arena);
    memset(st_arena_take(&arena, HUGE), 1, HUGE);
    ok(account.bytes >= HUGE && account.bytes == arena.size && budget.held == account.bytes, "it is counted");
    ok(resident() >= before + HUGE, "and there");
    for (int k = 0; k < ENOUGH; k++) {
        st_arena_reset(&arena);
        memset(st_arena_take(&arena, SMALL), 1, SMALL);
    }
    ok(arena.size >= SMALL && arena.size < 1 << 20 && account.bytes == arena.size,
       "after one huge image among small ones the arena is small again (%llu bytes)", (unsigned long long)arena.size);
    ok(resident() < before + HUGE / 2, "and its pages are back with the system");

    arena.keep = 1 << 20;
    const uint64_t small = arena.size;
    st_arena_take(&arena, HUGE);
    st_arena_reset(&arena);
    ok(arena.size == small && account.bytes == small, "what is beyond `keep` goes at once, and the block stays");
    arena.keep = 1;
    st_arena_take(&arena, 1);
    st_arena_reset(&arena);
    ok(arena.size == 0 && budget.held == 0, "a block beyond it goes too");
    st_arena_free(&arena);
    ok(arena.account == &account && budget.peak >= HUGE, "the account stays, and its peak");
}

static void sizes(void)
{
    uint64_t out;
    ok(st_mul(1u << 31, 1u << 31, &out) && out == 1ull << 62, "products that fit");
    ok(!st_mul(1ull << 33, 1ull << 33, &out), "products that do not fit are refused");
    ok(!st_add(UINT64_MAX, 1, &out), "sums that do not fit are refused");
    ok(st_calloc(1ull << 40, 1ull << 40) == NULL, "calloc checks its product");
    ok(st_align(1, 64) == 64 && st_align(64, 64) == 64 && st_align(0, 64) == 0, "rounding up");
}

static void buffers(void)
{
    struct st_buffer buffer = {0};
    ok(st_buffer_reserve(&buffer, 10) && buffer.capacity >= 10, "a buffer grows");
    uint8_t *first = buffer.data;
    ok(st_buffer_reserve(&buffer, 10) && buffer.data == first, "and stays where it is when it has room");
    ok(!st_buffer_reserve(&buffer, UINT64_MAX - 5), "an absurd size is refused");
    memcpy(buffer.data, "kept", 4);
    buffer.size = 4;
    ok(st_buffer_keep(&buffer, 5 << 20) && buffer.size == 4 && !memcmp(buffer.data, "kept", 4),
       "a buffer that must keep its bytes does so");
    for (int k = 0; k < 200; k++)
        st_buffer_reserve(&buffer, 10);
    ok(buffer.capacity >= 5 << 20, "without an account it only grows");
    st_buffer_free(&buffer);

    uint8_t lent[128];
    st_buffer_lend(&buffer, lent, sizeof lent);
    ok(st_buffer_reserve(&buffer, 64) && buffer.data == lent, "a buffer uses memory that is lent to it");
    memcpy(buffer.data, "kept", 4);
    buffer.size = 4;
    ok(st_buffer_keep(&buffer, 65) && buffer.data != lent && !memcmp(buffer.data, "kept", 4) && !buffer.borrowed,
       "and its own when it needs more");
    st_buffer_lend(&buffer, lent, sizeof lent);
    buffer.size = 4;
    ok(st_buffer_resize(&buffer, 100) && buffer.data != lent && !memcmp(buffer.data, "kept", 4), "also if it is resized");
    st_buffer_lend(&buffer, lent, sizeof lent);
    st_buffer_free(&buffer);
    st_buffer_lend(&buffer, lent, 10);
    ok(!buffer.data && st_buffer_reserve(&buffer, 1) && buffer.data != lent, "too little memory is not used");
    st_buffer_free(&buffer);

    struct st_budget budget = {.limit = UINT64_MAX};
    struct st_account account = {.budget = &budget};
    buffer.account = &account;
    st_buffer_reserve(&buffer, 5 << 20);
    ok(budget.held >= 5 << 20 && account.bytes == budget.held, "with one it is counted");
    for (int k = 0; k < 60; k++)
        st_buffer_reserve(&buffer, 10);
    ok(buffer.capacity >= 5 << 20, "stays large for a while");
    for (int k = 0; k < 60; k++)
        st_buffer_reserve(&buffer, 10);
    ok(buffer.capacity < 1 << 20 && budget.held < 1 << 20, "and shrinks when nobody needs that");
    st_buffer_free(&buffer);
    ok(budget.held == 0 && buffer.account == &account, "nothing is left of it");
}

/* From a block of malloc's to pages, larger and smaller, and back. */
static void resized(void)
{
    struct st_buffer buffer = {0};
    const uint64_t sizes[] = {100, 5000, 3 << 20, 40 << 20, (2 << 20) + 1, 1 << 20, 300, 0};
    uint64_t filled = 0;
    bool good = true;
    for (size_t i = 0; good && i < sizeof sizes / sizeof *sizes; i++) {
        buffer.size = filled = filled < sizes[i] ? filled : sizes[i];
        good = st_buffer_resize(&buffer, sizes[i]) && buffer.capacity == sizes[i];
        for (uint64_t k = 0; good && k < filled; k += 13)
            good = buffer.data[k / 13 * 13] == (uint8_t)(k / 13);
        for (uint64_t k = 0; good && k < sizes[i]; k += 13)
            buffer.data[k] = (uint8_t)(k / 13);
        filled = sizes[i];
    }
    ok(good, "a buffer has exactly the capacity it is given, and its bytes stay");
    buffer.size = 0;
    ok(!st_buffer_resize(&buffer, UINT64_MAX - 10) && !buffer.capacity, "unless there is no such memory");
    st_buffer_free(&buffer);
    ok(!buffer.data, "and is freed by what frees all");
}

/* Addresses that one buffer gives up are another's a moment later; a sanitizer must see no race in that. */
static void resize_often(void *all_good)
{
    struct st_buffer buffer = {0};
    bool good = true;
    for (uint64_t k = 0; k < 20 && good; k++) {
        const uint64_t size = (1 + k * 2 % 3) << 20;
        good = st_buffer_resize(&buffer, size);
        if (good)
            memset(buffer.data, (int)k, size);
    }
    st_buffer_free(&buffer);
    if (!good)
        atomic_store((atomic_bool *)all_good, false);
}

static void resized_by_threads(void)
{
    atomic_bool good = true;
    st_threads_run(4, resize_often, &good);
    ok(good, "four threads resize their buffers side by side");
}

int main(void)
{
    arena_pieces();
    arena_rewinds();
    arena_shrinks();
    sizes();
    buffers();
    resized();
    resized_by_threads();
    return done_testing();
}
