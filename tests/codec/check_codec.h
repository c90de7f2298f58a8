/* check_codec.h - the whole and many regions of a file against pixels that are known */
#ifndef ST_TESTS_CHECK_CODEC_H
#define ST_TESTS_CHECK_CODEC_H

#include "codec/codec.h"
#include "tap.h"

#include <string.h>

/* A file under construction. */
struct file {
    uint8_t data[1 << 16];
    size_t size;
};

static inline void put(struct file *f, const void *bytes, size_t size)
{
    memcpy(f->data + f->size, bytes, size);
    f->size += size;
}

static inline void put_number(struct file *f, uint32_t value, int bytes, bool big_endian)
{
    for (int i = 0; i < bytes; i++)
        f->data[f->size++] = (uint8_t)(value >> 8 * (big_endian ? bytes - 1 - i : i));
}

static inline uint32_t chance(uint32_t below)
{
    static uint32_t seed = 7;
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(seed >> 8) * below >> 24);
}

/* Every region that is tried must be the crop of `rgb`. The bytes are copied to a block of their very
 * size, so that the sanitizers see a read beyond them. */
static inline void check_pixels(const struct st_codec *codec, const struct file *f, uint32_t width,
                                uint32_t height, const uint8_t *rgb, const char *what)
{
    struct st_arena arena = {0};
    struct stoker_error err = {0};
    struct st_header header = {0};
    uint8_t *copy = malloc(f->size);
    memcpy(copy, f->data, f->size);
    const struct st_bytes in = {copy, f->size};
    bool same = codec->probe(in.data, in.size) && codec->header(NULL, in, &header, &err) == STOKER_OK &&
                header.width == width && header.height == height;
    for (int k = 0; same && k < 20; k++) {
        struct st_decode how = {1, {0, 0, width, height}};
        struct st_region *r = &how.region;
        struct st_view view;
        if (k > 0) {
            r->x = chance(width);
            r->y = chance(height);
            r->width = 1 + chance(width - r->x);
            r->height = 1 + chance(height - r->y);
        }
        same = codec->decode(NULL, in, &how, &arena, &view, &err) == STOKER_OK &&
               view.width == (int32_t)r->width && view.height == (int32_t)r->height &&
               view.channels == 3;
        for (uint32_t y = 0; same && y < r->height; y++)
            same = memcmp(st_row(&view, (int32_t)y), rgb + 3 * ((r->y + y) * width + r->x),
                          3 * r->width) == 0;
        st_arena_reset(&arena);
    }
    ok(same, "%s%s%s", what, err.message[0] ? ": " : "", err.message);
    st_arena_free(&arena);
    free(copy);
}

/* The header or the decode must fail, and the sentence must hold `says`. */
static inline void check_refused(const struct st_codec *codec, const struct file *f, const char *says,
                                 const char *what)
{
    struct st_arena arena = {0};
    struct stoker_error err = {0};
    struct st_header header = {0};
    struct st_view view;
    uint8_t *copy = malloc(f->size ? f->size : 1);
    memcpy(copy, f->data, f->size);
    const struct st_bytes in = {copy, f->size};
    int rc = codec->header(NULL, in, &header, &err);
    const struct st_decode how = {1, {0, 0, header.width, header.height}};
    if (rc == STOKER_OK)
        rc = codec->decode(NULL, in, &how, &arena, &view, &err);
    ok(rc < 0 && err.code == rc && strstr(err.message, says) != NULL, "%s is refused: %s", what,
       err.message);
    st_arena_free(&arena);
    free(copy);
}

#endif
