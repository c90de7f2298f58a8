/* pixels.c - uncompressed images in the caller's memory, all of one size
 *
 * Nothing is copied when the dataset is created: an epoch sees what the memory holds when it reads a
 * sample. Any layout is allowed, such as one plane per channel; images that are not height x width x
 * channels without gaps are rearranged sample by sample.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/kinds.h"

enum { IMAGE, ROW, PIXEL, CHANNEL }; /* the strides */

struct pixels {
    struct stoker_pixels own;
    uint64_t bytes;  /* size of an image without gaps */
    uint64_t span;   /* from an image's lowest address to one past its highest */
    uint64_t origin; /* offset of the first value from the lowest address */
    bool in_order;   /* no rearranging needed: an image is exactly its span */
    struct st_field fields[2];
};

static int32_t depth(const struct stoker_pixels *own) { return own->channels ? own->channels : 1; }

static uint64_t pixels_count(const void *self) { return ((const struct pixels *)self)->own.count; }

static int64_t pixels_label(const void *self, uint64_t sample)
{
    const struct pixels *pixels = self;
    return pixels->own.labels ? pixels->own.labels[sample] : 0;
}

/* An image's lowest address. */
static const uint8_t *place(const struct pixels *pixels, uint64_t sample)
{
    return pixels->own.data + (int64_t)sample * pixels->own.stride[IMAGE] - pixels->origin;
}

static int pixels_locate(const void *self, uint64_t sample, struct st_extent *out,
                         struct stoker_error *err)
{
    const struct pixels *pixels = self;
    (void)err;
    out->memory = place(pixels, sample);
    out->offset = 0;
    out->length = pixels->span;
    return 0;
}

static const struct st_field *pixels_fields(const void *self, uint32_t *count)
{
    *count = 2;
    return ((const struct pixels *)self)->fields;
}

/* Whether the bytes are in the caller's memory, and 64 more behind them, those of other images. */
static bool is_followed(const struct pixels *pixels, uint64_t sample, const uint8_t *at)
{
    const int64_t stride = pixels->own.stride[IMAGE];
    const uint64_t behind = stride < 0 ? sample : pixels->own.count - 1 - sample;
    uint64_t bytes;
    if (!st_mul(behind, stride < 0 ? -(uint64_t)stride : (uint64_t)stride, &bytes))
        return false;
    return at == place(pixels, sample) && bytes >= 64;
}

/* Copies one channel of a row to every `step`-th byte. */
static void spread(uint8_t *to, int64_t step, const uint8_t *from, int64_t stride, int64_t count)
{
    if (stride == 1 && step == 3)
        for (int64_t x = 0; x < count; x++)
            to[3 * x] = from[x];
    else
        for (int64_t x = 0; x < count; x++)
            to[x * step] = from[x * stride];
}

static void put_in_order(const struct stoker_pixels *own, const uint8_t *first, uint8_t *to)
{
    const int64_t channels = depth(own);
    for (int64_t y = 0; y < own->height; y++, to += own->width * channels)
        for (int64_t c = 0; c < channels; c++)
            spread(to + c, channels, first + y * own->stride[ROW] + c * own->stride[CHANNEL],
                   own->stride[PIXEL], own->width);
}

static int pixels_split(const void *self, uint64_t sample, struct st_bytes raw,
                        struct st_buffer *scratch, struct st_piece *pieces, struct stoker_error *err)
{
    const struct pixels *pixels = self;
    const struct stoker_pixels *own = &pixels->own;
    struct st_bytes bytes = {raw.data, pixels->bytes};
    if (!pixels->in_order) {
        if (!st_buffer_reserve(scratch, pixels->bytes))
            return st_fail(err, STOKER_ENOMEM, "out of memory for %llu bytes",
                           (unsigned long long)pixels->bytes);
        put_in_order(own, raw.data + pixels->origin, scratch->data);
        bytes.data = scratch->data;
    }
    pieces[0] = (struct st_piece){.bytes = bytes,
                                  .dtype = STOKER_DTYPE_U8,
                                  .ndim = own->channels ? 3 : 2,
                                  .shape = {own->height, own->width, own->channels},
                                  .followed = pixels->in_order && is_followed(pixels, sample, raw.data)};
    pieces[1] = (struct st_piece){.whole = pixels_label(self, sample)};
    return 0;
}

/* The caller owns the pixels and the labels. */
static void pixels_close(void *self) { (void)self; }

static const struct st_source st_source_pixels = {
    .scheme = "pixels",
    .self_size = sizeof(struct pixels),
    .count = pixels_count,
    .label = pixels_label,
    .name = st_name_by_number,
    .locate = pixels_locate,
    .fields = pixels_fields,
    .split = pixels_split,
    .close = pixels_close,
};

/* Computes an image's size and how far it extends around its first value; false on overflow. */
static bool measure(struct pixels *pixels)
{
    const struct stoker_pixels *own = &pixels->own;
    const uint64_t extent[] = {(uint64_t)own->height, (uint64_t)own->width, (uint64_t)depth(own)};
    uint64_t above = 0;
    if (!st_mul(extent[0], extent[1], &pixels->bytes) ||
        !st_mul(pixels->bytes, extent[2], &pixels->bytes) || pixels->bytes > INT64_MAX)
        return false;
    for (int k = 0; k < 3; k++) {
        const int64_t stride = own->stride[ROW + k];
        uint64_t reach;
        if (!st_mul(extent[k] - 1, stride < 0 ? -(uint64_t)stride : (uint64_t)stride, &reach) ||
            !st_add(stride < 0 ? pixels->origin : above, reach, stride < 0 ? &pixels->origin : &above))
            return false;
    }
    return st_add(above, pixels->origin, &pixels->span) && st_add(pixels->span, 1, &pixels->span) &&
           pixels->span <= INT64_MAX;
}

/* The stride of an axis of length 1 is irrelevant. */
static bool is_in_order(const struct stoker_pixels *own)
{
    const int64_t channels = depth(own);
    return (channels == 1 || own->stride[CHANNEL] == 1) &&
           (own->width == 1 || own->stride[PIXEL] == channels) &&
           (own->height == 1 || own->stride[ROW] == own->width * channels);
}

int st_dataset_from_pixels(struct stoker_dataset **out, const struct stoker_pixels *given,
                           struct stoker_error *err)
{
    struct pixels pixels = {.own = *given};
    if (given->height < 1 || given->width < 1 || given->channels < 0 || given->channels > 4 ||
        !measure(&pixels))
        return st_fail(
            err, STOKER_EINVAL,
            "pixels: width %lld, height %lld, channels %d: width and height must be at least 1, "
            "channels 0 to 4, and an image must fit into memory with the given strides",
            (long long)given->width, (long long)given->height, given->channels);
    if (!given->data && given->count)
        return st_fail(err, STOKER_EINVAL, "pixels: data is NULL, but count is %llu",
                       (unsigned long long)given->count);
    struct stoker_dataset *data = st_dataset_new(&st_source_pixels);
    if (!data)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a dataset");
    pixels.in_order = is_in_order(given);
    pixels.fields[0] = (struct st_field){.name = "image",
                                         .kind = ST_FIELD_IMAGE,
                                         .dtype = STOKER_DTYPE_U8,
                                         .ndim = given->channels ? 3 : 2,
                                         .shape = {given->height, given->width, given->channels}};
    pixels.fields[1] = (struct st_field){.name = "label", .kind = ST_FIELD_INT};
    *(struct pixels *)data->self = pixels;
    *out = data;
    return 0;
}
