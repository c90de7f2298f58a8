/* test_jpeg_own_damage.c - damaged files: our JPEG decoder refuses, or gives what libjpeg-turbo gives
 *
 *     test_codec_jpeg_own_damage [--many N]   N damaged files instead of some thousands
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jpeg_own.h"
#include "tap.h"

static struct st_jpeg *decoder;
static struct st_arena arena;
static uint64_t outcome[ST_JPEG_REASON_COUNT], warned, regular, all_clean;

/* ---- ways to do damage; each gets a file with room for 16 more bytes and returns its new size ---- */

static size_t flip_bits(uint8_t *file, size_t size)
{
    for (uint32_t k = 0, count = 1 + below(4); k < count; k++)
        file[below((uint32_t)size)] ^= (uint8_t)(1u << below(8));
    return size;
}

static size_t flip_in_header(uint8_t *file, size_t size)
{
    for (uint32_t k = 0, count = 1 + below(3); k < count; k++)
        file[below(size < 700 ? (uint32_t)size : 700)] =
            below(2) ? (uint8_t)random_bits() : (uint8_t)below(4);
    return size;
}

static size_t cut_off(uint8_t *file, size_t size)
{
    (void)file;
    return below((uint32_t)size);
}

static size_t insert(uint8_t *file, size_t size)
{
    static const uint8_t pieces[][4] = {{0xFF, 0xD9, 0, 0}, {0xFF, 0xD0, 0, 0}, {0xFF, 0xD3, 0, 0},
                                        {0xFF, 0x00, 0, 0}, {0xFF, 0xFF, 0, 0}, {0xFF, 0xFE, 0, 2},
                                        {0xFF, 0xDA, 0, 8}, {0, 0, 0, 0}};
    const size_t at = below((uint32_t)size), count = 1 + below(4);
    memmove(file + at + count, file + at, size - at);
    memcpy(file + at, pieces[below(sizeof pieces / sizeof pieces[0])], count);
    return size + count;
}

static size_t remove_bytes(uint8_t *file, size_t size)
{
    const size_t count = 1 + below(8), at = below((uint32_t)size);
    if (at + count >= size)
        return at;
    memmove(file + at, file + at + count, size - at - count);
    return size - count;
}

/* Exchanges two segments' markers or the numbers of tables, where DHT, DQT, SOF, SOS or DRI stand. */
static size_t swap_tables(uint8_t *file, size_t size)
{
    size_t at[64];
    uint32_t count = 0;
    for (size_t k = 2; k + 5 < size && count < 64;) {
        const size_t length = (size_t)file[k + 2] << 8 | file[k + 3];
        if (file[k] != 0xFF || length < 2)
            break;
        at[count++] = k;
        k += 2 + length;
    }
    if (count == 0)
        return size;
    const size_t first = at[below(count)], second = at[below(count)];
    const size_t offset = below(3) ? 4 + below(12) : 1;
    if (first + offset >= size || second + offset >= size)
        return size;
    const uint8_t kept = file[first + offset];
    file[first + offset] = below(3) ? file[second + offset] : (uint8_t)(kept ^ 1u << below(8));
    file[second + offset] = kept;
    return size;
}

/* ---- checking ---------------------------------------------------------------------------------- */

static bool check(struct st_bytes file)
{
    const struct own_reference ref = own_reference(file);
    const uint32_t width = ref.rgb ? ref.width : 64, height = ref.rgb ? ref.height : 64;
    uint32_t size[2], components;
    const bool sound = st_jpeg_is_regular(file, &size[0], &size[1], &components);
    regular += sound;
    const bool huge = (uint64_t)ref.width * ref.height > OWN_PIXELS_MAX; /* then there is no reference */
    bool good = !sound || huge || (ref.rgb && size[0] == width && size[1] == height); /* what is called so never fails */
    enum st_jpeg_reason of_all = ST_JPEG_OURS;
    struct st_jpeg_marks marks = {0};
    for (int k = 0; good && k < 6; k++) {
        const bool whole = k == 3; /* whatever the box, as if all of it were needed */
        const struct st_region box =
            k ? own_box(width, height) : (struct st_region){0, 0, width, height};
        struct st_view view;
        bool clean = false;
        st_arena_reset(&arena);
        const enum st_jpeg_reason reason = st_jpeg_decode(decoder, file, box, whole ? &clean : NULL,
                                                          k && !whole ? &marks : NULL, &arena, &view);
        of_all = k ? of_all : reason;
        good = !whole || huge || (reason == ST_JPEG_OURS) == (of_all == ST_JPEG_OURS);
        outcome[reason]++;
        if (reason != ST_JPEG_OURS || huge)
            continue;
        warned += ref.warnings > 0;
        all_clean += clean;
        good = good && !(clean && ref.warnings > 0); /* what is called clean, libjpeg finds nothing wrong with */
        good = good && ref.rgb && own_equal(&ref, box, &view);
    }
    free(ref.rgb);
    return good;
}

static struct st_bytes random_file(void)
{
    struct own_kind kind = {.width = 1 + below(100),
                            .height = 1 + below(100),
                            .sampling = (enum own_sampling)below(OWN_SAMPLINGS),
                            .quality = 20 + below(80),
                            .optimised = below(2),
                            .rgb = below(8) == 0,
                            .noise = below(200),
                            .scans = below(2) ? OWN_ONE_SCAN : (enum own_scans)below(3)};
    kind.restart = below(2) ? 0 : 1 + below(kind.width / 4 + 1);
    if (below(12) == 0)
        kind.width = kind.height = 200, kind.noise = 200; /* large enough for two decoders */
    return own_make(&kind);
}

static bool damage_and_check(size_t (*damage)(uint8_t *, size_t), uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        const uint64_t seed = random_state;
        const struct st_bytes file = random_file();
        for (int variant = 0; variant < 8; variant++) {
            uint8_t *copy = malloc(file.size + 16);
            memcpy(copy, file.data, file.size);
            const size_t size = damage(copy, file.size);
            uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees every byte too far */
            memcpy(exact, copy, size);
            const bool good = check((struct st_bytes){exact, size});
            free(exact);
            free(copy);
            if (!good) {
                note("seed %llu, variant %d", (unsigned long long)seed, variant);
                free((void *)(uintptr_t)file.data);
                return false;
            }
        }
        free((void *)(uintptr_t)file.data);
    }
    return true;
}

/* ---- files that were decoded wrongly once -------------------------------------------------------- */

struct bit_writer {
    uint8_t *file;
    size_t size;
    uint32_t byte, bits;
};

static void put_bits(struct bit_writer *w, const char *bits, uint32_t times)
{
    for (uint32_t k = 0; k < times; k++)
        for (const char *bit = bits; *bit; bit++) {
            w->byte = w->byte << 1 | (*bit == '1');
            if (++w->bits < 8)
                continue;
            w->file[w->size++] = (uint8_t)w->byte;
            if (w->byte == 0xFF)
                w->file[w->size++] = 0;
            w->byte = w->bits = 0;
        }
}

/* A file's headers; its scan follows. */
static struct bit_writer begin_scan(const struct own_kind *kind, size_t room)
{
    const struct st_bytes sound = own_make(kind);
    struct bit_writer w = {.file = malloc(sound.size + room)};
    size_t at = 2;
    while (sound.data[at + 1] != 0xDA)
        at += 2 + ((size_t)sound.data[at + 2] << 8 | sound.data[at + 3]);
    at += 2 + ((size_t)sound.data[at + 2] << 8 | sound.data[at + 3]);
    memcpy(w.file, sound.data, w.size = at);
    free((void *)(uintptr_t)sound.data);
    return w;
}

/* Ends the scan, and checks the file. */
static bool check_scan(struct bit_writer *w)
{
    put_bits(w, "1", (8 - w->bits) % 8);
    w->file[w->size++] = 0xFF;
    w->file[w->size++] = 0xD9;
    uint8_t *exact = malloc(w->size);
    memcpy(exact, w->file, w->size);
    const bool good = check((struct st_bytes){exact, w->size});
    free(exact);
    free(w->file);
    return good;
}

/* The second decoder starts in the middle, where it finds invalid codes, and after more blocks than the
 * image has, blocks that it can read: many more of them while the first decodes long ones. */
static void small_blocks(void)
{
    const struct own_kind kind = {.width = 64, .height = 64, .sampling = OWN_GREY, .quality = 50};
    struct bit_writer w = begin_scan(&kind, 32768);
    for (int block = 0; block < 64; block++) {
        put_bits(&w, "00", 1);
        put_bits(&w, "1101010101", 63); /* a value of 5 bits */
    }
    for (int k = 0; k < 30; k++) {
        put_bits(&w, "001010", 10); /* empty blocks */
        put_bits(&w, "1", 20);
    }
    put_bits(&w, "001010", 6300);
    ok(check_scan(&w), "a second decoder stays within its memory");
}

/* Some of: long blocks, empty ones, groups of empty ones between invalid codes, and nonsense. */
static void put_something(struct bit_writer *w)
{
    static const char *const pieces[] = {"00", "1010", "1101010101", "0", "1", "0111", "100", "11111111001"};
    const uint32_t kind = below(4), times = 1 + below(kind == 1 ? 3000 : 70);
    if (kind == 1)
        put_bits(w, "001010", times);
    for (uint32_t k = 0; kind != 1 && k < times; k++) {
        if (kind == 0) {
            put_bits(w, "00", 1);
            put_bits(w, "1101010101", 63);
        } else if (kind == 2) {
            put_bits(w, "001010", 1 + below(20));
            put_bits(w, "1", 20);
        } else {
            put_bits(w, pieces[below(sizeof pieces / sizeof pieces[0])], 1 + below(4));
        }
    }
}

/* Scans of any length, mostly of images that are small for them. */
static void any_scans(uint32_t count)
{
    bool good = true;
    for (uint32_t k = 0; good && k < count; k++) {
        const uint64_t seed = random_state;
        const struct own_kind kind = {.width = 1 + below(120),
                                      .height = 1 + below(120),
                                      .sampling = below(2) ? OWN_GREY : (enum own_sampling)below(OWN_SAMPLINGS),
                                      .quality = 50,
                                      .restart = below(6) ? 0 : 1 + below(20)};
        const size_t most = 2000 + below(20000);
        struct bit_writer w = begin_scan(&kind, most + 16384);
        while (w.size < most)
            put_something(&w);
        good = check_scan(&w);
        if (!good)
            note("seed %llu", (unsigned long long)seed);
    }
    ok(good, "%u scans of long blocks, empty ones, invalid codes and nonsense", count);
}

/* Twice, because codes get their second table only when they recur. */
static void found(uint64_t seed, size_t (*damage)(uint8_t *, size_t))
{
    random_state = seed;
    const struct st_bytes file = random_file();
    uint8_t *copy = malloc(file.size + 16);
    memcpy(copy, file.data, file.size);
    const struct st_bytes damaged = {copy, damage(copy, file.size)};
    const uint64_t boxes = random_state;
    bool good = check(damaged);
    random_state = boxes;
    good = check(damaged) && good;
    ok(good, "a file that was decoded wrongly once: seed %llu", (unsigned long long)seed);
    free(copy);
    free((void *)(uintptr_t)file.data);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        size_t (*damage)(uint8_t *, size_t);
    } ways[] = {{"bits flipped", flip_bits},
                {"bytes of the header changed", flip_in_header},
                {"cut off", cut_off},
                {"markers and bytes inserted", insert},
                {"bytes removed", remove_bytes},
                {"tables and segments exchanged", swap_tables}};
    const uint64_t many =
        argc == 3 && strcmp(argv[1], "--many") == 0 ? strtoull(argv[2], NULL, 10) : share_of(10000);
    random_state = 362436069362436069u + many;
    decoder = st_jpeg_new();
    if (!ok(decoder != NULL, "a decoder"))
        return done_testing();
    small_blocks();
    found(17243722121112993977u, remove_bytes);
    random_state = 362436069362436069u + many;
    any_scans((uint32_t)(many / 10 + 1));
    for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++)
        ok(damage_and_check(ways[k].damage, (uint32_t)(many / 48 + 1)),
           "%s: refused, or as libjpeg-turbo", ways[k].name);
    for (int reason = 0; reason < ST_JPEG_REASON_COUNT; reason++)
        if (outcome[reason])
            note("%llu %s", (unsigned long long)outcome[reason],
                 st_jpeg_reason_name((enum st_jpeg_reason)reason));
    note("%llu decoded though libjpeg-turbo warned, and equal; %llu clean", (unsigned long long)warned,
         (unsigned long long)all_clean);
    ok(regular > 0 && regular < many, "%llu are called regular, and libjpeg-turbo decodes these",
       (unsigned long long)regular);
    st_jpeg_free(decoder);
    st_arena_free(&arena);
    return done_testing();
}
