/* Resizing gives the bytes of a plain two-pass resampler in 22-bit fixed point, for every filter, both
 * orders of the passes, any window, and every variant of the kernels. */
#include "op/resize/resize.h"
#include "variants.h"

#include <math.h>

static const char *const names[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"};

/* ---- the plain resampler ----------------------------------------------------------------------- */

static double sinc(double x) { return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x); }

static double filter_value(enum st_filter filter, double x)
{
    const double a = fabs(x);
    switch (filter) {
    case ST_FILTER_BOX: return x > -0.5 && x <= 0.5;
    case ST_FILTER_BILINEAR: return a < 1 ? 1 - a : 0;
    case ST_FILTER_HAMMING: return a < 1 ? sinc(a) * (0.54f + 0.46f * cos(M_PI * a)) : 0;
    case ST_FILTER_BICUBIC:
        return a < 1 ? 1.5 * a * a * a - 2.5 * a * a + 1
               : a < 2 ? -0.5 * a * a * a + 2.5 * a * a - 4 * a + 2
                       : 0;
    default: return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    }
}

/* The weights of output `o`, which are for the inputs [*low, *high). */
static void plain_weights(enum st_filter filter, int32_t in, int32_t out, int32_t o, int64_t *weight,
                          int32_t *low, int32_t *high)
{
    static const double reach[] = {0, 0.5, 1, 1, 2, 3};
    const double step = (double)in / out, stretch = step > 1 ? step : 1, centre = (o + 0.5) * step;
    const double support = reach[filter] * stretch;
    double value[4096], sum = 0;
    *low = (int32_t)fmax(0, centre - support + 0.5);
    *high = (int32_t)fmin(in, centre + support + 0.5);
    for (int32_t i = *low; i < *high; i++)
        sum += value[i] = filter_value(filter, (i - centre + 0.5) / stretch);
    for (int32_t i = *low; i < *high; i++)
        weight[i] = (int64_t)round(value[i] / sum * (1 << 22));
}

/* Along one side; `step` bytes from pixel to pixel, `lines` of them `line` bytes apart. */
static void plain_pass(enum st_filter filter, int32_t in, int32_t out, const uint8_t *from,
                       size_t from_step, uint8_t *to, size_t to_step, size_t lines, size_t from_line,
                       size_t to_line)
{
    int64_t weight[4096];
    int32_t low = 0, high = 0;
    double nearest = 0.5 * in / out;
    for (int32_t o = 0; o < out; o++, nearest += (double)in / out) {
        if (filter != ST_FILTER_NEAREST)
            plain_weights(filter, in, out, o, weight, &low, &high);
        for (size_t l = 0; l < lines; l++) {
            const uint8_t *line = from + l * from_line;
            int64_t sum = 1 << 21;
            for (int32_t i = low; i < high; i++)
                sum += weight[i] * line[(size_t)i * from_step];
            sum >>= 22;
            if (filter == ST_FILTER_NEAREST)
                sum = line[(size_t)nearest * from_step];
            to[(size_t)o * to_step + l * to_line] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
        }
    }
}

static void plain_x(enum st_filter f, const uint8_t *from, int32_t in, int32_t rows, int32_t channels,
                    uint8_t *to, int32_t out)
{
    const size_t c = (size_t)channels;
    if (in == out)
        memcpy(to, from, (size_t)in * (size_t)rows * c);
    else
        for (size_t k = 0; k < c; k++)
            plain_pass(f, in, out, from + k, c, to + k, c, (size_t)rows, (size_t)in * c,
                       (size_t)out * c);
}

static void plain_y(enum st_filter f, const uint8_t *from, int32_t row_bytes, int32_t in, uint8_t *to,
                    int32_t out)
{
    const size_t row = (size_t)row_bytes;
    if (in == out)
        memcpy(to, from, row * (size_t)in);
    else
        plain_pass(f, in, out, from, row, to, row, row, 1, 1);
}

static void plain_resize(const struct st_resize *job, const uint8_t *from, int32_t channels, uint8_t *to)
{
    const int32_t iw = job->in_width, ih = job->in_height, ow = job->out_width, oh = job->out_height;
    const size_t most = (size_t)(iw > ow ? iw : ow) * (size_t)(ih > oh ? ih : oh) * (size_t)channels;
    uint8_t *between_passes = exactly(most);
    if (job->pillow >= 13 && ih > oh && ih - oh > 2 * (iw - ow) && iw != ow) {
        plain_y(job->filter, from, iw * channels, ih, between_passes, oh);
        plain_x(job->filter, between_passes, iw, oh, channels, to, ow);
    } else {
        plain_x(job->filter, from, iw, ih, channels, between_passes, ow);
        plain_y(job->filter, between_passes, ow * channels, ih, to, oh);
    }
    free(between_passes);
}

/* ---- comparing --------------------------------------------------------------------------------- */

/* What the job needs of the image, in memory of its own; sometimes upside down in memory. */
static struct st_view needed(const struct st_resize *job, const uint8_t *image, int32_t channels,
                             bool upside)
{
    const struct st_region r = st_resize_needs(job);
    const size_t row = (size_t)r.width * (size_t)channels;
    uint8_t *copy = exactly(row * r.height + 64);
    struct st_view view = {copy, (ptrdiff_t)row, (int32_t)r.width, (int32_t)r.height, channels};
    memset(copy + row * r.height, 77, 64);
    if (upside) {
        view.data = copy + row * (r.height - 1);
        view.stride = -view.stride;
    }
    for (uint32_t y = 0; y < r.height; y++)
        memcpy(st_row(&view, (int32_t)y),
               image + ((size_t)(y + r.y) * (size_t)job->in_width + r.x) * (size_t)channels, row);
    return view;
}

/* The window of the expected result, mirrored and flipped, against finished bytes. */
static bool placed(const struct st_resize *job, const uint8_t *expected, int32_t channels, bool mirror,
                   bool flip, const uint8_t *place)
{
    const struct st_region *w = &job->window;
    for (uint32_t y = 0; y < w->height; y++)
        for (uint32_t x = 0; x < w->width; x++) {
            const size_t from =
                ((size_t)(w->y + (flip ? w->height - 1 - y : y)) * (size_t)job->out_width + w->x +
                 (mirror ? w->width - 1 - x : x)) *
                (size_t)channels;
            if (memcmp(expected + from, place + ((size_t)y * w->width + x) * (size_t)channels,
                       (size_t)channels))
                return false;
        }
    return true;
}

static bool resize_agrees(const struct st_kernels *kernels, struct st_arena *arena,
                          const struct st_resize *job, const uint8_t *image, int32_t channels,
                          const uint8_t *expected, uint64_t *seed)
{
    const bool upside = chance(seed) & 1, mirror = chance(seed) & 1, flip = chance(seed) & 1;
    const struct st_view in = needed(job, image, channels, upside);
    const size_t bytes = (size_t)job->window.width * job->window.height * (size_t)channels;
    const struct st_finish_spec spec = {.dtype = STOKER_DTYPE_U8};
    struct st_finish finish;
    struct st_view out;
    uint8_t *slot = guarded(bytes);
    const struct st_place place = {slot, (int32_t)job->window.width, (int32_t)job->window.height};
    bool same = st_resize_view(job, kernels, arena, &in, &out) == STOKER_OK &&
                out.width == place.width && out.height == place.height && out.channels == channels &&
                placed(job, expected, channels, false, false, out.data);
    st_finish_init(&finish, &spec, STOKER_DTYPE_U8, STOKER_LAYOUT_NHWC, channels, NULL);
    same = same &&
           st_resize_finish(job, kernels, arena, &in, &finish, mirror, flip, &place) == STOKER_OK &&
           placed(job, expected, channels, mirror, flip, slot) && unharmed(slot, bytes);
    st_arena_reset(arena);
    guarded_free(slot);
    free(upside ? st_row(&in, in.height - 1) : in.data);
    return same;
}

/* One job, whole and by a window, with every variant. */
static bool job_agrees(const struct st_kernels *const *list, int count, struct st_arena *arena,
                       struct st_resize job, int32_t channels, uint64_t *seed)
{
    uint8_t *image = random_bytes(seed, (size_t)job.in_width * (size_t)job.in_height * (size_t)channels);
    uint8_t *expected = exactly((size_t)job.out_width * (size_t)job.out_height * (size_t)channels);
    bool same = true;
    plain_resize(&job, image, channels, expected);
    for (int i = 0; i < count; i++) {
        job.window = (struct st_region){0, 0, (uint32_t)job.out_width, (uint32_t)job.out_height};
        same = resize_agrees(list[i], arena, &job, image, channels, expected, seed) && same;
        job.window.x = (uint32_t)between(seed, 0, job.out_width - 1);
        job.window.y = (uint32_t)between(seed, 0, job.out_height - 1);
        job.window.width = (uint32_t)between(seed, 1, job.out_width - (int32_t)job.window.x);
        job.window.height = (uint32_t)between(seed, 1, job.out_height - (int32_t)job.window.y);
        same = resize_agrees(list[i], arena, &job, image, channels, expected, seed) && same;
    }
    if (!same)
        note("%s %dx%d -> %dx%d, %d channels", names[job.filter], job.in_width, job.in_height,
             job.out_width, job.out_height, channels);
    free(image);
    free(expected);
    return same;
}

static void random_jobs(const struct st_kernels *const *list, int count, struct st_arena *arena)
{
    uint64_t seed = 21;
    for (int filter = 0; filter < ST_FILTERS; filter++)
        for (uint32_t pillow = 12; pillow <= 13; pillow++) {
            int wrong = 0;
            for (int i = 0; i < 40; i++) {
                const int32_t most = i % 4 == 0 ? 9 : i % 4 == 1 ? 160 : 70;
                struct st_resize job = {between(&seed, 1, most),
                                        between(&seed, 1, most),
                                        between(&seed, 1, most),
                                        between(&seed, 1, most),
                                        {0},
                                        (enum st_filter)filter,
                                        pillow};
                if (i % 13 == 0)
                    job.out_width = job.in_width;
                if (i % 7 == 0)
                    job.out_height = job.in_height;
                wrong += !job_agrees(list, count, arena, job, i & 1 ? 3 : 1, &seed);
            }
            ok(wrong == 0, "%s as in Pillow %u: %d of 40 sizes differ", names[filter], pillow, wrong);
        }
}

static void extreme_jobs(const struct st_kernels *const *list, int count, struct st_arena *arena)
{
    static const int32_t sizes[][4] = {{3000, 2, 1, 1},  {2, 3000, 1, 1}, {1, 1, 300, 200},
                                       {1, 1, 1, 1},     {3000, 3, 7, 3}, {5, 500, 3, 499},
                                       {700, 2, 233, 5}, {2, 2, 257, 2}};
    uint64_t seed = 22;
    for (int filter = 0; filter < ST_FILTERS; filter++) {
        int wrong = 0;
        for (int i = 0; i < 8; i++) {
            const struct st_resize job = {sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3],
                                          {0}, (enum st_filter)filter, 13};
            wrong += !job_agrees(list, count, arena, job, 3, &seed);
            wrong += !job_agrees(list, count, arena, job, 1, &seed);
        }
        ok(wrong == 0, "%s: %d of 16 extreme sizes differ", names[filter], wrong);
    }
}

/* The order of the passes must matter somewhere, or the test of it is idle. */
static void orders_differ(void)
{
    uint64_t seed = 23;
    struct st_resize job = {300, 400, 280, 200, {0, 0, 280, 200}, ST_FILTER_BICUBIC, 13};
    uint8_t *image = random_bytes(&seed, 300 * 400), *a = exactly(280 * 200), *b = exactly(280 * 200);
    plain_resize(&job, image, 1, a);
    job.pillow = 12;
    plain_resize(&job, image, 1, b);
    ok(memcmp(a, b, 280 * 200) != 0, "Pillow 12 and 13 differ where the height shrinks most");
    free(image);
    free(a);
    free(b);
}

int main(void)
{
    const struct st_kernels *list[4];
    const int count = variants(list);
    struct st_arena arena = {0};
    random_jobs(list, count, &arena);
    extreme_jobs(list, count, &arena);
    orders_differ();
    st_arena_free(&arena);
    return done_testing();
}
