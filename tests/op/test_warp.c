/* Warps: all variants give the same bytes, nothing outside is read or written, and what is refused.
 * Bytes against Pillow: tests/python. */
#include "op/geometry/maps.h"
#include "op/geometry/warp_rows.h"
#include "op/geometry/warp_span.h"
#include "op_line.h"
#include "variants.h"

#include <math.h>

static const uint64_t HASH = 0xae0a1bb5eed0faef;
static uint64_t state = 7;

static double uniform(double low, double high)
{
    return low + (high - low) * (chance(&state) / 4294967296.0);
}

/* Exactly its bytes and the 64 that may be read. */
static struct st_view image_of(int32_t width, int32_t height, int32_t channels)
{
    const size_t row = (size_t)width * (size_t)channels;
    return (struct st_view){random_bytes(&state, row * (size_t)height), (ptrdiff_t)row, width, height,
                            channels};
}

static struct st_warp random_warp(const struct st_view *in)
{
    static const enum st_filter filters[] = {ST_FILTER_NEAREST, ST_FILTER_BILINEAR, ST_FILTER_BICUBIC};
    struct st_warp warp = {.kind = chance(&state) % 2 ? ST_WARP_AFFINE : ST_WARP_PERSPECTIVE,
                           .width = between(&state, 1, 150),
                           .height = between(&state, 1, 12),
                           .filter = filters[chance(&state) % 3],
                           .fill = {1, 2, 3, 4}};
    const double wild = chance(&state) % 4 ? 1.5 : pow(10, uniform(-12, 12));
    for (int k = 0; k < 6; k++)
        warp.map[k] = uniform(-wild, wild);
    warp.map[2] += uniform(0, in->width);
    warp.map[5] += uniform(0, in->height);
    if (chance(&state) % 4 == 0) /* straight */
        warp.map[1] = warp.map[3] = 0;
    if (chance(&state) % 4 == 0) /* whole pixels */
        for (int k = 0; k < 6; k++)
            warp.map[k] = rint(warp.map[k]);
    if (chance(&state) % 4 == 0) /* quarters: mixtures are often whole numbers */
        for (int k = 0; k < 6; k++)
            warp.map[k] = rint(4 * warp.map[k]) / 4;
    for (int k = 6; k < 8; k++)
        warp.map[k] = uniform(-1, 1) * pow(10, -between(&state, 0, 4)) * (double)(chance(&state) % 2);
    return warp;
}

/* ---- variants ----------------------------------------------------------------------------------- */

static struct st_view warped(const struct st_warp_rows *rows, const struct st_view *in,
                             const struct st_warp *warp)
{
    struct st_work work = work_make(ST_CPU_C);
    struct st_image image;
    struct st_view made, out = {0};
    struct stoker_error err;
    work.warp = rows;
    st_image_wrap(&image, &work, *in);
    if (st_image_warp(&image, warp, "test", &err) >= 0 &&
        st_image_pixels(&image, false, false, &made, &err) >= 0) {
        out = made;
        out.data = malloc((size_t)made.stride * (size_t)made.height);
        memcpy(out.data, made.data, (size_t)made.stride * (size_t)made.height);
    }
    work_free(&work);
    return out;
}

static bool same_by_all(const struct st_view *in, const struct st_warp *warp)
{
    const struct st_view want = warped(st_warp_rows_for(ST_CPU_C), in, warp);
    bool same = want.data != NULL;
    for (int level = ST_CPU_C + 1; level <= (int)st_cpu_level(); level++) {
        const struct st_view got = warped(st_warp_rows_for((enum st_cpu_level)level), in, warp);
        same = same && got.data && got.width == warp->width && got.height == warp->height &&
               memcmp(got.data, want.data, (size_t)want.stride * (size_t)want.height) == 0;
        free(got.data);
    }
    free(want.data);
    return same;
}

static void variants_agree(void)
{
    const int tries = share_of(6000);
    int differ = 0;
    for (int t = 0; t < tries; t++) {
        struct st_view in = image_of(between(&state, 1, 40), between(&state, 1, 30), t % 3 ? 3 : 1);
        const struct st_warp warp = random_warp(&in);
        if (t % 2) /* few values: neighbours are often equal */
            for (ptrdiff_t i = 0; i < in.stride * in.height; i++)
                in.data[i] = (uint8_t)(in.data[i] < 64 ? 0 : in.data[i] < 192 ? 255 : in.data[i] % 4);
        differ += !same_by_all(&in, &warp);
        free(in.data);
    }
    ok(differ == 0, "%d warps: every variant gives the bytes of C (%d differ)", tries, differ);
}

/* A move by whole pixels, which copies rows, and the same map as a perspective one, which mixes pixels. */
static void shifts_copy(void)
{
    static const enum st_filter filters[] = {ST_FILTER_NEAREST, ST_FILTER_BILINEAR, ST_FILTER_BICUBIC};
    int differ = 0;
    for (int t = 0; t < 300; t++) {
        struct st_view in = image_of(between(&state, 1, 40), between(&state, 1, 30), t % 3 ? 3 : 1);
        struct st_warp warp = {.kind = ST_WARP_AFFINE,
                               .width = between(&state, 1, 50),
                               .height = between(&state, 1, 40),
                               .filter = filters[t % 3],
                               .fill = {1, 2, 3, 4},
                               .map = {1, 0, between(&state, 0, 100) - 50, 0, 1,
                                       between(&state, 0, 80) - 40}};
        const struct st_view copied = warped(st_warp_rows_for(st_cpu_level()), &in, &warp);
        warp.kind = ST_WARP_PERSPECTIVE;
        const struct st_view mixed = warped(st_warp_rows_for(ST_CPU_C), &in, &warp);
        differ += !copied.data || !mixed.data || copied.stride != mixed.stride ||
                  memcmp(copied.data, mixed.data, (size_t)mixed.stride * (size_t)mixed.height) != 0;
        free(copied.data);
        free(mixed.data);
        free(in.data);
    }
    ok(differ == 0, "moves by whole pixels give what all filters give (%d differ)", differ);
}

/* Every width from 1 on, so that each remainder of a vector and of a chunk occurs; guards stand. */
static void guards_stand(void)
{
    struct st_view in = image_of(400, 3, 3);
    bool fine = true;
    for (int level = ST_CPU_C; level <= (int)st_cpu_level(); level++) {
        const struct st_warp_rows *rows = st_warp_rows_for((enum st_cpu_level)level);
        void (*const loops[])(const struct st_warp_line *) = {rows->nearest, rows->bilinear};
        for (int32_t channels = 1; channels <= 3; channels += 2)
            for (int32_t count = 1; count < 300; count++)
                for (int k = 0; k < 2; k++) {
                    const double map[8] = {1, 0, 1.25, 0, 1, 0.75};
                    const size_t size = (size_t)count * (size_t)channels;
                    uint8_t *out = guarded(size);
                    in.channels = channels;
                    loops[k](&(struct st_warp_line){&in, map, false, 0, 0, count, out});
                    fine = fine && unharmed(out, size);
                    guarded_free(out);
                }
    }
    ok(fine, "loops write their pixels and nothing else");
    free(in.data);
}

/* Maps and images made of exact numbers only: the same bytes on every machine. */
static void machines_agree(void)
{
    static const enum st_filter filters[] = {ST_FILTER_NEAREST, ST_FILTER_BILINEAR, ST_FILTER_BICUBIC};
    struct st_view in = noise(61, 47, 3, 5);
    uint64_t hash = 14695981039346656037u;
    for (int t = 0; t < 240; t++) {
        const double angle = 1.5 * t, centre[2] = {t % 7, t % 11};
        const struct st_affine affine = {angle, 1 + t / 200.0, {t % 5, -t % 3}, {t % 40, t % 20}};
        double corners[4][2] = {
            {t % 9, t % 8}, {60 - t % 7, t % 6}, {60 - t % 5, 46 - t % 11}, {t % 13, 46}};
        struct st_warp warp;
        if (t % 3 == 0)
            st_warp_rotation(&warp, angle, t % 2, t % 4 ? centre : NULL, in.width, in.height, "test",
                             NULL);
        else if (t % 3 == 1)
            st_warp_affine(&warp, &affine, t % 4 ? centre : NULL, in.width, in.height);
        else
            st_warp_perspective(&warp, corners, in.width, in.height);
        warp.filter = filters[t / 3 % 3];
        memcpy(warp.fill, "\1\2\3", 4);
        const struct st_view out = warped(st_warp_rows_for(st_cpu_level()), &in, &warp);
        for (ptrdiff_t i = 0; out.data && i < out.stride * out.height; i++)
            hash = (hash ^ out.data[i]) * 1099511628211u;
        free(out.data);
    }
    ok(hash == HASH, "240 maps give the same bytes on every machine (%016llx)",
       (unsigned long long)hash);
    free(in.data);
}

/* ---- spans -------------------------------------------------------------------------------------- */

static bool lies(struct st_point p, const struct st_view *in, double reach)
{
    return p.x >= reach && p.x < in->width - reach && p.y >= reach && p.y < in->height - reach;
}

static void spans_are_right(void)
{
    const int tries = share_of(40000);
    int wrong = 0;
    int64_t slow = 0, all = 0;
    for (int t = 0; t < tries; t++) {
        const struct st_view in = {.width = between(&state, 1, 500), .height = between(&state, 1, 500)};
        const struct st_warp warp = random_warp(&in);
        const bool perspective = warp.kind == ST_WARP_PERSPECTIVE;
        const double reach = 0.5 * (double)(chance(&state) % 4);
        const int32_t y = between(&state, 0, 300), count = between(&state, 1, 300);
        struct st_warp_span sure, possible;
        st_warp_spans(warp.map, perspective, &in, reach, y, count, &sure, &possible);
        bool right = 0 <= possible.begin && possible.begin <= sure.begin && sure.begin <= sure.end &&
                     sure.end <= possible.end && possible.end <= count;
        for (int32_t x = 0; x < count; x++) {
            const struct st_point from = st_warp_source(warp.map, perspective, x, y);
            const bool is_sure = x >= sure.begin && x < sure.end;
            const bool may = x >= possible.begin && x < possible.end;
            right = right && (!is_sure || lies(from, &in, reach)) && (may || !lies(from, &in, 0));
            all += lies(from, &in, reach);
            slow += lies(from, &in, reach) && !is_sure;
        }
        wrong += !right;
    }
    ok(wrong == 0, "%d rows: what is sure lies inside, and nothing inside is missed (%d wrong)", tries,
       wrong);
    ok(slow * 20 < all, "few pixels inside are not sure: %lld of %lld", (long long)slow, (long long)all);
}

/* ---- images ------------------------------------------------------------------------------------- */

static void refused(void)
{
    static const double numbers[] = {NAN, INFINITY, -INFINITY};
    struct st_work work = work_make(ST_CPU_C);
    struct st_view in = image_of(8, 8, 3);
    struct st_image image;
    struct stoker_error err;
    bool fine = true;
    for (int k = 0; k < 8; k++)
        for (int n = 0; n < 3; n++) {
            struct st_warp warp = {
                .kind = ST_WARP_PERSPECTIVE, .width = 4, .height = 4, .map = {1, 0, 0, 0, 1}};
            warp.map[k] = numbers[n];
            st_image_wrap(&image, &work, in);
            fine = fine && st_image_warp(&image, &warp, "test", &err) == STOKER_EINVAL &&
                   strstr(err.message, "not finite");
        }
    ok(fine, "numbers that are not finite are refused: %s", err.message);

    struct st_warp warp = {.kind = ST_WARP_AFFINE, .width = 100, .height = 100, .map = {1, 0, 0, 0, 1}};
    work.decoder.pixel_limit = 9999;
    st_image_wrap(&image, &work, in);
    ok(st_image_warp(&image, &warp, "test", &err) == STOKER_ELIMIT, "too many pixels: %s", err.message);
    work.decoder.pixel_limit = 10000;
    ok(st_image_warp(&image, &warp, "test", &err) == STOKER_OK && st_image_width(&image) == 100,
       "as many as allowed");
    warp.width = 0;
    ok(st_image_warp(&image, &warp, "test", &err) == STOKER_EINVAL, "no pixels: %s", err.message);
    free(in.data);
    work_free(&work);
}

static void flat_images_grow_within_limits(void)
{
    struct st_work work = work_make(ST_CPU_C);
    struct st_view in = image_of(60000, 1, 1);
    struct stoker_error err;
    int rc;
    work.decoder.pixel_limit = 1 << 20;
    free(run_on(&work, &in, "random_rotation degrees=45,45 expand=1", 1, &rc, &err).data);
    ok(rc == STOKER_ELIMIT && strstr(err.message, "pixel_limit"), "a turned line: %s", err.message);
    free(run_on(&work, &in, "random_rotation degrees=90,90 expand=1", 1, &rc, &err).data);
    ok(rc == STOKER_OK, "by a right angle it has as many pixels as before");
    free(in.data);
    work_free(&work);
}

/* For the sanitizers: nothing outside is read, however far pixels are moved. */
static void elastic_stays_inside(void)
{
    static const char *const texts[] = {"elastic_transform sigma=0 alpha=1e6",
                                        "elastic_transform sigma=0 alpha=3,-2 interpolation=nearest",
                                        "elastic_transform sigma=0.3 alpha=40 fill=9",
                                        "elastic_transform sigma=1,2 alpha=-1e6 interpolation=nearest"};
    struct st_work work = work_make(ST_CPU_C);
    struct stoker_error err;
    bool fine = true;
    for (int t = 0; t < 200; t++) {
        struct st_view in = image_of(between(&state, 1, 40), between(&state, 1, 40), t % 3 ? 3 : 1);
        int rc;
        struct st_view out = run_on(&work, &in, texts[t % 4], (uint64_t)t, &rc, &err);
        const bool small = in.width < 18 || in.height < 18; /* than the blur */
        fine = fine && (rc == STOKER_OK ? out.width == in.width && out.height == in.height
                                        : t % 4 > 1 && small && strstr(err.message, "too large"));
        free(out.data);
        free(in.data);
    }
    ok(fine, "displaced images keep their size");
    work_free(&work);
}

/* ---- maps --------------------------------------------------------------------------------------- */

static void right_angles_only_turn(void)
{
    static const struct {
        double angle;
        struct st_turn turn;
    } cases[] = {{0, {0}},
                 {-0.0, {0}},
                 {360, {0}},
                 {90, {.transpose = true, .flip = true}},
                 {-270, {.transpose = true, .flip = true}},
                 {540, {.mirror = true, .flip = true}},
                 {-90, {.transpose = true, .mirror = true}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct st_warp warp;
        const struct st_turn want = cases[i].turn;
        const int rc = st_warp_rotation(&warp, cases[i].angle, true, NULL, 7, 5, "test", NULL);
        ok(rc == STOKER_OK && warp.kind == ST_WARP_TURN && warp.turn.transpose == want.transpose &&
               warp.turn.mirror == want.mirror && warp.turn.flip == want.flip &&
               warp.width == (want.transpose ? 5 : 7),
           "a turn by %g degrees moves whole pixels", cases[i].angle);
    }
    struct st_warp warp;
    const double centre[2] = {0, 0};
    st_warp_rotation(&warp, 90, false, NULL, 7, 5, "test", NULL);
    ok(warp.kind == ST_WARP_AFFINE && warp.map[0] == 0 && warp.map[1] == -1,
       "into a frame that is not square, it is a map of whole numbers");
    st_warp_rotation(&warp, 0, false, centre, 7, 5, "test", NULL);
    ok(warp.kind == ST_WARP_AFFINE && warp.map[0] == 1 && warp.map[2] == 0, "around a centre, too");
}

static void perspective_moves_corners(void)
{
    double worst = 0;
    bool floats = true;
    for (int t = 0; t < 500; t++) {
        const int32_t width = between(&state, 8, 500), height = between(&state, 8, 500);
        double corners[4][2];
        struct st_warp warp;
        for (int k = 0; k < 4; k++) {
            corners[k][0] = (k == 1 || k == 2) * (width - 1) + uniform(-width / 4.0, width / 4.0);
            corners[k][1] = (k > 1) * (height - 1) + uniform(-height / 4.0, height / 4.0);
        }
        if (!st_warp_perspective(&warp, corners, width, height))
            worst = INFINITY;
        for (int k = 0; k < 8; k++)
            floats = floats && warp.map[k] == (double)(float)warp.map[k];
        for (int k = 0; k < 4; k++) {
            const double *m = warp.map, x = corners[k][0], y = corners[k][1],
                         by = m[6] * x + m[7] * y + 1;
            worst =
                fmax(worst, fabs((m[0] * x + m[1] * y + m[2]) / by - (k == 1 || k == 2) * (width - 1)));
            worst = fmax(worst, fabs((m[3] * x + m[4] * y + m[5]) / by - (k > 1) * (height - 1)));
        }
    }
    ok(worst < 0.1, "corners of the image go where they are moved: off by %g pixels at most", worst);
    ok(floats, "the numbers of a perspective are rounded to floats, as torchvision rounds them");
    double line[4][2] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}};
    struct st_warp warp;
    ok(!st_warp_perspective(&warp, line, 9, 9), "there is no map for corners on a line");
}

int main(void)
{
    variants_agree();
    shifts_copy();
    guards_stand();
    machines_agree();
    spans_are_right();
    refused();
    flat_images_grow_within_limits();
    elastic_stays_inside();
    right_angles_only_turn();
    perspective_moves_corners();
    return done_testing();
}
