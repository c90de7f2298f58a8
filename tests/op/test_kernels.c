/* Every variant of every kernel gives the bytes of the C version, over all small widths, and writes
 * nothing else. With --bench they are timed as well. */
#include "base/clock.h"
#include "op/resize/taps.h"
#include "variants.h"

/* ---- horizontal -------------------------------------------------------------------------------- */

/* Weights of any sign, as large in all as the sums can bear. */
static void random_weights(uint64_t *seed, int32_t *weight, int32_t taps)
{
    double sum = 0;
    for (int32_t t = 0; t < taps; t++) {
        weight[t] = between(seed, -(1 << 20), 1 << 22);
        sum += weight[t] < 0 ? -weight[t] : weight[t];
    }
    for (int32_t t = 0; t < taps; t++)
        weight[t] =
            (int32_t)(weight[t] / (sum + 1) * (between(seed, 10, 19) << (ST_WEIGHT_BITS - 4)) * 1.6);
}

/* Any taps at all: places in any order. */
static struct st_taps random_taps(uint64_t *seed, int32_t count, int32_t width, int32_t in)
{
    int32_t *first = exactly((size_t)count * sizeof *first);
    int32_t *weight = exactly((size_t)(count * width) * sizeof *weight);
    const int32_t spread = between(seed, 1, 8);
    for (int32_t i = 0; i < count; i++) {
        const int32_t near = (int32_t)((int64_t)i * in / count) + between(seed, 0, spread);
        first[i] = near > in - width ? in - width : near;
    }
    for (int32_t i = 0; i < count; i++)
        random_weights(seed, weight + i * width, width);
    return (struct st_taps){count, width, first, weight};
}

static bool across_agrees(const struct st_kernels *kernels, uint64_t *seed, const struct st_taps *taps,
                          int32_t in_width, int32_t channels, int32_t rows)
{
    const size_t bytes = (size_t)(taps->count * channels);
    uint8_t *in[5], *expected[5], *out[5];
    void *plan[2] = {st_alloc_aligned(st_kernels_for(ST_CPU_C)->across_size(taps, channels)),
                     st_alloc_aligned(kernels->across_size(taps, channels))};
    bool same = true;
    for (int32_t y = 0; y < rows; y++) {
        in[y] = random_bytes(seed, (size_t)(in_width * channels));
        expected[y] = guarded(bytes);
        out[y] = guarded(bytes);
    }
    st_kernels_for(ST_CPU_C)->across_plan(plan[0], taps, channels);
    st_kernels_for(ST_CPU_C)->across(plan[0], expected, (const uint8_t *const *)in, rows);
    kernels->across_plan(plan[1], taps, channels);
    kernels->across(plan[1], out, (const uint8_t *const *)in, rows);
    for (int32_t y = 0; y < rows; y++) {
        same = same && !memcmp(expected[y], out[y], bytes) && unharmed(out[y], bytes);
        free(in[y]);
        guarded_free(expected[y]);
        guarded_free(out[y]);
    }
    free(plan[0]);
    free(plan[1]);
    return same;
}

static void test_across(const struct st_kernels *kernels)
{
    uint64_t seed = 11;
    struct st_arena arena = {0};
    int wrong = 0, wrong_any = 0, cases = 0;
    for (int32_t out = 1; out <= 110; out++)
        for (int32_t round = 0; round < 12; round++, cases++) {
            const int32_t in = round < 4 ? between(&seed, 1, 40)
                               : round < 8 ? between(&seed, out, out * 4)
                                           : between(&seed, 1, 900);
            const int32_t channels = round & 1 ? 1 : 3, rows = between(&seed, 1, 5);
            const struct st_side side = {
                (enum st_filter)between(&seed, ST_FILTER_BOX, ST_FILTER_LANCZOS), in, out, 0, out};
            struct st_taps taps;
            if (!st_side_taps(&side, chance(&seed) & 1, &arena, &taps))
                abort();
            wrong += !across_agrees(kernels, &seed, &taps, in, channels, rows);
            st_arena_reset(&arena);
            const int32_t width = between(&seed, 1, in < 12 ? in : 12);
            const struct st_taps any = random_taps(&seed, out, width, in);
            wrong_any += !across_agrees(kernels, &seed, &any, in, channels, rows);
            free((void *)any.first);
            free((void *)any.weight);
        }
    st_arena_free(&arena);
    ok(wrong == 0, "%s across: %d of %d rows with filters differ from C", kernels->name, wrong, cases);
    ok(wrong_any == 0, "%s across: %d of %d rows with arbitrary taps differ from C", kernels->name,
       wrong_any, cases);
}

/* ---- vertical ---------------------------------------------------------------------------------- */

static bool down_agrees(const struct st_kernels *kernels, uint64_t *seed, size_t bytes, int32_t taps)
{
    uint8_t *rows[200], *expected = guarded(bytes), *out = guarded(bytes);
    int32_t weight[200], sum = 0;
    for (int32_t t = 0; t < taps; t++) {
        rows[t] = random_bytes(seed, bytes);
    }
    random_weights(seed, weight, taps);
    if (chance(seed) & 1) { /* weights that sum to 1 have a way of their own */
        for (int32_t t = 0; t + 1 < taps; t++)
            sum += weight[t] /= 5;
        weight[taps - 1] = (1 << ST_WEIGHT_BITS) - sum;
    }
    st_kernels_for(ST_CPU_C)->down(expected, (const uint8_t *const *)rows, weight, taps, bytes);
    kernels->down(out, (const uint8_t *const *)rows, weight, taps, bytes);
    const bool same = !memcmp(expected, out, bytes) && unharmed(out, bytes);
    for (int32_t t = 0; t < taps; t++)
        free(rows[t]);
    guarded_free(expected);
    guarded_free(out);
    return same;
}

static void test_down(const struct st_kernels *kernels)
{
    static const int32_t many[] = {16, 31, 127, 128, 129, 200};
    uint64_t seed = 12;
    int wrong = 0, cases = 0;
    for (size_t bytes = 0; bytes <= 150; bytes++)
        for (int32_t taps = 1; taps <= 9; taps++, cases++)
            wrong += !down_agrees(kernels, &seed, bytes, taps);
    for (int i = 0; i < 6; i++, cases++)
        wrong += !down_agrees(kernels, &seed, 77, many[i]);
    ok(wrong == 0, "%s down: %d of %d rows differ from C", kernels->name, wrong, cases);
}

/* ---- finish ------------------------------------------------------------------------------------ */

static const struct st_finish_spec imagenet = {
    .scaled = true, .dtype = STOKER_DTYPE_F32, .steps = 1,
    .step = {{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}}};
static const struct st_finish_spec scaled = {.scaled = true, .dtype = STOKER_DTYPE_F32};
static const struct st_finish_spec bytes_only = {.dtype = STOKER_DTYPE_U8};

/* All channels, `plane` apart; the bytes 0 to 255 come first where there is room. */
static bool finish_agrees(const struct st_kernels *kernels, uint64_t *seed, const struct st_finish *f,
                          int32_t width, bool mirror)
{
    const size_t row = (size_t)width * f->element, planes = f->layout == STOKER_LAYOUT_NCHW ? 3 : 1;
    const size_t plane = row + 5 * f->element,
                 bytes = planes == 3 ? plane * 2 + row : row * (size_t)f->channels;
    uint8_t *in = random_bytes(seed, (size_t)(width * f->channels));
    uint8_t *expected = guarded(bytes), *out = guarded(bytes);
    for (int32_t i = 0; width >= 768 && i < 768; i++)
        in[i] = (uint8_t)(i / f->channels);
    st_kernels_for(ST_CPU_C)->finish(f, expected, plane, in, width, mirror);
    kernels->finish(f, out, plane, in, width, mirror);
    const bool same = !memcmp(expected - GUARD, out - GUARD, bytes + 2 * GUARD);
    free(in);
    guarded_free(expected);
    guarded_free(out);
    return same;
}

static void test_finish(const struct st_kernels *kernels, const char *what,
                        const struct st_finish_spec *spec, enum stoker_dtype dtype)
{
    uint64_t seed = 14;
    int wrong = 0, cases = 0;
    struct st_finish f;
    for (int layout = STOKER_LAYOUT_NCHW; layout <= STOKER_LAYOUT_NHWC; layout++)
        for (int32_t channels = 1; channels <= 3; channels += 2) {
            if (st_finish_init(&f, spec, dtype, (enum stoker_layout)layout, channels, NULL))
                abort();
            for (int mirror = 0; mirror <= 1; mirror++) {
                for (int32_t width = 0; width <= 100; width++, cases++)
                    wrong += !finish_agrees(kernels, &seed, &f, width, mirror);
                wrong += !finish_agrees(kernels, &seed, &f, 800, mirror);
            }
        }
    ok(wrong == 0, "%s finish: %d of %d rows differ from C: %s, formula %d", kernels->name, wrong, cases,
       what, (int)f.formula);
}

static void test_finishes(const struct st_kernels *kernels)
{
    test_finish(kernels, "uint8", &bytes_only, STOKER_DTYPE_U8);
    test_finish(kernels, "uint8 as float32", &bytes_only, STOKER_DTYPE_F32);
    test_finish(kernels, "float32", &scaled, STOKER_DTYPE_F32);
    test_finish(kernels, "float16", &scaled, STOKER_DTYPE_F16);
    test_finish(kernels, "bfloat16", &scaled, STOKER_DTYPE_BF16);
    test_finish(kernels, "normalised float32", &imagenet, STOKER_DTYPE_F32);
    struct st_finish_spec of_v2 = imagenet;
    of_v2.by_product = true;
    test_finish(kernels, "normalised float32 of v2", &of_v2, STOKER_DTYPE_F32);
    test_finish(kernels, "normalised float16", &imagenet, STOKER_DTYPE_F16);
    test_finish(kernels, "normalised bfloat16", &imagenet, STOKER_DTYPE_BF16);
    const struct st_finish_spec product = {
        .dtype = STOKER_DTYPE_F32,
        .steps = 1,
        .step = {{{123.675f, 116.28f, 103.53f}, {0.0171248f, 0.0175070f, 0.0174292f}, .product = true}}};
    test_finish(kernels, "bytes times a factor as float32", &product, STOKER_DTYPE_F32);
    test_finish(kernels, "bytes times a factor as float16", &product, STOKER_DTYPE_F16);
    test_finish(kernels, "bytes times a factor as bfloat16", &product, STOKER_DTYPE_BF16);
    struct st_finish_spec half = imagenet;
    half.dtype = STOKER_DTYPE_F16;
    test_finish(kernels, "normalised in float16", &half, STOKER_DTYPE_F16);
    /* The cheap formula hides the exact one behind half precision: force it. */
    struct st_finish f;
    uint64_t seed = 15;
    int wrong = 0;
    for (int dtype = STOKER_DTYPE_F16; dtype <= STOKER_DTYPE_BF16; dtype++)
        for (int layout = STOKER_LAYOUT_NCHW; layout <= STOKER_LAYOUT_NHWC; layout++) {
            struct st_finish exact;
            st_finish_init(&exact, &imagenet, STOKER_DTYPE_F32, (enum stoker_layout)layout, 3, NULL);
            st_finish_init(&f, &imagenet, (enum stoker_dtype)dtype, (enum stoker_layout)layout, 3, NULL);
            f.formula = ST_FORMULA_NORMALIZE;
            memcpy(f.lanes, exact.lanes, sizeof f.lanes);
            for (int32_t width = 0; width <= 100; width++)
                wrong += !finish_agrees(kernels, &seed, &f, width, width & 1);
        }
    ok(wrong == 0, "%s finish: %d rows differ from C by the exact formula in half precision",
       kernels->name, wrong);
}

/* ---- time -------------------------------------------------------------------------------------- */

struct bench {
    const struct st_kernels *kernels;
    struct st_arena arena;
    struct st_view image, small;
    struct st_finish finish;
    struct st_resize job;
    uint8_t *slots;
    size_t slot, at;
};

enum { SIDE = 224, SLOTS = 32, RUNS = 200 };

static void bench_whole(struct bench *b)
{
    const struct st_place place = {b->slots + b->at, SIDE, SIDE};
    b->at = (b->at + b->slot) % (b->slot * SLOTS);
    st_resize_finish(&b->job, b->kernels, &b->arena, &b->image, &b->finish, true, false, &place);
    st_arena_reset(&b->arena);
}

static void bench_resize(struct bench *b)
{
    struct st_view out;
    st_resize_view(&b->job, b->kernels, &b->arena, &b->image, &out);
    st_arena_reset(&b->arena);
}

static void bench_taps(struct bench *b)
{
    const struct st_side x = {b->job.filter, b->job.in_width, SIDE, 0, SIDE, {0, b->job.in_width}};
    const struct st_side y = {b->job.filter, b->job.in_height, SIDE, 0, SIDE, {0, b->job.in_height}};
    struct st_taps taps;
    if (st_side_taps(&y, false, &b->arena, &taps) && st_side_taps(&x, true, &b->arena, &taps))
        b->kernels->across_plan(st_arena_take(&b->arena, b->kernels->across_size(&taps, 3)), &taps, 3);
    st_arena_reset(&b->arena);
}

static void bench_finish(struct bench *b)
{
    const struct st_place place = {b->slots + b->at, SIDE, SIDE};
    b->at = (b->at + b->slot) % (b->slot * SLOTS);
    st_finish_view(&b->finish, b->kernels, &b->small, false, false, &place);
}

static void report(const char *what, void (*work)(struct bench *), struct bench *b)
{
    uint64_t best = UINT64_MAX, total = 0;
    for (int i = 0; i < RUNS; i++) {
        const uint64_t start = st_now_ns();
        work(b);
        const uint64_t took = st_now_ns() - start;
        best = took < best ? took : best;
        total += took;
    }
    note("%-7s %-44s best %7.1f us, mean %7.1f us", b->kernels->name, what, (double)best / 1e3,
         (double)total / RUNS / 1e3);
}

static void bench(const struct st_kernels *kernels)
{
    static const char *const filters[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"};
    uint64_t seed = 16;
    struct bench b = {.kernels = kernels, .slot = (size_t)SIDE * SIDE * 3 * 4};
    b.slots = exactly(b.slot * SLOTS);
    memset(b.slots, 0, b.slot * SLOTS);
    b.small = (struct st_view){random_bytes(&seed, SIDE * SIDE * 3), SIDE * 3, SIDE, SIDE, 3};
    for (int size = 0; size < 3; size++) {
        const int32_t w = size == 0   ? 330
                          : size == 1 ? 160
                                      : 1500,
                      h = size == 0   ? 250
                          : size == 1 ? 120
                                      : 1100;
        b.image = (struct st_view){random_bytes(&seed, (size_t)(w * h * 3)), w * 3, w, h, 3};
        for (int filter = ST_FILTER_NEAREST; filter < ST_FILTERS; filter++) {
            char what[64];
            b.job = (struct st_resize){w, h, SIDE, SIDE, {0, 0, SIDE, SIDE}, (enum st_filter)filter, 13};
            st_finish_init(&b.finish, &imagenet, STOKER_DTYPE_F32, STOKER_LAYOUT_NCHW, 3, NULL);
            snprintf(what, sizeof what, "%dx%d %s to 224, float32 NCHW", w, h, filters[filter]);
            report(what, bench_whole, &b);
            if (size != 0 || filter != ST_FILTER_BILINEAR)
                continue;
            report("  of this: resize to bytes", bench_resize, &b);
            report("  of this: weights", bench_taps, &b);
            report("  of this: finish", bench_finish, &b);
            st_finish_init(&b.finish, &imagenet, STOKER_DTYPE_BF16, STOKER_LAYOUT_NHWC, 3, NULL);
            report("  the same to bfloat16 NHWC", bench_whole, &b);
            report("  of this: finish", bench_finish, &b);
            st_finish_init(&b.finish, &bytes_only, STOKER_DTYPE_U8, STOKER_LAYOUT_NCHW, 3, NULL);
            report("  the same to uint8 NCHW", bench_whole, &b);
        }
        free(b.image.data);
    }
    free(b.small.data);
    free(b.slots);
    st_arena_free(&b.arena);
}

int main(int argc, char **argv)
{
    const struct st_kernels *list[4];
    const int count = variants(list);
    for (int i = 1; i < count; i++) {
        test_across(list[i]);
        test_down(list[i]);
        test_finishes(list[i]);
    }
    ok(st_kernels_for(ST_CPU_AVX512) != NULL, "there is a table for every level");
    for (int i = 0; argc > 1 && !strcmp(argv[1], "--bench") && i < count; i++)
        bench(list[i]);
    return done_testing();
}
