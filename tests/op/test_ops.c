/* The ops: what they refuse, where pixels go, what chance may do. Bytes against Pillow: tests/python. */
#include "op_line.h"
#include "tap.h"

#include <math.h>

static struct st_work work;

/* ---- planning ----------------------------------------------------------------------------------- */

static void plans(void)
{
    static const struct {
        const char *text, *says; /* NULL: it must be accepted */
    } cases[] = {
        {"resize size=256; center_crop size=224; to_tensor; normalize mean=0.5 std=0.2", NULL},
        {"to_tensor; random_horizontal_flip; random_crop size=8; center_crop size=4", NULL},
        {"pil_to_tensor; resize size=9; pad padding=1; convert_image_dtype; normalize mean=1,2,3 std=1",
         NULL},
        {"pil_to_tensor; gaussian_blur kernel_size=3", NULL},
        {"grayscale; to_tensor; normalize mean=0.5 std=0.5; random_erasing; normalize mean=1 std=2",
         NULL},
        {"to_tensor; convert_image_dtype dtype=uint8; resize size=4", NULL},
        {"to_tensor; pad padding=2 padding_mode=edge; normalize mean=0 std=1; pad padding=1 "
         "padding_mode=reflect",
         NULL},
        {"to_tensor; resize size=256", "before to_tensor"},
        {"to_tensor; random_resized_crop size=9", "before to_tensor"},
        {"to_tensor; gaussian_blur kernel_size=3", "before to_tensor"},
        {"to_tensor; grayscale", "before to_tensor"},
        {"pil_to_tensor; color_jitter brightness=1", "before to_tensor"},
        {"pil_to_tensor; random_grayscale", "before to_tensor"},
        {"to_tensor; to_tensor", "already"},
        {"normalize_bytes mean=1 factor=2; random_horizontal_flip; to_array", NULL},
        {"to_array; to_array", "already an array"},
        {"crop_borders left=0.3 bottom=1; shuffle_tiles rows=9 columns=2; to_array", NULL},
        {"to_tensor; shuffle_tiles", "bytes"},
        {"to_tensor; random_erasing; crop_borders", "random_erasing"},
        {"drop_stripes columns=0,1 rows=2,1 width=1,2 height=0,0", "rows must be two integers"},
        {"drop_stripes columns=0,1.5 rows=2,2 width=1,2 height=0,0", "columns must be two integers"},
        {"drop_stripes columns=0,1 rows=2,2 width=1 height=0,0", "width must be two integers"},
        {"drop_stripes columns=0,1 rows=2,2 width=1,2 height=0,0 fill=random", NULL},
        {"drop_stripes columns=0,1 rows=2,2 width=1,2 height=0,0 fill=1,2", "fill has 2"},
        {"crop_around_boxes erosion=0.5", NULL},
        {"to_array; to_tensor", "already a tensor"},
        {"pil_to_tensor; to_tensor", "already"},
        {"normalize mean=0.5 std=0.5", "after to_tensor"},
        {"pil_to_tensor; normalize mean=0.5 std=0.5", "after to_tensor"},
        {"random_erasing", "after to_tensor"},
        {"convert_image_dtype", "after pil_to_tensor"},
        {"arithmetic what=multiply by=2", "requires float32"},
        {"to_tensor; convert_image_dtype dtype=float16; arithmetic what=multiply by=2", "requires float32"},
        {"to_tensor; arithmetic what=divide by=0", "divide by 0"},
        {"to_tensor; arithmetic what=divide by=1e-50", "divide by"},
        {"to_tensor; random_erasing; random_horizontal_flip", "random_erasing"},
        {"to_tensor; random_erasing; center_crop size=4", "random_erasing"},
        {"to_tensor; random_erasing; pad padding=1", "random_erasing"},
        {"pil_to_tensor; random_erasing; resize size=4", "random_erasing"},
        {"to_tensor; random_erasing; convert_image_dtype dtype=uint8", "convert before"},
        {"to_tensor; normalize mean=1,2,3 std=1; convert_image_dtype dtype=float16", "before normalize"},
        {"pil_to_tensor; convert_image_dtype dtype=float16; convert_image_dtype dtype=float32",
         "convert only once"},
        {"to_tensor; normalize mean=1,2 std=1", "mean has 2 values"},
        {"to_tensor; normalize mean=1 std=1,2,3,4", "std has 4 values"},
        {"grayscale; to_tensor; normalize mean=1,2,3 std=1", "1 channel"},
        {"to_tensor; normalize mean=1 std=0", "divide by zero"},
        {"to_tensor; pad padding=1 fill=1", "before to_tensor"},
        {"to_tensor; normalize mean=0 std=1; pad padding=1", "before to_tensor"},
        {"resize size=8,9 max_size=20", "max_size"},
        {"resize size=8 max_size=8", "greater"},
        {"resize size=1,2,3", "one number or two"},
        {"resize size=1.5", "integers"},
        {"random_crop size=300 padding=20", "does not fit"},
        {"random_crop size=300 pad_if_needed=1", NULL},
        {"pad padding=1,2,3", "1, 2 or 4"},
        {"pad padding=-50", "removes the whole image"},
        {"pad padding=1 fill=1,2", "fill has 2"},
        {"color_jitter hue=0.1,-0.1", "ascending"},
        {"color_jitter brightness=1,2,3", "two numbers"},
        {"random_resized_crop size=4 scale=0.5,0.1", "ascending"},
        {"gaussian_blur kernel_size=4", "odd"},
        {"gaussian_blur kernel_size=3 sigma=2,1", "ascending"},
        {"grayscale; pillow_blur sigma=0,1e4; to_tensor", NULL},
        {"pil_to_tensor; pillow_blur sigma=1", "before to_tensor"},
        {"pillow_blur sigma=2,1", "ascending"},
        {"pillow_blur sigma=1,2,3", "two numbers"},
        {"random_rotation degrees=-3,3 expand=1; center_crop size=4; to_tensor", NULL},
        {"random_affine degrees=0 translate=0.1,1 scale=1,2 shear=1,2,-3,4 fill=1,2,3; pil_to_tensor", NULL},
        {"pil_to_tensor; random_perspective", NULL},
        {"to_tensor; random_rotation degrees=3", "before to_tensor"},
        {"to_tensor; random_erasing; random_affine degrees=3", "before to_tensor"},
        {"pil_to_tensor; random_erasing; random_perspective", "random_erasing"},
        {"random_rotation degrees=-3", "must not be negative"},
        {"random_rotation degrees=3,1", "ascending"},
        {"random_rotation degrees=1,2,3", "two numbers"},
        {"random_rotation degrees=3 interpolation=lanczos", "nearest, bilinear or bicubic"},
        {"random_rotation degrees=3 fill=1,2", "fill has 2"},
        {"grayscale; random_rotation degrees=3 fill=1,2,3", "1 channel"},
        {"random_rotation degrees=3 center=1", "center must be two"},
        {"random_affine degrees=3 translate=0.1", "translate must be two"},
        {"random_affine degrees=3 scale=2,1", "ascending"},
        {"random_affine degrees=3 shear=1,2,3", "two numbers"},
        {"random_affine degrees=3 shear=1,2,4,3", "ascending"},
        {"random_resize min_size=8 max_size=9; random_zoom_out; center_crop size=9; to_tensor", NULL},
        {"random_shortest_size min_size=480,512,544,576,608,640,672,704,736,768,800 max_size=1333", NULL},
        {"to_tensor; random_zoom_out", NULL},
        {"to_tensor; random_zoom_out fill=3", NULL},
        {"scale_jitter target_size=8,9 scale_range=1,2; pil_to_tensor", NULL},
        {"to_tensor; random_resize min_size=8 max_size=9", "before to_tensor"},
        {"to_tensor; random_shortest_size min_size=8", "before to_tensor"},
        {"to_tensor; scale_jitter target_size=8,8", "before to_tensor"},
        {"random_resize min_size=9 max_size=9", "less than max_size"},
        {"random_shortest_size min_size=8.5", "integers"},
        {"scale_jitter target_size=8", "two numbers"},
        {"scale_jitter target_size=8,8 scale_range=2,1", "ascending"},
        {"random_zoom_out side_range=3,2", "ascending"},
        {"views n=2; to_tensor", NULL},
        {"views n=2; views n=2", "only one"},
        {"by_view", "no views before it"},
        {"random_iou_crop overlaps=0.5,1 trials=3; center_crop size=9; to_tensor", NULL},
        {"to_tensor; random_erasing; random_iou_crop", "random_erasing"},
        {"random_zoom_out fill=1,2", "fill has 2"},
        {"elastic_transform alpha=20,-30 sigma=4 fill=1,2,3; elastic_transform sigma=0; to_tensor", NULL},
        {"to_tensor; elastic_transform", "before to_tensor"},
        {"elastic_transform sigma=0,1", "in both"},
        {"elastic_transform alpha=1,2,3", "one number or two"},
        {"elastic_transform interpolation=bicubic", "nearest or bilinear"},
        {"elastic_transform fill=1,2", "fill has 2"},
        {"grayscale num_output_channels=2", "1 and 3"},
        {"to_tensor; random_erasing value=1,2", "value has 2"},
        {"to_tensor; random_erasing value=random", NULL},
        {"random_turn of=1,8,3,6; crop width=5 height=4; normalize_bytes mean=1,2,3 factor=0.1", NULL},
        {"random_turn of=1.5", "1.5 is no orientation"},
        {"to_tensor; random_erasing; random_turn of=5", "random_erasing"},
        {"crop width=101 height=9", "does not lie inside"},
        {"crop width=9 height=9 x=92", "does not lie inside"},
        {"crop width=9 height=9 x=91 y=71; to_tensor; crop width=9 height=9 x=0", NULL},
        {"pad_if_needed min_width=200 fill=1,2,3; random_crop size=80,200", NULL},
        {"pad_if_needed min_width=200 fill=1,2", "fill has 2"},
        {"to_tensor; pad_if_needed min_width=200 fill=3", "before to_tensor"},
        {"to_tensor; normalize_bytes mean=1 factor=1", "already a tensor"},
        {"normalize_bytes mean=1 factor=1; resize size=9", "before to_tensor"},
        {"normalize_bytes mean=1 factor=1; pil_to_tensor", "already a tensor"},
        {"normalize_bytes mean=1,2 factor=1", "normalize_bytes: mean has 2 values"},
        {"normalize_bytes mean=1 factor=1,2", "normalize_bytes: factor has 2 values"},
        {"resize size=9 interpolation=cv_linear; random_resized_crop size=9 interpolation=cv_linear_area", NULL},
        {"random_rotation degrees=3 interpolation=cv_linear", "nearest, bilinear or bicubic"},
        {"elastic_transform interpolation=cv_nearest", "nearest or bilinear"},
        {"resize_to_fit sizes=9,10 by=longest; random_scale; random_sized_crop size=9 heights=3,4", NULL},
        {"resize_to_fit", "either sizes, or height or width"},
        {"resize_to_fit sizes=9 height=9", "either sizes, or height or width"},
        {"random_scale factor=2,1", "ascending"},
        {"random_sized_crop size=9 heights=4", "two integers"},
        {"random_sized_crop size=9 heights=4,3", "two integers"},
        {"random_sized_crop size=9 heights=3,4.5", "two integers"},
        {"to_tensor; random_sized_crop size=9 heights=3,4", "before to_tensor"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct op_line line;
        struct stoker_error err = {0};
        bool fine = line_open(&line, cases[i].text);
        const int rc = line_plan(&line, 100, 80, 3, &err);
        fine = fine && (cases[i].says ? rc == STOKER_EINVAL && strstr(err.message, cases[i].says)
                                      : rc == STOKER_OK);
        ok(fine, "%s: %s", cases[i].text, rc < 0 ? err.message : "accepted");
        line_free(&line);
    }
}

static void shapes(void)
{
    static const struct {
        const char *text;
        int32_t in_width, in_height, width, height, channels;
    } cases[] = {
        {"resize size=50", 100, 80, 62, 50, 3},
        {"resize size=50", -1, -1, -1, -1, 3},
        {"resize size=50 max_size=60", 100, 80, 60, 48, 3},
        {"resize size=7,9", -1, -1, 9, 7, 3},
        {"center_crop size=7,9; pad padding=1,2,3,4; grayscale", -1, -1, 13, 13, 1},
        {"pad padding=5", -1, -1, -1, -1, 3},
        {"random_resized_crop size=7; grayscale num_output_channels=3", -1, -1, 7, 7, 3},
        {"random_turn of=5", 100, 80, 80, 100, 3},
        {"random_turn of=5,1", 100, 80, -1, -1, 3},
        {"random_turn of=2,3,4", 100, 80, 100, 80, 3},
        {"random_turn of=5,1", 80, 80, 80, 80, 3},
        {"crop width=4 height=3; random_turn of=6,8", -1, -1, 3, 4, 3},
        {"pad_if_needed min_height=90 width_divisor=32", 100, 80, 128, 90, 3},
        {"resize_to_fit height=40", 100, 80, -1, -1, 3},
        {"random_sized_crop size=4,7 heights=2,3", -1, -1, 7, 4, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct op_line line;
        struct stoker_error err = {0};
        bool fine = line_open(&line, cases[i].text) &&
                    line_plan(&line, cases[i].in_width, cases[i].in_height, 3, &err) == STOKER_OK;
        fine = fine && line.shape.width == cases[i].width && line.shape.height == cases[i].height &&
               line.shape.channels == cases[i].channels;
        ok(fine, "%s gives %d x %d x %d", cases[i].text, line.shape.width, line.shape.height,
           line.shape.channels);
        line_free(&line);
    }
}

static void registry(void)
{
    uint32_t count = 0;
    bool fine = true;
    for (const struct st_op *const *op = st_ops; *op; op++, count++)
        fine = fine && st_op_find((*op)->name) == *op && (*op)->help && (*op)->params &&
               ((*op)->plan || (*op)->run || (*op)->choose || (*op)->run_audio);
    ok(fine && count, "%u ops, each found by its name, with help and parameters", count);
    ok(!st_op_find("hflip") && !st_op_find(""), "other names are not found");
}

/* ---- running ------------------------------------------------------------------------------------ */

/* Which pixel numpy.pad and Pillow would put at `i`, counted from the image's own first; -1: the fill.
 */
static int32_t padded_from(int32_t i, int32_t count, int mode)
{
    while (i < 0 || i >= count) {
        if (mode == 0)
            return -1;
        if (mode == 1 || count == 1)
            return i < 0 ? 0 : count - 1;
        if (mode == 2)
            i = i < 0 ? -i : 2 * (count - 1) - i;
        else
            i = i < 0 ? -i - 1 : 2 * count - 1 - i;
    }
    return i;
}

static bool padded_right(const struct st_view *in, const struct st_view *out, int32_t left, int32_t top,
                         int mode, uint8_t fill)
{
    bool right = true;
    for (int32_t y = 0; y < out->height; y++)
        for (int32_t x = 0; x < out->width; x++) {
            const int32_t from_x = padded_from(x - left, in->width, mode);
            const int32_t from_y = padded_from(y - top, in->height, mode);
            for (int32_t c = 0; c < in->channels; c++) {
                const uint8_t want =
                    from_x < 0 || from_y < 0 ? fill : st_row(in, from_y)[from_x * in->channels + c];
                right = right && st_row(out, y)[x * in->channels + c] == want;
            }
        }
    return right;
}

static void padding(void)
{
    struct st_rng rng;
    st_rng_init(&rng, 3, 0, 0, 0);
    for (int mode = 0; mode < 4; mode++)
        for (int32_t channels = 1; channels <= 3; channels += 2) {
            int wrong = 0;
            for (int k = 0; k < 60; k++) {
                struct st_view in = noise(1 + (int32_t)st_rng_below(&rng, 12),
                                          1 + (int32_t)st_rng_below(&rng, 12), channels, (uint64_t)k);
                const int32_t l = (int32_t)st_rng_below(&rng, 30), t = (int32_t)st_rng_below(&rng, 30);
                char text[200];
                struct stoker_error err;
                int rc;
                snprintf(text, sizeof text, "pad padding=%d,%d,%d,%d fill=9 padding_mode=%s", l, t,
                         (int)st_rng_below(&rng, 30), (int)st_rng_below(&rng, 30),
                         (const char *[]){"constant", "edge", "reflect", "symmetric"}[mode]);
                struct st_view out = run_on(&work, &in, text, 0, &rc, &err);
                wrong += rc < 0 || !padded_right(&in, &out, l, t, mode, 9);
                free(in.data);
                free(out.data);
            }
            ok(wrong == 0, "padding mode %d, %d channels: %d of 60 wrong", mode, channels, wrong);
        }
    struct st_view in = noise(6, 5, 3, 1);
    struct stoker_error err;
    int rc;
    struct st_view out = run_on(&work, &in, "pad padding=-1,-2,2,0 padding_mode=edge", 0, &rc, &err);
    bool right = rc == 0 && out.width == 7 && out.height == 3;
    for (int32_t x = 0; right && x < 7; x++)
        right = memcmp(st_row(&out, 0) + 3 * x, st_row(&in, 2) + 3 * (x + 1 < 5 ? x + 1 : 5), 3) == 0;
    ok(right, "negative padding cuts off, and the border continues what is left");
    free(out.data);
    run_on(&work, &in, "pad padding=-3,0,-3,0", 0, &rc, &err);
    ok(rc == STOKER_EINVAL, "nothing left: %s", err.message);
    work.decoder.pixel_limit = 1000;
    run_on(&work, &in, "pad padding=100", 0, &rc, &err);
    ok(rc == STOKER_ELIMIT, "too much: %s", err.message);
    work.decoder.pixel_limit = 0;
    run_on(&work, &in, "to_tensor; normalize mean=0 std=1; center_crop size=9", 0, &rc, &err);
    ok(rc == STOKER_EINVAL, "no bytes to fill floats with: %s", err.message);
    free(in.data);
}

/* Every crop must be a part of the padded image, and all places must come up. */
static void random_crops(void)
{
    struct st_view in = noise(9, 8, 3, 5);
    struct stoker_error err;
    int seen[9][9] = {{0}}, rc, wrong = 0, missing = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct st_view out =
            run_on(&work, &in, "random_crop size=4,5 padding=2 fill=7", seed, &rc, &err);
        bool found = false;
        for (int32_t top = -2; rc >= 0 && !found && top <= 6; top++)
            for (int32_t left = -2; !found && left <= 6; left++)
                if (padded_right(&in, &out, -left, -top, 0, 7)) {
                    found = true;
                    seen[top + 2][left + 2]++;
                }
        wrong += !found || out.width != 5 || out.height != 4;
        free(out.data);
    }
    ok(wrong == 0, "random crops lie in the padded image");
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++)
            missing += seen[i][j] == 0;
    ok(missing == 0, "at every place");

    run_on(&work, &in, "random_crop size=20", 0, &rc, &err);
    ok(rc == STOKER_EINVAL && strstr(err.message, "pad_if_needed"), "too small: %s", err.message);
    struct st_view out =
        run_on(&work, &in, "random_crop size=20,6 pad_if_needed=1 padding_mode=edge", 0, &rc, &err);
    ok(rc == 0 && out.width == 6 && out.height == 20, "unless it may be padded");
    free(out.data);
    free(in.data);
}

static void resized_crops(void)
{
    struct stoker_error err;
    int rc;
    struct st_view tall = noise(2, 90, 3, 1), out;
    out = run_on(&work, &tall, "random_resized_crop size=3,2 scale=1,1 interpolation=nearest", 1, &rc,
                 &err);
    /* No part of that area and shape exists: width 2, height round(2 / 0.75) = 3, from the middle. */
    ok(rc == 0 && memcmp(out.data, st_row(&tall, (90 - 3) / 2), 18) == 0,
       "the fallback is the central crop");
    free(out.data);
    free(tall.data);

    struct st_view in = noise(64, 48, 3, 1);
    bool fine = true;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct st_image image;
        struct op_line line;
        fine = fine && line_open(&line, "random_resized_crop size=5") &&
               line_plan(&line, -1, -1, 3, &err) == 0;
        st_arena_reset(&work.arena);
        st_image_wrap(&image, &work, in);
        fine = fine && line_run(&line, &image, seed, &err) == 0;
        const double area = (double)image.crop.width * image.crop.height / (64 * 48);
        const double ratio = (double)image.crop.width / image.crop.height;
        fine = fine && area > 0.07 && area <= 1 && ratio > 0.69 && ratio < 1.45;
        line_free(&line);
    }
    ok(fine, "300 crops of allowed size and shape");
    free(in.data);
}

/* ---- erasing ------------------------------------------------------------------------------------ */

static float *floats_of(const char *text, uint64_t seed, enum stoker_layout layout,
                        const struct st_view *in)
{
    struct op_line line;
    struct st_image image;
    struct stoker_error err;
    float *data = calloc((size_t)in->width * (size_t)in->height * 3, sizeof *data);
    st_arena_reset(&work.arena);
    st_image_wrap(&image, &work, *in);
    if (!line_open(&line, text) || line_plan(&line, -1, -1, 3, &err) < 0 ||
        line_finish(&line, &image, STOKER_DTYPE_F32, layout, data, seed, &err) < 0)
        abort();
    line_free(&line);
    return data;
}

static void erasing(void)
{
    struct st_view in = noise(40, 30, 3, 9);
    const size_t plane = 40 * 30;
    uint32_t changed = 0, wrong = 0, boxes = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        float *before = floats_of("to_tensor; normalize mean=1,2,3 std=2,4,8", seed, STOKER_LAYOUT_NCHW, &in);
        float *after =
            floats_of("to_tensor; random_erasing p=1 value=5,6,7; normalize mean=1,2,3 std=2,4,8", seed,
                      STOKER_LAYOUT_NCHW, &in);
        float *last =
            floats_of("to_tensor; random_erasing p=1 value=5,6,7; normalize mean=1,2,3 std=2,4,8", seed,
                      STOKER_LAYOUT_NHWC, &in);
        static const float want[3] = {2, 1, 0.5f};
        int32_t low_x = 40, high_x = -1, low_y = 30, high_y = -1;
        uint32_t here = 0;
        for (int32_t y = 0; y < 30; y++)
            for (int32_t x = 0; x < 40; x++) {
                const size_t at = (size_t)y * 40 + (size_t)x;
                for (size_t c = 0; c < 3; c++) {
                    wrong += after[c * plane + at] != last[at * 3 + c];
                    wrong += after[c * plane + at] != before[c * plane + at] &&
                             after[c * plane + at] != want[c];
                }
                if (after[at] == want[0]) { /* no byte becomes that */
                    here++;
                    low_x = x < low_x ? x : low_x, high_x = x > high_x ? x : high_x;
                    low_y = y < low_y ? y : low_y, high_y = y > high_y ? y : high_y;
                }
            }
        changed += here;
        boxes += here > 0 && here == (uint32_t)((high_x - low_x + 1) * (high_y - low_y + 1));
        free(before);
        free(after);
        free(last);
    }
    ok(wrong == 0, "outside the box nothing changes, inside it is the value after the steps behind it");
    ok(boxes == 40, "a whole box each time");
    ok(changed > 40 * plane / 50 && changed < 40 * plane / 3, "of the size asked for");

    double sum = 0, squares = 0, count = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        float *before = floats_of("to_tensor", seed, STOKER_LAYOUT_NCHW, &in);
        float *after = floats_of("to_tensor; random_erasing p=1 value=random", seed, STOKER_LAYOUT_NCHW, &in);
        for (size_t i = 0; i < 3 * plane; i++)
            if (before[i] != after[i])
                sum += after[i], squares += after[i] * after[i], count++;
        free(before);
        free(after);
    }
    ok(fabs(sum / count) < 0.05 && fabs(squares / count - 1) < 0.1,
       "random values have mean %.3f, variance %.3f", sum / count, squares / count);

    float *bytes = floats_of("pil_to_tensor; random_erasing p=1 value=51.9; convert_image_dtype", 3,
                             STOKER_LAYOUT_NCHW, &in);
    uint32_t found = 0;
    for (size_t i = 0; i < plane; i++)
        found += bytes[i] == 51.0f / 255.0f;
    ok(found > plane / 50, "a value written into bytes is a byte, and is scaled with them");
    free(bytes);
    free(in.data);
}

int main(void)
{
    work = work_make(st_cpu_level());
    registry();
    plans();
    shapes();
    padding();
    random_crops();
    resized_crops();
    erasing();
    work_free(&work);
    return done_testing();
}
