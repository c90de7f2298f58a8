/* Ops that replace values, and sharpness: for every kind of CPU as by plain loops over pixels, one op after the
 * other. Bytes against Pillow: tests/python. */
#include "op/colour/tables.h"
#include "op/filter/sharpness.h"
#include "op/geometry/warp_rows.h"
#include "op/op_line.h"
#include "tap.h"

#include <math.h>

/* ---- by plain loops ------------------------------------------------------------------------------ */

static void histogram_of(const struct st_view *v, int32_t channel, uint64_t count_of[256])
{
    memset(count_of, 0, 256 * sizeof *count_of);
    for (int32_t y = 0; y < v->height; y++)
        for (int32_t x = 0; x < v->width; x++)
            count_of[st_row(v, y)[x * v->channels + channel]]++;
}

static void table_of(const struct st_pending *op, const uint64_t count_of[256], double mean, int32_t *table)
{
    int32_t low = 255, high = 0, kinds = 0;
    uint64_t total = 0, greatest = 0, below = 0;
    for (int32_t i = 0; i < 256; i++) {
        total += count_of[i];
        kinds += count_of[i] > 0;
        greatest = count_of[i] ? count_of[i] : greatest;
        low = count_of[i] && i < low ? i : low;
        high = count_of[i] ? i : high;
    }
    const uint64_t step = kinds > 1 ? (total - greatest) / 255 : 0;
    for (int32_t i = 0; i < 256; i++) {
        const float level = op->kind == ST_PENDING_CONTRAST ? (float)(int32_t)(mean + 0.5) : 0;
        const float part = op->factor * ((float)i - level);
        switch (op->kind) {
        case ST_PENDING_SOLARIZE: table[i] = i < (int32_t)op->level ? i : 255 - i; break;
        case ST_PENDING_POSTERIZE: table[i] = i & (int32_t)op->level; break;
        case ST_PENDING_LIGHTEN: table[i] = i < 128 ? i + (int32_t)op->level : i; break;
        case ST_PENDING_EQUALIZE: table[i] = step ? (int32_t)((step / 2 + below) / step) : i; break;
        case ST_PENDING_AUTOCONTRAST: {
            const double scale = 255.0 / (high - low), offset = -low * scale;
            table[i] = high > low ? (int32_t)(i * scale + offset) : i;
            break;
        }
        default: table[i] = (int32_t)fmaxf(0, fminf(level + part, 255));
        }
        table[i] = table[i] < 0 ? 0 : table[i] > 255 ? 255 : table[i];
        below += count_of[i];
    }
}

static double mean_grey(const struct st_view *v)
{
    double sum = 0;
    for (int32_t y = 0; y < v->height; y++)
        for (int32_t x = 0; x < v->width; x++) {
            const uint8_t *p = st_row(v, y) + x * v->channels;
            sum += v->channels == 1 ? p[0] : (19595 * p[0] + 38470 * p[1] + 7471 * p[2] + 0x8000) >> 16;
        }
    return sum / ((double)v->width * v->height);
}

static void replace_plainly(const struct st_pending *op, const struct st_view *v)
{
    const double mean = mean_grey(v);
    for (int32_t c = 0; c < v->channels; c++) {
        uint64_t count_of[256];
        int32_t table[256];
        histogram_of(v, c, count_of);
        table_of(op, count_of, mean, table);
        for (int32_t y = 0; y < v->height; y++)
            for (int32_t x = 0; x < v->width; x++) {
                uint8_t *p = st_row(v, y) + x * v->channels + c;
                *p = (uint8_t)table[*p];
            }
    }
}

/* As Pillow: a sum of floats, rounded; then a blend. */
static void sharpen_plainly(float factor, const struct st_view *in, const struct st_view *out)
{
    for (int32_t y = 1; y < in->height - 1; y++)
        for (int32_t i = in->channels; i < (in->width - 1) * in->channels; i++) {
            float sum = 0.5f;
            for (int32_t k = 0; k < 9; k++)
                sum += (k == 4 ? 5 / 13.0f : 1 / 13.0f) * (float)st_row(in, y + k / 3 - 1)[i + (k % 3 - 1) * in->channels];
            const float soft = (float)(int32_t)sum, mixed = soft + factor * (st_row(in, y)[i] - soft);
            st_row(out, y)[i] = (uint8_t)(int32_t)fmaxf(0, fminf(mixed, 255));
        }
}

/* ---- the same with the engine's ------------------------------------------------------------------- */

static const enum st_pending_kind kinds[] = {ST_PENDING_BRIGHTNESS, ST_PENDING_CONTRAST,     ST_PENDING_SOLARIZE,
                                             ST_PENDING_POSTERIZE,  ST_PENDING_AUTOCONTRAST, ST_PENDING_EQUALIZE,
                                             ST_PENDING_LIGHTEN,    ST_PENDING_SHARPNESS};
enum { KINDS = sizeof kinds / sizeof *kinds, SHARPNESS = KINDS - 1 };

static struct st_pending any(struct st_rng *rng, enum st_pending_kind kind)
{
    struct st_pending op = {.kind = kind, .factor = (float)st_rng_range(rng, -0.5, 3)};
    op.level = kind == ST_PENDING_POSTERIZE ? st_posterize_mask((int32_t)st_rng_below(rng, 9))
                                            : (uint32_t)st_rng_below(rng, kind == ST_PENDING_LIGHTEN ? 129 : 257);
    return op;
}

/* Noise, of few values or many, in each channel others. */
static struct st_view picture(struct st_rng *rng, int32_t width, int32_t height, int32_t channels)
{
    struct st_view v = noise(width, height, channels, st_rng_u64(rng));
    for (int32_t c = 0; c < channels; c++) {
        const uint32_t spread = (uint32_t)st_rng_below(rng, 256) + 1, from = (uint32_t)st_rng_below(rng, 257 - spread);
        for (size_t i = (size_t)c; i < (size_t)v.stride * (size_t)height; i += (size_t)channels)
            v.data[i] = (uint8_t)(v.data[i] % spread + from);
    }
    return v;
}

static bool same_pixels(const struct st_view *a, const struct st_view *b)
{
    bool same = true;
    for (int32_t y = 0; y < a->height; y++)
        same = same && !memcmp(st_row(a, y), st_row(b, y), (size_t)a->width * (size_t)a->channels);
    return same;
}

static struct st_view copy_of(const struct st_view *v)
{
    struct st_view copy = *v;
    copy.data = malloc((size_t)v->stride * (size_t)v->height + 64);
    memcpy(copy.data, v->data, (size_t)v->stride * (size_t)v->height);
    return copy;
}

/* Runs the ops on one image; whether that is what plain loops make of it. */
static bool agrees(const struct st_colour_rows *rows, struct st_view in, const struct st_pending *ops, uint32_t count)
{
    struct st_arena arena = {0};
    struct st_view plain = copy_of(&in), made = copy_of(&in);
    const struct st_view mine = made;
    for (uint32_t k = 0; k < count; k++)
        if (ops[k].kind == ST_PENDING_SHARPNESS) {
            struct st_view sharp = copy_of(&plain);
            sharpen_plainly(ops[k].factor, &plain, &sharp);
            free(plain.data);
            plain = sharp;
        } else {
            replace_plainly(&ops[k], &plain);
        }
    const bool same = st_pending_run(ops, count, rows, st_warp_rows_for(ST_CPU_C), &arena, &made, &(bool){true}) == 0 && same_pixels(&made, &plain);
    st_arena_free(&arena);
    free(plain.data);
    free(mine.data);
    return same;
}

static void one_by_one(enum st_cpu_level level)
{
    static const int32_t sides[][2] = {{1, 1}, {2, 7}, {3, 3}, {5, 2}, {21, 13}, {64, 5}, {65, 66}, {130, 40}};
    int wrong = 0;
    struct st_rng rng;
    st_rng_init(&rng, 5, 0, 0, 0);
    for (size_t s = 0; s < sizeof sides / sizeof *sides; s++)
        for (uint32_t k = 0; k < 40 * KINDS; k++) {
            const struct st_view in = picture(&rng, sides[s][0], sides[s][1], k & 1 ? 3 : 1);
            const struct st_pending op = any(&rng, kinds[k % KINDS]);
            const bool fine = agrees(st_colour_rows_for(level), in, &op, 1);
            if (!fine && !wrong++)
                note("kind %d, %d x %d x %d, factor %g, level %u", (int)op.kind, in.width, in.height, in.channels,
                     (double)op.factor, op.level);
            free(in.data);
        }
    ok(wrong == 0, "%s: each op as by plain loops (%d are not)", st_cpu_level_name(level), wrong);
}

static void several(enum st_cpu_level level)
{
    int wrong = 0;
    struct st_rng rng;
    st_rng_init(&rng, 6, 0, 0, 0);
    for (uint32_t k = 0; k < 300; k++) {
        const int32_t width = 1 + (int32_t)st_rng_below(&rng, 50), height = 1 + (int32_t)st_rng_below(&rng, 50);
        const struct st_view in = picture(&rng, width, height, k % 3 ? 3 : 1);
        struct st_pending ops[6];
        for (int i = 0; i < 6; i++)
            ops[i] = any(&rng, kinds[st_rng_below(&rng, k & 1 ? KINDS : SHARPNESS)]);
        wrong += !agrees(st_colour_rows_for(level), in, ops, 6);
        free(in.data);
    }
    ok(wrong == 0, "%s: six ops, run as few, as one after the other (%d are not)", st_cpu_level_name(level), wrong);
}

/* ---- the ops --------------------------------------------------------------------------------------- */

static void levels(void)
{
    static const struct {
        double threshold;
        uint32_t level;
    } cases[] = {{-1e300, 0}, {-0.5, 0}, {0, 0}, {0.001, 1}, {127.5, 128}, {128, 128}, {255, 255}, {255.001, 256}, {1e300, 256}};
    int wrong = 0;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        wrong += st_solarize_level(cases[k].threshold) != cases[k].level;
    ok(wrong == 0, "the first value that is not less than a threshold");
    ok(st_posterize_mask(8) == 255 && st_posterize_mask(1) == 128 && st_posterize_mask(0) == 0, "bits that are kept");
}

/* With p=0 an op does nothing, with p=1 what it is for, and in between something else now and then. */
static void probabilities(void)
{
    static const char *const ops[] = {"random_invert",       "random_posterize bits=2", "random_solarize threshold=99.5",
                                      "random_autocontrast", "random_equalize",         "random_adjust_sharpness sharpness_factor=3"};
    struct st_work work = work_make(st_cpu_level());
    struct st_view in = noise(20, 20, 3, 3);
    for (size_t i = 0; i < 1200; i++)
        in.data[i] = (uint8_t)(in.data[i] / 2 + 20);
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        uint32_t changed[3] = {0};
        static const char *const p[3] = {"0", "0.3", "1"};
        for (int i = 0; i < 3; i++)
            for (uint64_t seed = 0; seed < 400; seed++) {
                struct stoker_error err;
                char text[100];
                int rc;
                snprintf(text, sizeof text, "%s p=%s", ops[k], p[i]);
                const struct st_view out = run_on(&work, &in, text, seed, &rc, &err);
                changed[i] += rc == 0 && !same_pixels(&out, &in);
                free(out.data);
            }
        ok(changed[0] == 0 && changed[1] > 80 && changed[1] < 160 && changed[2] == 400,
           "%s: for 0, %u and %u of 400 images", ops[k], changed[1], changed[2]);
    }
    free(in.data);
    work_free(&work);
}

int main(void)
{
    for (enum st_cpu_level level = ST_CPU_C; level <= st_cpu_level(); level++) {
        one_by_one(level);
        several(level);
    }
    levels();
    probabilities();
    return done_testing();
}
