/* On a real GPU the kernels give the bytes of op/ for any job, and do so quickly.
 *
 *     test_gpu_kernels [BATCHES]     random batches of each kind (200); fewer for compute-sanitizer */
#include "base/clock.h"
#include "gpu/kernels.h"
#include "gpu_host/random_batch.c"

enum { TIMED_ROWS = 256, SIDE = 224, GUARDS = 256 };

/* A GPU, entered for the whole program. */
struct gpu {
    const struct st_cuda *cuda;
    struct CUctx_st *context;
    struct CUstream_st *stream;
};

static void must(const struct gpu *gpu, int result, const char *what)
{
    struct stoker_error err = {0};
    if (!result)
        return;
    st_cuda_fail(gpu->cuda, 0, result, &err, what);
    printf("Bail out! %s\n", err.message);
    exit(1);
}

static bool gpu_open(struct gpu *gpu, struct stoker_error *err)
{
    bool there;
    const char *about = st_gpu_kernels_about(&there);
    if (!there)
        return st_fail(err, STOKER_EUNSUPPORTED, "%s", about) == STOKER_OK;
    if (st_cuda_get(&gpu->cuda, err))
        return false;
    struct st_cuda_inside inside;
    int device;
    must(gpu, gpu->cuda->DeviceGet(&device, 0), "the first device");
    must(gpu, gpu->cuda->DevicePrimaryCtxRetain(&gpu->context, device), "its context");
    must(gpu, st_cuda_enter(&inside, gpu->cuda, gpu->context), "entering it");
    must(gpu, gpu->cuda->StreamCreate(&gpu->stream, ST_CU_STREAM_NON_BLOCKING), "a stream");
    note("kernels for %s", about);
    return true;
}

/* A batch on the GPU. */
struct on_gpu {
    struct st_gpu_kernels *kernels;
    struct st_gpu_launch launch;
    uint64_t guarded; /* the images, and bytes before and behind them */
};

static uint64_t memory(const struct gpu *gpu, uint64_t bytes)
{
    uint64_t address = 0;
    if (bytes)
        must(gpu, gpu->cuda->MemAlloc(&address, bytes), "memory");
    return address;
}

static void on_gpu_open(struct on_gpu *g, const struct gpu *gpu, struct random_batch *b)
{
    struct stoker_error err = {0};
    const uint64_t words =
        st_align(b->used, 4); /* the kernels read whole words, and nothing behind them */
    *g = (struct on_gpu){0};
    if (st_gpu_kernels_open(&g->kernels, gpu->cuda, 0, &b->want, gpu->stream, &err)) {
        printf("Bail out! %s\n", err.message);
        exit(1);
    }
    g->guarded = memory(gpu, b->bytes + 2 * GUARDS);
    g->launch = (struct st_gpu_launch){.raw = memory(gpu, words), .used = b->used, .count = b->want.rows,
                                       .images = g->guarded + GUARDS, .stream = gpu->stream};
    g->launch.scratch = memory(gpu, st_gpu_kernels_scratch(g->kernels));
    random_batch_place(b, g->launch.raw);
    g->launch.host = b->host;
    must(gpu, gpu->cuda->MemsetD8Async(g->guarded, GUARD_BYTE, b->bytes + 2 * GUARDS, gpu->stream),
         "guards");
    must(gpu, gpu->cuda->MemcpyHtoDAsync(g->launch.raw, b->host, words, gpu->stream), "copying a batch");
}

static void on_gpu_run(const struct on_gpu *g)
{
    struct stoker_error err = {0};
    if (st_gpu_kernels_run(g->kernels, &g->launch, &err)) {
        printf("Bail out! %s\n", err.message);
        exit(1);
    }
}

static void on_gpu_close(struct on_gpu *g, const struct gpu *gpu)
{
    must(gpu, gpu->cuda->StreamSynchronize(gpu->stream), "the kernels");
    st_gpu_kernels_close(g->kernels);
    gpu->cuda->MemFree(g->launch.raw);
    gpu->cuda->MemFree(g->guarded);
    if (g->launch.scratch)
        gpu->cuda->MemFree(g->launch.scratch);
}

/* NULL when the images are as expected. */
static const char *images_wrong(const struct on_gpu *g, const struct gpu *gpu,
                                const struct random_batch *b)
{
    uint8_t *all = exactly(b->bytes + 2 * GUARDS);
    must(gpu, gpu->cuda->MemcpyDtoHAsync(all, g->guarded, b->bytes + 2 * GUARDS, gpu->stream),
         "copying back");
    must(gpu, gpu->cuda->StreamSynchronize(gpu->stream), "the kernels");
    const char *why = random_batch_differs(b, all + GUARDS);
    for (uint64_t i = 0; !why && i < GUARDS; i++)
        if (all[i] != GUARD_BYTE || all[GUARDS + b->bytes + i] != GUARD_BYTE)
            why = "bytes around the output were written";
    free(all);
    return why;
}

static const char *wrong(const struct gpu *gpu, struct random_batch *b)
{
    struct on_gpu g;
    on_gpu_open(&g, gpu, b);
    on_gpu_run(&g);
    const char *why = images_wrong(&g, gpu, b);
    on_gpu_close(&g, gpu);
    return why;
}

static void many(const struct gpu *gpu, const char *what, int count, const struct batch_limits *limits)
{
    int failed = 0;
    for (int i = 0; i < count; i++) {
        struct random_batch b;
        random_batch_make(&b, (uint64_t)(i + 1) * 0xd1342543de82ef95, limits);
        const char *why = wrong(gpu, &b);
        if (why && failed++ < 5)
            note("batch %d: %s", i, why);
        random_batch_free(&b);
    }
    ok(!failed, "%d batches %s", count, what);
}

/* ---- all colours ------------------------------------------------------------------------------- */

static void all_colours(uint8_t *pixels)
{
    for (uint32_t colour = 0; colour < 1 << 24; colour++)
        for (int c = 0; c < 3; c++)
            *pixels++ = (uint8_t)(colour >> (8 * c));
}

/* Arithmetic with floats, for every colour there is: one pending op at a time, on an image that holds them
 * all. */
static void test_colours(const struct gpu *gpu)
{
    static const struct st_pending pending[] = {
        {.kind = ST_PENDING_HUE, .factor = 0.31f},        {.kind = ST_PENDING_SATURATION, .factor = 1.37f},
        {.kind = ST_PENDING_BRIGHTNESS, .factor = 0.83f}, {.kind = ST_PENDING_CONTRAST, .factor = 1.61f},
        {.kind = ST_PENDING_GREY},
    };
    const struct st_device_want want = {.rows = 1, .width = 4096, .height = 4096, .channels = 3};
    const struct st_finish_spec spec = {.dtype = STOKER_DTYPE_U8};
    int failed = 0;
    for (size_t i = 0; i < sizeof pending / sizeof *pending; i++) {
        struct random_batch b = {.fill = all_colours};
        const struct row_wish wish = {
            .resize = {4096, 4096, 4096, 4096, {0, 0, 4096, 4096}}, .pending = &pending[i], .pending_count = 1};
        batch_begin(&b, &want, &spec, STOKER_DTYPE_U8, STOKER_LAYOUT_NHWC);
        batch_row(&b, 0, &wish);
        const char *why = wrong(gpu, &b);
        if (why && ++failed)
            note("pending op %d: %s", (int)pending[i].kind, why);
        random_batch_free(&b);
    }
    ok(!failed, "every colour, turned, saturated, brightened, with contrast and grey");
}

/* ---- speed ------------------------------------------------------------------------------------- */

/* Jitter in any order, grey, blur and an erased box, as often as SimCLR has them. */
static uint32_t usual_pending(struct random_batch *b, struct st_pending *pending)
{
    static const enum st_pending_kind jitter[] = {ST_PENDING_BRIGHTNESS, ST_PENDING_CONTRAST, ST_PENDING_SATURATION,
                                               ST_PENDING_HUE};
    const uint32_t first = chance(&b->seed) % 4;
    uint32_t count = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const enum st_pending_kind kind = jitter[(first + i) % 4];
        const double s = share(&b->seed);
        pending[count++] = (struct st_pending){
            .kind = kind, .factor = (float)(kind == ST_PENDING_HUE ? 0.2 * s - 0.1 : 0.6 + 0.8 * s)};
    }
    if (share(&b->seed) < 0.2)
        pending[count++] = (struct st_pending){.kind = ST_PENDING_GREY};
    if (share(&b->seed) < 0.5)
        pending[count++] = (struct st_pending){
            .kind = ST_PENDING_BLUR, .across = 23, .down = 23, .sigma = 0.1 + 1.9 * share(&b->seed)};
    return count;
}

/* What a batch's images have pending: nothing, usual_pending, or one op. */
enum timed { TIMED_PLAIN, TIMED_USUAL, TIMED_ONE };

/* Regions of ImageNet's order of size, 400 x 300 on average, to 224 x 224 bf16, channels last. */
static void timed_batch(struct random_batch *b, uint32_t rows, enum timed what, const struct st_pending *one,
                        bool samples)
{
    static const struct st_finish_spec spec = {
        .scaled = true, .dtype = STOKER_DTYPE_F32, .steps = 1,
        .step = {{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}}};
    const struct st_device_want want = {.rows = rows, .width = SIDE, .height = SIDE, .channels = 3,
                                        .plain = what == TIMED_PLAIN};
    *b = (struct random_batch){.seed = 2026};
    batch_begin(b, &want, &spec, STOKER_DTYPE_BF16, STOKER_LAYOUT_NHWC);
    for (uint32_t row = 0; row < rows; row++) {
        struct st_pending pending[ST_PENDING_MAX];
        struct row_wish wish = {.resize = {between(&b->seed, 250, 550),
                                           between(&b->seed, 180, 420),
                                           SIDE,
                                           SIDE,
                                           {0, 0, SIDE, SIDE},
                                           ST_FILTER_BILINEAR,
                                           13},
                                .mirror = chance(&b->seed) & 1,
                                .device = samples,
                                .aligned = true,
                                .pending = pending};
        if (what == TIMED_USUAL) {
            wish.pending_count = usual_pending(b, pending);
            wish.erase_count = share(&b->seed) < 0.25;
        } else if (what == TIMED_ONE) {
            wish.pending = one;
            wish.pending_count = 1;
        }
        batch_row(b, row, &wish);
    }
}

static void speed_of(const struct gpu *gpu, const char *what, struct random_batch *batch, int rounds)
{
    struct on_gpu g;
    on_gpu_open(&g, gpu, batch);
    on_gpu_run(&g);
    const char *why = images_wrong(&g, gpu, batch);
    const uint64_t start = st_now_ns();
    for (int i = 0; i < rounds; i++)
        on_gpu_run(&g);
    must(gpu, gpu->cuda->StreamSynchronize(gpu->stream), "the kernels");
    const double seconds = (double)(st_now_ns() - start) / 1e9 / rounds;
    if (why)
        note("%s", why);
    const uint32_t rows = batch->want.rows;
    note("%s: %.3f ms a batch of %u, %.0f images/s, %.1f GB/s in and out", what, seconds * 1e3, rows,
         rows / seconds, (double)(batch->used + batch->bytes) / seconds / 1e9);
    ok(!why, "%s: %u images of ImageNet's size to %d x %d bf16 are as expected", what, rows, SIDE, SIDE);
    on_gpu_close(&g, gpu);
    random_batch_free(batch);
}

#define WARP(mix, ...) {.kind = ST_PENDING_WARP, .warp = {__VA_ARGS__, false, mix, {0}}}
#define TURNED 0.8660254037844387, 0.5, -40.99, -0.5, 0.8660254037844387, 71.02

static void test_speed(const struct gpu *gpu, bool few)
{
    static const struct {
        const char *name;
        struct st_pending op;
    } values[] = {
        {"solarize", {.kind = ST_PENDING_SOLARIZE, .level = 128}},
        {"posterize", {.kind = ST_PENDING_POSTERIZE, .level = 0xe0}},
        {"permute", {.kind = ST_PENDING_PERMUTE, .level = 0x201}},
        {"autocontrast", {.kind = ST_PENDING_AUTOCONTRAST}},
        {"equalize", {.kind = ST_PENDING_EQUALIZE}},
        {"sharpness", {.kind = ST_PENDING_SHARPNESS, .factor = 1.7f}},
        {"move", WARP(ST_MIX_NEAREST, {1, 0, 31, 0, 1, 17})},
        {"turn by 30 degrees, nearest", WARP(ST_MIX_NEAREST, {TURNED})},
        {"turn by 30 degrees, bilinear", WARP(ST_MIX_BILINEAR, {TURNED})},
        {"turn by 30 degrees, bicubic", WARP(ST_MIX_BICUBIC, {TURNED})},
        {"perspective, bilinear",
         {.kind = ST_PENDING_WARP,
          .warp = {{1.1, 0.2, -20, 0.1, 1.2, -30, 1e-4, 1e-3}, true, ST_MIX_BILINEAR, {0}}}},
    };
    const uint32_t rows = few ? 8 : TIMED_ROWS;
    const int rounds = few ? 1 : 100;
    struct random_batch b;
    timed_batch(&b, rows, TIMED_PLAIN, NULL, false);
    speed_of(gpu, "resize only", &b, rounds);
    timed_batch(&b, rows, TIMED_PLAIN, NULL, true);
    speed_of(gpu, "resize only, from a JPEG's samples", &b, rounds);
    timed_batch(&b, rows, TIMED_USUAL, NULL, false);
    speed_of(gpu, "jitter, grey, blur, erase", &b, rounds);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        timed_batch(&b, rows, TIMED_ONE, &values[i].op, false);
        speed_of(gpu, values[i].name, &b, rounds);
    }
}

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 200;
    const bool few = argc > 1;
    struct gpu gpu = {0};
    struct stoker_error err = {0};
    if (!gpu_open(&gpu, &err)) {
        skip("kernels on a GPU", err.message);
        return done_testing();
    }
    many(&gpu, "of small images", count, &(struct batch_limits){.rows = 3, .out_most = 70});
    many(&gpu, "of small images with pending ops", count,
         &(struct batch_limits){.rows = 3, .out_most = 70, .pending = true});
    many(&gpu, "of 224 x 224 with pending ops", count / 20 + 1,
         &(struct batch_limits){.rows = 8, .width = 224, .height = 224, .channels = 3, .pending = true});
    many(&gpu, "of small images with warps", 2 * count,
         &(struct batch_limits){.rows = 3, .out_most = 70, .pending = true, .warps = true});
    many(&gpu, "of 224 x 224 with warps", count / 10 + 1,
         &(struct batch_limits){
             .rows = 8, .width = 224, .height = 224, .channels = 3, .pending = true, .warps = true});
    many(&gpu, "of larger images", count / 100 + 1,
         &(struct batch_limits){.rows = 2, .out_most = 1500, .pending = true});
    if (few)
        skip("every colour", "fewer batches were asked for");
    else
        test_colours(&gpu);
    test_speed(&gpu, few);
    return done_testing();
}
