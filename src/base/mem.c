/* mem.c - allocation with checked sizes, and a scratch arena
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { OVERSHOOT = 64, GRAIN = 64 * 1024 };

/* What did not fit into the block while one sample was made. */
struct st_arena_extra {
    struct st_arena_extra *next;
    uint8_t pad[ST_CACHE_LINE - sizeof(void *)];
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
    struct st_arena_extra *extra = st_alloc_aligned(sizeof *extra + bytes);
    if (!extra)
        return NULL;
    extra->next = arena->extra;
    arena->extra = extra;
    return extra + 1;
}

void st_arena_reset(struct st_arena *arena)
{
    while (arena->extra) {
        struct st_arena_extra *next = arena->extra->next;
        free(arena->extra);
        arena->extra = next;
    }
    if (arena->wanted > arena->size) {
        const uint64_t size = st_align(arena->wanted + arena->wanted / 4, GRAIN);
        uint8_t *block = st_alloc_aligned(size);
        if (block) { /* else: the extra blocks serve the next sample too */
            free(arena->block);
            arena->block = block;
            arena->size = size;
        }
    }
    arena->used = arena->wanted = 0;
}

void st_arena_free(struct st_arena *arena)
{
    arena->wanted = 0;
    st_arena_reset(arena);
    free(arena->block);
    memset(arena, 0, sizeof *arena);
}

bool st_buffer_reserve(struct st_buffer *buffer, uint64_t capacity)
{
    if (capacity <= buffer->capacity)
        return true;
    if (capacity > SIZE_MAX / 4)
        return false;
    const uint64_t room = st_align(capacity + capacity / 4, 4096);
    uint8_t *data = st_alloc_aligned(room + OVERSHOOT);
    if (!data)
        return false;
    free(buffer->data);
    *buffer = (struct st_buffer){.data = data, .capacity = room};
    return true;
}

void st_buffer_free(struct st_buffer *buffer)
{
    free(buffer->data);
    memset(buffer, 0, sizeof *buffer);
}
