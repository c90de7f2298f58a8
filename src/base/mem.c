/* mem.c - allocation with checked sizes, and a scratch arena
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"

#include "base/budget.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    OVERSHOOT = 64,
    GRAIN = 64 * 1024,
    LARGE = 1 << 20, /* bytes: pages of its own */
    HUGE = 4 << 20,  /* bytes: huge pages, of which there is a whole one wherever the block begins */
    ROUND = 64,      /* uses after which what was too large for all of them shrinks */
};

/* Memory that did not fit into the block while a sample was made. */
struct st_arena_extra {
    struct st_arena_extra *next;
    uint64_t bytes; /* this one included */
    uint8_t pad[ST_CACHE_LINE - sizeof(void *) - sizeof(uint64_t)];
};

void *st_calloc(uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (!st_mul(count, size, &bytes) || bytes > SIZE_MAX)
        return NULL;
    return calloc(1, bytes ? bytes : 1);
}

void *st_grow(void *block, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (!st_mul(count, size, &bytes) || bytes > SIZE_MAX)
        return NULL;
    return realloc(block, bytes ? bytes : 1);
}

void *st_alloc_aligned(uint64_t size)
{
    if (size > SIZE_MAX - 2 * ST_CACHE_LINE)
        return NULL;
    return aligned_alloc(ST_CACHE_LINE, st_align(size ? size : 1, ST_CACHE_LINE));
}

void *st_pages_new(uint64_t bytes, bool huge)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    if (huge)
        (void)madvise(pages, bytes, MADV_HUGEPAGE); /* advice: it may be refused */
    return pages;
}

void st_pages_free(void *pages, uint64_t bytes)
{
    if (pages)
        munmap(pages, bytes);
}

/* Large blocks are separate pages: malloc would keep freed memory for a thread that may never need it
 * again. */
static void *uncounted_new(uint64_t bytes)
{
    return bytes >= LARGE ? st_pages_new(bytes, bytes >= HUGE) : st_alloc_aligned(bytes);
}

static void uncounted_free(void *block, uint64_t bytes)
{
    if (bytes >= LARGE)
        st_pages_free(block, bytes);
    else
        free(block);
}

/* Changes the size of the pages, which may move; NULL, with the pages unchanged, if out of memory. */
static void *pages_resized(void *pages, uint64_t before, uint64_t bytes)
{
#ifdef __SANITIZE_THREAD__
    /* ThreadSanitizer does not see mremap, and would report data races on addresses that are reused. */
    void *moved = uncounted_new(bytes);
    if (moved) {
        memcpy(moved, pages, before < bytes ? before : bytes);
        uncounted_free(pages, before);
    }
    return moved;
#else
    void *moved = mremap(pages, before, bytes, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? NULL : moved;
#endif
}

static void *block_new(struct st_account *account, uint64_t bytes)
{
    void *block = st_account_allows(account, bytes) ? uncounted_new(bytes) : NULL;
    if (block)
        st_account_add(account, bytes);
    return block;
}

static void block_free(struct st_account *account, void *block, uint64_t bytes)
{
    if (!block)
        return;
    uncounted_free(block, bytes);
    st_account_sub(account, bytes);
}

/* ---- the arena ------------------------------------------------------------------------------------ */

void *st_arena_take(struct st_arena *arena, uint64_t size)
{
    if (size > SIZE_MAX / 4)
        return NULL;
    const uint64_t bytes = st_align(size + OVERSHOOT, ST_CACHE_LINE);
    arena->wanted += bytes;
    if (bytes <= arena->size - arena->used) {
        void *piece = arena->block + arena->used;
        arena->used += bytes;
        return piece;
    }
    struct st_arena_extra *extra = block_new(arena->account, sizeof *extra + bytes);
    if (!extra)
        return NULL;
    extra->next = arena->extra;
    extra->bytes = sizeof *extra + bytes;
    arena->extra = extra;
    return extra + 1;
}

static void set_block(struct st_arena *arena, uint64_t size)
{
    block_free(arena->account, arena->block, arena->size);
    arena->block = size ? block_new(arena->account, size) : NULL;
    arena->size = arena->block ? size : 0; /* if it failed, the next sample uses extra blocks too */
}

static void free_extra(struct st_arena *arena, const struct st_arena_extra *until)
{
    while (arena->extra != until) {
        struct st_arena_extra *next = arena->extra->next;
        block_free(arena->account, arena->extra, arena->extra->bytes);
        arena->extra = next;
    }
}

void st_arena_rewind(struct st_arena *arena, struct st_arena_mark to)
{
    free_extra(arena, to.extra);
    arena->most = arena->wanted > arena->most ? arena->wanted : arena->most;
    arena->wanted = to.wanted;
    arena->used = to.used;
}

/* The size that the block should have after this sample. */
static uint64_t block_size(struct st_arena *arena)
{
    const uint64_t grown = st_align(arena->wanted + arena->wanted / 4, GRAIN);
    uint64_t size = arena->size;
    if (arena->wanted > size && (!arena->keep || grown <= arena->keep))
        size = grown;
    arena->lately = arena->wanted > arena->lately ? arena->wanted : arena->lately;
    if (++arena->resets == ROUND) {
        if (size >= LARGE && size / 4 > arena->lately)
            size = st_align(arena->lately + arena->lately / 4, GRAIN);
        arena->resets = 0;
        arena->lately = 0;
    }
    return arena->keep && size > arena->keep ? 0 : size;
}

void st_arena_reset(struct st_arena *arena)
{
    free_extra(arena, NULL);
    arena->wanted = arena->most > arena->wanted ? arena->most : arena->wanted;
    if (arena->wanted) {
        const uint64_t size = block_size(arena);
        if (size != arena->size)
            set_block(arena, size);
    }
    arena->used = arena->wanted = arena->most = 0;
}

void st_arena_free(struct st_arena *arena)
{
    arena->wanted = arena->most = 0;
    st_arena_reset(arena);
    set_block(arena, 0);
    arena->lately = arena->resets = 0;
}

/* ---- buffers -------------------------------------------------------------------------------------- */

static uint64_t allocated(const struct st_buffer *buffer)
{
    return buffer->data && !buffer->borrowed ? buffer->capacity + OVERSHOOT : 0;
}

static struct st_buffer emptied(const struct st_buffer *buffer)
{
    return (struct st_buffer){
        .account = buffer->account, .lender = buffer->lender, .limit = buffer->limit};
}

/* The capacity with room to grow; much in relation to the limit, without. */
static uint64_t room_for(const struct st_buffer *buffer, uint64_t capacity)
{
    const uint64_t room = st_align(capacity + capacity / 4, 4096);
    return buffer->limit && room > buffer->limit / 2 ? capacity : room;
}

uint64_t st_buffer_room(const struct st_buffer *buffer, uint64_t capacity)
{
    return room_for(buffer, capacity) + OVERSHOOT;
}

/* Whether the buffer has been much too large so many times in a row that it should shrink. */
static bool is_oversized(struct st_buffer *buffer, uint64_t capacity)
{
    const bool much = buffer->account && !buffer->borrowed && buffer->capacity >= LARGE &&
                      buffer->capacity / 4 > capacity;
    buffer->oversized = much ? buffer->oversized + 1 : 0;
    return buffer->oversized == ROUND;
}

bool st_buffer_reserve(struct st_buffer *buffer, uint64_t capacity)
{
    if (capacity > SIZE_MAX / 4)
        return false;
    if (buffer->limit && capacity + OVERSHOOT > buffer->limit) {
        buffer->refused = capacity;
        return false;
    }
    if (capacity <= buffer->capacity && !is_oversized(buffer, capacity))
        return true;
    if (buffer->borrowed)
        *buffer = emptied(buffer);
    const uint64_t room = room_for(buffer, capacity), bytes = room + OVERSHOOT;
    const uint64_t before = allocated(buffer);
    if (bytes > before && !st_account_allows(buffer->account, bytes - before))
        return false;
    if (buffer->account && buffer->data) { /* saves memory at the cost of time */
        uncounted_free(buffer->data, before);
        *buffer = emptied(buffer);
    }
    uint8_t *data = uncounted_new(bytes);
    if (!data) {
        st_account_change(buffer->account, NULL, before, 0);
        return false;
    }
    if (buffer->data)
        uncounted_free(buffer->data, before);
    st_account_change(buffer->account, buffer->lender, before, bytes);
    *buffer = emptied(buffer);
    buffer->data = data;
    buffer->capacity = room;
    return true;
}

bool st_buffer_keep(struct st_buffer *buffer, uint64_t capacity)
{
    struct st_buffer larger = emptied(buffer);
    if (!buffer->size)
        return st_buffer_reserve(buffer, capacity);
    if (capacity <= buffer->capacity)
        return true;
    if (!st_buffer_reserve(&larger, capacity)) {
        buffer->refused = larger.refused;
        return false;
    }
    memcpy(larger.data, buffer->data, buffer->size);
    larger.size = buffer->size;
    st_buffer_free(buffer);
    *buffer = larger;
    return true;
}

bool st_buffer_resize(struct st_buffer *buffer, uint64_t capacity)
{
    const uint64_t before = allocated(buffer), bytes = capacity + OVERSHOOT;
    if (capacity > SIZE_MAX / 4 || capacity < buffer->size)
        return false;
    if (before >= LARGE && bytes >= LARGE) {
        if (bytes > before && !st_account_allows(buffer->account, bytes - before))
            return false;
        void *moved = pages_resized(buffer->data, before, bytes);
        if (!moved)
            return false;
        st_account_change(buffer->account, buffer->lender, before, bytes);
        buffer->data = moved;
        buffer->capacity = capacity;
        return true;
    }
    uint8_t *data = block_new(buffer->account, bytes);
    if (!data)
        return false;
    if (buffer->size)
        memcpy(data, buffer->data, buffer->size);
    if (!buffer->borrowed)
        block_free(buffer->account, buffer->data, before);
    buffer->data = data;
    buffer->capacity = capacity;
    buffer->borrowed = false;
    return true;
}

void st_buffer_count(struct st_buffer *buffer, struct st_account *account, uint64_t counted)
{
    buffer->account = account;
    st_account_change(account, NULL, counted, allocated(buffer));
}

void st_buffer_free(struct st_buffer *buffer)
{
    if (!buffer->borrowed)
        block_free(buffer->account, buffer->data, allocated(buffer));
    *buffer = emptied(buffer);
}

void st_buffer_lend(struct st_buffer *buffer, uint8_t *memory, uint64_t bytes)
{
    st_buffer_free(buffer);
    if (bytes <= OVERSHOOT)
        return;
    buffer->data = memory;
    buffer->capacity = bytes - OVERSHOOT;
    buffer->borrowed = true;
}
