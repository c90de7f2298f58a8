/* jpeg_hardware.c - the JPEG engines of a GPU, used through nvJPEG's hardware backend
 *
 * nvJPEG reads the headers, and the engines decode to planes of Y, Cb and Cr. On an H200 these are
 * libjpeg's own samples: 382 million were compared, of 841 files of all kinds that are taken here, and
 * none differed. RGB would not be equal, because nvJPEG repeats chroma samples where libjpeg
 * interpolates them. The engines do not report damaged data.
 *
 * The engines ignore stream order at the start (the first images of a call are written at once, whatever
 * is queued in the stream), but obey it at the end.
 *
 * For each image nvJPEG copies the file to the device and three planes out of its own memory. Copies
 * within the device are made by its multiprocessors: beside a training step they wait for blocks of its
 * kernels to end, and nvJPEG spins meanwhile (with blocks of 100 us, 490 us of CPU time per image on an
 * H200, and 2,000 images/s). Copies to and from pinned host memory are made by the copy engines, which
 * do not wait for kernels (43 us, 21,600 images/s). So nvJPEG writes planes to pinned memory, from where
 * one more copy brings a chunk's images back. Files are passed in pinned memory too: the driver copies
 * from pageable memory itself, and others wait meanwhile (43 instead of 9 us per file).
 *
 * The engines decode whole images, but only the region that is needed is copied: half of the bytes, for
 * the usual random crops, and a step's kernels are delayed less.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/threads.h"
#include "codec/jpeg/headers.h"
#include "gpu/gpu.h"
#include "gpu/jpeg_probe.h"
#include "gpu/slots.h"

#include <stdlib.h>
#include <string.h>

enum {
    SIDE_MOST = 16384,
    /* The library's memory is allocated before images of a new size come, for powers of two from
     * EXPECTED_SIDE on. Otherwise it allocates some for every large image, and waits for the whole
     * device to do so: with one large image in a hundred, all take twice the time beside a training
     * step. */
    EXPECTED_SIDE = 1024,
    EXPECTED_MOST = 1 << 24, /* pixels: not for larger ones */
    PIXEL_BYTES = 100,       /* that it allocates per pixel, for all images that it decodes at once */
    FREE_PART = 10, /* this part of the device's memory is left to the training program */
};

struct st_jpeg_engine {
    struct st_gpu_device *device;
    struct st_nvjpeg nvjpeg;
    struct nvjpegHandle *handle;
    struct nvjpegJpegState *state;
    struct CUstream_st *stream;
    struct CUevent_st *done;
    struct st_jpeg_pinned pinned; /* {0}: none could be allocated */
    uint32_t batch; /* number of images that the state is set up for */
    uint64_t width, height; /* the library's memory has been requested for images of this size */
    /* of the current call, `most` each: */
    uint32_t most;
    const unsigned char **data;
    size_t *length;
    struct st_nvjpeg_image *to;
    struct nvjpegDecodeParams **params; /* with the regions; NULL: whole images are decoded */
    uint8_t **staged; /* where in pinned memory an image is written; NULL: it is written to the device */
    bool *begun;      /* which images it has started */
};

static int fail(int status, const char *what, struct stoker_error *err)
{
    return st_fail(err, STOKER_EUNSUPPORTED, "nvJPEG: %s: status %d, %s", what, status,
                   st_nvjpeg_status(status));
}

/* Whether there is memory for the engines without taking what a training step may still need: they are
 * an extra. The context is current. */
static bool memory_to_spare(const struct st_cuda *cuda, uint64_t bytes)
{
    size_t free_bytes, all;
    return !cuda->MemGetInfo(&free_bytes, &all) && free_bytes > all / FREE_PART &&
           bytes <= free_bytes - all / FREE_PART;
}

/* ---- open and close ------------------------------------------------------------------------------ */

/* Asked between calls that take long. */
static int go_on(const struct st_flag *unwanted, struct stoker_error *err)
{
    if (!unwanted || !atomic_load(&unwanted->set))
        return STOKER_OK;
    return st_fail(err, STOKER_ECANCELED, "the loader was closed before its JPEG engines had started");
}

static int open_library(struct st_jpeg_engine *engine, const struct st_flag *unwanted,
                        struct stoker_error *err)
{
    const struct st_nvjpeg *nvjpeg = &engine->nvjpeg;
    unsigned engines = 0, cores = 0;
    int rc = go_on(unwanted, err);
    if (!rc)
        rc = st_nvjpeg_load(&engine->nvjpeg, NULL, err);
    if (!rc)
        rc = go_on(unwanted, err);
    if (rc)
        return rc;
    int status = nvjpeg->CreateEx(ST_NVJPEG_BACKEND_HARDWARE, NULL, NULL, 0, &engine->handle);
    if (status) {
        engine->handle = NULL;
        return fail(status, "this GPU has no usable JPEG engines", err);
    }
    if (nvjpeg->GetHardwareDecoderInfo &&
        nvjpeg->GetHardwareDecoderInfo(engine->handle, &engines, &cores) == ST_NVJPEG_SUCCESS &&
        !engines)
        return st_fail(err, STOKER_EUNSUPPORTED, "this GPU has no JPEG engines");
    rc = go_on(unwanted, err);
    if (rc)
        return rc;
    status = nvjpeg->JpegStateCreate(engine->handle, &engine->state);
    return status ? fail(status, "preparing the engines", err) : STOKER_OK;
}

static int open_stream(struct st_jpeg_engine *engine, struct stoker_error *err)
{
    const struct st_cuda *cuda = engine->device->cuda;
    int least, greatest;
    int result = cuda->CtxGetStreamPriorityRange(&least, &greatest);
    if (!result)
        result = cuda->StreamCreateWithPriority(&engine->stream, ST_CU_STREAM_NON_BLOCKING, greatest);
    if (!result)
        result =
            cuda->EventCreate(&engine->done, ST_CU_EVENT_DISABLE_TIMING | ST_CU_EVENT_BLOCKING_SYNC);
    return result ? st_cuda_fail(cuda, engine->device->base.ordinal, result, err,
                                 "preparing the JPEG engines")
                  : STOKER_OK;
}

/* Without it, images are still decoded, but more slowly. */
static void open_pinned(struct st_jpeg_engine *engine, uint64_t bytes)
{
    void *memory;
    if (bytes && !engine->device->cuda->MemHostAlloc(&memory, bytes, ST_CU_HOST_PORTABLE)) {
        engine->pinned.memory = memory;
        engine->pinned.bytes = bytes;
    }
}

static void close_regions(struct st_jpeg_engine *engine)
{
    for (uint32_t k = 0; engine->params && k < engine->most; k++)
        if (engine->params[k])
            engine->nvjpeg.DecodeParamsDestroy(engine->params[k]);
    free(engine->params);
    engine->params = NULL;
}

/* Without it, whole images are decoded. */
static void open_regions(struct st_jpeg_engine *engine)
{
    const struct st_nvjpeg *nvjpeg = &engine->nvjpeg;
    if (!nvjpeg->DecodeParamsCreate || !nvjpeg->DecodeParamsDestroy ||
        !nvjpeg->DecodeParamsSetOutputFormat || !nvjpeg->DecodeParamsSetROI || !nvjpeg->DecodeBatchedEx)
        return;
    engine->params = st_calloc(engine->most, sizeof *engine->params);
    for (uint32_t k = 0; engine->params && k < engine->most; k++)
        if (nvjpeg->DecodeParamsCreate(engine->handle, &engine->params[k]) ||
            nvjpeg->DecodeParamsSetOutputFormat(engine->params[k], ST_NVJPEG_OUTPUT_YUV))
            close_regions(engine);
    if (!engine->params)
        return;
    const struct st_jpeg_probe probe = {.nvjpeg = nvjpeg,
                                        .cuda = engine->device->cuda,
                                        .handle = engine->handle,
                                        .state = engine->state,
                                        .params = engine->params[0],
                                        .stream = engine->stream,
                                        .memory = engine->pinned.memory,
                                        .bytes = engine->pinned.bytes};
    if (!st_jpeg_probe_regions(&probe))
        close_regions(engine);
}

/* Also called after an incomplete open. */
static void engine_close(struct st_jpeg_engine *engine)
{
    const struct st_cuda *cuda = engine->device->cuda;
    const struct st_nvjpeg *nvjpeg = &engine->nvjpeg;
    struct st_cuda_inside inside;
    if (!st_cuda_enter(&inside, cuda, engine->device->context)) {
        close_regions(engine);
        if (engine->state)
            nvjpeg->JpegStateDestroy(engine->state);
        if (engine->handle)
            nvjpeg->Destroy(engine->handle);
        if (engine->done)
            cuda->EventDestroy(engine->done);
        if (engine->stream)
            cuda->StreamDestroy(engine->stream);
        if (engine->pinned.memory)
            cuda->MemFreeHost(engine->pinned.memory);
        st_cuda_leave(&inside);
    }
    st_nvjpeg_unload(&engine->nvjpeg);
    free(engine->data);
    free(engine->length);
    free(engine->to);
    free(engine->params);
    free(engine->staged);
    free(engine->begun);
    free(engine);
}

static int engine_open(struct st_jpeg_engine **out, struct st_device *base, uint32_t most,
                       struct st_jpeg_pinned *pinned, const struct st_flag *unwanted,
                       struct stoker_error *err)
{
    struct st_gpu_device *device = st_gpu_device(base);
    struct st_cuda_inside inside;
    struct st_jpeg_engine *engine = st_calloc(1, sizeof *engine);
    if (!engine)
        return st_fail(err, STOKER_ENOMEM, "no memory for the JPEG engines");
    engine->device = device;
    engine->most = most;
    engine->data = st_calloc(most, sizeof *engine->data);
    engine->length = st_calloc(most, sizeof *engine->length);
    engine->to = st_calloc(most, sizeof *engine->to);
    engine->staged = st_calloc(most, sizeof *engine->staged);
    engine->begun = st_calloc(most, sizeof *engine->begun);
    int rc = STOKER_OK;
    if (!engine->data || !engine->length || !engine->to || !engine->staged || !engine->begun)
        rc = st_fail(err, STOKER_ENOMEM, "no memory for the JPEG engines");
    else if (st_cuda_enter(&inside, device->cuda, device->context))
        rc = st_fail(err, STOKER_EUNSUPPORTED, "the GPU's context cannot be used for its JPEG engines");
    else {
        rc = open_library(engine, unwanted, err);
        if (!rc)
            rc = open_stream(engine, err);
        if (!rc)
            rc = go_on(unwanted, err);
        if (!rc) {
            open_pinned(engine, pinned->bytes);
            rc = go_on(unwanted, err);
        }
        if (!rc)
            open_regions(engine); /* uses the pinned memory */
        st_cuda_leave(&inside);
    }
    if (rc) {
        engine_close(engine);
        return rc;
    }
    *pinned = engine->pinned;
    *out = engine;
    return STOKER_OK;
}

/* ---- decoding ------------------------------------------------------------------------------------ */

/* Whether the symbols are those that baseline defines. libjpeg, and so our decoder, gives a meaning to
 * others too (a size of 0 ends the block after any run but 15; differences of up to 15 bits): what the
 * engines make of these is unknown. */
static bool has_baseline_symbols(const struct st_jpeg_code *dc, const struct st_jpeg_code *ac)
{
    enum { DC_MOST = 11, AC_MOST = 10, NO_VALUES = 0x00, SIXTEEN_ZEROS = 0xF0 };
    bool all = true;
    for (uint32_t k = 0; k < dc->total; k++)
        all = all && dc->symbols[k] <= DC_MOST;
    for (uint32_t k = 0; k < ac->total; k++) {
        const uint32_t symbol = ac->symbols[k], size = symbol & 15;
        all = all && size <= AC_MOST && (size || symbol == NO_VALUES || symbol == SIXTEEN_ZEROS);
    }
    return all;
}

/* Measured on an H200: grey, 4:4:4, 4:2:2, 4:4:0 and 4:2:0 are decoded correctly; RGB components, grey
 * with sampling factors other than 1 and quantisation tables of more than 8 bits are silently decoded
 * wrong; sides beyond 16384 are refused. Whatever else baseline does not have is left to the CPU. */
static bool engine_takes(const struct st_jpeg_frame *frame)
{
    if (frame->rgb || frame->extended || frame->ignored_factors || frame->width > SIDE_MOST ||
        frame->height > SIDE_MOST)
        return false;
    for (uint32_t c = 0; c < frame->components; c++) {
        const struct st_jpeg_component *component = &frame->component[c];
        if (component->dc > 1 || component->ac > 1 ||
            !has_baseline_symbols(&frame->dc[component->dc], &frame->ac[component->ac]))
            return false;
    }
    return true;
}

static uint64_t at_least(uint64_t side, uint64_t needed)
{
    while (side < needed)
        side *= 2;
    return side;
}

/* Has the library allocate what the images need. If that fails, or there is no memory to spare, it is
 * not tried again for this size. None of the engine's images are being decoded. */
static void expect(struct st_jpeg_engine *engine, const struct st_jpeg_engine_image *image,
                   uint32_t count)
{
    const struct st_nvjpeg *nvjpeg = &engine->nvjpeg;
    uint64_t width = EXPECTED_SIDE, height = EXPECTED_SIDE;
    for (uint32_t k = 0; k < count; k++) {
        width = at_least(width, (uint64_t)image[k].plane[0].width);
        height = at_least(height, (uint64_t)image[k].plane[0].height);
    }
    width = width > engine->width ? width : engine->width;
    height = height > engine->height ? height : engine->height;
    if ((width == engine->width && height == engine->height) || width * height > EXPECTED_MOST)
        return;
    if (nvjpeg->DecodeBatchedPreAllocate &&
        memory_to_spare(engine->device->cuda, width * height * PIXEL_BYTES))
        nvjpeg->DecodeBatchedPreAllocate(engine->handle, engine->state, (int)engine->most, (int)width,
                                         (int)height, ST_NVJPEG_CSS_444, ST_NVJPEG_OUTPUT_YUV);
    engine->width = width;
    engine->height = height;
}

/* Passes `count` images, starting with image `from`, to the engines. One status covers them all. */
static bool hand_over(struct st_jpeg_engine *engine, uint32_t from, uint32_t count)
{
    const struct st_nvjpeg *nvjpeg = &engine->nvjpeg;
    if (engine->batch != count) {
        engine->batch = 0;
        if (nvjpeg->DecodeBatchedInitialize(engine->handle, engine->state, (int)count, 1,
                                            ST_NVJPEG_OUTPUT_YUV))
            return false;
        engine->batch = count;
    }
    return !(engine->params
                 ? nvjpeg->DecodeBatchedEx(engine->handle, engine->state, engine->data + from,
                                           engine->length + from, engine->to + from,
                                           engine->params + from, engine->stream)
                 : nvjpeg->DecodeBatched(engine->handle, engine->state, engine->data + from,
                                         engine->length + from, engine->to + from, engine->stream));
}

/* Passes on as many of the images as the library accepts. One that it refuses fails the call for those
 * after it, and the status does not say which it was: then they are passed on in halves. */
static void pass_on(struct st_jpeg_engine *engine, uint32_t from, uint32_t count)
{
    const struct st_cuda *cuda = engine->device->cuda;
    const bool all = hand_over(engine, from, count);
    const uint32_t half = count / 2;
    for (uint32_t k = from; k < from + count; k++)
        engine->begun[k] = all;
    if (all || !half)
        return;
    /* The state cannot be used again before those that were begun are done. */
    if (!cuda->StreamSynchronize(engine->stream))
        pass_on(engine, from, half);
    if (!cuda->StreamSynchronize(engine->stream))
        pass_on(engine, from + half, count - half);
}

static bool set_regions(struct st_jpeg_engine *engine, const struct st_jpeg_engine_image *image,
                        uint32_t count)
{
    for (uint32_t k = 0; engine->params && k < count; k++) {
        const struct st_region *region = &image[k].region;
        if (engine->nvjpeg.DecodeParamsSetROI(engine->params[k], (int)region->x, (int)region->y,
                                              (int)region->width, (int)region->height))
            return false;
    }
    return true;
}

static bool engine_regions(const struct st_jpeg_engine *engine)
{
    return engine->params;
}

/* Decides where the image is written: in pinned memory, of which `*used` bytes are in use, if there is
 * room. There, images have the same layout as on the device. */
static void stage_image(struct st_jpeg_engine *engine, uint32_t k,
                        const struct st_jpeg_engine_image *image, uint64_t *used)
{
    const bool fits = image->size <= engine->pinned.bytes - *used;
    engine->staged[k] = fits ? engine->pinned.memory + *used : NULL;
    engine->to[k] = (struct st_nvjpeg_image){0};
    for (uint32_t c = 0; c < image->components; c++) {
        const uint64_t at = image->plane[c].at;
        engine->to[k].channel[c] =
            fits ? engine->staged[k] + (at - image->at) : (unsigned char *)(uintptr_t)at;
        engine->to[k].pitch[c] = image->plane[c].stride;
    }
    *used += fits ? image->size : 0;
}

static bool is_pinned(const struct st_jpeg_pinned *pinned, const uint8_t *data)
{
    return pinned->memory && data >= pinned->memory && data < pinned->memory + pinned->bytes;
}

/* Copies the file to pinned memory, if it is not there and there is room. */
static void stage_file(struct st_jpeg_engine *engine, uint32_t k, struct st_bytes file, uint64_t *used)
{
    const struct st_jpeg_pinned *pinned = &engine->pinned;
    engine->data[k] = file.data;
    engine->length[k] = file.size;
    if (is_pinned(pinned, file.data) || file.size > pinned->bytes - *used)
        return;
    engine->data[k] = memcpy(pinned->memory + *used, file.data, file.size);
    const uint64_t after = st_align(*used + file.size, ST_CACHE_LINE);
    *used = after < pinned->bytes ? after : pinned->bytes;
}

/* Queues the copies of what the engines write to pinned memory: one for images that are neighbours. */
static bool bring_staged(struct st_jpeg_engine *engine, const struct st_jpeg_engine_image *image,
                         uint32_t count)
{
    const struct st_cuda *cuda = engine->device->cuda;
    for (uint32_t k = 0, next; k < count; k = next) {
        uint64_t bytes = image[k].size;
        for (next = k + 1; next < count && engine->staged[k] && engine->staged[next] &&
                           image[next].at == image[k].at + bytes;
             next++)
            bytes += image[next].size;
        if (engine->staged[k] &&
            cuda->MemcpyHtoDAsync(image[k].at, engine->staged[k], bytes, engine->stream))
            return false;
    }
    return true;
}

static void engine_start(struct st_jpeg_engine *engine, struct st_jpeg_engine_image *image,
                         uint32_t count, uint64_t used)
{
    const struct st_cuda *cuda = engine->device->cuda;
    struct st_cuda_inside inside;
    for (uint32_t k = 0; k < count; k++) {
        engine->begun[k] = false;
        stage_image(engine, k, &image[k], &used);
    }
    for (uint32_t k = 0; k < count; k++)
        stage_file(engine, k, image[k].bytes, &used);
    if (st_cuda_enter(&inside, cuda, engine->device->context))
        return;
    pthread_mutex_lock(&engine->device->engine_turn);
    expect(engine, image, count);
    if (set_regions(engine, image, count))
        pass_on(engine, 0, count);
    pthread_mutex_unlock(&engine->device->engine_turn);
    /* Without the event, nobody could tell when the engines have stopped writing. */
    if (!bring_staged(engine, image, count) || cuda->EventRecord(engine->done, engine->stream)) {
        cuda->StreamSynchronize(engine->stream);
        for (uint32_t k = 0; k < count; k++)
            engine->begun[k] = false;
    }
    st_cuda_leave(&inside);
}

static void engine_finish(struct st_jpeg_engine *engine, struct st_jpeg_engine_image *image,
                          uint32_t count)
{
    const struct st_cuda *cuda = engine->device->cuda;
    struct st_cuda_inside inside;
    bool there = false;
    if (!st_cuda_enter(&inside, cuda, engine->device->context)) {
        there = !cuda->EventSynchronize(engine->done);
        st_cuda_leave(&inside);
    }
    for (uint32_t k = 0; k < count; k++)
        image[k].there = there && engine->begun[k];
}

/* ---- memory -------------------------------------------------------------------------------------- */

static uint64_t engine_take(struct st_device *base, uint64_t bytes)
{
    struct st_gpu_device *device = st_gpu_device(base);
    struct st_cuda_inside inside;
    uint64_t memory = 0;
    if (st_cuda_enter(&inside, device->cuda, device->context))
        return 0;
    if (!memory_to_spare(device->cuda, bytes) || device->cuda->MemAlloc(&memory, bytes))
        memory = 0;
    st_cuda_leave(&inside);
    return memory;
}

static void engine_give(struct st_device *base, uint64_t memory)
{
    struct st_gpu_device *device = st_gpu_device(base);
    struct st_cuda_inside inside;
    if (!memory || st_cuda_enter(&inside, device->cuda, device->context))
        return;
    device->cuda->MemFree(memory);
    st_cuda_leave(&inside);
}

const struct st_jpeg_engine_kind st_jpeg_engine_nvjpeg = {
    .name = "nvjpeg",
    .open = engine_open,
    .close = engine_close,
    .regions = engine_regions,
    .takes = engine_takes,
    .start = engine_start,
    .finish = engine_finish,
    .take = engine_take,
    .give = engine_give,
};
