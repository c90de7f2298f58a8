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

/* The pixels, the area and the box must agree. */
static void check(const struct st_rle *rle, const uint8_t *pixels)
{
    const struct st_region box = st_rle_box(rle);
    uint64_t area = 0;
    for (uint32_t i = 0; i < rle->width * rle->height; i++) {
        const uint32_t x = i % rle->width, y = i / rle->width;
        area += pixels[i];
        if (pixels[i] && (x < box.x || y < box.y || x - box.x >= box.width || y - box.y >= box.height))
            abort();
    }
    if (area != st_rle_area(rle) || !area != !box.width)
        abort();
}

static int draw(int kind, struct st_bytes rest, struct st_rle *rle, const struct st_view *plane,
                struct st_arena *arena, struct stoker_error *err)
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
        const int rc = st_polygon_to_rle(rle, &polygon, width, height, arena, err);
        return rc ? rc : st_polygon_draw(&polygon, plane, 1, &turns, arena, err);
    }
    *rle = (struct st_rle){width, height, copy, rest.size / sizeof(uint32_t)};
    int rc = kind ? st_rle_check(rle, err) : st_rle_read(rle, rest, width, height, arena, err);
    const struct st_rle twice[] = {*rle, *rle};
    if (!rc)
        rc = st_rle_merge(rle, twice, 2, arena, err);
    return rc ? rc : st_rle_draw(rle, plane, 1, arena, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_arena arena = {0};
    struct stoker_error err = {0};
    struct st_rle rle;
    if (size < 3)
        return 0;
    const struct st_bytes rest = {data + 3, size - 3};
    uint8_t *pixels = calloc((size_t)data[0] + 1, (size_t)data[1] + 1);
    const struct st_view plane = {pixels, data[0], data[0], data[1], 1};
    const int rc = pixels ? draw(data[2] % 3, rest, &rle, &plane, &arena, &err) : 0;
    if (rc && !err.message[0])
        abort(); /* an error without a sentence */
    if (pixels && !rc)
        check(&rle, pixels);
    free(pixels);
    st_arena_free(&arena);
    return 0;
}
