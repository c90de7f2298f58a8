/* The GPU's kernels, compiled for the CPU, give the bytes of op/ for any job. */
#include "codec/jpeg/kernels.h"
#include "gpu/arith.h"
#include "gpu/stage.h"
#include "gpu_host/host_kernels.h"
#include "gpu_host/random_batch.h"
#include "op/colour/colour.h"
#include "op/variants.h"

/* The batch, made by the kernels in memory of exactly its size. NULL when it is as expected. */
static const char *wrong(struct random_batch *b)
{
    struct stoker_error err = {0};
    const uint64_t words = st_align(b->used, 4); /* the kernels read whole words */
    uint8_t *raw = exactly(words), *images = guarded(b->bytes);
    random_batch_place(b, (uint64_t)(uintptr_t)raw);
    memcpy(raw, b->host, words);
    const struct st_gpu_launch launch = {.host = b->host,
                                         .raw = (uint64_t)(uintptr_t)raw,
                                         .used = b->used,
                                         .count = b->want.rows,
                                         .images = (uint64_t)(uintptr_t)images};
    const char *what = st_gpu_host_run(&b->want, &launch, &err) ? "the run fails" : NULL;
    if (!what && !unharmed(images, b->bytes))
        what = "bytes around the output were written";
    if (!what)
        what = random_batch_differs(b, images);
    free(raw);
    guarded_free(images);
    return what;
}

static void many(const char *what, int count, const struct batch_limits *limits)
{
    int failed = 0;
    for (int i = 0; i < count; i++) {
        struct random_batch b;
        random_batch_make(&b, (uint64_t)(i + 1) * 0x9e3779b97f4a7c15, limits);
        const char *why = wrong(&b);
        if (why && failed++ < 5)
            note("batch %d: %s", i, why);
        random_batch_free(&b);
    }
    ok(!failed, "%d batches %s", count, what);
}

/* Every colour there is, against the loops of op/: a rounding that goes wrong once in a million is
 * found. */
static void test_colours(void)
{
    const struct st_colour_rows *rows = st_colour_rows_for(st_cpu_level());
    uint8_t turned[3 * 256], saturated[3 * 256], grey[256];
    uint32_t wrong_hues = 0, wrong_saturations = 0, wrong_greys = 0;
    const uint32_t part = (1 << 16) / share_of(1 << 16), step = part * part;
    if (step > 1)
        note("one in %u colours", step);
    for (uint32_t high = 0; high < 1 << 16; high += step) {
        for (uint32_t i = 0; i < 256; i++) {
            const uint32_t px = high << 8 | i;
            turned[3 * i] = saturated[3 * i] = (uint8_t)px;
            turned[3 * i + 1] = saturated[3 * i + 1] = (uint8_t)(px >> 8);
            turned[3 * i + 2] = saturated[3 * i + 2] = (uint8_t)(px >> 16);
        }
        const uint8_t shift = (uint8_t)(high * 7);
        const float factor = (float)(high % 251) / 100;
        rows->grey(grey, turned, 256);
        rows->hue(turned, turned, 256, shift);
        rows->saturate(saturated, saturated, 256, factor);
        for (uint32_t i = 0; i < 256; i++) {
            const uint32_t px = high << 8 | i, hue = st_px_hue(px, shift),
                           sat = st_px_saturate(px, factor);
            wrong_greys += st_px_luma(px) != grey[i];
            for (int32_t c = 0; c < 3; c++) {
                wrong_hues += st_byte(hue, c) != turned[3 * i + (uint32_t)c];
                wrong_saturations += st_byte(sat, c) != saturated[3 * i + (uint32_t)c];
            }
        }
    }
    ok(!wrong_hues, "the hue of every colour (%u differ)", wrong_hues);
    ok(!wrong_saturations, "the saturation of every colour (%u differ)", wrong_saturations);
    ok(!wrong_greys, "the grey of every colour (%u differ)", wrong_greys);
}

/* All chroma there is, with light and dark luma. */
static void test_samples(void)
{
    static const uint8_t lights[] = {0, 1, 77, 128, 254, 255};
    uint8_t y[256 + 64], cb[256 + 64], cr[256 + 64], rgb[3 * (256 + 64)];
    uint32_t differ = 0;
    for (size_t light = 0; light < sizeof lights; light++)
        for (uint32_t red = 0; red < 256; red++) {
            for (uint32_t k = 0; k < 256; k++)
                y[k] = lights[light], cb[k] = (uint8_t)k, cr[k] = (uint8_t)red;
            st_jpeg_kernels_c.ycc(rgb, y, cb, cr, 256);
            for (uint32_t k = 0; k < 256; k++) {
                const uint32_t px = st_ycc_pixel(y[k], cb[k], cr[k]);
                for (int32_t c = 0; c < 3; c++)
                    differ += st_byte(px, c) != rgb[3 * k + (uint32_t)c];
            }
        }
    ok(!differ, "colours from samples (%u differ)", differ);
}

/* One row by hand; the output's size is the window's. */
static void one_of(uint64_t seed, const char *what, int32_t channels, const struct row_wish *wish)
{
    const struct st_device_want want = {.rows = 1, .width = (int32_t)wish->resize.window.width,
                                        .height = (int32_t)wish->resize.window.height,
                                        .channels = channels};
    const struct st_finish_spec spec = {.dtype = STOKER_DTYPE_U8};
    struct random_batch b = {.seed = seed};
    batch_begin(&b, &want, &spec, STOKER_DTYPE_U8, STOKER_LAYOUT_NHWC);
    batch_row(&b, 0, wish);
    const char *why = wrong(&b);
    if (why)
        note("%s", why);
    ok(!why, "%s", what);
    random_batch_free(&b);
}

static void one(const char *what, int32_t channels, const struct row_wish *wish)
{
    one_of(77, what, channels, wish);
}

static struct st_resize resize_to(int32_t in_width, int32_t in_height, int32_t width, int32_t height)
{
    return (struct st_resize){in_width, in_height, width, height,
                              {0, 0, (uint32_t)width, (uint32_t)height}, ST_FILTER_BILINEAR, 13};
}

/* What does not fit into shared memory. */
static void test_extremes(void)
{
    const struct st_pending blur = {.kind = ST_PENDING_BLUR, .across = 2 * 870 + 1, .down = 3, .sigma = 300};
    one("a column of 9000 pixels to 3", 3,
        &(struct row_wish){.resize = resize_to(3, 9000, 2, 3)});
    one("a row of 9000 pixels to 3", 3, &(struct row_wish){.resize = resize_to(9000, 3, 3, 2)});
    struct st_resize wide = resize_to(5200, 10700, 1, 200);
    wide.window.height = 1; /* vertical first takes more than twice as many rows; one output row needs few of them */
    one("vertical first, with more columns than are kept", 1, &(struct row_wish){.resize = wide});
    for (uint32_t seed = 1; seed <= share_of(8); seed++) {
        one_of(seed, "from samples: a column of 9000 pixels to 3", 3,
               &(struct row_wish){.resize = resize_to(3, 9000, 2, 3), .device = true, .aligned = seed & 1});
        one_of(seed, "from samples: a row of 9000 pixels to 3", 3,
               &(struct row_wish){.resize = resize_to(9000, 3, 3, 2), .device = true, .aligned = seed & 1});
        one_of(seed, "from samples: more columns than fit", 3,
               &(struct row_wish){.resize = resize_to(1700, 60, 70, 50), .device = true, .aligned = seed & 1});
        one_of(seed, "from samples: vertical first", 3,
               &(struct row_wish){.resize = resize_to(300, 2600, 40, 20), .device = true, .aligned = seed & 1});
    }
    one("a blur wider than what is kept", 3,
        &(struct row_wish){.resize = resize_to(900, 2, 900, 2), .pending = &blur, .pending_count = 1});
}

/* How many input rows a tile in the middle of the output keeps at once for products; 0: it is made by sums. */
static int32_t rows_kept(const struct row_wish *wish)
{
    const struct st_device_want want = {.rows = 1, .width = 224, .height = 224, .channels = 3};
    struct random_batch b = {.seed = 3};
    struct st_tile *tile = calloc(1, sizeof *tile);
    batch_begin(&b, &want, &(struct st_finish_spec){.dtype = STOKER_DTYPE_U8}, STOKER_DTYPE_U8, STOKER_LAYOUT_NHWC);
    batch_row(&b, 0, wish);
    random_batch_place(&b, (uint64_t)(uintptr_t)b.host);
    const struct st_gpu_batch batch = {
        .raw = b.host, .jobs = (const struct st_job *)(const void *)b.host, .rows = 1, .width = 224, .height = 224,
        .channels = 3, .pitch = 224, .tiles_across = 7, .tiles = 49};
    tile->spot = st_spot_of(&batch, 24);
    st_plan_products(&batch, tile, tile->spot.y);
    const int32_t kept = tile->products.chunk;
    free(tile);
    random_batch_free(&b);
    return kept;
}

/* The usual cases are made by products; the results would be the same otherwise. */
static void test_products(void)
{
    static const struct {
        int32_t width, height;
        bool products;
    } from[] = {{100, 75, true}, {500, 375, true}, {800, 600, true}, {900, 900, true}, {4000, 3000, false}};
    uint32_t differ = 0;
    for (size_t k = 0; k < sizeof from / sizeof *from; k++) {
        struct row_wish wish = {.resize = resize_to(from[k].width, from[k].height, 224, 224), .aligned = true};
        differ += (rows_kept(&wish) > 0) != from[k].products;
        wish.device = true;
        differ += (rows_kept(&wish) > 0) != from[k].products;
    }
    ok(differ == 0, "images of the usual sizes are resized by products (%u are not as expected)", differ);
    struct row_wish wish = {.resize = resize_to(501, 375, 224, 224)};
    ok(rows_kept(&wish) == 0, "rows that are not aligned are resized by sums");
}

/* A batch with many blocks is made in several launches, each of about the same size. */
static void test_launches(void)
{
    const struct batch_limits limits = {.rows = 800, .width = 40, .height = 40, .channels = 3};
    struct random_batch b;
    random_batch_make(&b, 7, &limits);
    const unsigned before = st_gpu_host_launches;
    const char *why = wrong(&b);
    if (why)
        note("%s", why);
    ok(!why && st_gpu_host_launches - before == 3, "3,200 blocks in %u launches make all rows",
       st_gpu_host_launches - before);
    random_batch_free(&b);
}

/* Quotients without a division, for all that they are used for. */
static void test_quotients(void)
{
    uint32_t differ = 0;
    for (int32_t d = 1; d <= 255; d++)
        for (uint32_t n = 0; n <= 256; n++)
            differ += st_quotient(n, ST_INVERSE_OF_ONE / d + 1) != (int32_t)n / d;
    ok(differ == 0, "quotients of up to 256 by up to 255 are exact (%u are not)", differ);
}

/* Pending ops without scratch memory are refused instead of being run in memory that does not exist. */
static void test_refused(void)
{
    struct random_batch b = {.seed = 5};
    struct stoker_error err = {0};
    const struct st_pending op = {.kind = ST_PENDING_CONTRAST, .factor = 2};
    const struct st_device_want want = {
        .rows = 1, .width = 8, .height = 8, .channels = 3, .plain = true};
    batch_begin(&b, &want, &(struct st_finish_spec){.dtype = STOKER_DTYPE_U8}, STOKER_DTYPE_U8, STOKER_LAYOUT_NCHW);
    batch_row(&b, 0,
              &(struct row_wish){.resize = resize_to(8, 8, 8, 8), .pending = &op, .pending_count = 1});
    const struct st_gpu_launch launch = {.host = b.host,
                                         .raw = (uint64_t)(uintptr_t)b.host,
                                         .used = b.used,
                                         .count = 1,
                                         .images = (uint64_t)(uintptr_t)b.expected};
    ok(st_gpu_host_run(&b.want, &launch, &err) == STOKER_EINVAL, "pending ops without room for them: %s",
       err.message);
    random_batch_free(&b);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    many("of small images", (int)share_of(700) * rounds, &(struct batch_limits){.rows = 3, .out_most = 40});
    many("of small images with pending ops", (int)share_of(700) * rounds,
         &(struct batch_limits){.rows = 3, .out_most = 40, .pending = true});
    many("of small images with warps", (int)share_of(300) * rounds,
         &(struct batch_limits){.rows = 3, .out_most = 40, .pending = true, .warps = true});
    many("of squares with warps", (int)share_of(100) * rounds,
         &(struct batch_limits){.rows = 3, .width = 37, .height = 37, .pending = true, .warps = true});
    many("of images up to 100 pixels", (int)share_of(60) * rounds,
         &(struct batch_limits){.rows = 4, .out_most = 100, .pending = true});
    many("of 224 x 224", (int)share_of(2) * rounds,
         &(struct batch_limits){.rows = 3, .width = 224, .height = 224, .channels = 3, .pending = true});
    many("of 224 x 224 with warps", rounds,
         &(struct batch_limits){
             .rows = 3, .width = 224, .height = 224, .channels = 3, .pending = true, .warps = true});
    test_colours();
    test_samples();
    test_extremes();
    test_products();
    test_launches();
    test_quotients();
    test_refused();
    return done_testing();
}
