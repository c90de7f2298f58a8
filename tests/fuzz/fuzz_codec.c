/* fuzz_codec.c - any bytes at all through one codec (-DCODEC=st_codec_jpeg, ...)
 *
 * Nothing may crash or run away; where both a whole image and a part of it decode, the part must be a crop
 * of the whole; and what memory held before must not be seen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

enum { PIXELS_MAX = 1 << 17 };

extern const struct st_codec CODEC;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
    void *state;
    struct st_bytes in;
    struct st_header header;
};

static bool decode(struct run *run, const struct st_decode *how, struct st_arena *arena,
                   struct st_view *out)
{
    struct stoker_error err = {0};
    const int rc = CODEC.decode(run->state, run->in, how, arena, out, &err);
    if (rc == STOKER_OK)
        return true;
    if (err.code != rc || strlen(err.message) < 5)
        abort(); /* an error without a sentence */
    return false;
}

/* A number that depends on the bytes only. */
static uint32_t pick(struct run *run, uint32_t which, uint32_t below)
{
    uint32_t hash = 2166136261u + which;
    for (size_t k = 0; k < run->in.size; k++)
        hash = (hash ^ run->in.data[k]) * 16777619u;
    return (hash >> 4) % below;
}

/* Makes the arena hand out memory of this byte first. */
static void fill(struct st_arena *arena, uint8_t byte)
{
    enum { SCRATCH = 1 << 16 };
    if (st_arena_take(arena, SCRATCH))
        st_arena_reset(arena);
    if (arena->block)
        memset(arena->block, byte, arena->size);
}

/* `numbers`: of a mask, instead of colours. */
static void whole_and_part(struct run *run, uint32_t scale, bool numbers)
{
    struct st_arena arena = {0}, arena_part = {0};
    struct st_view whole, part;
    struct st_decode all = {
        scale,
        {0, 0, (run->header.width + scale - 1) / scale, (run->header.height + scale - 1) / scale}};
    struct st_numbers of_all = {0}, of_some = {0};
    struct st_decode some = all;
    all.numbers = numbers ? &of_all : NULL;
    some.numbers = numbers ? &of_some : NULL;
    struct st_region *r = &some.region;
    r->x = pick(run, scale, r->width);
    r->y = pick(run, scale + 10, r->height);
    r->width = 1 + pick(run, scale + 20, r->width - r->x);
    r->height = 1 + pick(run, scale + 30, r->height - r->y);
    fill(&arena, 0x00);
    fill(&arena_part, 0xFF);
    const bool have_part = decode(run, &some, &arena_part, &part);
    if (decode(run, &all, &arena, &whole) && have_part)
        for (int32_t y = 0; y < part.height; y++)
            if (memcmp(st_row(&part, y), st_row(&whole, y + (int32_t)r->y) + 3 * (size_t)r->x,
                       3 * (size_t)part.width) != 0)
                abort(); /* not a crop of the whole */
    if (have_part && of_all.wide != of_some.wide)
        abort();
    st_arena_free(&arena);
    st_arena_free(&arena_part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run run = {.in = {data, size}, .state = st_calloc(1, CODEC.state_size)};
    struct stoker_error err = {0};
    if (run.state && CODEC.probe(data, size) &&
        CODEC.header(run.state, run.in, &run.header, &err) == STOKER_OK && run.header.width > 0 &&
        run.header.height > 0 && (uint64_t)run.header.width * run.header.height <= PIXELS_MAX)
        for (uint32_t scale = 1; scale <= 8; scale *= 2)
            for (int numbers = 0; numbers < 2; numbers++)
                if (run.header.scales & scale)
                    whole_and_part(&run, scale, numbers);
    if (run.state && CODEC.close)
        CODEC.close(run.state);
    free(run.state);
    return 0;
}
