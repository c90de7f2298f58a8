/* The JPEG hardware by nvJPEG: found, asked, and refused images told from good ones. The library and the
 * driver are made up here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/threads.h"
#include "codec/jpeg/baseline.h"
#include "codec/planes_rgb.h"
#include "gpu/gpu.h"
#include "gpu/nvjpeg.h"
#include "gpu/plain_driver.h"
#include "gpu/small_jpeg.h"
#include "tap.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 8, STRIDE = 64, PLANE = STRIDE * 48 };

/* ---- decoding ------------------------------------------------------------------------------------- */

/* Where the component's first sample would be. */
static uint64_t component_at(const struct st_jpeg_hw_plane *plane)
{
    return plane->at - ((uint64_t)plane->y * plane->stride + (uint64_t)plane->x);
}

/* Whether all pixels of the window, in the image's region, are those of our own decoder. */
static bool window_is_right(struct st_jpeg *own, const struct st_jpeg_hw_image *image, struct st_region window)
{
    struct st_arena arena = {0};
    struct st_view view;
    uint8_t rgb[3 * WIDTH * HEIGHT];
    const int32_t width = (int32_t)window.width, height = (int32_t)window.height;
    const struct st_view made = {rgb, 3 * width, width, height, 3};
    uint8_t none[WIDTH];
    memset(none, ST_CHROMA_NONE, sizeof none);
    const bool grey = image->components == 1;
    const struct st_jpeg_hw_plane *chroma = &image->plane[grey ? 0 : 1];
    const uint64_t at = (uint64_t)(uintptr_t)none;
    const struct st_job job = {.pixels = component_at(&image->plane[0]),
                               .stride = image->plane[0].stride,
                               .planes = {.chroma = {grey ? at : component_at(&chroma[0]),
                                                     grey ? at : component_at(&chroma[1])},
                                          .stride = grey ? 0 : chroma->stride,
                                          .width = chroma->width,
                                          .height = chroma->height,
                                          .h = image->h,
                                          .v = image->v,
                                          .x = (int32_t)window.x,
                                          .y = (int32_t)window.y}};
    planes_rgb(&job, &made);
    bool same = st_jpeg_decode(own, image->bytes, window, NULL, NULL, &arena, &view) == ST_JPEG_OURS;
    for (int y = 0; same && y < height; y++)
        same = !memcmp(st_row(&made, y), st_row(&view, y), 3 * (size_t)width);
    st_arena_free(&arena);
    return same;
}

static bool is_right(struct st_jpeg *own, const struct st_jpeg_hw_image *image)
{
    return window_is_right(own, image, (struct st_region){0, 0, WIDTH, HEIGHT});
}

/* File `k`, and where its planes go: all the samplings, and grey. */
static struct st_jpeg_hw_image image_of(int k, uint64_t memory)
{
    const int components = k == 4 ? 1 : 3, h = 1 + k % 2, v = 1 + k / 2 % 2;
    struct st_jpeg_hw_image image = {
        .bytes = file((struct jpeg_kind){.components = components, .h = {h}, .v = {v}, .quality = 60 + k}),
        .region = {0, 0, WIDTH, HEIGHT},
        .components = (uint32_t)components,
        .h = (uint32_t)h,
        .v = (uint32_t)v,
        .at = memory + (uint64_t)(3 * k) * PLANE,
        .size = 3 * PLANE};
    for (int c = 0; c < components; c++)
        image.plane[c] = (struct st_jpeg_hw_plane){.at = memory + (uint64_t)(3 * k + c) * PLANE,
                                                       .stride = STRIDE,
                                                       .width = c ? (WIDTH + h - 1) / h : WIDTH,
                                                       .height = c ? (HEIGHT + v - 1) / v : HEIGHT};
    return image;
}

/* What the library was given in one call: how much of it in pinned memory. */
struct staged {
    int files, images, copies; /* copies: to the device */
    int waits;
    int right;                 /* images; -1: it could not be tried */
};

/* Decodes images with `room` bytes of pinned memory. Between images `apart` and the one after it, there is
 * another image's place on the device. */
static struct staged staged(uint64_t room, uint64_t expected_room, int apart, void *library)
{
    const unsigned char *const *given = dlsym(library, "fake_given"),
                               *const *written = dlsym(library, "fake_written");
    struct staged out = {.right = -1};
    struct stoker_error err = {0};
    struct st_jpeg_hw *hw = NULL;
    struct st_jpeg_hw_image image[COUNT];
    struct st_jpeg_pinned may = {.bytes = room};
    struct st_jpeg *own = st_jpeg_new();
    enum { PLACE = 3 * PLANE, OTHER = 0x5A };
    uint8_t *memory = malloc((COUNT + 1) * PLACE);
    pinned.memory = NULL;
    copies = 0;
    if (st_jpeg_hw_nvjpeg.open(&hw, &device.base, COUNT, &may, NULL, &err) || may.bytes != expected_room)
        return out;
    out.waits = -syncs;
    memset(memory, OTHER, (COUNT + 1) * PLACE);
    for (int k = 0; k < COUNT; k++)
        image[k] = image_of(k, (uint64_t)(uintptr_t)memory);
    for (int k = apart + 1; k < COUNT; k++) {
        image[k].at += PLACE;
        for (uint32_t c = 0; c < image[k].components; c++)
            image[k].plane[c].at += PLACE;
    }
    st_jpeg_hw_nvjpeg.start(hw, image, COUNT, 0);
    st_jpeg_hw_nvjpeg.finish(hw, image, COUNT);
    out.right = 0;
    for (int k = 0; k < COUNT; k++) {
        out.right += image[k].there && is_right(own, &image[k]);
        out.files += is_pinned(given[k]);
        out.images += is_pinned(written[k]);
        free((void *)(uintptr_t)image[k].bytes.data);
    }
    for (int k = 0; k < PLACE; k++)
        left_inside += memory[(size_t)(apart + 1) * PLACE + (size_t)k] != OTHER;
    out.copies = copies;
    out.waits += syncs;
    st_jpeg_hw_nvjpeg.close(hw);
    st_jpeg_free(own);
    free(memory);
    return out;
}

static void staging(void *library)
{
    enum { IMAGE = 3 * PLANE, LAST = COUNT - 1 };
    struct staged got = staged(1 << 20, 1 << 20, LAST, library);
    ok(got.files == COUNT && got.images == COUNT && got.copies == 1 && got.right == COUNT,
       "files and images are in pinned memory, and one copy brings all images to the device");
    got = staged(1 << 20, 1 << 20, 1, library);
    ok(got.images == COUNT && got.copies == 2 && got.right == COUNT,
       "two copies, if another image lies between them");
    got = staged(2 * IMAGE + 1, 2 * IMAGE + 1, LAST, library);
    ok(got.files == 0 && got.images == 2 && got.copies == 1 && got.right == COUNT,
       "with room for two images, the others are written to the device");
    got = staged(COUNT * IMAGE + 2000, COUNT * IMAGE + 2000, LAST, library);
    ok(got.files >= 1 && got.files < COUNT && got.images == COUNT && got.right == COUNT,
       "with room for all images and %d files, the others are decoded from where they are", got.files);
    got = staged(0, 0, LAST, library);
    ok(got.files == 0 && got.images == 0 && got.copies == 0 && got.right == COUNT,
       "none, if none may be pinned");
    no_pinned = 1;
    got = staged(1 << 20, 0, LAST, library);
    ok(got.files == 0 && got.images == 0 && got.copies == 0 && got.right == COUNT, "nor if none can be");
    no_pinned = 0;
    copy_fails = ST_CU_OUT_OF_MEMORY;
    got = staged(1 << 20, 1 << 20, LAST, library);
    ok(got.right == 0 && got.waits == 1,
       "a copy that fails is waited for, and its images are not used");
    copy_fails = 0;
    ok(allocated == 0 && left_inside == 0, "the memory was given back, and nothing else overwritten");
}

/* Files that the caller has put into pinned memory are passed on from there, and images written behind them. */
static void files_in_place(void *library)
{
    enum { IMAGE = 3 * PLANE, EACH = 16384 };
    const unsigned char *const *given = dlsym(library, "fake_given"), *const *written = dlsym(library, "fake_written");
    struct st_jpeg_pinned may = {.bytes = COUNT * (IMAGE + EACH) + EACH};
    struct st_jpeg_hw_image image[COUNT];
    struct st_jpeg_hw *hw = NULL;
    struct stoker_error err = {0};
    struct st_jpeg *own = st_jpeg_new();
    uint8_t *memory = malloc(COUNT * IMAGE);
    int right = 0;
    if (!ok(!st_jpeg_hw_nvjpeg.open(&hw, &device.base, COUNT, &may, NULL, &err) && may.memory, "%s", err.message))
        return;
    for (uint32_t k = 0; k < COUNT; k++) {
        image[k] = image_of((int)k, (uint64_t)(uintptr_t)memory);
        if (k == 1)
            continue; /* this one is copied */
        memcpy(may.memory + k * EACH, image[k].bytes.data, image[k].bytes.size);
        free((void *)(uintptr_t)image[k].bytes.data);
        image[k].bytes.data = may.memory + k * EACH;
    }
    st_jpeg_hw_nvjpeg.start(hw, image, COUNT, COUNT * EACH);
    st_jpeg_hw_nvjpeg.finish(hw, image, COUNT);
    for (uint32_t k = 0; k < COUNT; k++)
        right += image[k].there && is_right(own, &image[k]) && is_pinned(given[k]) &&
                 (k == 1 || given[k] == image[k].bytes.data) && written[k] >= may.memory + COUNT * EACH;
    ok(right == COUNT, "files in pinned memory are not copied again, nor overwritten (%d)", right);
    free((void *)(uintptr_t)image[1].bytes.data);
    st_jpeg_hw_nvjpeg.close(hw);
    st_jpeg_free(own);
    free(memory);
}

static void decoding(const int *open, const int *calls, const int *allocated_once)
{
    struct stoker_error err = {0};
    struct st_jpeg_hw *hw = NULL;
    struct st_jpeg_hw_image image[COUNT];
    struct st_jpeg *own = st_jpeg_new();
    struct st_jpeg_pinned files = {.bytes = 1 << 20};
    int rc = st_jpeg_hw_nvjpeg.open(&hw, &device.base, COUNT, &files, NULL, &err);
    if (!ok(rc == 0, "the hardware opens: %s", err.message))
        return;
    const int first = *calls;
    const uint64_t memory = st_jpeg_hw_nvjpeg.take(&device.base, 3 * COUNT * PLANE);
    for (int k = 0; k < COUNT; k++)
        image[k] = image_of(k, memory);
    st_jpeg_hw_nvjpeg.start(hw, image, COUNT, 0);
    st_jpeg_hw_nvjpeg.finish(hw, image, COUNT);
    int right = 0;
    for (int k = 0; k < COUNT; k++)
        right += image[k].there && is_right(own, &image[k]);
    ok(right == COUNT && *calls == first + 1, "%d of %d images are right, in one call", right, COUNT);

    memset((void *)(uintptr_t)memory, 0, 3 * COUNT * PLANE);
    uint8_t *refused = (uint8_t *)(uintptr_t)image[2].bytes.data;
    refused[0] = 0;
    const int second = *calls;
    st_jpeg_hw_nvjpeg.start(hw, image, COUNT, 0);
    st_jpeg_hw_nvjpeg.finish(hw, image, COUNT);
    const int tries = *calls - second;
    refused[0] = 0xFF;
    right = 0;
    for (int k = 0; k < COUNT; k++)
        right += image[k].there && is_right(own, &image[k]);
    ok(right == COUNT - 1 && !image[2].there && tries <= 7,
       "one that the library refuses costs no other (%d right, %d calls)", right, tries);

    memset((void *)(uintptr_t)memory, 0, 3 * COUNT * PLANE);
    st_jpeg_hw_nvjpeg.start(hw, image + 1, 3, 0);
    st_jpeg_hw_nvjpeg.finish(hw, image + 1, 3);
    ok(image[1].there && is_right(own, &image[1]) && is_right(own, &image[3]) &&
           !is_right(own, &image[4]),
       "fewer the next time");
    record_fails = 1;
    const int before = syncs;
    st_jpeg_hw_nvjpeg.start(hw, image, COUNT, 0);
    record_fails = 0;
    ok(syncs == before + 1, "without an event, the hardware is waited for at once");
    st_jpeg_hw_nvjpeg.finish(hw, image, COUNT);
    right = 0;
    for (int k = 0; k < COUNT; k++)
        right += image[k].there;
    ok(right == 0, "and what they made is not used");
    ok(*allocated_once == 1, "the library was asked for its memory once");
    spare = (1 << 30) / 10 + 1000;
    ok(!st_jpeg_hw_nvjpeg.take(&device.base, 2000), "the last tenth of the memory is left to others");
    const uint64_t little = st_jpeg_hw_nvjpeg.take(&device.base, 900);
    ok(little, "what lies before it is not");
    spare = 1 << 30;
    st_jpeg_hw_nvjpeg.give(&device.base, little);
    st_jpeg_hw_nvjpeg.give(&device.base, memory);
    st_jpeg_hw_nvjpeg.close(hw);
    for (int k = 0; k < COUNT; k++)
        free((void *)(uintptr_t)image[k].bytes.data);
    st_jpeg_free(own);
    ok(*open == 0 && events == 0 && streams == 0 && allocated == 0 && entered == 0 && left_inside == 0,
       "everything was given back, and the context left as it was");
}

/* Image `k`, of which all but the first MCUs is to be decoded, and not the last ones either. */
static struct st_jpeg_hw_image region_of(int k, uint64_t memory)
{
    struct st_jpeg_hw_image image = image_of(k, memory);
    image.region = (struct st_region){16, 16, 32, 16};
    for (uint32_t c = 0; c < image.components; c++) {
        image.plane[c].x = c ? 16 / (int32_t)image.h : 16;
        image.plane[c].y = c ? 16 / (int32_t)image.v : 16;
    }
    return image;
}

/* How many images are right in a call for regions, or for whole images if there are no regions. */
static int regions_right(struct st_jpeg_hw *hw, uint64_t memory)
{
    struct st_jpeg_hw_image image[COUNT];
    struct st_jpeg *own = st_jpeg_new();
    const bool regions = st_jpeg_hw_nvjpeg.regions(hw);
    int right = 0;
    memset((void *)(uintptr_t)memory, 0x5A, 3 * COUNT * PLANE);
    for (int k = 0; k < COUNT; k++)
        image[k] = regions ? region_of(k, memory) : image_of(k, memory);
    st_jpeg_hw_nvjpeg.start(hw, image, COUNT, 0);
    st_jpeg_hw_nvjpeg.finish(hw, image, COUNT);
    for (int k = 0; k < COUNT; k++) {
        /* Chroma at the region's edges needs the samples beside them. */
        right += image[k].there && (regions ? window_is_right(own, &image[k], (struct st_region){18, 18, 28, 12})
                                            : is_right(own, &image[k]));
        free((void *)(uintptr_t)image[k].bytes.data);
    }
    st_jpeg_free(own);
    return right;
}

/* Regions are decoded, and whole images where the library cannot do that. */
static void regions(int *no_regions, const int *decoded)
{
    static const char *const what[] = {"regions are decoded",
                                       "whole images, if no parameters can be made",
                                       "if they are refused",
                                       "if images with them are refused",
                                       "if they are ignored",
                                       "if another region is decoded"};
    const uint64_t memory = st_jpeg_hw_nvjpeg.take(&device.base, 3 * COUNT * PLANE);
    for (int k = 0; k < 6; k++) {
        struct stoker_error err = {0};
        struct st_jpeg_hw *hw = NULL;
        struct st_jpeg_pinned files = {.bytes = 1 << 20};
        *no_regions = k;
        if (!ok(!st_jpeg_hw_nvjpeg.open(&hw, &device.base, COUNT, &files, NULL, &err), "the hardware opens"))
            return;
        const int before = *decoded;
        ok(regions_right(hw, memory) == COUNT && *decoded == before + (k ? 0 : COUNT) &&
               st_jpeg_hw_nvjpeg.regions(hw) == !k,
           "%s", what[k]);
        st_jpeg_hw_nvjpeg.close(hw);
    }
    *no_regions = 0;
    st_jpeg_hw_nvjpeg.give(&device.base, memory);
}

/* The library is asked for memory when larger images come than ever before, and only then. */
static void larger_images(const int *allocated_times, const int *sides)
{
    static const struct {
        int32_t width, height;
        int times, sides[2];
        const char *what;
    } step[] = {{WIDTH, HEIGHT, 1, {1024, 1024}, "at first for images of the usual size"},
                {1500, 700, 2, {2048, 1024}, "then for a wider one"},
                {1024, 1024, 2, {2048, 1024}, "not again for a smaller one"},
                {900, 1800, 3, {2048, 2048}, "then for a higher one, as wide as the widest so far"},
                {16384, 300, 3, {2048, 2048}, "not for one that would take too much"},
                {4000, 4000, 3, {2048, 2048}, "nor without memory to spare"},
                {4000, 4000, 3, {2048, 2048}, "which is not tried again"}};
    struct stoker_error err = {0};
    struct st_jpeg_hw *hw = NULL;
    struct st_jpeg_pinned files = {.bytes = 1 << 20};
    const int before = *allocated_times;
    if (!ok(!st_jpeg_hw_nvjpeg.open(&hw, &device.base, 1, &files, NULL, &err), "the hardware opens"))
        return;
    const uint64_t memory = st_jpeg_hw_nvjpeg.take(&device.base, 3 * PLANE);
    struct st_jpeg_hw_image image = image_of(0, memory);
    for (size_t k = 0; k < sizeof step / sizeof *step; k++) {
        image.plane[0].width = step[k].width;
        image.plane[0].height = step[k].height;
        st_jpeg_hw_nvjpeg.start(hw, &image, 1, 0);
        st_jpeg_hw_nvjpeg.finish(hw, &image, 1);
        ok(*allocated_times - before == step[k].times && sides[0] == step[k].sides[0] &&
               sides[1] == step[k].sides[1] && image.there,
           "%s", step[k].what);
    }
    st_jpeg_hw_nvjpeg.give(&device.base, memory);
    st_jpeg_hw_nvjpeg.close(hw);
    free((void *)(uintptr_t)image.bytes.data);
}

static void absent(int *no_decoders, int *no_hardware)
{
    struct stoker_error err = {0};
    struct st_jpeg_hw *hw = NULL;
    struct st_nvjpeg nvjpeg;
    struct st_jpeg_pinned files = {.bytes = 1 << 20};
    ok(st_nvjpeg_load(&nvjpeg, "libno-such-library.so", &err) == STOKER_EUNSUPPORTED &&
           strstr(err.message, "libno-such-library.so"),
       "a library that is not there: %s", err.message);
    ok(st_nvjpeg_load(&nvjpeg, "libc.so.6", &err) == STOKER_EUNSUPPORTED &&
           strstr(err.message, "nvjpeg"),
       "one that is another: %s", err.message);
    *no_hardware = 1;
    ok(st_jpeg_hw_nvjpeg.open(&hw, &device.base, 4, &files, NULL, &err) == STOKER_EUNSUPPORTED && !hw,
       "a GPU without hardware: %s", err.message);
    *no_hardware = 0;
    *no_decoders = 1;
    ok(st_jpeg_hw_nvjpeg.open(&hw, &device.base, 4, &files, NULL, &err) == STOKER_EUNSUPPORTED && !hw,
       "or that says so later: %s", err.message);
    *no_decoders = 0;
}

/* ---- a slow start ---------------------------------------------------------------------------------- */

struct starter {
    struct st_flag unwanted;
    struct st_jpeg_hw *hw;
    struct stoker_error err;
    int rc;
};

static void *start_hardware(void *argument)
{
    struct starter *self = argument;
    struct st_jpeg_pinned files = {.bytes = 1 << 20};
    self->rc = st_jpeg_hw_nvjpeg.open(&self->hw, &device.base, COUNT, &files, &self->unwanted, &self->err);
    return NULL;
}

/* The library's start takes long, and the loader is closed meanwhile: what would follow is left out, and what was
 * made is given back. */
static void slow_start(void *library)
{
    _Atomic int *slow = dlsym(library, "fake_slow"), *starting = dlsym(library, "fake_starting");
    const int *states = dlsym(library, "fake_states"), *open = dlsym(library, "fake_open");
    for (int wanted = 0; wanted < 2; wanted++) {
        struct starter starter = {.rc = -100};
        pthread_t thread;
        const int before = *states;
        *slow = 1;
        if (pthread_create(&thread, NULL, start_hardware, &starter)) {
            ok(false, "a thread starts");
            return;
        }
        while (!*starting)
            usleep(200);
        atomic_store(&starter.unwanted.set, !wanted);
        *slow = 0;
        pthread_join(thread, NULL);
        if (wanted) {
            ok(starter.rc == STOKER_OK && *states == before + 1, "hardware that starts slowly is there in the end");
            st_jpeg_hw_nvjpeg.close(starter.hw);
        } else {
            ok(starter.rc == STOKER_ECANCELED && !starter.hw && *states == before,
               "what nobody wants any more is not started to the end: %s", starter.err.message);
        }
        ok(*open == 0 && streams == 0 && events == 0 && entered == 0, "everything was given back");
    }
    struct starter starter = {.unwanted.set = true};
    start_hardware(&starter);
    ok(starter.rc == STOKER_ECANCELED && *open == 0, "nor begun: %s", starter.err.message);
}

int main(int argc, char **argv)
{
    char path[4096];
    (void)argc;
    const char *slash = strrchr(argv[0], '/');
    snprintf(path, sizeof path, "%.*s/gpu/libfake_nvjpeg.so", slash ? (int)(slash - argv[0]) : 1,
             slash ? argv[0] : ".");
    /* Once it is loaded it is found by its name, as torch's is. */
    void *fake = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!ok(fake != NULL, "the made-up library opens: %s", fake ? "" : dlerror()))
        return done_testing();
    int *open = dlsym(fake, "fake_open");
    decoding(open, dlsym(fake, "fake_calls"), dlsym(fake, "fake_allocated"));
    staging(fake);
    files_in_place(fake);
    regions(dlsym(fake, "fake_no_regions"), dlsym(fake, "fake_regions"));
    larger_images(dlsym(fake, "fake_allocated"), dlsym(fake, "fake_sides"));
    absent(dlsym(fake, "fake_no_decoders"), dlsym(fake, "fake_no_hardware"));
    slow_start(fake);
    ok(*open == 0 && streams == 0 && events == 0 && entered == 0,
       "also after these everything was given back");
    return done_testing();
}
