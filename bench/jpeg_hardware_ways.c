/* jpeg_hardware_ways.c - how much a GPU's JPEG hardware delays other kernels, by the way they are used
 *
 *     jpeg_hardware_ways [-t SECONDS] [-r IMAGES_PER_SECOND] FILE...
 *
 * Needs a GPU with JPEG hardware; elsewhere it says why not. A chain of kernels that take about 20 us each, as many of a
 * training step's do, runs alone and then beside nvJPEG, which decodes the files at the rate given (12,000 images/s), 64 per
 * call, with two states in turn. The number in brackets says by how much that delays a kernel of the chain. Each way's samples are
 * compared with those of the first. A loader decodes regions, from files in pinned memory: "half of each side".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jpeg_hardware.h"
#include "gpu/nvjpeg.h"

#include <pthread.h>
#include <stdatomic.h>

enum { CALL = 64, STATES = 2, LUMA = 2, ON_DEVICE = 5, SIDE = 1024, CHAIN_BYTES = 64 << 20, AHEAD = 4, GROUP = 32 };

static const struct way {
    const char *name;
    int backend, format;
    bool files_there, planes_there, region;
} ways[] = {
    {"whole images", ST_NVJPEG_BACKEND_HARDWARE, ST_NVJPEG_OUTPUT_YUV, false, false, false},
    {"luma alone", ST_NVJPEG_BACKEND_HARDWARE, LUMA, false, false, false},
    {"half of each side", ST_NVJPEG_BACKEND_HARDWARE, ST_NVJPEG_OUTPUT_YUV, false, false, true},
    {"files on the device", ON_DEVICE, ST_NVJPEG_OUTPUT_YUV, true, false, false},
    {"both", ON_DEVICE, ST_NVJPEG_OUTPUT_YUV, true, false, true},
    {"planes on the device", ST_NVJPEG_BACKEND_HARDWARE, ST_NVJPEG_OUTPUT_YUV, false, true, false},
};

static struct st_nvjpeg nvjpeg;
static double seconds = 1, rate = 12000;
static uint8_t *pinned_files; /* all of them, one behind the other */
static uint64_t file_at[FILES_MAX + 1], image_room;

/* The part of a plane that is decoded: of component `c` of the file. */
struct part {
    int32_t x, y, width, height;
    size_t at, pitch; /* in the image's memory */
};

static uint64_t parts_of(uint32_t file, bool region, struct part part[3], uint32_t *components)
{
    struct st_jpeg_frame frame;
    uint64_t at = 0;
    st_jpeg_headers(files[file], &frame);
    *components = frame.components;
    const uint32_t x = region ? frame.width / 4 & ~15u : 0, y = region ? frame.height / 4 & ~15u : 0;
    for (uint32_t c = 0; c < frame.components; c++) {
        const struct st_jpeg_component *own = &frame.component[c];
        const uint32_t h = frame.h / own->h, v = frame.v / own->v;
        const uint32_t width = region ? (frame.width / 2 + h - 1) / h : own->width;
        const uint32_t height = region ? (frame.height / 2 + v - 1) / v : own->height;
        part[c] = (struct part){(int32_t)(x / h), (int32_t)(y / v), (int32_t)width, (int32_t)height, at,
                                st_align(width + 16, 64)};
        at = st_align(at + part[c].pitch * (height + 16), 512);
    }
    return at;
}

struct decoder {
    const struct way *way;
    struct nvjpegHandle *handle;
    struct turn {
        struct nvjpegJpegState *state;
        struct CUstream_st *stream;
        struct CUevent_st *done;
        uint8_t *planes;               /* pinned, */
        uint64_t planes_there, files_there; /* and on the device */
        struct nvjpegDecodeParams *params[CALL];
        bool busy;
    } turn[STATES];
    atomic_bool stop;
    uint64_t images, cpu_ns, took_ns;
    int status; /* of the first call that failed */
};

static void must_cuda(int result, const char *what)
{
    struct stoker_error err = {0};
    if (!result)
        return;
    st_cuda_fail(device.cuda, 0, result, &err, what);
    fprintf(stderr, "%s\n", err.message);
    exit(1);
}

static bool has_regions(void)
{
    return nvjpeg.DecodeBatchedEx && nvjpeg.DecodeParamsCreate && nvjpeg.DecodeParamsDestroy &&
           nvjpeg.DecodeParamsSetOutputFormat && nvjpeg.DecodeParamsSetROI;
}

/* False: this way does not exist here. */
static bool open_decoder(struct decoder *d, const struct way *way)
{
    const struct st_cuda *cuda = device.cuda;
    void *memory;
    *d = (struct decoder){.way = way};
    if ((way->region && !has_regions()) || (d->status = nvjpeg.CreateEx(way->backend, NULL, NULL, 0, &d->handle)))
        return false;
    for (int k = 0; k < STATES; k++) {
        struct turn *turn = &d->turn[k];
        if ((d->status = nvjpeg.JpegStateCreate(d->handle, &turn->state)) ||
            (d->status = nvjpeg.DecodeBatchedInitialize(d->handle, turn->state, CALL, 1, way->format)))
            return false;
        if (nvjpeg.DecodeBatchedPreAllocate)
            nvjpeg.DecodeBatchedPreAllocate(d->handle, turn->state, CALL, SIDE, SIDE, ST_NVJPEG_CSS_444, way->format);
        must_cuda(cuda->StreamCreate(&turn->stream, ST_CU_STREAM_NON_BLOCKING), "a stream");
        must_cuda(cuda->EventCreate(&turn->done, ST_CU_EVENT_DISABLE_TIMING | ST_CU_EVENT_BLOCKING_SYNC), "an event");
        must_cuda(cuda->MemHostAlloc(&memory, image_room * CALL, ST_CU_HOST_PORTABLE), "memory for images");
        must_cuda(cuda->MemAlloc(&turn->planes_there, image_room * CALL), "memory for images");
        must_cuda(cuda->MemAlloc(&turn->files_there, file_at[file_count]), "memory for files");
        turn->planes = memory;
        for (int i = 0; way->region && i < CALL; i++)
            if ((d->status = nvjpeg.DecodeParamsCreate(d->handle, &turn->params[i])) ||
                (d->status = nvjpeg.DecodeParamsSetOutputFormat(turn->params[i], way->format)))
                return false;
    }
    return true;
}

static void close_decoder(struct decoder *d)
{
    const struct st_cuda *cuda = device.cuda;
    cuda->CtxSynchronize();
    for (int k = 0; k < STATES; k++) {
        struct turn *turn = &d->turn[k];
        for (int i = 0; i < CALL; i++)
            if (turn->params[i])
                nvjpeg.DecodeParamsDestroy(turn->params[i]);
        if (turn->state)
            nvjpeg.JpegStateDestroy(turn->state);
        if (turn->planes) {
            cuda->MemFreeHost(turn->planes);
            cuda->MemFree(turn->planes_there);
            cuda->MemFree(turn->files_there);
            cuda->EventDestroy(turn->done);
            cuda->StreamDestroy(turn->stream);
        }
    }
    if (d->handle)
        nvjpeg.Destroy(d->handle);
}

/* Hands over files `first` to `first + CALL`. */
static int call(struct decoder *d, struct turn *turn, uint32_t first)
{
    const struct way *way = d->way;
    const uint8_t *base = way->files_there ? (const uint8_t *)(uintptr_t)turn->files_there : pinned_files;
    const unsigned char *data[CALL];
    size_t length[CALL];
    struct st_nvjpeg_image to[CALL] = {0};
    for (uint32_t i = 0; i < CALL; i++) {
        struct part part[3];
        uint32_t components;
        parts_of(first + i, way->region, part, &components);
        data[i] = base + file_at[first + i];
        length[i] = files[first + i].size;
        for (uint32_t c = 0; c < (way->format == LUMA ? 1 : components); c++) {
            uint8_t *planes = way->planes_there ? (uint8_t *)(uintptr_t)turn->planes_there : turn->planes;
            to[i].channel[c] = planes + i * image_room + part[c].at;
            to[i].pitch[c] = part[c].pitch;
        }
        if (way->region)
            nvjpeg.DecodeParamsSetROI(turn->params[i], part[0].x, part[0].y, part[0].width, part[0].height);
    }
    const uint64_t bytes = file_at[first + CALL] - file_at[first];
    if (way->files_there)
        must_cuda(device.cuda->MemcpyHtoDAsync(turn->files_there + file_at[first], pinned_files + file_at[first],
                                               bytes, turn->stream), "copying files");
    const int status =
        way->region ? nvjpeg.DecodeBatchedEx(d->handle, turn->state, data, length, to, turn->params, turn->stream)
                    : nvjpeg.DecodeBatched(d->handle, turn->state, data, length, to, turn->stream);
    must_cuda(device.cuda->EventRecord(turn->done, turn->stream), "an event");
    turn->busy = true;
    return status;
}

static void wait_for(struct turn *turn)
{
    if (turn->busy)
        must_cuda(device.cuda->EventSynchronize(turn->done), "decoding");
    turn->busy = false;
}

static void *decode(void *argument)
{
    struct decoder *d = argument;
    uint64_t began = 0, images = 0;
    must_cuda(device.cuda->CtxPushCurrent(device.context), "the context");
    for (uint32_t k = 0; !atomic_load(&d->stop) && !d->status; k++) {
        if (k == 2 * STATES) /* the first calls allocate */
            began = st_now_ns(), images = 0, d->cpu_ns = st_thread_cpu_ns();
        struct turn *turn = &d->turn[k % STATES];
        wait_for(turn);
        d->status = call(d, turn, k * CALL % (file_count - CALL + 1));
        images += CALL;
        const uint64_t due = began + (uint64_t)((double)images / rate * 1e9), now = st_now_ns();
        if (began && due > now)
            nanosleep(&(struct timespec){(time_t)((due - now) / 1000000000u), (long)((due - now) % 1000000000u)}, NULL);
    }
    d->took_ns = st_now_ns() - began;
    d->cpu_ns = st_thread_cpu_ns() - d->cpu_ns;
    d->images = images;
    for (int k = 0; k < STATES; k++)
        wait_for(&d->turn[k]);
    return NULL;
}

/* Kernels per second of a chain. */
static double chain(uint64_t memory)
{
    const struct st_cuda *cuda = device.cuda;
    struct CUevent_st *done[AHEAD];
    struct CUstream_st *stream;
    uint64_t groups = 0;
    must_cuda(cuda->StreamCreate(&stream, 0), "a stream");
    for (int k = 0; k < AHEAD; k++)
        must_cuda(cuda->EventCreate(&done[k], ST_CU_EVENT_DISABLE_TIMING | ST_CU_EVENT_BLOCKING_SYNC), "an event");
    const uint64_t began = st_now_ns();
    for (; st_now_ns() - began < (uint64_t)(seconds * 1e9); groups++) {
        if (groups >= AHEAD)
            must_cuda(cuda->EventSynchronize(done[groups % AHEAD]), "the chain");
        for (int k = 0; k < GROUP; k++)
            must_cuda(cuda->MemsetD8Async(memory, (unsigned char)k, CHAIN_BYTES, stream), "the chain");
        must_cuda(cuda->EventRecord(done[groups % AHEAD], stream), "an event");
    }
    must_cuda(cuda->StreamSynchronize(stream), "the chain");
    const double took = (double)(st_now_ns() - began) / 1e9;
    for (int k = 0; k < AHEAD; k++)
        cuda->EventDestroy(done[k]);
    cuda->StreamDestroy(stream);
    return (double)(groups * GROUP) / took;
}

/* How many samples of the first call's images differ from those of whole images, and of how many. */
static uint64_t compare(struct decoder *d, struct decoder *whole, uint64_t *all)
{
    uint64_t differ = 0;
    *all = 0;
    if ((d->status = call(d, &d->turn[0], 0)) || (d->status = call(whole, &whole->turn[0], 0)))
        return 0;
    wait_for(&d->turn[0]);
    wait_for(&whole->turn[0]);
    if (d->way->planes_there)
        must_cuda(device.cuda->MemcpyDtoHAsync(d->turn[0].planes, d->turn[0].planes_there, image_room * CALL,
                                               d->turn[0].stream), "copying images");
    must_cuda(device.cuda->StreamSynchronize(d->turn[0].stream), "copying images");
    for (uint32_t i = 0; i < CALL; i++) {
        struct part mine[3], theirs[3];
        uint32_t components;
        parts_of(i, d->way->region, mine, &components);
        parts_of(i, false, theirs, &components);
        for (uint32_t c = 0; c < (d->way->format == LUMA ? 1 : components); c++)
            for (int32_t y = 0; y < mine[c].height; y++) {
                const uint8_t *a = d->turn[0].planes + i * image_room + mine[c].at + (size_t)y * mine[c].pitch;
                const uint8_t *b = whole->turn[0].planes + i * image_room + theirs[c].at +
                                   (size_t)(mine[c].y + y) * theirs[c].pitch + (size_t)mine[c].x;
                for (int32_t x = 0; x < mine[c].width; x++)
                    differ += a[x] != b[x];
                *all += (uint64_t)mine[c].width;
            }
    }
    return differ;
}

static void measure(const struct way *way, struct decoder *whole, uint64_t memory, double alone)
{
    struct decoder d;
    pthread_t thread;
    uint64_t all = 0;
    if (!open_decoder(&d, way)) {
        printf("%-22s not here: %s\n", way->name, d.status ? st_nvjpeg_status(d.status) : "this nvJPEG has no regions");
        close_decoder(&d);
        return;
    }
    const uint64_t differ = compare(&d, whole, &all);
    if (!d.status && !pthread_create(&thread, NULL, decode, &d)) {
        nanosleep(&(struct timespec){0, 200000000}, NULL);
        const double beside = chain(memory);
        atomic_store(&d.stop, true);
        pthread_join(thread, NULL);
        printf("%-22s %6.0f img/s, CPU %5.1f us per image; a kernel takes %5.2f us (%+.2f); %llu of %llu samples differ\n",
               way->name, (double)d.images / (double)d.took_ns * 1e9, (double)d.cpu_ns / 1e3 / (double)d.images,
               1e6 / beside, 1e6 / beside - 1e6 / alone, (unsigned long long)differ, (unsigned long long)all);
    }
    if (d.status)
        printf("%-22s fails: %s\n", way->name, st_nvjpeg_status(d.status));
    fflush(stdout);
    close_decoder(&d);
}

/* All files in pinned memory, and the room that the largest image needs. */
static void pin_files(void)
{
    void *memory;
    for (uint32_t k = 0; k < file_count; k++) {
        struct part part[3];
        uint32_t components;
        const uint64_t room = parts_of(k, false, part, &components);
        image_room = room > image_room ? room : image_room;
        file_at[k + 1] = st_align(file_at[k] + files[k].size, ST_CACHE_LINE);
    }
    must_cuda(device.cuda->MemHostAlloc(&memory, file_at[file_count], ST_CU_HOST_PORTABLE), "memory for files");
    pinned_files = memory;
    for (uint32_t k = 0; k < file_count; k++)
        memcpy(pinned_files + file_at[k], files[k].data, files[k].size);
}

static bool is_small(struct st_bytes file)
{
    struct st_jpeg_frame frame;
    st_jpeg_headers(file, &frame);
    return frame.width <= SIDE && frame.height <= SIDE && frame.width >= 64 && frame.height >= 64;
}

int main(int argc, char **argv)
{
    struct stoker_error err = {0};
    struct decoder whole;
    uint64_t memory;
    for (int k = 1; k < argc; k++) {
        if (!strcmp(argv[k], "-t") && k + 1 < argc)
            seconds = atof(argv[++k]);
        else if (!strcmp(argv[k], "-r") && k + 1 < argc)
            rate = atof(argv[++k]);
        else
            add_file(argv[k]);
        if (file_count && !is_small(files[file_count - 1]))
            file_count--;
    }
    if (file_count < CALL) {
        fprintf(stderr, "usage: jpeg_hardware_ways [-t SECONDS] [-r IMAGES_PER_SECOND] FILE...   (%d baseline JPEGs or more, "
                        "with sides of 64 to %d pixels)\n", CALL, SIDE);
        return 2;
    }
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); /* as a loader does */
    if (!open_device(&err) || st_nvjpeg_load(&nvjpeg, NULL, &err)) {
        printf("SKIP: %s\n", err.message);
        return 0;
    }
    must_cuda(device.cuda->CtxPushCurrent(device.context), "the context");
    pin_files();
    must_cuda(device.cuda->MemAlloc(&memory, CHAIN_BYTES), "memory for the chain");
    if (!open_decoder(&whole, &ways[0])) {
        printf("SKIP: this GPU has no usable JPEG hardware: %s\n", st_nvjpeg_status(whole.status));
        return 0;
    }
    chain(memory);
    const double alone = chain(memory);
    printf("%u files; the chain alone: a kernel takes %.2f us\n", file_count, 1e6 / alone);
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        measure(&ways[k], &whole, memory, alone);
    close_decoder(&whole);
    return 0;
}
