/* An image that is made late is the image made at once: whatever crops, resizes, flips and orientations
 * come together. */
#include "op_line.h"
#include "tap.h"

#include "codec/jpeg_encode.h"
#include "op/cv/colour.h"
#include "op/geometry/border.h"
#include "op/geometry/cv_warp.h"
#include "op/resize/resize_cv.h"

extern const struct st_op st_op_albu_shift_hsv;
static struct st_work work;

/* ---- the same, done at once --------------------------------------------------------------------- */

static struct st_view naive_new(int32_t width, int32_t height, int32_t channels)
{
    const size_t row = (size_t)width * (size_t)channels;
    return (struct st_view){malloc(row * (size_t)height + 64), (ptrdiff_t)row, width, height, channels};
}

static void naive_crop(struct st_view *v, struct st_region r)
{
    struct st_view out = naive_new((int32_t)r.width, (int32_t)r.height, v->channels);
    for (int32_t y = 0; y < out.height; y++)
        memcpy(st_row(&out, y), st_row(v, y + (int32_t)r.y) + r.x * (size_t)v->channels,
               (size_t)out.stride);
    free(v->data);
    *v = out;
}

/* By the letter of the EXIF specification: where the stored row 0 and column 0 are seen. */
static void naive_orient(struct st_view *v, uint32_t orientation)
{
    const bool swapped = orientation >= 5;
    const int32_t w = swapped ? v->height : v->width, h = swapped ? v->width : v->height;
    struct st_view out = naive_new(w, h, v->channels);
    for (int32_t y = 0; y < v->height; y++)
        for (int32_t x = 0; x < v->width; x++) {
            int32_t to_x = x, to_y = y;
            switch (orientation) {
            case 2:
                to_x = w - 1 - x;
                break;
            case 3:
                to_x = w - 1 - x, to_y = h - 1 - y;
                break;
            case 4:
                to_y = h - 1 - y;
                break;
            case 5:
                to_x = y, to_y = x;
                break;
            case 6:
                to_x = w - 1 - y, to_y = x;
                break;
            case 7:
                to_x = w - 1 - y, to_y = h - 1 - x;
                break;
            case 8:
                to_x = y, to_y = h - 1 - x;
                break;
            default:
                break;
            }
            memcpy(st_row(&out, to_y) + to_x * v->channels, st_row(v, y) + x * v->channels,
                   (size_t)v->channels);
        }
    free(v->data);
    *v = out;
}

static void naive_resize(struct st_view *v, int32_t width, int32_t height, enum st_filter filter)
{
    if (width == v->width && height == v->height)
        return;
    const struct st_resize job = {
        v->width, v->height,  width, height, {0, 0, (uint32_t)width, (uint32_t)height},
        filter,   work.pillow};
    naive_crop(v, st_resize_needs(&job));
    struct st_arena arena = {0};
    struct st_view made, out = naive_new(width, height, v->channels);
    if (st_resize_view(&job, work.kernels, &arena, v, &made) < 0)
        abort();
    for (int32_t y = 0; y < height; y++)
        memcpy(st_row(&out, y), st_row(&made, y), (size_t)out.stride);
    st_arena_free(&arena);
    free(v->data);
    *v = out;
}

static void replace(struct st_view *v, struct st_view by)
{
    free(v->data);
    *v = by;
}

static void naive_resize_cv(struct st_view *v, int32_t width, int32_t height, enum st_filter filter)
{
    struct st_arena arena = {0};
    struct stoker_error err;
    struct st_view out = naive_new(width, height, v->channels);
    if (st_cv_resize_view(filter, 0, NULL, v, &out, &arena, &err) < 0)
        abort();
    st_arena_free(&arena);
    replace(v, out);
}

/* By any scale and angle, and also so that little of it is left. */
static bool warp_both(struct st_rng *rng, struct st_image *image, struct st_view *naive)
{
    const int32_t width = naive->width, height = naive->height;
    const struct st_cv_warp_params params = {.border = (int32_t)st_rng_below(rng, 5),
                                             .fill = {.count = 1, .value = {77}}};
    struct st_cv_map map = {.pixels[8] = 1,
                            .perspective = st_rng_below(rng, 4) == 0,
                            .width = 1 + (int32_t)st_rng_below(rng, 70),
                            .height = 1 + (int32_t)st_rng_below(rng, 70)};
    double *m = map.pixels, numbers[10 + ST_CV_BORDER_NUMBERS] = {0};
    for (int k = 0; k < 6; k++)
        m[k] = k % 3 == 2 ? st_rng_range(rng, -60, 60) : st_rng_range(rng, -2, 2);
    m[6] = map.perspective ? st_rng_range(rng, 0, 0.002) : 0;
    struct st_arena arena = {0};
    struct stoker_error err;
    const uint32_t count = map.perspective ? 9 : 6;
    memcpy(numbers, m, count * sizeof *m);
    numbers[count + 1] = params.border;
    for (uint32_t c = 0; c < ST_CV_CHANNELS; c++)
        numbers[count + 2 + c] = 77;
    const struct st_cv_call call = {.in = *naive,
                                    .out = naive_new(map.width, map.height, naive->channels),
                                    .numbers = numbers,
                                    .count = count + 1 + ST_CV_BORDER_NUMBERS,
                                    .arena = &arena,
                                    .level = st_cpu_level()};
    if (st_cv_run(st_cv_find(map.perspective ? "warp_perspective" : "warp_affine"), &call, &err) < 0)
        abort();
    st_arena_free(&arena);
    replace(naive, call.out);
    return st_image_width(image) == width && st_image_height(image) == height &&
           st_image_cv_warp(image, &map, &params, "warp", &err) == STOKER_OK;
}

/* A border of one colour, and often hue, saturation and value of all; sometimes with a multiple of 32
 * columns, which OpenCV makes alike. */
static bool frame_both(struct st_rng *rng, struct st_image *image, struct st_view *naive)
{
    const struct st_border border = {.fill = {.count = 3, .value = {200, 120, 40}}};
    struct st_sides s = {(int32_t)st_rng_below(rng, 9), (int32_t)st_rng_below(rng, 9),
                         (int32_t)st_rng_below(rng, 9), (int32_t)st_rng_below(rng, 9)};
    if (st_rng_below(rng, 2))
        s.right += 32 - (naive->width + s.left + s.right) % 32;
    struct stoker_error err;
    struct st_view out = naive_new(naive->width + s.left + s.right, naive->height + s.top + s.bottom,
                                   naive->channels);
    for (int32_t y = 0; y < out.height; y++)
        for (int32_t k = 0; k < (int32_t)out.stride; k++) {
            const int32_t from_y = y - s.top, at = k - s.left * out.channels;
            const bool inside = from_y >= 0 && from_y < naive->height && at >= 0 && at < naive->stride;
            st_row(&out, y)[k] = inside ? st_row(naive, from_y)[at]
                                        : (uint8_t)border.fill.value[k % out.channels];
        }
    replace(naive, out);
    if (st_image_pad(image, &border, &s, 1, NULL, "pad", &err) != STOKER_OK)
        return false;
    if (naive->channels != 3 || st_rng_below(rng, 2))
        return true;
    static const struct st_list range = {.count = 2, .value = {7, 7}};
    const struct st_list ranges[3] = {range, range, range}; /* as the op's struct */
    uint8_t table[3][256];
    for (int v = 0; v < 256; v++) {
        table[0][v] = (uint8_t)((v + 7) % 180);
        table[1][v] = table[2][v] = (uint8_t)(v + 7 < 255 ? v + 7 : 255);
    }
    table[1][0] = 0;
    if (image->mirror || image->flip) /* a turned row has other vectors */
        return true;
    for (int32_t y = 0; y < naive->height; y++)
        st_cv_colour_rows_for(st_cpu_level())
            ->through_hsv(st_row(naive, y), (size_t)naive->width, (const uint8_t(*)[256])table);
    struct st_rng none;
    st_rng_init(&none, 1, 0, 0, 0);
    return st_op_albu_shift_hsv.run(ranges, &none, image, &err) == STOKER_OK;
}

static void invert(const struct st_view *v)
{
    for (int32_t y = 0; y < v->height; y++)
        for (int32_t i = 0; i < v->width * v->channels; i++)
            st_row(v, y)[i] = (uint8_t)(255 - st_row(v, y)[i]);
}

/* ---- random programs, both ways ----------------------------------------------------------------- */

static bool step_both(struct st_rng *rng, struct st_image *image, struct st_view *naive)
{
    struct st_view pixels;
    struct stoker_error err;
    const uint32_t w = (uint32_t)naive->width, h = (uint32_t)naive->height;
    switch (st_rng_below(rng, 10)) {
    case 7: {
        const int32_t width = 1 + (int32_t)st_rng_below(rng, 70),
                      height = 1 + (int32_t)st_rng_below(rng, 70);
        const bool halves = st_rng_below(rng, 4) == 0 && w > 1 && h > 1;
        const int32_t to_x = halves ? (int32_t)w / 2 : width, to_y = halves ? (int32_t)h / 2 : height;
        const enum st_filter filter = (enum st_filter)(ST_FILTER_CV_NEAREST + st_rng_below(rng, 4));
        naive_resize_cv(naive, to_x, to_y, filter);
        return st_image_resize(image, to_x, to_y, filter, &err) == STOKER_OK;
    }
    case 8:
        return warp_both(rng, image, naive);
    case 9:
        return frame_both(rng, image, naive);
    case 0:
    case 1: {
        struct st_region r = {.x = (uint32_t)st_rng_below(rng, w), .y = (uint32_t)st_rng_below(rng, h)};
        r.width = 1 + (uint32_t)st_rng_below(rng, w - r.x);
        r.height = 1 + (uint32_t)st_rng_below(rng, h - r.y);
        naive_crop(naive, r);
        return st_image_crop(image, r, &err) == STOKER_OK;
    }
    case 2: {
        const int32_t width = 1 + (int32_t)st_rng_below(rng, 70),
                      height = 1 + (int32_t)st_rng_below(rng, 70);
        const enum st_filter filter = (enum st_filter)st_rng_below(rng, ST_FILTERS);
        naive_resize(naive, width, height, filter);
        return st_image_resize(image, width, height, filter, &err) == STOKER_OK;
    }
    case 3:
        naive_orient(naive, 2);
        st_image_mirror(image);
        return true;
    case 4:
        naive_orient(naive, 4);
        st_image_flip(image);
        return true;
    case 5: /* every pixel alike, wherever it stands */
        if (st_image_pixels(image, true, true, &pixels, &err) < 0)
            return false;
        invert(&pixels);
        invert(naive);
        return true;
    default: /* looking at the pixels changes nothing */
        return st_image_pixels(image, false, false, &pixels, &err) == STOKER_OK && !image->mirror &&
               !image->flip && pixels.width == naive->width && pixels.height == naive->height &&
               memcmp(pixels.data, naive->data, (size_t)pixels.width) == 0;
    }
}

static bool finish_equal(struct st_image *image, const struct st_view *naive)
{
    struct stoker_error err;
    struct st_finish finish;
    const struct st_finish_spec spec = {.dtype = STOKER_DTYPE_U8};
    if (st_image_width(image) != naive->width || st_image_height(image) != naive->height ||
        st_image_channels(image) != naive->channels ||
        st_finish_init(&finish, &spec, STOKER_DTYPE_U8, STOKER_LAYOUT_NHWC, naive->channels, &err) < 0)
        return false;
    const size_t bytes = (size_t)naive->stride * (size_t)naive->height;
    uint8_t *data = malloc(bytes);
    const struct st_place place = {data, naive->width, naive->height};
    const bool equal = st_image_finish(image, &finish, &place, &err) == STOKER_OK &&
                       memcmp(data, naive->data, bytes) == 0;
    free(data);
    return equal;
}

/* Runs programs of up to six steps on the image; `naive` is a copy of its pixels for each. */
static int wrong_programs(struct st_bytes file, bool rotate, const struct st_view *pixels, int programs)
{
    int wrong = 0;
    for (int k = 0; k < programs; k++) {
        struct st_rng rng;
        struct stoker_error err;
        struct st_image image;
        st_rng_init(&rng, 7, 0, (uint64_t)k, 0);
        st_arena_reset(&work.arena);
        struct st_view naive = naive_new(pixels->width, pixels->height, pixels->channels);
        memcpy(naive.data, pixels->data, (size_t)naive.stride * (size_t)naive.height);
        if (file.data) {
            if (st_image_open(&image, &work, file, rotate, &err) < 0)
                return programs;
        } else {
            st_image_wrap(&image, &work, *pixels);
        }
        bool same = true;
        for (uint64_t steps = st_rng_below(&rng, 7); same && steps > 0; steps--)
            same = step_both(&rng, &image, &naive);
        same = same && finish_equal(&image, &naive);
        if (!same)
            note("program %d differs", k);
        wrong += !same;
        free(naive.data);
    }
    return wrong;
}

static struct st_view painted(int32_t width, int32_t height, int32_t channels)
{
    struct st_view v = naive_new(width, height, channels);
    for (int32_t y = 0; y < height; y++)
        jpeg_paint(st_row(&v, y), y, width, channels);
    return v;
}

static void wrapped_pixels(void)
{
    for (int32_t channels = 1; channels <= 3; channels += 2) {
        struct st_view v = painted(61, 47, channels), before = painted(61, 47, channels);
        const int wrong = wrong_programs((struct st_bytes){0}, false, &v, 400);
        ok(wrong == 0, "400 programs on pixels of %d channels, %d differ", channels, wrong);
        ok(memcmp(v.data, before.data, (size_t)v.stride * 47) == 0,
           "pixels that are only lent stay as they are");
        free(v.data);
        free(before.data);
    }
}

/* ---- files -------------------------------------------------------------------------------------- */

/* The JPEG with an EXIF orientation behind its first marker. */
static struct st_bytes oriented(const uint8_t *jpeg, size_t size, uint8_t orientation)
{
    const uint8_t exif[] = {0xff, 0xe1, 0, 34, 'E', 'x',         'i', 'f', 0, 0,    'M', 'M',
                            0,    42,   0, 0,  0,   8,           0,   1,   1, 0x12, 0,   3,
                            0,    0,    0, 1,  0,   orientation, 0,   0,   0, 0,    0,   0};
    uint8_t *out = malloc(size + sizeof exif);
    memcpy(out, jpeg, 2);
    memcpy(out + 2, exif, sizeof exif);
    memcpy(out + 2 + sizeof exif, jpeg + 2, size - 2);
    return (struct st_bytes){out, size + sizeof exif};
}

/* The whole image as the codec gives it. */
static struct st_view decoded(struct st_bytes file, uint32_t scale)
{
    struct st_header header;
    struct st_view made;
    struct stoker_error err;
    struct st_arena arena = {0};
    uint32_t codec;
    if (st_decoder_header(&work.decoder, file, &codec, &header, &err) < 0)
        abort();
    const struct st_decode how = {
        scale, {0, 0, (header.width + scale - 1) / scale, (header.height + scale - 1) / scale}};
    if (st_decoder_decode(&work.decoder, codec, file, &how, &arena, &made, &err) < 0)
        abort();
    struct st_view out = naive_new(made.width, made.height, made.channels);
    for (int32_t y = 0; y < out.height; y++)
        memcpy(st_row(&out, y), st_row(&made, y), (size_t)out.stride);
    st_arena_free(&arena);
    return out;
}

static void encoded_files(void)
{
    const struct jpeg_kind kind = {.width = 83, .height = 59, .components = 3, .h = {2}, .v = {2}};
    size_t size;
    uint8_t *jpeg = jpeg_make(&kind, &size);
    for (uint8_t o = 1; o <= 8; o++) {
        const struct st_bytes file = oriented(jpeg, size, o);
        struct st_view v = decoded(file, 1);
        if (o == 6) {
            const int wrong = wrong_programs(file, false, &v, 40);
            ok(wrong == 0, "orientation is ignored unless asked for");
        }
        naive_orient(&v, o);
        const int wrong = wrong_programs(file, true, &v, 120);
        ok(wrong == 0, "120 programs on a JPEG with orientation %u, %d differ", o, wrong);
        free(v.data);
        free((void *)file.data);
    }
    free(jpeg);
}

/* ---- fidelity, limits, memory -------------------------------------------------------------------- */

static struct st_view fast_image(struct st_bytes file, struct st_region crop, int32_t size, bool fast)
{
    struct st_view out = naive_new(size, size, 3);
    struct st_finish finish;
    struct st_image image;
    struct stoker_error err;
    const struct st_finish_spec spec = {.dtype = STOKER_DTYPE_U8};
    const struct st_place place = {out.data, size, size};
    work.fast = fast;
    st_arena_reset(&work.arena);
    if (st_finish_init(&finish, &spec, STOKER_DTYPE_U8, STOKER_LAYOUT_NHWC, 3, &err) < 0 ||
        st_image_open(&image, &work, file, true, &err) < 0 || st_image_crop(&image, crop, &err) < 0 ||
        st_image_resize(&image, size, size, ST_FILTER_BILINEAR, &err) < 0 ||
        st_image_finish(&image, &finish, &place, &err) < 0)
        abort();
    work.fast = false;
    return out;
}

/* The whole file at a reduced scale, turned, and resized from where the crop's edges come to lie in it. */
static struct st_view fast_expected(struct st_bytes file, uint32_t orientation, struct st_region crop,
                                    uint32_t scale, int32_t size)
{
    struct st_view v = decoded(file, scale), out;
    const double s = scale;
    const struct st_turn turn = st_turn_upright(orientation);
    /* What is cut off at the right and below by rounding up must not move to the left or top by turning. */
    const double spare_x = v.width - 517 / s, spare_y = v.height - 389 / s;
    const double left = turn.mirror ? (turn.transpose ? spare_y : spare_x) : 0;
    const double top = turn.flip ? (turn.transpose ? spare_x : spare_y) : 0;
    naive_orient(&v, orientation);
    const double x = left + crop.x / s, y = top + crop.y / s, w = crop.width / s, h = crop.height / s;
    const struct st_region cover = {(uint32_t)x, (uint32_t)y, (uint32_t)ceil(x + w) - (uint32_t)x,
                                    (uint32_t)ceil(y + h) - (uint32_t)y};
    naive_crop(&v, cover);
    const struct st_resize job = {.in_width = v.width, .in_height = v.height, .out_width = size, .out_height = size,
                                  .window = {0, 0, (uint32_t)size, (uint32_t)size}, .filter = ST_FILTER_BILINEAR,
                                  .pillow = 13, .span_x = {x - cover.x, w}, .span_y = {y - cover.y, h}};
    naive_crop(&v, st_resize_needs(&job));
    if (st_resize_view(&job, work.kernels, &work.arena, &v, &out) < 0)
        abort();
    struct st_view kept = naive_new(size, size, 3);
    memcpy(kept.data, out.data, (size_t)size * (size_t)size * 3);
    free(v.data);
    return kept;
}

/* How far two images lie apart on the average. */
static double distance(struct st_view a, struct st_view b)
{
    double sum = 0;
    const int32_t bytes = a.width * a.height * a.channels;
    for (int32_t k = 0; k < bytes; k++)
        sum += abs(a.data[k] - b.data[k]);
    free(a.data);
    free(b.data);
    return sum / bytes;
}

static bool same_view(struct st_view a, struct st_view b)
{
    const bool same = a.width == b.width && a.height == b.height &&
                      memcmp(a.data, b.data, (size_t)a.stride * (size_t)a.height) == 0;
    free(a.data);
    free(b.data);
    return same;
}

static void fast_fidelity(void)
{
    const struct jpeg_kind kind = {.width = 517, .height = 389, .components = 3, .h = {2}, .v = {2}};
    const struct st_region crop = {33, 21, 351, 322};
    static const int32_t sizes[] = {150, 80, 40, 5};
    size_t size;
    uint8_t *jpeg = jpeg_make(&kind, &size);
    for (uint8_t o = 1; o <= 8; o++) {
        const struct st_bytes file = oriented(jpeg, size, o);
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t scale = i < 3 ? 2u << i : 8;
            ok(same_view(fast_image(file, crop, sizes[i], true),
                         fast_expected(file, o, crop, scale, sizes[i])),
               "fast, orientation %u, to %d pixels: decoded at 1/%u", o, sizes[i], scale);
        }
        const double apart = distance(fast_image(file, crop, 80, true), fast_image(file, crop, 80, false));
        ok(apart < 3, "which lies %.2f levels from exact on the average", apart);
        ok(same_view(fast_image(file, crop, 170, true), fast_image(file, crop, 170, false)),
           "a region that is not twice the output is decoded as it is");
        free((void *)file.data);
    }
    free(jpeg);
}

static void refusals(void)
{
    struct st_view v = painted(20, 10, 3);
    struct st_image image;
    struct stoker_error err;
    st_image_wrap(&image, &work, v);
    static const struct st_region outside[] = {{0, 0, 21, 10},        {0, 0, 20, 11},
                                               {20, 0, 1, 1},         {5, 5, 0, 1},
                                               {UINT32_MAX, 0, 2, 1}, {1, 1, UINT32_MAX, 1}};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        ok(st_image_crop(&image, outside[i], &err) == STOKER_EINVAL, "a crop outside is refused (%zu)",
           i);
    ok(st_image_resize(&image, 0, 5, ST_FILTER_BOX, &err) == STOKER_EINVAL, "so is a resize to nothing");
    work.decoder.pixel_limit = 1000;
    ok(st_image_resize(&image, 100, 11, ST_FILTER_BOX, &err) == STOKER_ELIMIT,
       "and one beyond the limit");
    ok(st_image_resize(&image, 100, 10, ST_FILTER_BOX, &err) == STOKER_OK, "but not one within it");
    work.decoder.pixel_limit = 0;
    free(v.data);
}

static void memory(void)
{
    struct st_view v = painted(100, 80, 3);
    struct stoker_error err;
    for (int round = 0; round < 3; round++) {
        struct st_image image;
        struct st_view pixels;
        st_arena_reset(&work.arena);
        st_image_wrap(&image, &work, v);
        st_image_mirror(&image);
        bool fine = st_image_resize(&image, 90, 70, ST_FILTER_LANCZOS, &err) == STOKER_OK;
        fine = fine && st_image_pixels(&image, true, false, &pixels, &err) == STOKER_OK;
        ok(fine && (round == 0 || !work.arena.extra), "round %d%s", round,
           round ? " allocates nothing" : "");
    }
    free(v.data);
}

int main(void)
{
    work = work_make(st_cpu_level());
    wrapped_pixels();
    encoded_files();
    fast_fidelity();
    refusals();
    memory();
    work_free(&work);
    return done_testing();
}
