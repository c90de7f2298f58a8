/* WebP: regions are crops of the whole, the first frame of an animation lies on its canvas, alpha is
 * dropped, and damaged files give an error with a reason. */
#include "codec/codec.h"
#include "tap.h"

#include <string.h>

#include <webp/decode.h>
#include <webp/encode.h>

extern const struct st_codec st_codec_webp;

static struct st_arena arena;
static uint32_t seed = 7;

static uint32_t chance(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(seed >> 8) * below >> 24);
}

static struct st_bytes encode(int width, int height, float quality, bool lossless)
{
    struct st_bytes file = {0};
    uint8_t *data = NULL, *pixels = malloc((size_t)width * (size_t)height * 4);
    for (int k = 0; k < width * height * 4; k++)
        pixels[k] = (uint8_t)((k % (width * 4)) * 3 / 2 ^ (k / (width * 4)) * 5) ^ (uint8_t)chance(20);
    file.size = lossless ? WebPEncodeLosslessRGBA(pixels, width, height, width * 4, &data)
                         : WebPEncodeRGBA(pixels, width, height, width * 4, quality, &data);
    file.data = data;
    free(pixels);
    return file;
}

static bool decode(struct st_bytes in, struct st_region region, struct st_view *view,
                   struct stoker_error *err)
{
    return st_codec_webp.decode(NULL, in, &(struct st_decode){1, region}, &arena, view, err) ==
           STOKER_OK;
}

static void regions(int width, int height, float quality, bool lossless)
{
    struct st_bytes file = encode(width, height, quality, lossless);
    struct st_header header = {0};
    bool same = st_codec_webp.header(NULL, file, &header, NULL) == STOKER_OK && header.scales == 1 &&
                header.width == (uint32_t)width && header.height == (uint32_t)height &&
                header.orientation == 1;
    int w, h;
    uint8_t *whole = WebPDecodeRGB(file.data, file.size, &w, &h);
    for (int k = 0; same && k < 60; k++) {
        struct st_region r = {0, 0, header.width, header.height};
        struct st_view view;
        if (k > 0) {
            r.width = 1 + chance(header.width);
            r.height = 1 + chance(header.height);
            r.x = chance(header.width - r.width + 1);
            r.y = chance(header.height - r.height + 1);
        }
        same = decode(file, r, &view, NULL);
        for (uint32_t y = 0; same && y < r.height; y++)
            same = memcmp(st_row(&view, (int32_t)y), whole + ((r.y + y) * header.width + r.x) * 3,
                          r.width * 3) == 0;
        st_arena_reset(&arena);
    }
    ok(same, "%d x %d, %s: the whole and 59 regions", width, height, lossless ? "lossless" : "lossy");
    WebPFree(whole);
    WebPFree((void *)file.data);
}

/* ---- a container made by hand ----------------------------------------------------------------- */

static void put(struct st_buffer *out, const void *data, size_t size)
{
    memcpy(out->data + out->size, data, size);
    out->size += size;
}

static void put_chunk(struct st_buffer *out, const char *name, const void *data, size_t size)
{
    const uint32_t length = (uint32_t)size;
    put(out, name, 4);
    put(out, &length, 4);
    put(out, data, size);
    if (size & 1)
        put(out, "", 1);
}

/* A canvas of 40 x 30, of which the only frame covers 20 x 10 from (6, 8). */
static void make_animation(struct st_buffer *out, struct st_bytes still)
{
    static const uint8_t extended[10] = {0x02 | 0x08, 0, 0, 0, 39, 0, 0, 29, 0, 0}, anim[6] = {0};
    static const uint8_t exif[26] = {'M', 'M',  0, '*', 0, 0, 0, 8, 0, 1,
                                     1,   0x12, 0, 3,   0, 0, 0, 1, 0, 6};
    static const uint8_t place[16] = {3, 0, 0, 4, 0, 0, 19, 0, 0, 9, 0, 0, 100, 0, 0, 0};
    struct st_buffer frame = {0};
    st_buffer_reserve(out, still.size + 200);
    st_buffer_reserve(&frame, still.size + 200);
    put(&frame, place, sizeof place);
    put(&frame, still.data + 12, still.size - 12);
    put(out, "RIFF\0\0\0\0WEBP", 12);
    put_chunk(out, "VP8X", extended, sizeof extended);
    put_chunk(out, "ANIM", anim, sizeof anim);
    put_chunk(out, "ANMF", frame.data, frame.size);
    put_chunk(out, "EXIF", exif, sizeof exif);
    const uint32_t length = (uint32_t)out->size - 8;
    memcpy(out->data + 4, &length, 4);
    st_buffer_free(&frame);
}

static void animation(void)
{
    struct st_bytes still = encode(20, 10, 80, true);
    struct st_buffer file = {0};
    struct st_header header = {0};
    struct st_view whole, part;
    int w, h;
    uint8_t *frame = WebPDecodeRGB(still.data, still.size, &w, &h);
    make_animation(&file, still);
    const struct st_bytes in = {file.data, file.size};
    ok(st_codec_webp.header(NULL, in, &header, NULL) == STOKER_OK && header.width == 40 &&
           header.height == 30,
       "the canvas gives the size");
    ok(header.orientation == 6, "EXIF orientation");
    bool same = decode(in, (struct st_region){0, 0, 40, 30}, &whole, NULL);
    for (int y = 0; same && y < 30; y++)
        for (int x = 0; same && x < 40; x++) {
            static const uint8_t black[3];
            const bool inside = x >= 6 && x < 26 && y >= 8 && y < 18;
            same = memcmp(st_row(&whole, y) + 3 * x, inside ? frame + ((y - 8) * 20 + x - 6) * 3 : black,
                          3) == 0;
        }
    ok(same, "the frame lies in its place on black");
    const struct st_region corners[] = {{0, 0, 5, 5}, {3, 4, 10, 10}, {20, 12, 20, 18}, {10, 10, 4, 3}};
    for (int k = 0; k < 4; k++) {
        same = decode(in, corners[k], &part, NULL);
        for (int y = 0; same && y < part.height; y++)
            same = memcmp(st_row(&part, y), st_row(&whole, y + (int)corners[k].y) + 3 * corners[k].x,
                          3 * (size_t)part.width) == 0;
        ok(same, "region %d of the canvas", k);
    }
    st_arena_reset(&arena);
    st_buffer_free(&file);
    WebPFree(frame);
    WebPFree((void *)still.data);
}

static void damaged(void)
{
    struct stoker_error err = {0};
    struct st_header header;
    struct st_view view;
    struct st_bytes file = encode(90, 70, 80, false);
    bool refused = true;
    for (size_t cut = 16; cut < file.size; cut += 11) {
        struct st_bytes part = {file.data, cut};
        refused &= st_codec_webp.header(NULL, part, &header, &err) < 0 &&
                   strncmp(err.message, "WebP: ", 6) == 0;
        refused &= !decode(part, (struct st_region){0, 0, 90, 70}, &view, &err);
    }
    ok(refused, "a file cut short anywhere is an error: %s", err.message);
    st_arena_reset(&arena);
    WebPFree((void *)file.data);
}

int main(void)
{
    static const int sizes[][2] = {{1, 1}, {2, 3}, {17, 5}, {33, 64}, {150, 111}};
    for (int k = 0; k < 5; k++)
        for (int lossless = 0; lossless < 2; lossless++)
            regions(sizes[k][0], sizes[k][1], 75, lossless);
    animation();
    damaged();
    st_arena_free(&arena);
    return done_testing();
}
