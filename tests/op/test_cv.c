/* Operations with OpenCV's arithmetic: every variant gives the bytes of plain C, reads only the input
 * and writes only the output; and what cannot be done is refused. (tests/python/test_cv.py compares with
 * OpenCV itself.)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/cv.h"
#include "variants.h"

#include <math.h>

enum { ROUNDS = 1200, NUMBERS = 32 };

struct trial {
    struct st_cv_call call;
    double numbers[NUMBERS];
    uint8_t *input, *table[ST_CV_TABLES];
};

static int32_t side(uint64_t *state)
{
    static const int32_t most[] = {3, 20, 100, 300};
    return between(state, 1, most[chance(state) % 4]);
}

static uint8_t *noise(uint64_t *state, size_t size)
{
    const bool extremes = chance(state) % 4 == 0;
    uint8_t *bytes = exactly(size);
    for (size_t k = 0; k < size; k++)
        bytes[k] = extremes ? (chance(state) & 1 ? 255 : 0) : (uint8_t)chance(state);
    return bytes;
}

/* Sizes of the result, and the op's numbers. */
static void draw_resize(struct trial *trial, uint64_t *state)
{
    struct st_view *in = &trial->call.in, *out = &trial->call.out;
    out->width = side(state);
    out->height = side(state);
    if (chance(state) % 4 == 0) { /* by whole numbers */
        const int32_t step = between(state, 1, 4);
        out->width = in->width = in->width < step ? step : in->width / step * step;
        out->height = in->height = in->height < step ? step : in->height / step * step;
        out->width /= step;
        out->height /= step;
    }
}

static double around(uint64_t *state, double most)
{
    return most * (between(state, -10000, 10000) / 10000.);
}

/* The last numbers of all warps. */
static void draw_warp(struct trial *trial, uint64_t *state)
{
    double *next = trial->numbers + trial->call.count;
    if (trial->call.in.channels == 2)
        trial->call.in.channels = 3;
    trial->call.out.channels = trial->call.in.channels;
    trial->call.out.width = side(state);
    trial->call.out.height = side(state);
    *next++ = between(state, 0, 4);
    for (int c = 0; c < ST_CV_CHANNELS; c++)
        *next++ = between(state, -20, 300);
    trial->call.count = (uint32_t)(next - trial->numbers);
}

static void draw_map(struct trial *trial, uint64_t *state, uint32_t count)
{
    const bool straight = chance(state) % 4 == 0;
    for (uint32_t k = 0; k < count; k++)
        trial->numbers[k] = k == 8             ? 1
                            : k >= 6           ? around(state, 0.002)
                            : k % 3 == 2       ? around(state, 200)
                            : straight         ? k % 3 == k / 3
                            : k == 0 || k == 4 ? 1 + around(state, 0.9)
                                               : around(state, 0.9);
    trial->numbers[count] = between(state, 0, 1);
    trial->call.count = count + 1;
    draw_warp(trial, state);
}

static void draw_affine(struct trial *trial, uint64_t *state) { draw_map(trial, state, 6); }
static void draw_perspective(struct trial *trial, uint64_t *state) { draw_map(trial, state, 9); }

static void draw_remap(struct trial *trial, uint64_t *state)
{
    draw_warp(trial, state);
    const struct st_view *in = &trial->call.in, *out = &trial->call.out;
    const uint32_t tables = trial->call.tables = (uint32_t)between(state, 1, 2);
    const size_t count = (size_t)out->width * (size_t)out->height * (3 - tables);
    const double reach = chance(state) % 4 ? 0 : 1000;
    for (uint32_t k = 0; k < tables; k++) {
        float *points = exactly(count * sizeof *points);
        const int32_t size = k ? in->height : in->width;
        for (size_t p = 0; p < count; p++)
            points[p] = (float)(size / 2. + around(state, size * 0.8 + reach));
        trial->table[k] = (uint8_t *)points;
        trial->call.table[k] = (struct st_bytes){trial->table[k], count * sizeof *points};
    }
}

static const struct {
    const char *op;
    void (*draw)(struct trial *trial, uint64_t *state);
} drawn[] = {
    {"remap", draw_remap},          {"remap_nearest", draw_remap},
    {"resize_area", draw_resize},   {"resize_linear", draw_resize},
    {"resize_nearest", draw_resize},
    {"warp_affine", draw_affine},   {"warp_perspective", draw_perspective},
    {"warp_affine_nearest", draw_affine}, {"warp_perspective_nearest", draw_perspective},
};

static size_t bytes_of(const struct st_view *view)
{
    return (size_t)view->stride * (size_t)view->height;
}

static void draw(struct trial *trial, size_t op, uint64_t *state)
{
    struct st_view *in = &trial->call.in, *out = &trial->call.out;
    *trial = (struct trial){.call.numbers = trial->numbers};
    *in =
        (struct st_view){.width = side(state), .height = side(state), .channels = between(state, 1, 4)};
    *out = *in;
    drawn[op].draw(trial, state);
    in->stride = (ptrdiff_t)in->width * in->channels;
    out->stride = (ptrdiff_t)out->width * out->channels;
    in->data = trial->input = noise(state, bytes_of(in));
}

static void drop(struct trial *trial)
{
    free(trial->input);
    for (int k = 0; k < ST_CV_TABLES; k++)
        free(trial->table[k]);
}

/* The result at a level, in guarded memory; NULL with a note if it failed. */
static uint8_t *result(const struct trial *trial, const struct st_cv_op *op, enum st_cpu_level level)
{
    struct st_arena arena = {0};
    struct st_cv_call call = trial->call;
    struct stoker_error err = {0};
    uint8_t *bytes = call.out.data = guarded(bytes_of(&call.out));
    call.numbers = trial->numbers;
    call.arena = &arena;
    call.level = level;
    const int rc = st_cv_run(op, &call, &err);
    if (rc == STOKER_EUNSUPPORTED) /* for any level, or the bytes differ */
        memset(bytes, 0, bytes_of(&call.out));
    else if (rc || !unharmed(bytes, bytes_of(&call.out))) {
        note("%s, %s: %s", op->name, st_cpu_level_name(level),
             err.code ? err.message : "a guard is gone");
        guarded_free(bytes);
        bytes = NULL;
    }
    st_arena_free(&arena);
    return bytes;
}

static bool same(struct trial *trial, const struct st_cv_op *op, const struct st_kernels *const *levels,
                 int count)
{
    uint8_t *plain = result(trial, op, ST_CPU_C);
    bool all = plain != NULL;
    for (int k = 1; plain && k < count; k++) {
        enum st_cpu_level level = ST_CPU_C;
        while (strcmp(st_cpu_level_name(level), levels[k]->name))
            level++;
        uint8_t *bytes = result(trial, op, level);
        if (!bytes || memcmp(bytes, plain, bytes_of(&trial->call.out))) {
            note("%s, %s: %d x %d x %d to %d x %d", op->name, levels[k]->name, trial->call.in.height,
                 trial->call.in.width, trial->call.in.channels, trial->call.out.height,
                 trial->call.out.width);
            all = false;
        }
        if (bytes)
            guarded_free(bytes);
    }
    if (plain)
        guarded_free(plain);
    return all;
}

static void test_variants(void)
{
    const struct st_kernels *levels[4];
    const int count = variants(levels);
    for (size_t k = 0; k < sizeof drawn / sizeof *drawn; k++) {
        const struct st_cv_op *op = st_cv_find(drawn[k].op);
        uint64_t state = 17 + k;
        bool all = op != NULL;
        for (unsigned round = 0; all && round < share_of(ROUNDS); round++) {
            struct trial trial;
            draw(&trial, k, &state);
            all = same(&trial, op, levels, count);
            drop(&trial);
        }
        ok(all, "%s: all variants give the bytes of plain C", drawn[k].op);
    }
    size_t known = 0;
    while (st_cv_ops[known])
        known++;
    ok(known == sizeof drawn / sizeof *drawn, "these are all operations");
}

static void test_refusals(void)
{
    uint8_t in[64] = {0}, out[64];
    const double numbers[] = {NAN, 0};
    const struct st_cv_op *op = st_cv_find("resize_linear");
    struct st_arena arena = {0};
    struct stoker_error err;
    struct st_cv_call good = {.in = {in, 8, 2, 4, 4}, .out = {out, 8, 2, 4, 4}, .arena = &arena};
    struct st_cv_call call = good;
    ok(st_cv_run(op, &call, &err) == STOKER_OK, "a good call passes");
    call.in.width = 0;
    ok(st_cv_run(op, &call, &err) == STOKER_EINVAL, "no width: %s", err.message);
    call = good;
    call.in.height = ST_CV_SIDE + 1;
    ok(st_cv_run(op, &call, &err) == STOKER_EINVAL, "too high: %s", err.message);
    call = good;
    call.out.channels = 3;
    ok(st_cv_run(op, &call, &err) == STOKER_EINVAL, "other channels: %s", err.message);
    call = good;
    call.numbers = numbers;
    call.count = 1;
    ok(st_cv_run(op, &call, &err) == STOKER_EINVAL, "too many numbers: %s", err.message);
    call = good;
    call.tables = 1;
    ok(st_cv_run(op, &call, &err) == STOKER_EINVAL, "a table too many: %s", err.message);
    ok(!st_cv_find("resize"), "an operation that there is not");
    st_arena_free(&arena);
}

int main(void)
{
    test_variants();
    test_refusals();
    return done_testing();
}
