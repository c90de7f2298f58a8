/* The arena gives aligned, separate memory, and stops allocating once it knows its size. */
#include "base/mem.h"
#include "tap.h"

#include <string.h>

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
    st_buffer_free(&buffer);
}

int main(void)
{
    arena_pieces();
    sizes();
    buffers();
    return done_testing();
}
