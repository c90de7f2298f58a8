/* jpeg_hardware.c - the JPEG hardware of a GPU, used through nvJPEG's hardware backend
 *
 * nvJPEG reads the headers, and the hardware decodes to planes of Y, Cb and Cr. On an H200 these are
 * libjpeg's own samples: 382 million were compared, of 841 files of all kinds that are taken here, and
 * none differed. RGB would not be equal, because nvJPEG repeats chroma samples where libjpeg
 * interpolates them. The hardware does not report damaged data.
 *
 * The hardware ignores stream order at the start (the first images of a call are written at once,
 * whatever is queued in the stream), but obeys it at the end.
 *
 * For each image nvJPEG copies the file to the device and three planes out of its own memory. Copies
 * within the device are made by its multiprocessors: beside a training step they wait for blocks of its
 * kernels to end, and nvJPEG spins meanwhile (with blocks of 100 us, 490 us of CPU time per image on an
 * H200, and 2,000 images/s). Copies to and from pinned host memory are made by the copy engines, which
 * do not wait for kernels (43 us, 21,600 images/s). So nvJPEG writes planes to pinned memory, from where
 * one more copy brings a chunk's images back. Files are passed in pinned memory too: the driver copies
 * from pageable memory itself, and others wait meanwhile (43 instead of 9 us per file).
 *
 * The hardware decodes whole images, but only the region that is needed is copied: half of the bytes,
 * for the usual random crops, and a step's kernels are delayed less.
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
    FREE_PART = 10,          /* this part of the device's memory is left to the training program */
};

struct st_jpeg_hw {
    struct st_gpu_device *device;
    struct st_nvjpeg nvjpeg;
    struct nvjpegHandle *handle;
    struct nvjpegJpegState *state;
    struct CUstream_st *stream;
    struct CUevent_st *done;
    struct st_jpeg_pinned pinned; /* {0}: none could be allocated */
    uint32_t batch;               /* number of images that the state is set up for */
    uint64_t width, height;       /* the library's memory has been requested for images of this size */
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

/* Whether there is memory for the hardware without taking what a training step may still need: it is
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
    return st_fail(err, STOKER_ECANCELED, "the loader was closed before its JPEG hardware had started");
}

static int open_library(struct st_jpeg_hw *hw, const struct st_flag *unwanted, struct stoker_error *err)
{
    const struct st_nvjpeg *nvjpeg = &hw->nvjpeg;
    unsigned decoders = 0, cores = 0;
    int rc = go_on(unwanted, err);
    if (!rc)
        rc = st_nvjpeg_load(&hw->nvjpeg, NULL, err);
    if (!rc)
        rc = go_on(unwanted, err);
    if (rc)
        return rc;
    int status = nvjpeg->CreateEx(ST_NVJPEG_BACKEND_HARDWARE, NULL, NULL, 0, &hw->handle);
    if (status) {
        hw->handle = NULL;
        return fail(status, "this GPU has no usable JPEG hardware", err);
    }
    if (nvjpeg->GetHardwareDecoderInfo &&
        nvjpeg->GetHardwareDecoderInfo(hw->handle, &decoders, &cores) == ST_NVJPEG_SUCCESS && !decoders)
        return st_fail(err, STOKER_EUNSUPPORTED, "this GPU has no JPEG hardware");
    rc = go_on(unwanted, err);
    if (rc)
        return rc;
    status = nvjpeg->JpegStateCreate(hw->handle, &hw->state);
    return status ? fail(status, "preparing the hardware", err) : STOKER_OK;
}

static int open_stream(struct st_jpeg_hw *hw, struct stoker_error *err)
{
    const struct st_cuda *cuda = hw->device->cuda;
    int least, greatest;
    int result = cuda->CtxGetStreamPriorityRange(&least, &greatest);
    if (!result)
        result = cuda->StreamCreateWithPriority(&hw->stream, ST_CU_STREAM_NON_BLOCKING, greatest);
    if (!result)
        result = cuda->EventCreate(&hw->done, ST_CU_EVENT_DISABLE_TIMING | ST_CU_EVENT_BLOCKING_SYNC);
    return result
               ? st_cuda_fail(cuda, hw->device->base.ordinal, result, err, "preparing the JPEG hardware")
               : STOKER_OK;
}

/* Without it, images are still decoded, but more slowly. */
static void open_pinned(struct st_jpeg_hw *hw, uint64_t bytes)
{
    void *memory;
    if (bytes && !hw->device->cuda->MemHostAlloc(&memory, bytes, ST_CU_HOST_PORTABLE)) {
        hw->pinned.memory = memory;
        hw->pinned.bytes = bytes;
    }
}

static void close_regions(struct st_jpeg_hw *hw)
{
    for (uint32_t k = 0; hw->params && k < hw->most; k++)
        if (hw->params[k])
            hw->nvjpeg.DecodeParamsDestroy(hw->params[k]);
    free(hw->params);
    hw->params = NULL;
}

/* Without it, whole images are decoded. */
static void open_regions(struct st_jpeg_hw *hw)
{
    const struct st_nvjpeg *nvjpeg = &hw->nvjpeg;
    if (!nvjpeg->DecodeParamsCreate || !nvjpeg->DecodeParamsDestroy ||
        !nvjpeg->DecodeParamsSetOutputFormat || !nvjpeg->DecodeParamsSetROI || !nvjpeg->DecodeBatchedEx)
        return;
    hw->params = st_calloc(hw->most, sizeof *hw->params);
    for (uint32_t k = 0; hw->params && k < hw->most; k++)
        if (nvjpeg->DecodeParamsCreate(hw->handle, &hw->params[k]) ||
            nvjpeg->DecodeParamsSetOutputFormat(hw->params[k], ST_NVJPEG_OUTPUT_YUV))
            close_regions(hw);
    if (!hw->params)
        return;
    const struct st_jpeg_probe probe = {.nvjpeg = nvjpeg,
                                        .cuda = hw->device->cuda,
                                        .handle = hw->handle,
                                        .state = hw->state,
                                        .params = hw->params[0],
                                        .stream = hw->stream,
                                        .memory = hw->pinned.memory,
                                        .bytes = hw->pinned.bytes};
    if (!st_jpeg_probe_regions(&probe))
        close_regions(hw);
}

/* Also called after an incomplete open. */
static void hw_close(struct st_jpeg_hw *hw)
{
    const struct st_cuda *cuda = hw->device->cuda;
    const struct st_nvjpeg *nvjpeg = &hw->nvjpeg;
    struct st_cuda_inside inside;
    if (!st_cuda_enter(&inside, cuda, hw->device->context)) {
        close_regions(hw);
        if (hw->state)
            nvjpeg->JpegStateDestroy(hw->state);
        if (hw->handle)
            nvjpeg->Destroy(hw->handle);
        if (hw->done)
            cuda->EventDestroy(hw->done);
        if (hw->stream)
            cuda->StreamDestroy(hw->stream);
        if (hw->pinned.memory)
            cuda->MemFreeHost(hw->pinned.memory);
        st_cuda_leave(&inside);
    }
    st_nvjpeg_unload(&hw->nvjpeg);
    free(hw->data);
    free(hw->length);
    free(hw->to);
    free(hw->params);
    free(hw->staged);
    free(hw->begun);
    free(hw);
}

static int hw_open(struct st_jpeg_hw **out, struct st_device *base, uint32_t most,
                   struct st_jpeg_pinned *pinned, const struct st_flag *unwanted,
                   struct stoker_error *err)
{
    struct st_gpu_device *device = st_gpu_device(base);
    struct st_cuda_inside inside;
    struct st_jpeg_hw *hw = st_calloc(1, sizeof *hw);
    if (!hw)
        return st_fail(err, STOKER_ENOMEM, "no memory for the JPEG hardware");
    hw->device = device;
    hw->most = most;
    hw->data = st_calloc(most, sizeof *hw->data);
    hw->length = st_calloc(most, sizeof *hw->length);
    hw->to = st_calloc(most, sizeof *hw->to);
    hw->staged = st_calloc(most, sizeof *hw->staged);
    hw->begun = st_calloc(most, sizeof *hw->begun);
    int rc = STOKER_OK;
    if (!hw->data || !hw->length || !hw->to || !hw->staged || !hw->begun)
        rc = st_fail(err, STOKER_ENOMEM, "no memory for the JPEG hardware");
    else if (st_cuda_enter(&inside, device->cuda, device->context))
        rc = st_fail(err, STOKER_EUNSUPPORTED, "the GPU's context cannot be used for its JPEG hardware");
    else {
        rc = open_library(hw, unwanted, err);
        if (!rc)
            rc = open_stream(hw, err);
        if (!rc)
            rc = go_on(unwanted, err);
        if (!rc) {
            open_pinned(hw, pinned->bytes);
            rc = go_on(unwanted, err);
        }
        if (!rc)
            open_regions(hw); /* uses the pinned memory */
        st_cuda_leave(&inside);
    }
    if (rc) {
        hw_close(hw);
        return rc;
    }
    *pinned = hw->pinned;
    *out = hw;
    return STOKER_OK;
}

/* ---- decoding ------------------------------------------------------------------------------------ */

/* Whether the symbols are those that baseline defines. libjpeg, and so our decoder, gives a meaning to
 * others too (a size of 0 ends the block after any run but 15; differences of up to 15 bits): what the
 * hardware makes of these is unknown. */
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
static bool hw_takes(const struct st_jpeg_frame *frame)
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
 * not tried again for this size. None of its images are being decoded. */
static void expect(struct st_jpeg_hw *hw, const struct st_jpeg_hw_image *image, uint32_t count)
{
    const struct st_nvjpeg *nvjpeg = &hw->nvjpeg;
    uint64_t width = EXPECTED_SIDE, height = EXPECTED_SIDE;
    for (uint32_t k = 0; k < count; k++) {
        width = at_least(width, (uint64_t)image[k].plane[0].width);
        height = at_least(height, (uint64_t)image[k].plane[0].height);
    }
    width = width > hw->width ? width : hw->width;
    height = height > hw->height ? height : hw->height;
    if ((width == hw->width && height == hw->height) || width * height > EXPECTED_MOST)
        return;
    if (nvjpeg->DecodeBatchedPreAllocate &&
        memory_to_spare(hw->device->cuda, width * height * PIXEL_BYTES))
        nvjpeg->DecodeBatchedPreAllocate(hw->handle, hw->state, (int)hw->most, (int)width, (int)height,
                                         ST_NVJPEG_CSS_444, ST_NVJPEG_OUTPUT_YUV);
    hw->width = width;
    hw->height = height;
}

/* Passes `count` images, starting with image `from`, to the hardware. One status covers them all. */
static bool hand_over(struct st_jpeg_hw *hw, uint32_t from, uint32_t count)
{
    const struct st_nvjpeg *nvjpeg = &hw->nvjpeg;
    if (hw->batch != count) {
        hw->batch = 0;
        if (nvjpeg->DecodeBatchedInitialize(hw->handle, hw->state, (int)count, 1, ST_NVJPEG_OUTPUT_YUV))
            return false;
        hw->batch = count;
    }
    return !(hw->params
                 ? nvjpeg->DecodeBatchedEx(hw->handle, hw->state, hw->data + from, hw->length + from,
                                           hw->to + from, hw->params + from, hw->stream)
                 : nvjpeg->DecodeBatched(hw->handle, hw->state, hw->data + from, hw->length + from,
                                         hw->to + from, hw->stream));
}

/* Passes on as many of the images as the library accepts. One that it refuses fails the call for those
 * after it, and the status does not say which it was: then they are passed on in halves. */
static void pass_on(struct st_jpeg_hw *hw, uint32_t from, uint32_t count)
{
    const struct st_cuda *cuda = hw->device->cuda;
    const bool all = hand_over(hw, from, count);
    const uint32_t half = count / 2;
    for (uint32_t k = from; k < from + count; k++)
        hw->begun[k] = all;
    if (all || !half)
        return;
    /* The state cannot be used again before those that were begun are done. */
    if (!cuda->StreamSynchronize(hw->stream))
        pass_on(hw, from, half);
    if (!cuda->StreamSynchronize(hw->stream))
        pass_on(hw, from + half, count - half);
}

static bool set_regions(struct st_jpeg_hw *hw, const struct st_jpeg_hw_image *image, uint32_t count)
{
    for (uint32_t k = 0; hw->params && k < count; k++) {
        const struct st_region *region = &image[k].region;
        if (hw->nvjpeg.DecodeParamsSetROI(hw->params[k], (int)region->x, (int)region->y,
                                          (int)region->width, (int)region->height))
            return false;
    }
    return true;
}

static bool hw_regions(const struct st_jpeg_hw *hw) { return hw->params; }

/* Decides where the image is written: in pinned memory, of which `*used` bytes are in use, if there is
 * room. There, images have the same layout as on the device. */
static void stage_image(struct st_jpeg_hw *hw, uint32_t k, const struct st_jpeg_hw_image *image,
                        uint64_t *used)
{
    const bool fits = image->size <= hw->pinned.bytes - *used;
    hw->staged[k] = fits ? hw->pinned.memory + *used : NULL;
    hw->to[k] = (struct st_nvjpeg_image){0};
    for (uint32_t c = 0; c < image->components; c++) {
        const uint64_t at = image->plane[c].at;
        hw->to[k].channel[c] = fits ? hw->staged[k] + (at - image->at) : (unsigned char *)(uintptr_t)at;
        hw->to[k].pitch[c] = image->plane[c].stride;
    }
    *used += fits ? image->size : 0;
}

static bool is_pinned(const struct st_jpeg_pinned *pinned, const uint8_t *data)
{
    return pinned->memory && data >= pinned->memory && data < pinned->memory + pinned->bytes;
}

/* Copies the file to pinned memory, if it is not there and there is room. */
static void stage_file(struct st_jpeg_hw *hw, uint32_t k, struct st_bytes file, uint64_t *used)
{
    const struct st_jpeg_pinned *pinned = &hw->pinned;
    hw->data[k] = file.data;
    hw->length[k] = file.size;
    if (is_pinned(pinned, file.data) || file.size > pinned->bytes - *used)
        return;
    hw->data[k] = memcpy(pinned->memory + *used, file.data, file.size);
    const uint64_t after = st_align(*used + file.size, ST_CACHE_LINE);
    *used = after < pinned->bytes ? after : pinned->bytes;
}

/* Queues the copies of what the hardware writes to pinned memory: one for images that are neighbours. */
static bool bring_staged(struct st_jpeg_hw *hw, const struct st_jpeg_hw_image *image, uint32_t count)
{
    const struct st_cuda *cuda = hw->device->cuda;
    for (uint32_t k = 0, next; k < count; k = next) {
        uint64_t bytes = image[k].size;
        for (next = k + 1;
             next < count && hw->staged[k] && hw->staged[next] && image[next].at == image[k].at + bytes;
             next++)
            bytes += image[next].size;
        if (hw->staged[k] && cuda->MemcpyHtoDAsync(image[k].at, hw->staged[k], bytes, hw->stream))
            return false;
    }
    return true;
}

static void hw_start(struct st_jpeg_hw *hw, struct st_jpeg_hw_image *image, uint32_t count,
                     uint64_t used)
{
    const struct st_cuda *cuda = hw->device->cuda;
    struct st_cuda_inside inside;
    for (uint32_t k = 0; k < count; k++) {
        hw->begun[k] = false;
        stage_image(hw, k, &image[k], &used);
    }
    for (uint32_t k = 0; k < count; k++)
        stage_file(hw, k, image[k].bytes, &used);
    if (st_cuda_enter(&inside, cuda, hw->device->context))
        return;
    pthread_mutex_lock(&hw->device->jpeg_turn);
    expect(hw, image, count);
    if (set_regions(hw, image, count))
        pass_on(hw, 0, count);
    pthread_mutex_unlock(&hw->device->jpeg_turn);
    /* Without the event, nobody could tell when the hardware has stopped writing. */
    if (!bring_staged(hw, image, count) || cuda->EventRecord(hw->done, hw->stream)) {
        cuda->StreamSynchronize(hw->stream);
        for (uint32_t k = 0; k < count; k++)
            hw->begun[k] = false;
    }
    st_cuda_leave(&inside);
}

static void hw_finish(struct st_jpeg_hw *hw, struct st_jpeg_hw_image *image, uint32_t count)
{
    const struct st_cuda *cuda = hw->device->cuda;
    struct st_cuda_inside inside;
    bool there = false;
    if (!st_cuda_enter(&inside, cuda, hw->device->context)) {
        there = !cuda->EventSynchronize(hw->done);
        st_cuda_leave(&inside);
    }
    for (uint32_t k = 0; k < count; k++)
        image[k].there = there && hw->begun[k];
}

/* ---- memory -------------------------------------------------------------------------------------- */

static uint64_t hw_take(struct st_device *base, uint64_t bytes)
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

static void hw_give(struct st_device *base, uint64_t memory)
{
    struct st_gpu_device *device = st_gpu_device(base);
    struct st_cuda_inside inside;
    if (!memory || st_cuda_enter(&inside, device->cuda, device->context))
        return;
    device->cuda->MemFree(memory);
    st_cuda_leave(&inside);
}

const struct st_jpeg_hw_kind st_jpeg_hw_nvjpeg = {
    .name = "nvjpeg",
    .open = hw_open,
    .close = hw_close,
    .regions = hw_regions,
    .takes = hw_takes,
    .start = hw_start,
    .finish = hw_finish,
    .take = hw_take,
    .give = hw_give,
};
