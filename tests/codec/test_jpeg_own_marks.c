/* test_jpeg_own_marks.c - our JPEG decoder notes marks, and decodes from them what it decodes without
 *
 *     test_codec_jpeg_own_marks [--many N]   N files instead of some hundreds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/headers.h"
#include "jpeg_own.h"
#include "tap.h"

static struct st_jpeg *decoder;
static struct st_arena arena;

static enum st_jpeg_reason decode(struct st_bytes file, struct st_region box, struct st_jpeg_marks *marks,
                                  struct st_view *view)
{
    st_arena_reset(&arena);
    return st_jpeg_decode(decoder, file, box, NULL, marks, &arena, view);
}

static void drop(struct st_bytes file) { free((void *)(uintptr_t)file.data); }

/* Sizes for one lane, two of them, and bands. */
static struct own_kind random_kind(void)
{
    static const uint32_t sides[] = {100, 500, 1400};
    const uint32_t side = sides[below(8) ? below(2) : 2];
    return (struct own_kind){.width = 1 + below(side),
                             .height = 1 + below(side),
                             .sampling = (enum own_sampling)below(OWN_SAMPLINGS),
                             .quality = 20 + below(80),
                             .optimised = below(2),
                             .rgb = below(8) == 0,
                             .noise = below(2) ? below(256) : below(30)};
}

static uint32_t marks_expected(struct st_bytes file)
{
    struct st_jpeg_frame frame;
    if (st_jpeg_headers(file, &frame) != ST_JPEG_OURS)
        return 0;
    const uint32_t rows = st_jpeg_mark_rows(frame.mcus_down);
    return (frame.mcus_down + rows - 1) / rows - 1;
}

static bool same_marks(const struct st_jpeg_marks *a, const struct st_jpeg_marks *b)
{
    return a->count == b->count && !memcmp(a->mark, b->mark, a->count * sizeof *a->mark);
}

/* ---- boxes of one file, one after the other, all with the same marks ------------------------------ */

static uint64_t boxes_from_marks, files_marked_by_boxes;

static bool check_boxes(struct st_bytes file)
{
    const struct own_reference ref = own_reference(file);
    const struct st_region all = {0, 0, ref.width, ref.height};
    struct st_jpeg_marks noted = {0}, whole = {0};
    struct st_view view;
    bool good = ref.rgb;
    for (int k = 0; good && k < 12; k++) {
        const struct st_region box = own_box(ref.width, ref.height);
        boxes_from_marks += noted.count > 0;
        good = decode(file, box, &noted, &view) == ST_JPEG_OURS && own_equal(&ref, box, &view);
    }
    good = good && decode(file, all, &whole, &view) == ST_JPEG_OURS && own_equal(&ref, all, &view) &&
           whole.count == marks_expected(file);
    files_marked_by_boxes += noted.count == whole.count;
    /* Whoever noted them, in whatever order: they are the same. */
    good = good && noted.count <= whole.count &&
           !memcmp(noted.mark, whole.mark, noted.count * sizeof *noted.mark);
    good = good && decode(file, all, &noted, &view) == ST_JPEG_OURS && own_equal(&ref, all, &view) &&
           same_marks(&noted, &whole);
    free(ref.rgb);
    return good;
}

static void random_files(uint64_t count)
{
    bool good = true;
    for (uint64_t k = 0; good && k < count; k++) {
        const uint64_t seed = random_state;
        const struct own_kind kind = random_kind();
        const struct st_bytes file = own_make(&kind);
        good = check_boxes(file);
        if (!good)
            note("seed %llu: %ux%u, sampling %u", (unsigned long long)seed, kind.width, kind.height,
                 (unsigned)kind.sampling);
        drop(file);
    }
    ok(good, "boxes of random files, with the marks that the boxes before them left");
    ok(boxes_from_marks > 2 * count && files_marked_by_boxes > count / 4,
       "%llu boxes had marks, and %llu files got all of theirs",
       (unsigned long long)boxes_from_marks, (unsigned long long)files_marked_by_boxes);
}

/* ---- what is above a region is not read ---------------------------------------------------------- */

static void nothing_above(void)
{
    const struct own_kind kind = {
        .width = 480, .height = 640, .sampling = OWN_420, .quality = 85, .noise = 60};
    const struct st_region box = {100, 500, 300, 100};
    const struct st_bytes file = own_make(&kind);
    const struct own_reference ref = own_reference(file);
    struct st_jpeg_marks marks = {0};
    struct st_jpeg_frame frame;
    struct st_view view;
    bool good = decode(file, (struct st_region){0, 0, 480, 640}, &marks, &view) == ST_JPEG_OURS;
    ok(good && marks.count == 39, "a mark for every row but the first: %u", marks.count);
    good = st_jpeg_headers(file, &frame) == ST_JPEG_OURS;
    const size_t first = (size_t)(frame.scan.data - file.data);
    uint8_t *damaged = malloc(file.size);
    memcpy(damaged, file.data, file.size);
    for (size_t k = first; good && k < first + frame.scan.size / 2; k++)
        if (damaged[k] != 0xFF && damaged[k - 1] != 0xFF)
            damaged[k] = 0;
    const struct st_bytes changed = {damaged, file.size};
    const bool bad = decode(changed, box, NULL, &view) != ST_JPEG_OURS || !own_equal(&ref, box, &view);
    ok(bad, "with its first half zeroed, a file does not give its pixels");
    ok(decode(changed, box, &marks, &view) == ST_JPEG_OURS && own_equal(&ref, box, &view),
       "but from its marks it does: they are used");
    free(damaged);
    free(ref.rgb);
    drop(file);
}

/* ---- restart markers, learning, failures ---------------------------------------------------------- */

static void no_marks(void)
{
    struct own_kind kind = {
        .width = 300, .height = 300, .sampling = OWN_420, .quality = 85, .noise = 60, .restart = 7};
    struct st_jpeg_marks marks = {0}, whole = {0};
    struct st_view view;
    bool clean = false;
    struct st_bytes file = own_make(&kind);
    bool good = decode(file, (struct st_region){0, 0, 300, 300}, &marks, &view) == ST_JPEG_OURS;
    ok(good && marks.count == 0, "a file with restart markers needs none");
    drop(file);

    kind.restart = 0;
    file = own_make(&kind);
    const struct st_region low = {10, 250, 40, 40}, high = {10, 10, 40, 40};
    decode(file, (struct st_region){0, 0, 300, 300}, &whole, &view);
    decode(file, low, &marks, &view);
    st_arena_reset(&arena);
    good = st_jpeg_decode(decoder, file, high, &clean, &marks, &arena, &view) == ST_JPEG_OURS;
    ok(good && clean && same_marks(&marks, &whole), "decoding to the end, for its findings, notes all");
    marks.count = 0;
    good = decode((struct st_bytes){file.data, file.size / 2}, low, &marks, &view) != ST_JPEG_OURS;
    ok(good && marks.count == 0, "a decode that fails leaves none");
    drop(file);
}

/* Marks that were never noted: wrong pixels may come, but no access out of bounds, and where decoding
 * fails, it is done again without them. */
static void wrong_marks(uint32_t count)
{
    bool good = true;
    for (uint32_t k = 0; k < count; k++) {
        const struct own_kind kind = random_kind();
        const struct st_bytes file = own_make(&kind);
        struct st_view view;
        for (int variant = 0; variant < 6; variant++) {
            struct st_jpeg_marks marks = {0};
            decode(file, (struct st_region){0, 0, kind.width, kind.height}, &marks, &view);
            for (uint32_t at = 0; at < ST_JPEG_MARKS_MAX; at++)
                if (below(3) == 0)
                    marks.mark[at] ^= variant % 2 ? (uint64_t)random_bits() << below(33) : below(64);
            if (variant > 3)
                marks.count = variant == 4 ? random_bits() : below(ST_JPEG_MARKS_MAX + 1);
            good = decode(file, own_box(kind.width, kind.height), &marks, &view) == ST_JPEG_OURS && good;
        }
        drop(file);
    }
    ok(good, "wrong marks never make a good file fail");
}

static void numbers(void)
{
    const int32_t edge[3] = {-2048, 2047, -1}, far[3] = {0, 2048, 0}, low[3] = {0, 0, -2049};
    const uint64_t mark = st_jpeg_mark(0xFFFFFFF, edge);
    ok(st_jpeg_mark_position(mark) == 0xFFFFFFF && st_jpeg_mark_predicted(mark, 0) == -2048 &&
           st_jpeg_mark_predicted(mark, 1) == 2047 && st_jpeg_mark_predicted(mark, 2) == -1,
       "a mark holds a position of 28 bits and values of 12");
    ok(!st_jpeg_mark(5, far) && !st_jpeg_mark(5, low) && !st_jpeg_mark(1 << 28, edge),
       "and larger ones are not noted");
    bool good = true;
    for (uint32_t down = 1; down < 9000; down++)
        good = good && (down - 1) / st_jpeg_mark_rows(down) <= ST_JPEG_MARKS_MAX;
    ok(good, "the marks of an image of any height fit");
}

int main(int argc, char **argv)
{
    const uint64_t many =
        argc == 3 && strcmp(argv[1], "--many") == 0 ? strtoull(argv[2], NULL, 10) : share_of(400);
    random_state = 88172645463325252u + many;
    decoder = st_jpeg_new();
    if (!ok(decoder != NULL, "a decoder"))
        return done_testing();
    numbers();
    nothing_above();
    no_marks();
    random_files(many);
    wrong_marks((uint32_t)(many / 4 + 1));
    st_jpeg_free(decoder);
    st_arena_free(&arena);
    return done_testing();
}
