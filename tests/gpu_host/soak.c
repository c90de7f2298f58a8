/* soak.c - the soak of the JPEG hardware without a GPU: random files through all of the GPU's code
 *
 *   BUILD/tests/gpu/soak_files FOLDER 10000 2000 1
 *   BUILD/tests/gpu_host/gpu_host_soak FOLDER BUILD/tests/gpu/libfake_nvjpeg.so
 *
 * The driver is made of threads and host memory, the kernels are compiled for the CPU, and nvJPEG is
 * played by libjpeg. What it cannot show is what real hardware decodes: see tests/gpu/soak.py. Not a test
 * of `make test`, because many files take minutes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fake_cuda.h"
#include "gpu/gpu.h"
#include "gpu_host/host_kernels.h"
#include "pipe/harness.h"

#include <dlfcn.h>
#include <unistd.h>

enum { BATCH = 128, ENGINE_THREADS = 2 };

static const char *const texts[] = {
    "resize(size=[40,40], interpolation=nearest)",
    "random_resized_crop(size=24, scale=[0.05,1]); random_horizontal_flip; "
    "color_jitter(brightness=0.4,contrast=0.4)",
    "random_resized_crop(size=24); random_autocontrast; random_adjust_sharpness(sharpness_factor=2); random_equalize",
};
static const struct st_devices gpu = {
    .kind = &st_device_cuda, .pinned = &st_pinned_cuda, .jpeg_hw = &st_jpeg_hw_nvjpeg};

static struct stoker_stats stats_of(struct stoker_loader *loader)
{
    struct stoker_stats stats = {.size = sizeof stats};
    st_loader_stats(loader, &stats);
    return stats;
}

static struct stoker_loader *open_loader(struct stoker_dataset *data, const struct st_devices *devices,
                                         const char *text, enum stoker_jpeg_hardware hardware)
{
    struct stoker_loader_options opt = harness_options(BATCH, 1);
    struct stoker_error err = {0};
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    opt.dtype = STOKER_DTYPE_U8;
    opt.prefetch = 24; /* hardware rests while half of these batches are ready */
    opt.pinned_limit = 64 << 20;
    opt.on_error = STOKER_ON_ERROR_REPLACE;
    opt.pixel_limit = 1 << 28;
    opt.jpeg_hardware = hardware;
    if (!st_pipeline_open(&pipe, text, &err))
        (void)st_loader_open(&loader, data, pipe, &opt, devices, &err);
    st_pipeline_drop(pipe);
    if (!loader)
        note("%s", err.message);
    return loader;
}

static void wait_until_open(struct stoker_loader *loader)
{
    struct stoker_stats stats = stats_of(loader);
    for (; stats.jpeg_hardware_open < ENGINE_THREADS && !stats.jpeg_hardware_note; stats = stats_of(loader))
        usleep(1000);
}

/* A digest for each row of the first epoch; false if rows are missing. */
static bool take_rows(struct stoker_loader *loader, uint64_t *digests, uint64_t count)
{
    const struct stoker_epoch first = {.size = sizeof first};
    const struct stoker_batch *batch;
    struct stoker_error err = {0};
    uint64_t at = 0;
    if (st_loader_start(loader, &first, 0, &err))
        return false;
    while (st_loader_next(loader, &batch, &err) == STOKER_OK) {
        st_batch_sync(batch, NULL);
        const size_t each = tensor_bytes(&batch->images) / batch->count;
        for (uint32_t row = 0; row < batch->count && at < count; row++)
            digests[at++] = digest_bytes(batch->samples[row] + 1,
                                         (const uint8_t *)batch->images.data + row * each, each);
        st_batch_release(batch, NULL);
    }
    if (at < count)
        note("%llu of %llu rows: %s", (unsigned long long)at, (unsigned long long)count, err.message);
    return at == count;
}

/* Epochs with hardware against one of the CPU alone. */
static void compare(struct stoker_dataset *data, const char *text, enum stoker_jpeg_hardware hardware,
                    int epochs)
{
    const uint64_t count = st_dataset_count(data);
    uint64_t *want = st_calloc(count, sizeof *want), *got = st_calloc(count, sizeof *got), differ = 0;
    struct stoker_loader *cpu = open_loader(data, NULL, text, STOKER_JPEG_HARDWARE_OFF);
    struct stoker_loader *loader = open_loader(data, &gpu, text, hardware);
    bool good = want && got && cpu && loader && take_rows(cpu, want, count);
    if (good)
        wait_until_open(loader);
    for (int epoch = 0; epoch < epochs && good; epoch++) {
        good = take_rows(loader, got, count);
        for (uint64_t row = 0; row < count; row++)
            differ += got[row] != want[row];
    }
    const struct stoker_stats stats = loader ? stats_of(loader) : (struct stoker_stats){0};
    ok(good && !differ && stats.jpeg_hardware_rows,
       "%s, %d epochs of %llu files, %llu by hardware, which failed at %llu; %llu rows differ; %s%s",
       hardware == STOKER_JPEG_HARDWARE_ALL ? "all" : "known", epochs, (unsigned long long)count,
       (unsigned long long)stats.jpeg_hardware_rows, (unsigned long long)stats.jpeg_hardware_failures,
       (unsigned long long)differ, text, stats.jpeg_hardware_note ? stats.jpeg_hardware_note : "");
    st_loader_close(cpu);
    st_loader_close(loader);
    free(want);
    free(got);
}

static void soak(const char *folder, const char *pattern, enum stoker_jpeg_hardware hardware, int epochs)
{
    const struct stoker_dataset_options opt = {.size = sizeof opt, .fields = "jpg"};
    struct stoker_error err = {0};
    struct stoker_dataset *data = NULL;
    char uri[4096];
    snprintf(uri, sizeof uri, "tar:%s/%s", folder, pattern);
    if (st_dataset_open(&data, uri, &opt, &err)) {
        ok(false, "%s", err.message);
        return;
    }
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        compare(data, texts[k], hardware, epochs);
    st_dataset_drop(data);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: gpu_host_soak FOLDER FAKE_NVJPEG\n", stderr);
        return 2;
    }
    fake_cuda.memory = (size_t)1 << 33;
    fake_cuda.pinned = (size_t)1 << 31;
    fake_cuda_kernel("st_gpu_rows", st_gpu_host_argument, st_gpu_host_rows);
    fake_cuda_kernel("st_gpu_pending", st_gpu_host_argument, st_gpu_host_pending);
    fake_cuda_kernel("st_gpu_front_rows", st_gpu_host_argument, st_gpu_host_front_rows);
    fake_cuda_kernel("st_gpu_front_pending", st_gpu_host_argument, st_gpu_host_front_pending);
    /* Once it is loaded it is found by its name. */
    if (!ok(dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) != NULL, "%s opens", argv[2]))
        return done_testing();
    soak(argv[1], "good-*.tar", STOKER_JPEG_HARDWARE_ALL, 2);
    soak(argv[1], "*.tar", STOKER_JPEG_HARDWARE_KNOWN, 3);
    const struct fake_cuda_counts left = fake_cuda_count();
    ok(!left.illegal && !left.allocations && !left.streams && !left.events,
       "everything was given back (%d, %d, %d), and nothing touched memory of others (%d)",
       left.allocations, left.streams, left.events, left.illegal);
    fake_cuda_end();
    return done_testing();
}
