/* jpeg_hardware_bench.c - how fast a GPU's JPEG hardware is, by chunk size and number of threads
 *
 *     jpeg_hardware_bench [-t SECONDS] FILE...
 *
 * Needs a GPU with JPEG hardware; elsewhere it says why not. Each thread has hardware of its own, as in a loader, and gives
 * them chunks of the files, one after the other: `start` is the time that the thread spends in handing one image over, `wait`
 * the time until it is decoded. Sizes with a slash alternate.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jpeg_hardware.h"

#include <pthread.h>

enum { CHUNK_MAX = 64, THREADS_MAX = 4, ROOM = 16 << 20, FILE_ROOM = 256 << 10, IMAGE_ROOM = 640 << 10 };

static double seconds = 0.5;

struct turn {
    pthread_t thread;
    uint32_t size[2], first;
    uint64_t images, failed, start_ns, wait_ns, took_ns, cpu_ns;
    char problem[sizeof(((struct stoker_error *)0)->message)];
};

/* Planes one behind the other; the address of what follows them. */
static uint64_t place(struct st_jpeg_hw_image *image, struct st_bytes file, uint64_t at)
{
    struct st_jpeg_frame frame;
    st_jpeg_headers(file, &frame);
    *image = (struct st_jpeg_hw_image){.bytes = file, .region = {0, 0, frame.width, frame.height},
                                            .components = frame.components, .h = frame.h, .v = frame.v, .at = at};
    for (uint32_t c = 0; c < frame.components; c++) {
        const uint64_t stride = st_align((uint64_t)frame.mcus_across * frame.component[c].h * 8, 64);
        image->plane[c] = (struct st_jpeg_hw_plane){.at = at, .stride = (uint32_t)stride,
                                                        .width = (int32_t)frame.component[c].width,
                                                        .height = (int32_t)frame.component[c].height};
        at = st_align(at + stride * frame.mcus_down * frame.component[c].v * 8, 512);
    }
    image->size = at - image->at;
    return at;
}

static void *run(void *argument)
{
    const struct st_jpeg_hw_kind *kind = &st_jpeg_hw_nvjpeg;
    struct turn *turn = argument;
    struct st_jpeg_hw_image image[CHUNK_MAX];
    struct st_jpeg_hw *hw = NULL;
    struct stoker_error err = {0};
    const uint64_t memory = kind->take(&device.base, (uint64_t)ROOM * CHUNK_MAX);
    struct st_jpeg_pinned pinned = {.bytes = (uint64_t)(FILE_ROOM + IMAGE_ROOM) * CHUNK_MAX};
    if (!memory || kind->open(&hw, &device.base, CHUNK_MAX, &pinned, NULL, &err)) {
        snprintf(turn->problem, sizeof turn->problem, "%s", err.code ? err.message : "no device memory");
        return NULL;
    }
    uint32_t next = turn->first;
    uint64_t began = 0;
    for (uint32_t k = 0; !began || st_now_ns() - began < (uint64_t)(seconds * 1e9); k++) {
        const uint32_t count = turn->size[k % 2];
        uint64_t at = memory;
        if (k == 4) /* the first calls allocate */
            began = st_now_ns(), turn->images = turn->start_ns = turn->wait_ns = 0, turn->cpu_ns = st_thread_cpu_ns();
        for (uint32_t i = 0; i < count; i++)
            at = place(&image[i], files[next++ % file_count], at);
        const uint64_t start = st_now_ns();
        kind->start(hw, image, count, 0);
        const uint64_t wait = st_now_ns();
        kind->finish(hw, image, count);
        turn->start_ns += wait - start;
        turn->wait_ns += st_now_ns() - wait;
        turn->images += count;
        for (uint32_t i = 0; i < count; i++)
            turn->failed += !image[i].there;
    }
    turn->took_ns = st_now_ns() - began;
    turn->cpu_ns = st_thread_cpu_ns() - turn->cpu_ns;
    kind->close(hw);
    kind->give(&device.base, memory);
    return NULL;
}

static bool measure(uint32_t threads, uint32_t size, uint32_t other)
{
    struct turn turn[THREADS_MAX] = {0};
    double rate = 0;
    for (uint32_t k = 0; k < threads; k++) {
        turn[k] = (struct turn){.size = {size, other}, .first = k * file_count / threads};
        if (pthread_create(&turn[k].thread, NULL, run, &turn[k]))
            return false;
    }
    for (uint32_t k = 0; k < threads; k++)
        pthread_join(turn[k].thread, NULL);
    for (uint32_t k = 0; k < threads; k++) {
        if (turn[k].problem[0]) {
            printf("SKIP: %s\n", turn[k].problem);
            return false;
        }
        rate += (double)turn[k].images / (double)turn[k].took_ns * 1e9;
    }
    printf("%u thread%s, chunks of %2u/%2u: %6.0f img/s, start %5.1f us, wait %5.1f us, CPU %5.1f us per image, %llu failed\n", threads,
           threads > 1 ? "s" : " ", size, other, rate, (double)turn[0].start_ns / 1e3 / (double)turn[0].images,
           (double)turn[0].wait_ns / 1e3 / (double)turn[0].images,
           (double)turn[0].cpu_ns / 1e3 / (double)turn[0].images, (unsigned long long)turn[0].failed);
    fflush(stdout);
    return true;
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[][2] = {{64, 64}, {32, 32}, {16, 16}, {8, 8}, {64, 41}, {48, 16}};
    struct stoker_error err = {0};
    for (int k = 1; k < argc; k++) {
        if (!strcmp(argv[k], "-t") && k + 1 < argc)
            seconds = atof(argv[++k]);
        else
            add_file(argv[k]);
    }
    if (!file_count) {
        fprintf(stderr, "usage: jpeg_hardware_bench [-t SECONDS] FILE...   (baseline JPEGs)\n");
        return 2;
    }
    if (!open_device(&err)) {
        printf("SKIP: %s\n", err.message);
        return 0;
    }
    printf("%u files that the hardware takes\n", file_count);
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            if (!measure(threads, sizes[k][0], sizes[k][1]))
                return 0;
    return 0;
}
