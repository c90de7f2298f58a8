/* mem.h - allocation with checked sizes, and a scratch arena
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_MEM_H
#define ST_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ST_CACHE_LINE 64

struct st_account; /* base/budget.h: who is charged for memory */

/* *out = a * b; false if that overflows. */
static inline bool st_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool st_add(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* The product of all arguments; false if that overflows. */
static inline bool st_product(const uint64_t *factors, uint32_t count, uint64_t *out)
{
    *out = 1;
    for (uint32_t k = 0; k < count; k++)
        if (!st_mul(*out, factors[k], out))
            return false;
    return true;
}
#define ST_PRODUCT(out, ...)                                                                            \
    st_product((const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),   \
               (out))

static inline uint64_t st_align(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

/* Zeroed memory for `count` items of `size` bytes; NULL if out of memory or on overflow. */
void *st_calloc(uint64_t count, uint64_t size);
/* realloc for an array; if it returns NULL, the old block is still valid. */
void *st_grow(void *block, uint64_t count, uint64_t size);
/* Uninitialised, aligned to a cache line. Freed with free(), like everything else here. */
void *st_alloc_aligned(uint64_t size);

/* Whole zeroed pages, which are returned to the system when they are freed; NULL when out of memory.
 * `huge` requests huge pages, which save page faults if most of them are written. */
void *st_pages_new(uint64_t bytes, bool huge);
void st_pages_free(void *pages, uint64_t bytes);

/* Scratch memory of one worker: taken piece by piece while a sample is made, and released by one reset.
 * It keeps the size that recent samples needed, so that nothing is allocated after the first images;
 * large blocks that only one image needed are returned to the system. */
struct st_arena {
    uint8_t *block;
    uint64_t size, used;
    uint64_t wanted; /* total of this sample, including extra blocks */
    uint64_t most;   /* the same before it was rewound */
    struct st_arena_extra *extra;
    struct st_account *account; /* NULL: not counted */
    uint64_t keep;              /* most bytes kept over a reset; 0: no limit */
    uint64_t lately;            /* maximum of `wanted` in this round of resets */
    uint32_t resets;            /* in this round */
};

/* Aligned to a cache line, with 64 readable bytes behind it (vector loads may overshoot); NULL when out
 * of memory. Valid until the reset. */
void *st_arena_take(struct st_arena *arena, uint64_t size);
void st_arena_reset(struct st_arena *arena);
/* What was taken since a mark is released, in the reverse order of the marks: for many pieces of work of
 * which each needs memory only for itself. */
struct st_arena_mark {
    uint64_t used, wanted;
    struct st_arena_extra *extra;
};
static inline struct st_arena_mark st_arena_mark(const struct st_arena *arena)
{
    return (struct st_arena_mark){arena->used, arena->wanted, arena->extra};
}
void st_arena_rewind(struct st_arena *arena, struct st_arena_mark to);
void st_arena_free(struct st_arena *arena);

/* A byte buffer that grows. With an account it also shrinks, after it was much too large several times
 * in a row. */
struct st_buffer {
    uint8_t *data;
    uint64_t size, capacity;
    struct st_account *account; /* NULL: not counted */
    struct st_account *lender;  /* whose promise pays when it grows (st_account_change); or NULL */
    uint64_t limit;             /* a larger block is not allocated; 0: no limit */
    uint64_t refused;           /* the last capacity that the limit refused; 0: none */
    uint32_t oversized;         /* how many times in a row it was much too large */
    bool borrowed;              /* the memory is someone else's (st_buffer_lend) */
};
/* Makes room for `capacity` bytes, followed by 64 readable ones; the contents may be lost. */
bool st_buffer_reserve(struct st_buffer *buffer, uint64_t capacity);
/* The same, but keeps the first buffer->size bytes. */
bool st_buffer_keep(struct st_buffer *buffer, uint64_t capacity);
/* Bytes that a reserve of `capacity` would allocate for an empty buffer. */
uint64_t st_buffer_room(const struct st_buffer *buffer, uint64_t capacity);
/* Sets the capacity, larger or smaller, and keeps the first buffer->size bytes, which must fit. The
 * kernel moves large blocks without copying, so the old and the new one never exist at the same time.
 * False: nothing has changed. */
bool st_buffer_resize(struct st_buffer *buffer, uint64_t capacity);
/* Begins to count a buffer in the account, which already counts `counted` bytes of it. */
void st_buffer_count(struct st_buffer *buffer, struct st_account *account, uint64_t counted);
void st_buffer_free(struct st_buffer *buffer); /* it may be used again */
/* Frees the buffer's own memory and lets it use this instead, of which the last 64 bytes are those
 * behind the capacity. It is not counted, and never freed: a buffer that needs more allocates its
 * own. */
void st_buffer_lend(struct st_buffer *buffer, uint8_t *memory, uint64_t bytes);

#endif
