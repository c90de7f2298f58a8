/* webp.c - WebP by libwebp
 *
 * Of an animation, the first frame is shown on an empty, black canvas, like in Pillow; alpha is dropped.
 * libwebp cuts out the region. Upsampling uses the neighbours of a pixel, so a border is decoded around
 * it: the bytes are the same as those of a crop of the whole image.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/budget.h"
#include "codec/codec.h"
#include "codec/exif.h"
#include "codec/to_rgb.h"

#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

enum { BORDER = 2, FORMAT_LOSSLESS = 2 };

/* The first frame of a file, and its position on the canvas. */
struct frame {
    WebPDemuxer *demuxer;
    WebPIterator at;
    uint32_t canvas_width, canvas_height;
};

static bool probe(const uint8_t *data, size_t size)
{
    return size >= 16 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBPVP8", 7) == 0 &&
           (data[15] == ' ' || data[15] == 'L' || data[15] == 'X');
}

static int fail_status(VP8StatusCode status, struct stoker_error *err)
{
    switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return st_fail(err, STOKER_ENOMEM, "WebP: out of memory");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return st_fail(err, STOKER_EUNSUPPORTED, "WebP: uses a feature that libwebp does not support");
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return st_fail(err, STOKER_ECORRUPT, "WebP: truncated: data ends before the image does");
    default:
        return st_fail(err, STOKER_ECORRUPT, "WebP: the image data is damaged");
    }
}

static void frame_close(struct frame *frame)
{
    if (frame->demuxer) {
        WebPDemuxReleaseIterator(&frame->at);
        WebPDemuxDelete(frame->demuxer);
    }
}

static int fail_container(struct st_bytes in, struct stoker_error *err)
{
    const uint64_t stated = 8 + (uint64_t)st_le32(in.data + 4);
    if (stated > in.size)
        return st_fail(err, STOKER_ECORRUPT, "WebP: truncated: data ends at byte %zu of %llu",
                       in.size, (unsigned long long)stated);
    return st_fail(err, STOKER_ECORRUPT, "WebP: the chunks of the file are damaged");
}

static int frame_open(struct frame *frame, struct st_bytes in, struct stoker_error *err)
{
    WebPBitstreamFeatures features;
    *frame = (struct frame){0};
    const VP8StatusCode status = WebPGetFeatures(in.data, in.size, &features);
    if (status != VP8_STATUS_OK)
        return fail_status(status, err);
    frame->demuxer = WebPDemux(&(WebPData){in.data, in.size});
    if (!frame->demuxer)
        return fail_container(in, err);
    frame->canvas_width = WebPDemuxGetI(frame->demuxer, WEBP_FF_CANVAS_WIDTH);
    frame->canvas_height = WebPDemuxGetI(frame->demuxer, WEBP_FF_CANVAS_HEIGHT);
    if (!WebPDemuxGetFrame(frame->demuxer, 1, &frame->at)) {
        frame_close(frame);
        return st_fail(err, STOKER_ECORRUPT, "WebP: the animation has no frames");
    }
    return STOKER_OK;
}

static uint32_t orientation(const WebPDemuxer *demuxer)
{
    WebPChunkIterator chunk;
    uint32_t found = 1;
    if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk)) {
        found = st_exif_orientation(chunk.chunk.bytes, chunk.chunk.size);
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    return found;
}

static int header(void *state, struct st_bytes in, struct st_header *out, struct stoker_error *err)
{
    struct frame frame;
    (void)state;
    const int rc = frame_open(&frame, in, err);
    if (rc < 0)
        return rc;
    /* Lossless images are decoded in full, to 4 bytes per pixel. */
    *out = (struct st_header){frame.canvas_width, frame.canvas_height, orientation(frame.demuxer), 1,
                              st_scratch_for(5, frame.canvas_width, frame.canvas_height)};
    frame_close(&frame);
    return STOKER_OK;
}

/* One dimension of a region with its border, starting at an even position, where libwebp can cut. */
static void widen(uint32_t from, uint32_t length, uint32_t limit, int *start, int *count)
{
    const uint32_t first = from < BORDER ? 0 : (from - BORDER) & ~1u;
    const uint32_t end = limit - from - length < BORDER ? limit : from + length + BORDER;
    *start = (int)first;
    *count = (int)(end - first);
}

/* Decodes a region of the frame (in the frame's coordinates). */
static int decode_frame(const struct frame *frame, const struct st_region *r, struct st_arena *arena,
                        struct st_view *out, struct stoker_error *err)
{
    WebPDecoderConfig config;
    struct st_view cut;
    if (!WebPInitDecoderConfig(&config))
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "WebP: the installed libwebp does not match the one this was built with");
    WebPDecoderOptions *options = &config.options;
    options->use_cropping = 1;
    widen(r->x, r->width, (uint32_t)frame->at.width, &options->crop_left, &options->crop_width);
    widen(r->y, r->height, (uint32_t)frame->at.height, &options->crop_top, &options->crop_height);
    const int rc =
        st_rgb_take(&cut, arena, (uint32_t)options->crop_width, (uint32_t)options->crop_height, err);
    if (rc < 0)
        return rc;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA =
        (WebPRGBABuffer){cut.data, (int)cut.stride, (size_t)cut.stride * (size_t)cut.height};
    /* For a lossless image, libwebp holds all pixels in memory that it allocates itself. */
    const bool lossless = WebPGetFeatures(frame->at.fragment.bytes, frame->at.fragment.size,
                                          &config.input) == VP8_STATUS_OK &&
                          config.input.format == FORMAT_LOSSLESS;
    const uint64_t foreign =
        lossless ? st_scratch_for(4, (uint32_t)frame->at.width, (uint32_t)frame->at.height) : 0;
    if (!st_account_allows(arena->account, foreign))
        return fail_status(VP8_STATUS_OUT_OF_MEMORY, err);
    st_account_add(arena->account, foreign);
    const VP8StatusCode status = WebPDecode(frame->at.fragment.bytes, frame->at.fragment.size, &config);
    st_account_sub(arena->account, foreign);
    if (status != VP8_STATUS_OK)
        return fail_status(status, err);
    *out = (struct st_view){st_row(&cut, (int32_t)r->y - options->crop_top) +
                                3 * ((int32_t)r->x - options->crop_left),
                            cut.stride, (int32_t)r->width, (int32_t)r->height, 3};
    return STOKER_OK;
}

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* A frame smaller than its canvas: its part of the region, on black. */
static int decode_on_canvas(const struct frame *frame, const struct st_region *r, struct st_arena *arena,
                            struct st_view *out, struct stoker_error *err)
{
    const uint32_t left = (uint32_t)frame->at.x_offset, top = (uint32_t)frame->at.y_offset;
    const uint32_t x0 = max_u32(r->x, left), y0 = max_u32(r->y, top);
    const uint32_t x1 = min_u32(r->x + r->width, left + (uint32_t)frame->at.width);
    const uint32_t y1 = min_u32(r->y + r->height, top + (uint32_t)frame->at.height);
    int rc = st_rgb_take(out, arena, r->width, r->height, err);
    if (rc < 0)
        return rc;
    memset(out->data, 0, (size_t)out->stride * r->height);
    if (x0 >= x1 || y0 >= y1)
        return STOKER_OK;
    struct st_view part;
    rc = decode_frame(frame, &(struct st_region){x0 - left, y0 - top, x1 - x0, y1 - y0}, arena, &part,
                      err);
    if (rc < 0)
        return rc;
    for (int32_t y = 0; y < part.height; y++)
        memcpy(st_row(out, y + (int32_t)(y0 - r->y)) + 3 * (size_t)(x0 - r->x), st_row(&part, y),
               3 * (size_t)part.width);
    return STOKER_OK;
}

static int decode(void *state, struct st_bytes in, const struct st_decode *how, struct st_arena *arena,
                  struct st_view *out, struct stoker_error *err)
{
    struct frame frame;
    (void)state;
    int rc = frame_open(&frame, in, err);
    if (rc < 0)
        return rc;
    const bool covers = frame.at.x_offset == 0 && frame.at.y_offset == 0 &&
                        (uint32_t)frame.at.width == frame.canvas_width &&
                        (uint32_t)frame.at.height == frame.canvas_height;
    rc = (covers ? decode_frame : decode_on_canvas)(&frame, &how->region, arena, out, err);
    frame_close(&frame);
    return rc;
}

static const char *library(void) { return "libwebp " ST_WEBP_VERSION; }

const struct st_codec st_codec_webp = {
    .name = "WebP",
    .probe = probe,
    .header = header,
    .decode = decode,
    .based_on = library,
};
