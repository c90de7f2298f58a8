/* test_stale.c - what a decode gives depends on the file alone, never on what memory held before
 *
 * Every file of the fuzz corpus, and mutants of each, is decoded three times: with all scratch memory
 * filled with one byte, with another, and behind a decode of another file with the same decoder. Pixels,
 * or the error's sentence, must be the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check_codec.h"

#include <dirent.h>
#include <malloc.h>

enum { MUTANTS = 60, PIXELS_MAX = 1 << 14, SCRATCH = 1 << 17, FILE_MAX = 1 << 16 };

/* One decode: the pixels in a block of their own, or the sentence. */
struct outcome {
    int rc;
    uint32_t width, height;
    uint8_t *pixels;
    struct stoker_error err;
};

static void keep_pixels(struct outcome *o, const struct st_view *view)
{
    o->width = (uint32_t)view->width;
    o->height = (uint32_t)view->height;
    o->pixels = malloc(3 * (size_t)o->width * o->height);
    for (uint32_t y = 0; y < o->height; y++)
        memcpy(o->pixels + 3 * (size_t)y * o->width, st_row(view, (int32_t)y), 3 * (size_t)o->width);
}

static struct outcome decode(struct st_decoder *decoder, struct st_arena *arena, struct st_bytes in,
                             bool part)
{
    struct outcome o = {0};
    struct st_header header;
    struct st_view view;
    uint32_t codec;
    o.rc = st_decoder_header(decoder, in, &codec, &header, &o.err);
    if (o.rc == STOKER_OK) {
        struct st_decode how = {1, {0, 0, header.width, header.height}, NULL};
        if (part) {
            how.region = (struct st_region){header.width / 3, header.height / 4, 1 + header.width / 2,
                                            1 + header.height / 2};
            how.region.width -= how.region.x + how.region.width > header.width;
            how.region.height -= how.region.y + how.region.height > header.height;
        }
        o.rc = st_decoder_decode(decoder, codec, in, &how, arena, &view, &o.err);
        if (o.rc == STOKER_OK)
            keep_pixels(&o, &view);
    }
    st_arena_reset(arena);
    return o;
}

static void fill(struct st_arena *arena, uint8_t byte)
{
    if (arena->size < SCRATCH && st_arena_take(arena, SCRATCH))
        st_arena_reset(arena);
    memset(arena->block, byte, arena->size);
}

/* With every byte that nobody has written yet set to `byte`; the libraries' own memory too, where the C
 * library can do that. */
static struct outcome decode_over(uint8_t byte, struct st_arena *arena, struct st_bytes in, bool part)
{
    struct st_decoder decoder = {.pixel_limit = PIXELS_MAX};
    fill(arena, byte);
#ifdef M_PERTURB
    mallopt(M_PERTURB, (uint8_t)~byte); /* fresh memory has the complement */
#endif
    const struct outcome o = decode(&decoder, arena, in, part);
#ifdef M_PERTURB
    mallopt(M_PERTURB, 0);
#endif
    st_decoder_close(&decoder);
    return o;
}

static bool same(const struct outcome *a, const struct outcome *b)
{
    if (a->rc != b->rc || a->rc < 0)
        return a->rc == b->rc && strcmp(a->err.message, b->err.message) == 0;
    return a->width == b->width && a->height == b->height &&
           memcmp(a->pixels, b->pixels, 3 * (size_t)a->width * a->height) == 0;
}

/* A decoder that has seen all files before this one, and scratch memory for those that have not. */
struct veteran {
    struct st_decoder decoder;
    struct st_arena arena, scratch;
};

static bool independent(struct veteran *veteran, struct st_bytes in)
{
    bool holds = true;
    for (int part = 0; part < 2; part++) {
        struct st_arena *scratch = &veteran->scratch;
        struct outcome dark = decode_over(0x00, scratch, in, part);
        struct outcome bright = decode_over(0xFF, scratch, in, part);
        struct outcome after = decode(&veteran->decoder, &veteran->arena, in, part);
        holds = holds && same(&dark, &bright) && same(&dark, &after);
        free(dark.pixels);
        free(bright.pixels);
        free(after.pixels);
    }
    return holds;
}

/* Bytes changed, cut out, doubled, cut off; mostly of the data and not of the header. */
static void mutate(struct file *f)
{
    const uint32_t kind = chance(8), size = (uint32_t)f->size;
    const uint32_t at = chance(3) ? size / 4 + chance(size - size / 4) : chance(size);
    uint32_t count = 1 + chance(8);
    count = count < size - at ? count : size - at;
    if (kind < 4) {
        for (uint32_t k = 0; k <= kind; k++)
            f->data[at + chance(size - at)] = (uint8_t)chance(256);
    } else if (kind == 4) {
        memmove(f->data + at, f->data + at + count, size - at - count);
        f->size -= count;
    } else if (kind == 5 && size + count <= FILE_MAX) {
        memmove(f->data + at + count, f->data + at, size - at);
        f->size += count;
    } else if (kind == 6) {
        memset(f->data + at, (int)(chance(2) * 255), count);
    } else {
        f->size = at > 0 ? at : 1;
    }
}

/* Of the exact size, so that a sanitizer sees every read beyond the end. */
static bool independent_copy(struct veteran *veteran, const struct file *f)
{
    uint8_t *copy = malloc(f->size);
    memcpy(copy, f->data, f->size);
    const bool holds = independent(veteran, (struct st_bytes){copy, f->size});
    free(copy);
    return holds;
}

static bool read_file(const char *path, struct file *f)
{
    FILE *file = fopen(path, "rb");
    f->size = file ? fread(f->data, 1, sizeof f->data, file) : 0;
    if (file)
        fclose(file);
    return f->size > 0;
}

static void try_file(struct veteran *veteran, const char *kind, const char *path, const char *name)
{
    static struct file whole, mutant;
    if (!ok(read_file(path, &whole), "%s/%s is read", kind, name))
        return;
    ok(independent_copy(veteran, &whole), "%s/%s gives the same over any memory", kind, name);
    int failed = 0;
    for (int k = 0; k < MUTANTS; k++) {
        mutant = whole;
        mutate(&mutant);
        failed += !independent_copy(veteran, &mutant);
    }
    ok(failed == 0, "and so do %d mutants of it, but for %d", MUTANTS, failed);
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"bmp", "jpeg", "png", "pnm", "tiff", "webp"};
    struct veteran veteran = {.decoder.pixel_limit = PIXELS_MAX};
    for (size_t k = 0; argc == 2 && k < sizeof kinds / sizeof *kinds; k++) {
        char path[4096];
        struct dirent **names = NULL;
        snprintf(path, sizeof path, "%s/%s", argv[1], kinds[k]);
        const int count = scandir(path, &names, NULL, alphasort);
        ok(count > 2, "there are files of %s", kinds[k]);
        for (int i = 0; i < count; i++) {
            snprintf(path, sizeof path, "%s/%s/%s", argv[1], kinds[k], names[i]->d_name);
            if (names[i]->d_name[0] != '.')
                try_file(&veteran, kinds[k], path, names[i]->d_name);
            free(names[i]);
        }
        free(names);
    }
    st_decoder_close(&veteran.decoder);
    st_arena_free(&veteran.arena);
    st_arena_free(&veteran.scratch);
    return done_testing();
}
