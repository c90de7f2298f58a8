/* fuzz_mask.c - masks as COCO's run lengths and as polygons
 *
 * Byte 0 is the width, byte 1 the height, and byte 2 says what the rest is: compressed text (0), run
 * lengths (1), or the coordinates of a polygon (2).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/mask/polygon.h"
#include "codec/mask/rle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As many pixels are set as the run lengths say. */
static void check_area(const struct st_rle *rle, const struct st_view *plane)
{
    uint64_t area = 0, drawn = 0;
    for (uint64_t i = 1; i < rle->count; i += 2)
        area += rle->counts[i];
    for (uint64_t i = 0; i < (uint64_t)rle->width * rle->height; i++)
        drawn += plane->data[i];
    if (area != drawn)
        abort();
}

static int draw(int kind, struct st_bytes rest, const struct st_view *plane, struct st_arena *arena,
                struct stoker_error *err)
{
    const uint32_t width = (uint32_t)plane->width, height = (uint32_t)plane->height;
    struct st_turns turns = {0};
    const size_t room = rest.size + sizeof(double);
    void *copy = st_arena_take(arena, room); /* aligned */
    if (!copy)
        return STOKER_ENOMEM;
    memcpy(copy, rest.data, rest.size);
    if (kind == 2) {
        const struct st_polygon polygon = {copy, rest.size / (2 * sizeof(double))};
        return st_polygon_draw(&polygon, plane, (struct st_brush){1}, &turns, arena, err);
    }
    struct st_rle rle = {width, height, copy, rest.size / sizeof(uint32_t)};
    const int rc = kind ? st_rle_check(&rle, err) : st_rle_read(&rle, rest, width, height, arena, err);
    if (rc || st_rle_draw(&rle, plane, (struct st_brush){1}, arena, err))
        return err->code;
    check_area(&rle, plane);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_arena arena = {0};
    struct stoker_error err = {0};
    if (size < 3)
        return 0;
    const struct st_bytes rest = {data + 3, size - 3};
    uint8_t *pixels = calloc((size_t)data[0] + 1, (size_t)data[1] + 1);
    const struct st_view plane = {pixels, data[0], data[0], data[1], 1};
    const int rc = pixels ? draw(data[2] % 3, rest, &plane, &arena, &err) : 0;
    if (rc && !err.message[0])
        abort(); /* an error without a sentence */
    free(pixels);
    st_arena_free(&arena);
    return 0;
}
