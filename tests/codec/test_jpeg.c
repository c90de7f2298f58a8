/* JPEG: every kind of file, whole and in regions, scaled and not, gives the bytes of a plain libjpeg
 * decode; damaged files give an error with a reason; and once warm the codec does not allocate. */
#include "codec/codec.h"
#include "codec/jpeg_markers.h"
#include "jpeg_encode.h"
#include "tap.h"

#include <string.h>

extern const struct st_codec st_codec_jpeg;

/* ---- a count of allocations, by standing in front of the C library's -------------------------- */

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                                    \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTING 0
#else
#define COUNTING 1
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
static unsigned allocations, fail_at; /* fail_at: the number of the one that finds no memory */

static bool fails(void) { return ++allocations == fail_at; }

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return fails() ? NULL : __libc_realloc(block, size); }
void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}
#endif

/* ---- the yardstick: libjpeg with its defaults, the whole image -------------------------------- */

struct picture {
    uint32_t width, height;
    uint8_t *rgb;
};

static struct picture plain_decode(const uint8_t *file, size_t size, unsigned scale)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, file, size);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = d.num_components == 4 ? JCS_CMYK : JCS_RGB;
    d.scale_num = 1;
    d.scale_denom = scale;
    jpeg_start_decompress(&d);
    struct picture p = {d.output_width, d.output_height,
                        malloc((size_t)d.output_width * d.output_height * 3 + 1)};
    uint8_t *row = malloc((size_t)d.output_width * 4);
    while (d.output_scanline < d.output_height) {
        uint8_t *out = p.rgb + (size_t)d.output_scanline * p.width * 3;
        jpeg_read_scanlines(&d, &row, 1);
        for (uint32_t x = 0; x < p.width; x++)
            for (int c = 0; c < 3; c++) {
                const double k = row[4 * x + 3] / 255.0, ink = 255 - row[4 * x + c];
                out[3 * x + c] = d.num_components == 4 ? (uint8_t)(row[4 * x + 3] - floor(ink * k + 0.5))
                                                       : row[3 * x + c];
            }
    }
    free(row);
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    return p;
}

/* ---- comparing -------------------------------------------------------------------------------- */

static struct st_decoder decoder;
static struct st_arena arena;
static uint32_t seed = 1;

static uint32_t chance(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(seed >> 8) * below >> 24);
}

static bool region_equals(struct st_bytes in, const struct picture *p, const struct st_decode *how)
{
    struct stoker_error err = {0};
    struct st_view view;
    const struct st_region *r = &how->region;
    bool same = st_codec_jpeg.decode(decoder.state[0], in, how, &arena, &view, &err) == STOKER_OK;
    if (!same)
        note("%s", err.message);
    for (uint32_t y = 0; same && y < r->height; y++)
        same = memcmp(st_row(&view, (int32_t)y), p->rgb + ((size_t)(r->y + y) * p->width + r->x) * 3,
                      (size_t)r->width * 3) == 0;
    st_arena_reset(&arena);
    if (!same)
        note("scale %u, region %u,%u %ux%u of %ux%u differs", how->scale, r->x, r->y, r->width,
             r->height, p->width, p->height);
    return same;
}

static struct st_region random_region(const struct picture *p)
{
    struct st_region r;
    r.width = 1 + chance(chance(3) ? p->width : p->width / 4 + 1);
    r.height = 1 + chance(chance(3) ? p->height : p->height / 4 + 1);
    r.width = r.width > p->width ? p->width : r.width;
    r.height = r.height > p->height ? p->height : r.height;
    r.x = chance(p->width - r.width + 1);
    r.y = chance(p->height - r.height + 1);
    return r;
}

static bool kind_equals(const struct jpeg_kind *kind, unsigned scale, int regions)
{
    size_t size;
    uint8_t *file = jpeg_make(kind, &size);
    struct picture p = plain_decode(file, size, scale);
    const struct st_bytes in = {file, size};
    struct st_decode how = {scale, {0, 0, p.width, p.height}};
    struct st_header header;
    uint32_t codec;
    bool same = st_decoder_header(&decoder, in, &codec, &header, NULL) == STOKER_OK &&
                header.width == (uint32_t)kind->width && header.height == (uint32_t)kind->height &&
                header.scales == 15;
    for (int k = 0; same && k <= regions; k++) {
        same = region_equals(in, &p, &how);
        how.region = random_region(&p);
    }
    free(p.rgb);
    free(file);
    return same;
}

/* ---- the tests -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int components, h[4], v[4];
} samplings[] = {
    {"4:4:4", 3, {1, 1, 1}, {1, 1, 1}},
    {"4:2:2", 3, {2, 1, 1}, {1, 1, 1}},
    {"4:2:0", 3, {2, 1, 1}, {2, 1, 1}},
    {"4:4:0", 3, {1, 1, 1}, {2, 1, 1}},
    {"4:1:1", 3, {4, 1, 1}, {1, 1, 1}},
    {"4:1:0", 3, {4, 1, 1}, {2, 1, 1}},
    {"1x4", 3, {1, 1, 1}, {4, 1, 1}},
    {"2x4", 3, {2, 1, 1}, {4, 1, 1}},
    {"all 1x2", 3, {1, 1, 1}, {2, 2, 2}},
    {"chroma above luma", 3, {1, 2, 2}, {1, 2, 1}},
    {"Cb and Cr differ", 3, {2, 1, 2}, {2, 2, 1}},
    {"grey", 1, {1}, {1}},
    {"grey 2x2", 1, {2}, {2}},
    {"CMYK", 4, {1, 1, 1, 1}, {1, 1, 1, 1}},
    {"CMYK 4:2:0", 4, {2, 1, 1, 2}, {2, 1, 1, 2}},
};
static const struct {
    const char *name;
    struct jpeg_kind kind;
} codings[] = {
    {"baseline", {0}},
    {"progressive", {.progressive = true}},
    {"restarts", {.restart = 3}},
    {"arithmetic", {.arithmetic = true}},
    {"arithmetic progressive", {.arithmetic = true, .progressive = true}},
    {"separate scans", {.separate = true}},
    {"unfinished", {.progressive = true, .unfinished = true}},
};
static const int sizes[][2] = {{1, 1}, {3, 70}, {70, 2}, {37, 53}, {129, 96}, {250, 187}};

static void every_kind(unsigned scale, int regions)
{
    for (size_t c = 0; c < sizeof codings / sizeof *codings; c++) {
        for (size_t s = 0; s < sizeof samplings / sizeof *samplings; s++) {
            bool same = true;
            if (codings[c].kind.unfinished && samplings[s].components != 3)
                continue;
            for (size_t k = 0; k < share_of(sizeof sizes / sizeof *sizes); k++) {
                struct jpeg_kind kind = codings[c].kind;
                kind.width = sizes[k][0];
                kind.height = sizes[k][1];
                kind.components = samplings[s].components;
                memcpy(kind.h, samplings[s].h, sizeof kind.h);
                memcpy(kind.v, samplings[s].v, sizeof kind.v);
                if (!kind_equals(&kind, scale, regions)) {
                    note("size %d x %d", kind.width, kind.height);
                    same = false;
                }
            }
            ok(same, "1/%u, %s, %s: whole and regions", scale, codings[c].name, samplings[s].name);
        }
    }
}

/* What the markers say about colour, and what libjpeg makes of it. */
static const struct {
    const char *name;
    struct jpeg_kind kind;
} colours[] = {
    {"RGB with an Adobe marker", {.components = 3, .space = JCS_RGB}},
    {"RGB by component names alone", {.components = 3, .space = JCS_RGB, .plain = true}},
    {"YCbCr without markers", {.components = 3, .plain = true}},
    {"Adobe, transform 0", {.components = 3, .plain = true, .adobe = 1}},
    {"Adobe, transform 1", {.components = 3, .plain = true, .adobe = 2}},
    {"CMYK without markers", {.components = 4, .plain = true}},
    {"YCCK", {.components = 4, .space = JCS_YCCK, .h = {2, 1, 1, 2}, .v = {2, 1, 1, 2}}},
    {"YCCK without markers", {.components = 4, .space = JCS_YCCK, .plain = true}},
};

static void every_colour(void)
{
    for (size_t k = 0; k < sizeof colours / sizeof *colours; k++) {
        struct jpeg_kind kind = colours[k].kind;
        kind.width = 61;
        kind.height = 47;
        ok(kind_equals(&kind, 1, 10), "%s", colours[k].name);
    }
}

static int try_scaled(struct st_bytes in, uint32_t scale, struct st_region region,
                      struct stoker_error *err)
{
    struct st_header header;
    struct st_view view;
    uint32_t codec;
    memset(err, 0, sizeof *err);
    int rc = st_decoder_header(&decoder, in, &codec, &header, err);
    if (rc == STOKER_OK) {
        if (region.width == 0)
            region = (struct st_region){0, 0, header.width, header.height};
        rc = st_decoder_decode(&decoder, codec, in, &(struct st_decode){scale, region}, &arena, &view,
                               err);
    }
    st_arena_reset(&arena);
    return rc;
}

static int try_decode(struct st_bytes in, struct st_region region, struct stoker_error *err)
{
    return try_scaled(in, 1, region, err);
}

static size_t find(const uint8_t *file, size_t size, const char *what, size_t length)
{
    const uint8_t *at = memmem(file, size, what, length);
    return at ? (size_t)(at - file) : 0;
}

static void ends(void)
{
    static const struct {
        const char *data;
        size_t size;
        bool ends;
    } cases[] = {{"", 0, false},
                 {"\xd9", 1, false},
                 {"\xff", 1, false},
                 {"\xff\xd9", 2, true},
                 {"\xd9\xd9", 2, false},
                 {"a\xd9\xff\xd9\xd9\xff", 6, true},
                 {"\xff\0\xd9" "b", 4, false},
                 {"ab\xff\xd9 more", 9, true},
                 {"ab\xff\xd8", 4, false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint8_t *copy = malloc(cases[k].size ? cases[k].size : 1);
        memcpy(copy, cases[k].data, cases[k].size);
        ok(st_jpeg_has_end((struct st_bytes){copy, cases[k].size}) == cases[k].ends,
           "data %zu %s its end marker", k, cases[k].ends ? "has" : "lacks");
        free(copy);
    }
}

static void damaged(void)
{
    const struct st_region all = {0}, top = {0, 0, 100, 20};
    struct stoker_error err;
    size_t size;
    uint8_t *file = jpeg_make(&(struct jpeg_kind){.width = 250, .height = 187, .components = 3}, &size);
    bool refused = true;
    for (size_t cut = 0; cut < size - 40; cut += 37)
        refused &= try_decode((struct st_bytes){file, cut}, all, &err) < 0 && strlen(err.message) > 10;
    ok(refused, "a file cut short anywhere is an error with a reason");
    try_decode((struct st_bytes){file, size / 2}, all, &err);
    ok(err.code == STOKER_ECORRUPT && strstr(err.message, "data ends at byte") &&
           strstr(err.message, "of 187 rows"),
       "it names byte and row: %s", err.message);
    refused = true;
    for (uint32_t scale = 1; scale <= 8; scale *= 2)
        refused &= try_scaled((struct st_bytes){file, size / 2}, scale, (struct st_region){0, 0, 9, 2},
                              &err) == STOKER_ECORRUPT;
    ok(refused, "also where the region lies before the cut, at every scale");
    file[size / 2] ^= 0x55;
    ok(try_decode((struct st_bytes){file, size}, top, &err) == STOKER_OK,
       "of a file that has its end nothing behind the region is looked at");
    file[size / 2] ^= 0x55;

    const size_t frame = find(file, size, "\xff\xc0", 2), tables = find(file, size, "\xff\xc4", 2);
    file[frame + 4] = 12;
    ok(try_decode((struct st_bytes){file, size}, all, &err) == STOKER_EUNSUPPORTED &&
           strstr(err.message, "12 bits"),
       "12 bits: %s", err.message);
    file[frame + 4] = 8;
    file[frame + 9] = 2;
    ok(try_decode((struct st_bytes){file, size}, all, &err) == STOKER_EUNSUPPORTED &&
           strstr(err.message, "2 components"),
       "two components: %s", err.message);
    file[frame + 9] = 3;
    file[frame + 1] = 0xC3;
    ok(try_decode((struct st_bytes){file, size}, all, &err) < 0, "lossless: %s", err.message);
    file[frame + 1] = 0xC0;
    file[tables + 5] = 0xFF;
    ok(try_decode((struct st_bytes){file, size}, all, &err) == STOKER_ECORRUPT &&
           strstr(err.message, "near byte"),
       "a bad table: %s", err.message);
    ok(try_decode((struct st_bytes){(const uint8_t *)"\xff\xd8\xff", 3}, all, &err) == STOKER_ECORRUPT,
       "three bytes: %s", err.message);
    free(file);
}

/* A scan that is read as often as it is repeated costs time without bound. */
static void too_many_scans(void)
{
    struct stoker_error err;
    size_t size;
    uint8_t *file = jpeg_make(
        &(struct jpeg_kind){.width = 16, .height = 16, .components = 1, .progressive = true}, &size);
    size_t last = 0;
    for (size_t at = 0; at + 1 < size; at++)
        if (file[at] == 0xFF && file[at + 1] == 0xDA)
            last = at;
    const size_t scan = size - 2 - last, whole = size + 600 * scan;
    uint8_t *many = malloc(whole);
    memcpy(many, file, size - 2);
    for (size_t k = 0; k < 600; k++)
        memcpy(many + size - 2 + k * scan, file + last, scan);
    memcpy(many + whole - 2, file + size - 2, 2);
    ok(try_decode((struct st_bytes){many, whole}, (struct st_region){0}, &err) == STOKER_ELIMIT,
       "600 scans: %s", err.message);
    free(many);
    free(file);
}

/* A file without tables must not be read with those of the file before it. */
static void tables_stay_apart(void)
{
    struct stoker_error err;
    size_t size;
    uint8_t *file = jpeg_make(&(struct jpeg_kind){.width = 40, .height = 30, .components = 1}, &size);
    ok(try_decode((struct st_bytes){file, size}, (struct st_region){0}, &err) == STOKER_OK,
       "a file with its tables");
    const size_t at = find(file, size, "\xff\xdb", 2), length = 2 + file[at + 2] * 256u + file[at + 3];
    memmove(file + at, file + at + length, size - at - length);
    ok(try_decode((struct st_bytes){file, size - length}, (struct st_region){0}, &err) ==
           STOKER_ECORRUPT,
       "without quantisation tables: %s", err.message);
    free(file);
}

static void allocates_nothing(void)
{
#if COUNTING
    enum { FILES = 5 };
    static const struct jpeg_kind kinds[FILES] = {
        {.width = 300, .height = 200, .components = 3, .h = {2, 1, 1}, .v = {2, 1, 1}},
        {.width = 300, .height = 200, .components = 3, .progressive = true},
        {.width = 300, .height = 200, .components = 1, .restart = 2},
        {.width = 300, .height = 200, .components = 4},
        {.width = 300, .height = 200, .components = 3, .arithmetic = true},
    };
    struct st_bytes files[FILES];
    struct stoker_error err;
    unsigned before = 0;
    bool all = true;
    for (int k = 0; k < FILES; k++)
        files[k].data = jpeg_make(&kinds[k], &files[k].size);
    for (int round = 0; round < 20; round++) {
        if (round == 3)
            before = allocations;
        for (int k = 0; k < FILES; k++) {
            const struct st_region region = {(uint32_t)round, 9, 100 + 9 * (uint32_t)round, 150};
            all &= try_decode(files[k], round % 3 ? region : (struct st_region){0}, &err) == STOKER_OK;
            all &= try_decode((struct st_bytes){files[k].data, files[k].size / 2}, region, &err) !=
                   STOKER_ENOMEM;
        }
    }
    ok(all && before > 0 && allocations == before,
       "%u allocations in 170 decodes after the first images", allocations - before);
    for (int k = 0; k < FILES; k++)
        free((void *)files[k].data);
#else
    skip("nothing allocates after the first images", "a sanitizer has its own malloc");
#endif
}

/* Wherever memory runs out, the decode says so, and the next one works. */
static void out_of_memory(void)
{
#if COUNTING
    struct stoker_error err;
    size_t size;
    uint8_t *file = jpeg_make(
        &(struct jpeg_kind){.width = 60, .height = 50, .components = 3, .progressive = true}, &size);
    const struct st_bytes in = {file, size};
    unsigned failures = 0;
    int rc = STOKER_ENOMEM;
    bool good = true;
    for (unsigned k = 1; good && rc == STOKER_ENOMEM; k++) {
        st_decoder_close(&decoder);
        st_arena_free(&arena);
        fail_at = allocations + k;
        rc = try_decode(in, (struct st_region){0}, &err);
        failures += rc == STOKER_ENOMEM;
        fail_at = 0;
        good &= try_decode(in, (struct st_region){0}, &err) == STOKER_OK;
    }
    ok(good && rc == STOKER_OK && failures > 20, "%u allocations refused, one at a time", failures);
    free(file);
#else
    skip("an allocation that fails is an error", "a sanitizer has its own malloc");
#endif
}

/* Small files of the kinds that other writers do not make, for the corpus of the fuzz target. */
static void write_file(const char *folder, const char *coding, const char *sampling,
                       const struct jpeg_kind *kind)
{
    char path[4096];
    size_t size;
    snprintf(path, sizeof path, "%s/%s, %s", folder, coding, sampling);
    for (char *c = path + strlen(folder) + 1; *c; c++)
        *c = *c == ' ' || *c == ',' ? '-' : *c == ':' ? 'x' : *c;
    uint8_t *data = jpeg_make(kind, &size);
    FILE *file = fopen(path, "wb");
    ok(file && fwrite(data, 1, size, file) == size && fclose(file) == 0, "%s", path);
    free(data);
}

static void write_corpus(const char *folder)
{
    for (size_t s = 0; s < sizeof samplings / sizeof *samplings; s++)
        for (size_t c = 0; c < sizeof codings / sizeof *codings; c++) {
            struct jpeg_kind kind = codings[c].kind;
            if ((c > 0 && s != 2 && s != 11) || (kind.unfinished && samplings[s].components != 3))
                continue;
            kind.width = 37;
            kind.height = 29;
            kind.quality = 40;
            kind.components = samplings[s].components;
            memcpy(kind.h, samplings[s].h, sizeof kind.h);
            memcpy(kind.v, samplings[s].v, sizeof kind.v);
            write_file(folder, codings[c].name, samplings[s].name, &kind);
        }
    for (size_t c = 0; c < sizeof colours / sizeof *colours; c++) {
        struct jpeg_kind kind = colours[c].kind;
        kind.width = 19;
        kind.height = 21;
        write_file(folder, "colour", colours[c].name, &kind);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0) {
        write_corpus(argv[2]);
        return done_testing();
    }
    const int regions = argc > 1 ? atoi(argv[1]) : (int)share_of(8);
    every_kind(1, regions);
    every_kind(2, regions / 2);
    every_kind(4, regions / 4);
    every_kind(8, regions / 4);
    every_colour();
    ends();
    damaged();
    too_many_scans();
    tables_stay_apart();
    allocates_nothing();
    out_of_memory();
    st_decoder_close(&decoder);
    st_arena_free(&arena);
    return done_testing();
}
