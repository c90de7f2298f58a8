/* fake_hardware.h - a device's JPEG hardware, played by libjpeg, and epochs of loaders that use it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_PIPE_FAKE_HARDWARE_H
#define ST_TESTS_PIPE_FAKE_HARDWARE_H

#include "codec/jpeg/headers.h"
#include "codec/jpeg_planes.h"
#include "pipe/harness.h"
#include "pipe/host_device.h"

enum { COUNT = 96, BATCH = 24, BATCHES = COUNT / BATCH };

/* What a test wants of the hardware, and what it saw. */
static struct {
    bool open_fails, no_memory, takes_nothing;
    uint32_t lost; /* every `lost`th image does not arrive; 0: all do */
    /* The first call for at least `hold` images (0: no call) lasts until the epoch is being stopped, and fails. */
    struct stoker_loader *_Atomic watched;
    _Atomic uint32_t hold, held; /* held: images of that call */
    _Atomic uint32_t open, images, grey, wrong, memory, largest;
    _Atomic uint64_t bytes;   /* of the files */
    _Atomic uint64_t offered; /* bytes that it may pin */
    bool pins_nothing;
    uint64_t pins; /* how much it pins; 0: all that is offered */
    _Atomic uint64_t held_most; /* the most that images of one call, and their files, would have taken there */
    _Atomic uint32_t in_place;  /* files that were already there */
    uint32_t delay_us; /* of each image */
    bool whole_images; /* it cannot decode regions */
    bool opens_slowly; /* opening lasts until it is no longer wanted, */
    _Atomic uint32_t opening; /* by so many threads now */
    _Atomic uint32_t parts; /* images of which it decoded a part */
    _Atomic uint32_t apart; /* images that do not lie right behind the one before */
} hardware;

struct st_jpeg_hw {
    bool under_way, fails;
    struct st_jpeg_pinned pinned;
};

static int hw_open(struct st_jpeg_hw **out, struct st_device *device, uint32_t most,
                       struct st_jpeg_pinned *pinned, const struct st_flag *unwanted, struct stoker_error *err)
{
    if (hardware.opens_slowly) {
        hardware.opening++;
        while (!atomic_load(&unwanted->set))
            usleep(200);
        hardware.opening--;
        return st_fail(err, STOKER_ECANCELED, "no longer wanted");
    }
    hardware.offered = pinned->bytes;
    if (hardware.pins_nothing)
        pinned->bytes = 0;
    else if (hardware.pins)
        pinned->bytes = hardware.pins;
    if (hardware.open_fails)
        return st_fail(err, STOKER_EUNSUPPORTED, "the hardware is on strike");
    hardware.wrong += !device || !most;
    *out = calloc(1, sizeof **out);
    pinned->memory = pinned->bytes ? malloc(pinned->bytes) : NULL;
    (*out)->pinned = *pinned;
    hardware.open++;
    return 0;
}

static void hw_close(struct st_jpeg_hw *self)
{
    free(self->pinned.memory);
    free(self);
    hardware.open--;
}

static bool hw_regions(const struct st_jpeg_hw *self)
{
    hardware.wrong += self->under_way;
    return !hardware.whole_images;
}

static bool hw_takes(const struct st_jpeg_frame *frame)
{
    return !hardware.takes_nothing && !frame->ignored_factors;
}

static bool hardware_held(uint32_t count)
{
    struct stoker_loader *loader = hardware.watched;
    uint32_t hold = hardware.hold;
    if (!loader || !hold || count < hold || !atomic_compare_exchange_strong(&hardware.hold, &hold, 0))
        return false;
    hardware.held = count;
    while (!atomic_load(&loader->stopping))
        usleep(200);
    return true;
}

/* Files in pinned memory have to be where the images will not be. */
static void hardware_look(const struct st_jpeg_pinned *pinned, struct st_bytes file, uint64_t used)
{
    const bool there = pinned->memory && file.data >= pinned->memory && file.data < pinned->memory + pinned->bytes;
    hardware.in_place += there;
    hardware.wrong += there && (uint64_t)(file.data - pinned->memory) + file.size > used;
}

/* Writes no pixels before `finish`, as late as hardware may be. */
static void hw_start(struct st_jpeg_hw *self, struct st_jpeg_hw_image *image, uint32_t count,
                         uint64_t used)
{
    enum { IMAGES = 256 << 10 }; /* of the hardware's part of the pinned memory, where it may write */
    const uint64_t rest = self->pinned.bytes - used;
    hardware.wrong += used > self->pinned.bytes;
    if (rest)
        memset(self->pinned.memory + used, HOST_SPOILT, rest < IMAGES ? rest : IMAGES);
    hardware.wrong += self->under_way || !count || image[0].there;
    self->under_way = true;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t c = 0; c < image[k].components; c++) {
            const struct st_jpeg_hw_plane *plane = &image[k].plane[c];
            hardware.wrong += plane->at < image[k].at || plane->at >= image[k].at + image[k].size;
        }
        memset((void *)(uintptr_t)image[k].at, HOST_SPOILT, image[k].size);
        hardware.grey += image[k].components == 1;
        hardware.bytes += image[k].bytes.size;
        bytes += image[k].size + image[k].bytes.size;
        hardware_look(&self->pinned, image[k].bytes, used);
        hardware.wrong += !image[k].at;
        hardware.apart += k && image[k].at != image[k - 1].at + image[k - 1].size;
    }
    if (bytes > hardware.held_most)
        hardware.held_most = bytes;
    if (count > hardware.largest)
        hardware.largest = count;
    self->fails = hardware_held(count);
}

static bool hw_decode(const struct st_jpeg_hw_image *image)
{
    const struct st_region *region = &image->region;
    const struct planes_region part = {region->x, region->y, region->width, region->height};
    const bool whole = region->width == (uint32_t)image->plane[0].width &&
                       region->height == (uint32_t)image->plane[0].height;
    uint8_t *to[3] = {0};
    size_t pitch[3] = {0};
    hardware.parts += !whole;
    hardware.wrong += hardware.whole_images && !whole;
    for (uint32_t c = 0; c < image->components; c++) {
        const struct st_jpeg_hw_plane *plane = &image->plane[c];
        to[c] = (uint8_t *)(uintptr_t)plane->at;
        pitch[c] = plane->stride;
        const uint32_t h = c ? image->h : 1, v = c ? image->v : 1;
        hardware.wrong += !plane->at || plane->width < 1 || plane->height < 1 || plane->stride < (region->width + h - 1) / h ||
                        (uint32_t)plane->x * h != region->x || (uint32_t)plane->y * v != region->y;
    }
    return jpeg_planes(image->bytes.data, image->bytes.size, &part, to, pitch);
}

static void hw_finish(struct st_jpeg_hw *self, struct st_jpeg_hw_image *image, uint32_t count)
{
    hardware.wrong += !self->under_way;
    self->under_way = false;
    if (hardware.delay_us)
        usleep(hardware.delay_us * count);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t number = ++hardware.images;
        const bool lost = self->fails || (hardware.lost && number % hardware.lost == 0);
        image[k].there = !lost && hw_decode(&image[k]);
    }
}

static uint64_t hw_take(struct st_device *device, uint64_t bytes)
{
    (void)device;
    if (hardware.no_memory)
        return 0;
    hardware.memory++;
    return (uint64_t)(uintptr_t)malloc(bytes);
}

static void hw_give(struct st_device *device, uint64_t memory)
{
    (void)device;
    hardware.memory--;
    free((void *)(uintptr_t)memory);
}

static const struct st_jpeg_hw_kind hardware_kind = {.name = "test",
                                                       .open = hw_open,
                                                       .close = hw_close,
                                                       .regions = hw_regions,
                                                       .takes = hw_takes,
                                                       .start = hw_start,
                                                       .finish = hw_finish,
                                                       .take = hw_take,
                                                       .give = hw_give};
static const struct st_devices hardware_devices = {.kind = &host_kind, .jpeg_hw = &hardware_kind};

static struct stoker_item *items;
static struct stoker_stats stats; /* of the loader that ran last */
static char jpeg_hardware_note[256];     /* of its hardware */

/* Hardware take a while to open. */
static inline void wait_for_hardware(struct stoker_loader *loader)
{
    for (int k = 0; k < 30000; k++) {
        pthread_mutex_lock(&loader->lock);
        const bool settled =
            loader->jpeg.ready == loader->jpeg.threads || loader->jpeg.note.code;
        pthread_mutex_unlock(&loader->lock);
        if (settled)
            return;
        usleep(2000);
    }
}

static inline uint32_t epoch_on(const struct st_devices *devices, const char *text,
                         const struct stoker_loader_options *opt, uint64_t digests[BATCHES + 1])
{
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(devices, items, COUNT, text, opt, &err);
    uint32_t taken = 0;
    stats = (struct stoker_stats){.size = sizeof stats};
    if (!loader) {
        note("%s", err.message);
        return 0;
    }
    wait_for_hardware(loader);
    if (st_loader_start(loader, NULL, 0, NULL) == 0)
        taken = harness_take(loader, digests, BATCHES + 1, NULL);
    st_loader_stats(loader, &stats);
    snprintf(jpeg_hardware_note, sizeof jpeg_hardware_note, "%s", stats.jpeg_hardware_note ? stats.jpeg_hardware_note : "");
    st_loader_close(loader);
    return taken;
}

/* With slots that are not larger than these small images need: to spoil them takes most of a test's time. */
static inline struct stoker_loader_options small_options(uint32_t batch, int32_t workers)
{
    struct stoker_loader_options opt = harness_options(batch, workers);
    opt.pinned_limit = 16 << 20;
    return opt;
}

static inline struct stoker_loader_options fast_options(void)
{
    struct stoker_loader_options opt = small_options(BATCH, 2);
    opt.jpeg_hardware = STOKER_JPEG_HARDWARE_ALL;
    return opt;
}

/* Hardware had their part in the epoch. On a busy machine the workers may be through before they come to
 * it. */
static inline bool had_part(void)
{
    if (hardware.no_memory)
        return *jpeg_hardware_note;
    return (hardware.lost == 1 || stats.jpeg_hardware_rows) && (!hardware.lost || stats.jpeg_hardware_failures);
}

enum { TRIES = 5000 };

/* The batches are those of the CPU, with hardware at work if `wanted`. */
static inline bool same(const char *text, const struct stoker_loader_options *opt, bool wanted)
{
    uint64_t cpu[BATCHES + 1], device[BATCHES + 1];
    bool equal = epoch_on(NULL, text, opt, cpu) == BATCHES;
    const uint32_t before = host.wrong + hardware.wrong;
    for (int try = 0; equal && try < TRIES; try++) {
        equal = epoch_on(&hardware_devices, text, opt, device) == BATCHES &&
                !memcmp(cpu, device, BATCHES * sizeof *cpu);
        if (!wanted || had_part())
            break;
    }
    return equal && host.wrong + hardware.wrong == before;
}

static const char *const texts[] = {
    "random_resized_crop(size=24); random_horizontal_flip; to_tensor; "
    "normalize(mean=[0.5,0.4,0.3],std=[0.2,0.3,0.4])",
    "random_resized_crop(size=24, interpolation=bicubic); random_vertical_flip; "
    "color_jitter(brightness=0.4,contrast=0.4); "
    "gaussian_blur(kernel_size=5); to_tensor; random_erasing(p=0.7, value=random)",
    "resize(size=[20,26], interpolation=nearest); random_horizontal_flip",
    "center_crop(size=20); random_vertical_flip; to_tensor",
    "resize(size=28); center_crop(size=24); random_grayscale(p=0.5)",
};

#endif
