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
        good = !whole || (reason == ST_JPEG_OURS) == (of_all == ST_JPEG_OURS);
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
                            .noise = below(200)};
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
