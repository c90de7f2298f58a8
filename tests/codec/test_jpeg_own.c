/* test_jpeg_own.c - our JPEG decoder gives the bytes of libjpeg-turbo
 *
 *     test_codec_jpeg_own [--many N]   N comparisons instead of some thousands
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jpeg_own.h"
#include "tap.h"

static struct st_jpeg *decoder;
static struct st_arena arena;
static uint64_t compared, refused[ST_JPEG_REASON_COUNT];

static const char *const sampling_name[] = {"grey", "4:4:4", "4:2:2", "4:4:0", "4:2:0"};

static void describe(const struct own_kind *kind)
{
    static const char *const scans[] = {"", " progressive", " random scans"};
    note("%ux%u %s quality %u restart %u noise %u%s%s%s", kind->width, kind->height,
         sampling_name[kind->sampling], kind->quality, kind->restart, kind->noise,
         kind->optimised ? " optimised" : "", kind->rgb ? " rgb" : "",
         scans[kind->scans]);
}

/* One box of a file: equal, or refused for a reason in `may_refuse`. */
static bool check_box(struct st_bytes file, const struct own_reference *ref, struct st_region box,
                      uint32_t may_refuse, bool progressive)
{
    struct st_view view;
    bool clean = true; /* only files of one scan are ever called that */
    st_arena_reset(&arena);
    const enum st_jpeg_reason reason =
        st_jpeg_decode(decoder, file, box, compared % 4 ? NULL : &clean, NULL, &arena, &view);
    refused[reason]++;
    compared++;
    if (reason == ST_JPEG_OURS)
        return (clean || progressive) && own_equal(ref, box, &view);
    if (may_refuse & 1u << reason)
        return true;
    note("refused: %s", st_jpeg_reason_name(reason));
    return false;
}

static bool check_file(struct st_bytes file, uint32_t boxes, uint32_t may_refuse, bool progressive)
{
    const struct own_reference ref = own_reference(file);
    if (!ref.rgb)
        return false;
    bool good = check_box(file, &ref, (struct st_region){0, 0, ref.width, ref.height}, may_refuse,
                          progressive);
    for (uint32_t k = 0; good && k < boxes; k++)
        good = check_box(file, &ref, own_box(ref.width, ref.height), may_refuse, progressive);
    free(ref.rgb);
    return good;
}

static bool check_kind(const struct own_kind *kind, uint32_t boxes)
{
    const struct st_bytes file = own_make(kind);
    /* Noise at the lowest qualities has steps of 255 and more, which can leave the range. */
    const uint32_t may_refuse = kind->quality < 20 ? 1u << ST_JPEG_RANGE : 0;
    const bool good = check_file(file, boxes, may_refuse, kind->scans != OWN_ONE_SCAN);
    if (!good)
        describe(kind);
    free((void *)(uintptr_t)file.data);
    return good;
}

static struct own_kind random_kind(uint32_t side)
{
    struct own_kind kind = {.width = 1 + below(side),
                            .height = 1 + below(side),
                            .sampling = (enum own_sampling)below(OWN_SAMPLINGS),
                            .quality = 1 + below(100),
                            .optimised = below(2),
                            .rgb = below(8) == 0,
                            .noise = below(2) ? below(256) : below(30),
                            .scans = below(2) ? OWN_ONE_SCAN : (enum own_scans)below(3)};
    if (below(2))
        kind.restart = 1 + below(2 * (kind.width / 8 + 1));
    return kind;
}

static void small_sizes(void)
{
    for (int sampling = 0; sampling < OWN_SAMPLINGS; sampling++) {
        bool good = true;
        for (uint32_t width = 1; good && width <= 35; width++)
            for (uint32_t height = 1; good && height <= 35; height += 1 + below(3))
                good =
                    check_kind(&(struct own_kind){width, height, (enum own_sampling)sampling,
                                                  1 + below(100), below(3), below(2), false, below(256),
                                                  (enum own_scans)below(3)},
                               2);
        ok(good, "%s, all widths to 35 and most heights", sampling_name[sampling]);
    }
}

static void random_files(uint64_t count)
{
    bool good = true;
    for (uint64_t from = compared; good && compared - from < count;) {
        const struct own_kind kind = random_kind(below(20) ? 70 : 700);
        good = check_kind(&kind, 8);
    }
    ok(good, "random sizes, qualities, samplings, tables and restart intervals, whole and in boxes");
}

/* So large that coefficients are fetched in bands; restart intervals shorter and longer than those. */
static void large_files(void)
{
    static const uint32_t restarts[] = {0, 37, 200, 9000, 0, 333};
    for (size_t k = 0; k < sizeof restarts / sizeof restarts[0]; k++) {
        const struct own_kind kind = {1500,  1203, k % 2 ? OWN_420 : OWN_444, 70, restarts[k], false,
                                      false, 40, k < 4 ? OWN_ONE_SCAN : OWN_RANDOM_SCANS};
        const bool same = check_kind(&kind, 5);
        ok(same, "%ux%u, restart interval %u%s", kind.width, kind.height, kind.restart,
           kind.scans ? ", progressive" : "");
    }
}

/* What no picture has, but a file may: large coefficients, and steps of 16 bits. */
static void random_coefs(uint32_t count)
{
    static const char *const name[] = {"few and small", "just in range", "any"};
    for (int style = 0; style < OWN_STYLES; style++) {
        const uint64_t before = refused[ST_JPEG_RANGE];
        bool good = true;
        for (uint32_t k = 0; good && k < count; k++) {
            const struct own_kind kind = random_kind(style == OWN_WILD ? 24 : 70);
            const uint32_t steps = style == OWN_SPARSE ? 64
                                   : below(3)          ? 1 + below(255)
                                                       : 1 + below(4000);
            const struct st_bytes file = own_make_coefs(&kind, (enum own_style)style, steps);
            /* Blocks that only fill MCUs may miss the lowest bits of DC, and then be out of range. */
            const bool in_range = style != OWN_WILD && kind.scans != OWN_RANDOM_SCANS;
            good = check_file(file, 2, in_range ? 0 : 1u << ST_JPEG_RANGE,
                              kind.scans != OWN_ONE_SCAN);
            if (!good)
                describe(&kind);
            free((void *)(uintptr_t)file.data);
        }
        ok(good, "random coefficients, %s (%llu out of range)", name[style],
           (unsigned long long)(refused[ST_JPEG_RANGE] - before));
    }
}

int main(int argc, char **argv)
{
    const uint64_t many =
        argc == 3 && strcmp(argv[1], "--many") == 0 ? strtoull(argv[2], NULL, 10) : share_of(8000);
    random_state = 88172645463325252u + many;
    decoder = st_jpeg_new();
    if (!ok(decoder != NULL, "a decoder"))
        return done_testing();
    small_sizes();
    large_files();
    random_files(many);
    random_coefs((uint32_t)(many < 100000 ? many / 20 : 5000));
    note("%llu comparisons", (unsigned long long)compared);
    for (int reason = 1; reason < ST_JPEG_REASON_COUNT; reason++)
        if (refused[reason])
            note("%llu refused: %s", (unsigned long long)refused[reason],
                 st_jpeg_reason_name((enum st_jpeg_reason)reason));
    st_jpeg_free(decoder);
    st_arena_free(&arena);
    return done_testing();
}
