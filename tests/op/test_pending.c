/* Pending ops that are run late give the same bytes as ops run at once, wherever crops, resizes, flips
 * and other ops stand between them. */
#include "op/op_line.h"
#include "tap.h"

/* The same ops one at a time: after each, the image is made of plain pixels again. */
static struct st_view run_apart(struct st_work *work, const struct st_view *in, const char *text, uint64_t seed)
{
    struct op_line line;
    struct stoker_error err;
    struct st_view now = noise(in->width, in->height, in->channels, 0);
    memcpy(now.data, in->data, (size_t)in->stride * (size_t)in->height);
    line_open(&line, text);
    line_plan(&line, -1, -1, in->channels, &err);
    for (uint32_t i = 0; i < line.count; i++) {
        struct st_image image;
        struct st_view made;
        struct st_rng rng;
        st_arena_reset(&work->arena);
        st_rng_init(&rng, seed, 0, 0, i);
        st_image_wrap(&image, work, now);
        if (line.op[i]->run(line.self[i], &rng, &image, &err) < 0 ||
            st_image_pixels(&image, false, false, &made, &err) < 0)
            return (struct st_view){0};
        struct st_view copy = noise(made.width, made.height, made.channels, 0);
        for (int32_t y = 0; y < made.height; y++)
            memcpy(st_row(&copy, y), st_row(&made, y), (size_t)copy.stride);
        free(now.data);
        now = copy;
    }
    line_free(&line);
    return now;
}

static const char *const texts[] = {
    "color_jitter brightness=0.5 contrast=0.5 saturation=0.5 hue=0.2",
    "random_horizontal_flip p=1;color_jitter contrast=2,2;random_vertical_flip p=1;gaussian_blur kernel_size=5",
    "random_horizontal_flip p=1;color_jitter contrast=2,2;pillow_blur sigma=0.1,3;random_vertical_flip p=1;random_crop size=9",
    "color_jitter contrast=2,2;center_crop size=20;color_jitter contrast=0.5,0.5",
    "random_horizontal_flip p=1;gaussian_blur kernel_size=7;random_crop size=17;random_horizontal_flip p=1",
    "gaussian_blur kernel_size=3;resize size=21,30;random_vertical_flip p=1;color_jitter saturation=0,0",
    "random_vertical_flip p=1;color_jitter hue=0.3;resize size=50,60;random_grayscale p=1;center_crop size=41",
    "color_jitter brightness=2,2;pad padding=4 padding_mode=reflect;color_jitter contrast=2,2",
    "color_jitter brightness=2,2;grayscale;color_jitter contrast=2,2;grayscale num_output_channels=3",
    "random_invert p=1;color_jitter contrast=2,2;random_equalize p=1;random_vertical_flip p=1;random_autocontrast p=1",
    "random_adjust_sharpness sharpness_factor=3 p=1;random_horizontal_flip p=1;random_crop size=9;random_equalize p=1",
    "random_horizontal_flip p=1;random_adjust_sharpness sharpness_factor=-1 p=1;random_solarize threshold=99.5 p=1",
    "random_posterize bits=3 p=1;random_equalize p=1;grayscale;random_autocontrast p=1;color_jitter brightness=2,2",
    "resize size=24,24;grayscale num_output_channels=3;color_jitter brightness=0.9,0.9;center_crop size=24",
    "random_horizontal_flip p=1;random_rotation degrees=30;random_vertical_flip p=1;random_affine degrees=9 interpolation=bilinear;"
    "random_horizontal_flip p=1;random_equalize p=1",
    "color_jitter brightness=2,2;random_horizontal_flip p=1;random_perspective p=1 fill=9,80,200;gaussian_blur kernel_size=3;"
    "random_vertical_flip p=1;random_crop size=21;random_affine degrees=0 translate=0.3,0.3;random_horizontal_flip p=1;resize size=30",
    "random_vertical_flip p=1;random_rotation degrees=40 interpolation=bicubic;random_turn of=5;random_rotation degrees=40",
    "resize size=30,30;random_horizontal_flip p=1;random_turn of=5,6,7,8;color_jitter contrast=2,2;random_vertical_flip p=1;"
    "random_rotation degrees=90,90;random_perspective p=1;random_turn of=6;random_horizontal_flip p=1",
    "random_perspective p=1;random_rotation degrees=20 expand=true;random_horizontal_flip p=1;random_zoom_out;random_perspective p=1",
};

static void late_is_at_once(enum st_cpu_level level)
{
    struct st_work work = work_make(level);
    for (uint32_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        bool same = true;
        for (uint64_t seed = 0; seed < 4; seed++) {
            struct stoker_error err;
            int rc;
            const struct st_view in = noise(43, 37, 3, seed + 9);
            const struct st_view late = run_on(&work, &in, texts[k], seed, &rc, &err);
            const struct st_view apart = run_apart(&work, &in, texts[k], seed);
            same = same && rc == 0 && apart.data && late.width == apart.width && late.height == apart.height &&
                   !memcmp(late.data, apart.data, (size_t)late.stride * (size_t)late.height);
            free(in.data);
            free(late.data);
            free(apart.data);
        }
        ok(same, "%s: %s", st_cpu_level_name(level), texts[k]);
    }
    work_free(&work);
}

/* More than can be noted; and pixels that are not ours stay as they are. */
static void many(void)
{
    struct st_work work = work_make(st_cpu_level());
    struct stoker_error err;
    struct st_image image;
    struct st_view made;
    const struct st_view in = noise(31, 20, 3, 5), copy = noise(31, 20, 3, 5), plain = noise(31, 20, 3, 5);
    struct st_pending pending[3 * ST_PENDING_MAX];
    uint8_t inverse[3 * 256];
    for (int k = 0; k < 3 * 256; k++)
        inverse[k] = (uint8_t)(255 - k % 256);
    st_image_wrap(&image, &work, in);
    bool fine = true;
    for (int k = 0; k < 3 * ST_PENDING_MAX; k++) {
        pending[k] = (struct st_pending){.kind = (enum st_pending_kind)(k % ST_PENDING_KINDS), .factor = 0.3f + (float)(k % 7) * 0.2f, .level = 16u * (uint32_t)(k % 9),
                                   .across = 3, .down = 5, .sigma = 0.8, .table = inverse};
        fine = fine && st_image_do(&image, pending[k], &err) == 0 && image.pending_count <= ST_PENDING_MAX;
    }
    fine = fine && st_image_pixels(&image, false, false, &made, &err) == 0;
    struct st_view want = plain;
    fine = fine && st_pending_run(pending, 3 * ST_PENDING_MAX, st_colour_rows_for(ST_CPU_C), st_warp_rows_for(ST_CPU_C), &work.arena,
                                  &want, &(bool){true}) == 0;
    for (int32_t y = 0; fine && y < 20; y++)
        fine = !memcmp(st_row(&made, y), st_row(&want, y), 31 * 3);
    ok(fine, "%d pending ops, in their order", 3 * ST_PENDING_MAX);
    ok(!memcmp(in.data, copy.data, 31 * 20 * 3), "pixels of others are not written to");
    free(in.data);
    free(copy.data);
    free(plain.data);
    work_free(&work);
}

static void refused(void)
{
    struct st_work work = work_make(st_cpu_level());
    struct stoker_error err;
    int rc;
    const struct st_view in = noise(12, 40, 3, 1);
    const struct st_view out = run_on(&work, &in, "gaussian_blur kernel_size=25", 0, &rc, &err);
    ok(rc == STOKER_EINVAL && !out.data, "a blur wider than its image is refused when it is noted (%s)", err.message);
    free(in.data);
    work_free(&work);
}

int main(void)
{
    late_is_at_once(ST_CPU_C);
    if (st_cpu_level() != ST_CPU_C)
        late_is_at_once(st_cpu_level());
    many();
    refused();
    return done_testing();
}
