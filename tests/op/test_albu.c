/* Ops that change values as Albumentations does: the same bytes for every kind of CPU, those of plain formulas where
 * these are short, nothing for masks, and clear errors. Bytes against Albumentations: tests/python.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/colour.h"
#include "op/cv/filter.h"
#include "op/op_line.h"
#include "tap.h"

#include <math.h>

static const int32_t sides[][2] = {{1, 1}, {2, 7}, {1, 9}, {3, 3}, {5, 2}, {21, 13}, {64, 5}, {131, 66}, {700, 3}};
enum { SIDES = sizeof sides / sizeof *sides };

static bool same_pixels(const struct st_view *a, const struct st_view *b)
{
    bool same = a->width == b->width && a->height == b->height && a->channels == b->channels;
    for (int32_t y = 0; same && y < a->height; y++)
        same = !memcmp(st_row(a, y), st_row(b, y), (size_t)a->width * (size_t)a->channels);
    return same;
}

/* ---- each kind of CPU ---- */

static const char *const ops[] = {
    "albu_brightness_contrast brightness=-0.6,0.6 contrast=-0.9,3",
    "albu_brightness_contrast brightness=-0.6,0.6 by_mean=1",
    "albu_brightness_contrast brightness=-0.6,0.6 contrast=-0.9,3 safe=1",
    "albu_gamma gamma=10,400",
    "albu_posterize bits=1,8",
    "albu_solarize threshold=0,1",
    "albu_shift_rgb r=-0.8,0.8 b=-0.01,0.02",
    "albu_equalize",
    "albu_equalize luma=1",
    "albu_shift_hsv hue=-180,180 saturation=-255,255 value=-255,255",
    "albu_jitter brightness=0,2 contrast=0,2 saturation=0,3 hue=-0.5,0.5",
    "albu_grey",
    "albu_grey method=from_lab",
    "albu_grey method=desaturation",
    "albu_grey method=average",
    "albu_grey method=max",
    "albu_downscale scale=0.7,0.95",
    "albu_noise",
    "albu_clahe clip=0.5,5",
    "albu_multiply by=0,3",
    "albu_multiply by=0.5,1.5 per_channel=1 each=1",
    "albu_tone_curve scale=1",
    "albu_salt_and_pepper amount=0,1 salt=0,1",
    "albu_drop_pixels share=0.5 fill=random",
    "albu_clahe tiles=3,7",
    "albu_iso_noise",
    "albu_iso_noise color_shift=0,1 intensity=0,100",
    "albu_noise grey=1 mean=-0.5,0.5 std=0,1",
    "albu_box_blur side=3,31",
    "albu_median_blur side=3,15",
    "albu_gaussian_blur sigma=0.3,9",
    "albu_gaussian_blur side=0,127",
    "albu_motion_blur side=3,9 shifted=1",
    "albu_sharpen alpha=0,1 lightness=0,2",
    "albu_emboss alpha=0,1 strength=0,2",
    "jpeg quality=1,100 swapped=1",
};

static bool agree(const char *op, const struct st_view *in, uint64_t seed, struct st_work *works, int count)
{
    struct stoker_error err = {0};
    int rc;
    const struct st_view plain = run_on(&works[0], in, op, seed, &rc, &err);
    bool same = rc == 0;
    if (rc)
        note("%s: %s", op, err.message);
    for (int k = 1; same && k < count; k++) {
        const struct st_view other = run_on(&works[k], in, op, seed, &rc, &err);
        same = rc == 0 && same_pixels(&plain, &other);
        free(other.data);
    }
    if (!same)
        note("%s, %d x %d x %d, seed %llu", op, in->width, in->height, in->channels, (unsigned long long)seed);
    free(plain.data);
    return same;
}

static void variants_agree(void)
{
    struct st_work works[ST_CPU_AVX512 + 1];
    int count = 0;
    for (enum st_cpu_level level = ST_CPU_C; level <= st_cpu_level(); level++)
        works[count++] = work_make(level);
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        bool all = true;
        for (uint64_t seed = 0; all && seed < share_of(8 * SIDES); seed++) {
            const struct st_view in = noise(sides[seed % SIDES][0], sides[seed % SIDES][1], seed & 8 ? 3 : 1, seed);
            all = agree(ops[k], &in, seed, works, count);
            free(in.data);
        }
        ok(all, "%s: every kind of CPU", ops[k]);
    }
    for (int k = 0; k < count; k++)
        work_free(&works[k]);
}

/* What adds numbers to hue, saturation and value takes a faster way than other tables. */
static void hsv_of_all_kinds(void)
{
    enum { STEP = 5, SIDE = 256 / STEP + 1, COUNT = SIDE * SIDE * SIDE, TABLES = 40 };
    static uint8_t rgb[3 * COUNT], plain[3 * COUNT], made[3 * COUNT];
    bool same = true;
    for (uint32_t k = 0; k < COUNT; k++)
        for (uint32_t c = 0, at = k; c < 3; c++, at /= SIDE)
            rgb[3 * k + c] = (uint8_t)(at % SIDE * STEP);
    for (int n = 0; same && n < TABLES; n++) {
        const int32_t hue = 37 * n % 180, more = n % 4 == 3 ? 255 - n : 11 * n % 90 - 45, sign = n % 8 < 4 ? 1 : -1;
        uint8_t table[3][256];
        for (int32_t v = 0; v < 256; v++) {
            const int32_t sum = v + sign * more;
            table[0][v] = (uint8_t)((v + hue) % 180);
            table[1][v] = table[2][v] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
        }
        table[1][0] = n % 10 == 9 ? table[1][0] : 0;
        table[n % 3][3 * n] ^= n % 5 == 4; /* of another kind */
        table[0][0] %= 180;
        memcpy(plain, rgb, sizeof rgb);
        st_cv_colour_rows_for(ST_CPU_C)->through_hsv(plain, COUNT - (size_t)n, (const uint8_t(*)[256])table);
        for (enum st_cpu_level level = ST_CPU_C + 1; level <= st_cpu_level(); level++) {
            memcpy(made, rgb, sizeof rgb);
            st_cv_colour_rows_for(level)->through_hsv(made, COUNT - (size_t)n, (const uint8_t(*)[256])table);
            same = same && !memcmp(plain, made, sizeof made);
        }
    }
    ok(same, "through hue, saturation and value with sums and with other tables: every kind of CPU");
}

static void flips_may_come_later(void)
{
    static const int32_t widths[] = {1, 21, 32, 33, 64, 700};
    struct st_work work = work_make(st_cpu_level());
    bool same = true;
    for (size_t k = 0; same && k < sizeof widths / sizeof *widths; k++) {
        static const char shift[] = "albu_shift_hsv hue=9,9 saturation=-20,-20 value=13,13";
        const struct st_view in = noise(widths[k], 5, 3, k);
        struct stoker_error err = {0};
        int rc[3];
        const struct st_view flipped = run_on(&work, &in, "random_horizontal_flip p=1", 1, &rc[0], &err);
        const struct st_view at_once = run_on(&work, &flipped, shift, 1, &rc[1], &err);
        struct op_line line;
        struct st_image image;
        struct st_view later;
        st_image_wrap(&image, &work, in);
        st_image_mirror(&image);
        rc[2] = line_open(&line, shift) ? line_plan(&line, -1, -1, 3, &err) : -1;
        rc[2] = rc[2] >= 0 ? line_run(&line, &image, 1, &err) : rc[2];
        rc[2] = rc[2] >= 0 ? st_image_pixels(&image, false, false, &later, &err) : rc[2];
        same = rc[0] >= 0 && rc[1] >= 0 && rc[2] >= 0 && same_pixels(&at_once, &later);
        line_free(&line);
        free(in.data);
        free(flipped.data);
        free(at_once.data);
    }
    ok(same, "an image that is still to be flipped gets the same bytes");
    work_free(&work);
}

/* ---- plain formulas ---- */

static int compare_bytes(const void *a, const void *b) { return *(const uint8_t *)a - *(const uint8_t *)b; }

static int32_t mirrored(int32_t at, int32_t count)
{
    while (count > 1 && (at < 0 || at >= count))
        at = at < 0 ? -at : 2 * (count - 1) - at;
    return count > 1 ? at : 0;
}

static int32_t nearest(int32_t at, int32_t count) { return at < 0 ? 0 : at >= count ? count - 1 : at; }

static uint8_t plain_median(const struct st_view *in, int32_t x, int32_t y, int32_t c, int32_t side)
{
    uint8_t window[ST_CV_MEDIAN_MOST * ST_CV_MEDIAN_MOST];
    for (int32_t k = 0; k < side * side; k++)
        window[k] = st_row(in, nearest(y + k / side - side / 2, in->height))
            [nearest(x + k % side - side / 2, in->width) * in->channels + c];
    qsort(window, (size_t)(side * side), 1, compare_bytes);
    return window[side * side / 2];
}

static uint8_t plain_mean(const struct st_view *in, int32_t x, int32_t y, int32_t c, int32_t side)
{
    int32_t sum = 0;
    for (int32_t k = 0; k < side * side; k++)
        sum += st_row(in, mirrored(y + k / side - side / 2, in->height))
            [mirrored(x + k % side - side / 2, in->width) * in->channels + c];
    return (uint8_t)lrint((double)sum / (side * side));
}

static bool filtered(const char *op, int32_t side, const struct st_view *in,
                     uint8_t (*plain)(const struct st_view *, int32_t, int32_t, int32_t, int32_t))
{
    struct st_work work = work_make(st_cpu_level());
    struct stoker_error err = {0};
    char text[100];
    int rc;
    snprintf(text, sizeof text, "%s side=%d,%d", op, side, side);
    const struct st_view out = run_on(&work, in, text, 1, &rc, &err);
    bool same = rc == 0;
    for (int32_t y = 0; same && y < in->height; y++)
        for (int32_t x = 0; same && x < in->width * in->channels; x++)
            same = st_row(&out, y)[x] == plain(in, x / in->channels, y, x % in->channels, side);
    if (!same)
        note("%s of %d x %d x %d: %s", text, in->width, in->height, in->channels, err.message);
    free(out.data);
    work_free(&work);
    return same;
}

static void filters_are_plain(void)
{
    bool medians = true, means = true;
    for (int32_t k = 0; k < SIDES; k++)
        for (int32_t side = 3; side <= ST_CV_MEDIAN_MOST; side += k == 7 ? 4 : 2) {
            const struct st_view in = noise(sides[k][0], sides[k][1], k & 1 ? 3 : 1, (uint64_t)side);
            medians = medians && filtered("albu_median_blur", side, &in, plain_median);
            means = means && filtered("albu_box_blur", side, &in, plain_mean);
            free(in.data);
        }
    ok(medians, "medians are those of sorted windows");
    ok(means, "means are those of windows");
}

/* The share of each difference from 128, of `count` values. */
static void shares(struct st_work *work, const char *op, double share[256], uint32_t count)
{
    struct st_view in = noise(500, (int32_t)count / 500, 1, 1);
    struct stoker_error err = {0};
    int rc;
    memset(in.data, 128, count);
    const struct st_view out = run_on(work, &in, op, 7, &rc, &err);
    memset(share, 0, 256 * sizeof *share);
    for (uint32_t k = 0; rc == 0 && k < count; k++)
        share[out.data[k]] += 1.0 / count;
    free(in.data);
    free(out.data);
}

static void noise_is_normal(void)
{
    static const struct {
        const char *op;
        double mean, std;
    } cases[] = {{"albu_noise std=0.05,0.05", 0, 12.75},
                 {"albu_noise std=0.002,0.002 mean=0.001,0.001", 0.255, 0.51},
                 {"albu_noise std=0.3,0.3 mean=-0.2,-0.2", -51, 76.5},
                 {"albu_noise std=0,0 mean=0.1,0.1", 25.5, 1e-9}};
    struct st_work work = work_make(st_cpu_level());
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        enum { COUNT = 1000000 };
        double share[256], furthest = 0, sum = 0;
        shares(&work, cases[k].op, share, COUNT);
        for (int v = 0; v < 255; v++) { /* Kolmogorov and Smirnov's distance */
            sum += share[v];
            const double edge = ((v < 128 ? v - 128 : v - 127) - cases[k].mean) / cases[k].std;
            furthest = fmax(furthest, fabs(sum - 0.5 * erfc(-edge / sqrt(2))));
        }
        ok(furthest < 1.95 / sqrt(COUNT), "%s: at most %.5f from the normal distribution", cases[k].op, furthest);
    }
    work_free(&work);
}

/* Hues of (255, 128, 0) move its green by 255 / 60 levels for each degree; pixels of one colour have no deviation. */
static void hues_are_normal(struct st_work *work, const char *op, double degrees)
{
    enum { WIDTH = 1000, HEIGHT = 300, COUNT = WIDTH * HEIGHT };
    struct st_view in = noise(WIDTH, HEIGHT, 3, 1);
    struct stoker_error err = {0};
    uint32_t count_of[256] = {0}, others = 0;
    double furthest = 0, sum = 0;
    int rc;
    for (int32_t k = 0; k < 3 * COUNT; k++)
        in.data[k] = k % 3 == 0 ? 255 : k % 3 == 1 ? 128 : 0;
    const struct st_view out = run_on(work, &in, op, 3, &rc, &err);
    for (int32_t k = 0; rc == 0 && k < 3 * COUNT; k += 3) {
        count_of[out.data[k + 1]]++;
        others += (out.data[k] != 255 && out.data[k + 1] != 255) || (out.data[k + 2] && out.data[k + 1]);
    }
    for (int v = 0; v < 255; v++) {
        sum += (double)count_of[v] / COUNT;
        furthest = fmax(furthest, fabs(sum - 0.5 * erfc((127.5 - v) / (degrees * 255 / 60) / sqrt(2))));
    }
    ok(rc == 0 && furthest < 1.95 / sqrt(COUNT) && others == 0, "%s: at most %.5f from the normal distribution, %s", op, furthest,
       err.message);
    free(in.data);
    free(out.data);
}

/* Grey pixels become lighter by numbers of Poisson's distribution. */
static void lightness_is_poissons(struct st_work *work, const char *op, double intensity)
{
    enum { WIDTH = 500, HEIGHT = 400, COUNT = WIDTH * HEIGHT, LOW = 50, HIGH = 200 };
    struct st_view in = noise(WIDTH, HEIGHT, 3, 1);
    struct stoker_error err = {0};
    uint32_t count_of[256] = {0}, counted = 0;
    bool right = true;
    int rc;
    for (int32_t k = 0; k < 3 * COUNT; k++)
        in.data[k] = k / 3 % 2 ? LOW : HIGH;
    const struct st_view out = run_on(work, &in, op, 9, &rc, &err);
    for (int32_t k = 3; rc == 0 && k < 3 * COUNT; k += 6) {
        count_of[out.data[k]]++;
        right = right && out.data[k] == out.data[k + 1] && out.data[k] == out.data[k + 2];
    }
    const double mean = intensity * (HIGH - LOW) / 2 / 255;
    double share = exp(-mean), left = 1;
    for (int times = 0; rc == 0 && times * intensity < 1; times++) {
        const long value = lrint(LOW + times * intensity * (255 - LOW));
        const double got = count_of[value] / (COUNT / 2.);
        right = right && fabs(got - share) < 4.5 * sqrt(share * (1 - share) / (COUNT / 2.)) + 1e-9;
        counted += count_of[value];
        left -= share;
        share *= mean / (times + 1);
    }
    right = right && fabs(count_of[255] / (COUNT / 2.) - left) < 4.5 * sqrt(left / (COUNT / 2.)) + 1e-9;
    ok(rc == 0 && right && counted + count_of[255] == COUNT / 2, "%s: as often lighter as by Poisson's distribution, %s", op,
       err.message);
    free(in.data);
    free(out.data);
}

static void iso_noise_is_albumentations(void)
{
    struct st_work work = work_make(st_cpu_level());
    hues_are_normal(&work, "albu_iso_noise color_shift=1,1 intensity=5,5", 5);
    hues_are_normal(&work, "albu_iso_noise color_shift=1,1 intensity=0.2,0.2", 0.2);
    hues_are_normal(&work, "albu_iso_noise color_shift=0.1,0.1 intensity=0.5,0.5", 0.05);
    lightness_is_poissons(&work, "albu_iso_noise intensity=0.43,0.43", 0.43);
    lightness_is_poissons(&work, "albu_iso_noise intensity=0.87,0.87", 0.87);
    lightness_is_poissons(&work, "albu_iso_noise intensity=0.11,0.11", 0.11);
    lightness_is_poissons(&work, "albu_iso_noise intensity=3,3", 3);
    work_free(&work);
}

/* ---- what is refused, and what stays ---- */

static void refusals(void)
{
    static const char *const bad[] = {
        "albu_brightness_contrast brightness=0.3,0.2", "albu_gamma gamma=120,80",      "albu_gamma gamma=1,2,3",
        "albu_posterize bits=1.5,3",                   "albu_posterize bits=4,2",      "albu_posterize bits=4,4,2,1,4,4",
        "albu_solarize threshold=0.6,0.5",             "albu_shift_rgb g=0.3,0.2",         "albu_shift_hsv value=3,2",
        "albu_jitter hue=0.3,-0.3",                    "albu_drop_channels count=2,1", "albu_drop_channels count=1,1.5",
        "albu_noise std=0.5,0.2",                      "albu_noise mean=0.5,0.2",      "albu_box_blur side=4,7",
        "albu_motion_blur side=3,4",                   "albu_motion_blur angle=9,8",
        "albu_motion_blur direction=0.5,0.2",          "albu_gaussian_blur sigma=2,1",                "albu_gaussian_blur sigma=1,100",
        "albu_gaussian_blur side=3,1.5",               "albu_box_blur side=7,3",
        "albu_median_blur side=3,8",    "albu_sharpen alpha=0.5,0.2",
        "albu_clahe clip=4,1",                         "albu_clahe tiles=3",
        "albu_multiply by=2,1",                        "albu_salt_and_pepper amount=0.5,0.1",
        "albu_salt_and_pepper salt=0.5,0.1",           "albu_drop_pixels fill=1,2",
        "albu_clahe tiles=3,2.5",
        "albu_iso_noise intensity=0.5,0.2",            "albu_iso_noise color_shift=0.5,0.2",
        "albu_downscale scale=0.5,0.2",                "albu_downscale down=nearest",
        "albu_downscale up=bicubic",
        "albu_emboss strength=0.5,0.2",                "albu_noise std=0.1,nan",
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        struct stoker_error err = {0};
        struct op_line line;
        const bool opened = line_open(&line, bad[k]);
        const int rc = line_plan(&line, 10, 10, 3, &err);
        ok(opened && rc == STOKER_EINVAL && !strncmp(err.message, "albu_", 5), "%s: %s", bad[k], err.message);
        line_free(&line);
    }
    struct stoker_error err = {0};
    struct op_line line;
    ok(line_open(&line, "albu_drop_channels") && line_plan(&line, 10, 10, 1, &err) == STOKER_EINVAL,
       "one channel is not dropped: %s", err.message);
    line_free(&line);
}

static void masks_stay(void)
{
    struct st_work work = work_make(st_cpu_level());
    const struct st_view in = noise(31, 17, 3, 3);
    bool stays = true;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        struct stoker_error err = {0};
        struct op_line line;
        struct st_image image;
        struct st_numbers numbers;
        struct st_view out;
        st_image_wrap(&image, &work, in);
        st_image_is_mask(&image, &numbers);
        const bool fine = line_open(&line, ops[k]) && line_plan(&line, -1, -1, 3, &err) >= 0 &&
                          line_run(&line, &image, 5, &err) >= 0 && st_image_pixels(&image, false, false, &out, &err) >= 0;
        if (!fine || !same_pixels(&in, &out)) {
            note("%s", ops[k]);
            stays = false;
        }
        line_free(&line);
    }
    ok(stays, "masks keep their numbers");
    free(in.data);
    work_free(&work);
}

int main(void)
{
    variants_agree();
    hsv_of_all_kinds();
    flips_may_come_later();
    filters_are_plain();
    noise_is_normal();
    iso_noise_is_albumentations();
    refusals();
    masks_stay();
    return done_testing();
}
