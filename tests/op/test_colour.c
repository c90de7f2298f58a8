/* Colour: hue for all it can be given, every kind of CPU alike, images without colour. Bytes against
 * Pillow: tests/python. */
#include "op_line.h"
#include "tap.h"

#include <math.h>

static struct st_work work;

/* Hue by way of HSV, step by step in the types that Pillow uses. */
static void hue_spec(uint8_t *px, uint8_t shift)
{
    const int r = px[0], g = px[1], b = px[2];
    const int high = r > g ? (r > b ? r : b) : (g > b ? g : b),
              low = r < g ? (r < b ? r : b) : (g < b ? g : b);
    if (high == low)
        return;
    const float span = (float)(high - low);
    const float rc = (float)(high - r) / span, gc = (float)(high - g) / span,
                bc = (float)(high - b) / span;
    float h = r == high ? bc - gc : g == high ? (float)(2.0 + rc - bc) : (float)(4.0 + gc - rc);
    h = (float)fmod(h / 6.0 + 1.0, 1.0);
    const int hue = ((int)(h * 255.0) + shift) & 255;
    const float s = (float)((int)(span / (float)high * 255.0) / 255.0);
    const int i = (int)floor(hue * 6.0 / 255.0);
    const float f = (float)(hue * 6.0 / 255.0 - i);
    const int p = (int)round(high * (1.0 - s)), q = (int)round(high * (1.0 - s * f));
    const int t = (int)round(high * (1.0 - s * (1.0 - f)));
    const int table[6][3] = {{high, t, p}, {q, high, p}, {p, high, t},
                             {p, q, high}, {t, p, high}, {high, p, q}};
    for (int c = 0; c < 3; c++)
        px[c] = (uint8_t)table[i % 6][c];
}

static void hues(void)
{
    uint8_t *row = malloc(3 * 65536), *want = malloc(3 * 65536);
    uint64_t wrong = 0;
    for (int r = 0; r < 256; r += 258 / (int)share_of(86)) { /* times 65,536 colours, another shift for each red */
        const uint8_t shift = (uint8_t)(r * 7);
        for (int i = 0; i < 65536; i++) {
            row[3 * i] = want[3 * i] = (uint8_t)r;
            row[3 * i + 1] = want[3 * i + 1] = (uint8_t)(i >> 8);
            row[3 * i + 2] = want[3 * i + 2] = (uint8_t)i;
            hue_spec(want + 3 * i, shift);
        }
        work.colour->hue(row, row, 65536, shift);
        wrong += memcmp(row, want, 3 * 65536) != 0;
    }
    ok(wrong == 0, "hue is right for millions of colours");
    free(row);
    free(want);
}

/* Bytes outside the row must stay. */
static bool rows_agree(const struct st_colour_rows *a, const struct st_colour_rows *b, size_t count,
                       int which)
{
    enum { GUARD = 64, ROOM = 3 * 300 };
    uint8_t one[ROOM + 2 * GUARD], two[sizeof one], grey_one[sizeof one], grey_two[sizeof one];
    struct st_rng rng;
    st_rng_init(&rng, count, 0, (uint64_t)which, 0);
    for (size_t i = 0; i < sizeof one; i++)
        one[i] = two[i] = grey_one[i] = grey_two[i] = (uint8_t)st_rng_u32(&rng);
    const float factor = (float)st_rng_range(&rng, 0, 3);
    const struct st_colour_rows *rows[2] = {a, b};
    uint8_t *at[2] = {one + GUARD, two + GUARD}, *grey[2] = {grey_one + GUARD, grey_two + GUARD};
    uint8_t *const *to = count % 2 ? at : grey; /* where they read, or elsewhere */
    float sums[2][sizeof one] = {0};
    uint64_t sum[2] = {0}, count_of[2][3][256] = {0};
    uint8_t tables[3][256];
    for (int i = 0; i < 3 * 256; i++)
        tables[i / 256][i % 256] = (uint8_t)st_rng_u32(&rng);
    for (int k = 0; k < 2; k++)
        switch (which) {
        case 0:
            rows[k]->blend(at[k], 3 * count, 100, factor);
            break;
        case 1:
            rows[k]->saturate(to[k], at[k], count, factor);
            break;
        case 2:
            rows[k]->hue(to[k], at[k], count, (uint8_t)(factor * 80));
            break;
        case 3:
            rows[k]->grey(grey[k], at[k], count);
            break;
        case 4:
            rows[k]->grey3(to[k], at[k], count);
            break;
        case 5: /* tables that differ, of any values */
        case 6:
            rows[k]->replace(to[k], at[k], which == 5 ? count : 3 * count, which == 5 ? 3 : 1, tables);
            break;
        case 7:
            if (count > 1)
                rows[k]->sharpen(grey[k], at[k] - 9, at[k], at[k] + 7, count, 1, factor);
            break;
        case 11:
            rows[k]->fold(to[k], at[k], 3 * count, (uint32_t)(factor * 90), (uint8_t)(255 - count % 64));
            break;
        case 12:
        case 13: {
            const float mul[] = {factor, 0.7f, -1.5f}, add[] = {-30.25f, 40, 300};
            rows[k]->line(to[k], at[k], 3 * count, which == 12 ? 1 : 3, mul, add);
            break;
        }
        case 14: {
            const int32_t channels = 1 + 2 * ((int32_t)count % 2), width = 3 * (int32_t)count / channels;
            if (count < 6)
                break;
            memset(grey[k], 255, 3);
            memset(grey[k] + 3, 0, 3);
            rows[k]->extent(&(struct st_view){at[k], 0, width, 2, channels}, grey[k], grey[k] + 3);
            break;
        }
        case 9:
            rows[k]->blur_down(sums[k], (const uint8_t *[]){at[k], at[k] + 3, at[k] - 9, at[k] + 1, at[k] - 4},
                               count, (float[]){0.31f, 0.22f, 0.125f}, 2);
            break;
        case 10:
            for (size_t i = 0; i < sizeof one; i++)
                sums[k][i] = (float)at[k][(ptrdiff_t)i - GUARD] * 0.97f;
            rows[k]->blur_across(grey[k], sums[k] + GUARD, count, 1 + 2 * ((int32_t)count % 2),
                                 (float[]){0.31f, 0.22f, 0.125f}, 2);
            break;
        case 8:
            rows[k]->histogram(&(struct st_view){at[k], 0, (int32_t)count, 1 + (int32_t)count % 3, 3}, count_of[k]);
            break;
        default:
            sum[k] = rows[k]->grey_sum(at[k], count);
            break;
        }
    bool untouched = true;
    const size_t grey_bytes = to == grey && which != 3 ? 3 * count : count;
    struct st_rng again;
    st_rng_init(&again, count, 0, (uint64_t)which, 0);
    for (size_t i = 0; i < sizeof one; i++) {
        const uint8_t before = (uint8_t)st_rng_u32(&again);
        if (i < GUARD || i >= GUARD + 3 * count)
            untouched = untouched && two[i] == before;
        if (i < GUARD || i >= GUARD + grey_bytes)
            untouched = untouched && grey_two[i] == before;
    }
    return untouched && !memcmp(one, two, sizeof one) && !memcmp(grey_one, grey_two, sizeof one) &&
           sum[0] == sum[1] && !memcmp(sums[0], sums[1], sizeof sums[0]) &&
           !memcmp(count_of[0], count_of[1], sizeof *count_of);
}

static void variants(void)
{
    const struct st_colour_rows *plain = st_colour_rows_for(ST_CPU_C);
    for (enum st_cpu_level level = ST_CPU_C; level <= st_cpu_level(); level++) {
        int wrong = 0;
        for (size_t count = 0; count < 300; count += count < 80 ? 1 : 31)
            for (int which = 0; which < 16; which++)
                wrong += !rows_agree(plain, st_colour_rows_for(level), count, which);
        ok(wrong == 0, "colour rows of %s are those of plain C, and write nothing else",
           st_cpu_level_name(level));
    }
}

/* The sum is exact in double, so rounding it to float once is what fusing does. */
static void fused_blend(void)
{
    const float factors[] = {0.0f, 0.73f, 1.1f, 1.7f, 2.9f};
    uint32_t wrong = 0, uneven = 0;
    for (size_t k = 0; k < sizeof factors / sizeof *factors; k++)
        for (int level = 0; level < 256; level++) {
            uint8_t fused[256], plain[256];
            for (int i = 0; i < 256; i++)
                fused[i] = plain[i] = (uint8_t)i;
            st_colour_rows_fused.blend(fused, 256, (float)level, factors[k]);
            st_colour_rows_for(ST_CPU_C)->blend(plain, 256, (float)level, factors[k]);
            for (int i = 0; i < 256; i++) {
                const float sum = (float)((double)level + (double)factors[k] * (i - level));
                wrong += fused[i] != (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
                uneven += fused[i] != plain[i];
            }
        }
    ok(wrong == 0 && uneven > 1000, "a fused blend rounds once, which changes %u values of %u", uneven, 5u << 16);
}

static void colours(void)
{
    struct st_view in = noise(31, 17, 1, 4);
    struct stoker_error err;
    int rc;
    struct st_view out = run_on(
        &work, &in, "color_jitter saturation=2,2 hue=0.3,0.3; random_grayscale p=1", 0, &rc, &err);
    ok(rc == 0 && out.channels == 1 && !memcmp(out.data, in.data, 31 * 17),
       "a grey image has no colour to change");
    free(out.data);
    out = run_on(&work, &in, "color_jitter brightness=0,0", 0, &rc, &err);
    uint32_t sum = 0;
    for (int i = 0; i < 31 * 17; i++)
        sum += out.data[i];
    ok(rc == 0 && sum == 0, "no brightness is black");
    free(out.data);
    free(in.data);
    in = noise(31, 17, 3, 4);
    struct st_view mirrored = run_on(
        &work, &in, "random_horizontal_flip p=1; grayscale; random_vertical_flip p=1", 0, &rc, &err);
    struct st_view plain = run_on(&work, &in, "grayscale", 0, &rc, &err);
    bool same = mirrored.channels == 1;
    for (int32_t y = 0; y < 17; y++)
        for (int32_t x = 0; x < 31; x++)
            same = same && st_row(&mirrored, y)[x] == st_row(&plain, 16 - y)[30 - x];
    ok(same, "a noted flip survives a change of channels");
    free(mirrored.data);
    free(plain.data);
    run_on(&work, &in, "gaussian_blur kernel_size=63,3", 0, &rc, &err);
    ok(rc == STOKER_EINVAL, "a kernel beyond the image: %s", err.message);
    memset(in.data, 77, 31 * 17 * 3);
    struct st_view blurred = run_on(&work, &in, "gaussian_blur kernel_size=61,33", 0, &rc, &err);
    ok(rc == 0 && !memcmp(blurred.data, in.data, 31 * 17 * 3),
       "blur keeps an even grey, with the largest kernel");
    free(blurred.data);
    free(in.data);
}

int main(void)
{
    work = work_make(st_cpu_level());
    hues();
    variants();
    fused_blend();
    colours();
    work_free(&work);
    return done_testing();
}
