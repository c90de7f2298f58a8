/* tiff.c - TIFF: the codec, and uncompressed pixels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/tiff_sink.h"

#include <string.h>
#include <tiffio.h>

static bool probe(const uint8_t *data, size_t size)
{
    return size >= 4 && (memcmp(data, "II*\0", 4) == 0 || memcmp(data, "MM\0*", 4) == 0 ||
                         memcmp(data, "II+\0", 4) == 0 || memcmp(data, "MM\0+", 4) == 0);
}

static int header(void *state, struct st_bytes in, struct st_header *out, struct stoker_error *err)
{
    struct st_tiff t;
    (void)state;
    const int rc = st_tiff_parse(in, &t, err);
    const bool on_side = t.orientation >= 5;
    *out = (struct st_header){on_side ? t.height : t.width, on_side ? t.width : t.height, 1, 1,
                              st_scratch_for(4, t.width, t.height)}; /* a strip may be all of it */
    return rc;
}

/* Strips and tiles as stored in the file. */
struct raw {
    struct st_bytes in;
    struct st_tiff *tiff;
    struct st_tiff_sink *sink;
    struct stoker_error *err;
    struct st_packing packing; /* of a block's rows: of one plane, if planes are separate */
};

/* Pillow treats each plane as bytes, whatever its depth, and refuses modes without a letter. */
static bool packing_of_plane(struct raw *w)
{
    struct st_tiff *t = w->tiff;
    w->packing = t->packing;
    if (!t->separate)
        return true;
    if (t->bands > 1) {
        w->packing = (struct st_packing){.bits = 8};
        return t->packing.kind != ST_PACK_PREMULTIPLIED && t->bands > 2 &&
               t->packing.bits == t->bits * t->bands;
    }
    switch (t->packing.kind) {
    case ST_PACK_INT:
        if (t->packing.bits == 16 && !t->packing.is_signed)
            return false;
        w->packing.bits = 32;
        break;
    case ST_PACK_FLOAT:
        break;
    case ST_PACK_TABLE:
    case ST_PACK_BYTES:
        if (t->packing.bits > 8)
            return false;
        if (t->photometric == 3 || t->packing.bits > 1)
            w->packing.bits = 8;
        if (t->photometric != 3)
            st_grey_table(t->table, w->packing.bits, false);
        break;
    default:
        return false;
    }
    w->packing.big_endian = false;
    w->sink->packing = w->packing;
    w->sink->packing.table = t->table;
    w->sink->reversed = NULL;
    return true;
}

static uint64_t blocks_across(const struct st_tiff *t)
{
    return (t->width + t->block_width - 1) / t->block_width;
}

static uint64_t blocks_down(const struct st_tiff *t)
{
    return (t->height + t->block_height - 1) / t->block_height;
}

/* The offset of a block. Surplus offsets start again at the first block; Pillow paints them in file
 * order, so that the farthest one is visible. If each covers the whole image, it uses the last one
 * listed. */
static int64_t offset_of(const struct st_tiff *t, uint64_t block)
{
    const uint64_t blocks = blocks_across(t) * blocks_down(t);
    if (t->separate)
        return st_tiff_value(t, &t->offsets, block);
    if (t->block_width == t->width && t->block_height == t->height)
        return st_tiff_value(t, &t->offsets, t->offsets.count - 1);
    int64_t farthest = st_tiff_value(t, &t->offsets, block);
    for (uint64_t i = block + blocks; i < t->offsets.count; i += blocks) {
        const int64_t offset = st_tiff_value(t, &t->offsets, i);
        farthest = offset > farthest ? offset : farthest;
    }
    return farthest;
}

/* Paints the part of a block that lies in the region. A truncated block is always an error: a bad file
 * is refused whatever part of it is needed. */
static int raw_block(struct raw *w, uint64_t index, uint32_t plane, uint64_t x, uint64_t y)
{
    const struct st_tiff *t = w->tiff;
    const uint64_t wide = x + t->block_width < t->width ? t->block_width : t->width - x;
    const uint64_t high = y + t->block_height < t->height ? t->block_height : t->height - y;
    const uint64_t row = st_packed_size(&w->packing, wide);
    uint64_t stride = row, bytes;
    if (x + t->block_width > t->width) /* a tile at the edge is stored in full */
        stride = t->block_width * (t->separate ? t->bits : t->packing.bits) / 8;
    const int64_t at = offset_of(t, index);
    if (stride < row)
        return st_fail(w->err, STOKER_ECORRUPT, "TIFF: invalid tile width of %llu columns",
                       (unsigned long long)t->block_width);
    if (at < 0 || (uint64_t)at > w->in.size || !st_mul(stride, high - 1, &bytes) ||
        !st_add(bytes, row, &bytes) || w->in.size - (uint64_t)at < bytes)
        return st_fail(w->err, STOKER_ECORRUPT,
                       "TIFF: the file ends inside the pixels at column %llu, row %llu",
                       (unsigned long long)x, (unsigned long long)y);
    const struct st_region *r = &w->sink->region;
    if (x >= (uint64_t)r->x + r->width || x + wide <= r->x || y >= (uint64_t)r->y + r->height ||
        y + high <= r->y)
        return STOKER_OK;
    for (uint64_t i = 0; i < high; i++) {
        const uint8_t *from = w->in.data + at + i * stride;
        if (w->sink->planes)
            st_tiff_put_plane(w->sink, plane, (uint32_t)x, (uint32_t)(y + i), (uint32_t)wide, from, 1,
                              0);
        else
            st_tiff_put(w->sink, (uint32_t)x, (uint32_t)(y + i), (uint32_t)wide, from);
    }
    return STOKER_OK;
}

/* Whether the file can contain what it announces; checked before memory is allocated. */
static int check_raw(struct st_bytes in, const struct st_tiff *t, struct stoker_error *err)
{
    const uint64_t width = t->block_width < t->width ? t->block_width : t->width;
    const uint64_t height = t->block_height < t->height ? t->block_height : t->height;
    const uint64_t bits = t->separate && t->packing.bits > 8 ? 8 : t->packing.bits;
    const uint64_t blocks =
        blocks_across(t) * blocks_down(t) * (t->separate && t->bands > 1 ? t->bands : 1);
    if (t->offsets.count < blocks || (t->separate && t->offsets.count > blocks))
        return st_fail(err, STOKER_ECORRUPT, "TIFF: %llu strips or tiles are needed, but there are %llu",
                       (unsigned long long)blocks, (unsigned long long)t->offsets.count);
    if (width * bits / 8 * height > in.size)
        return st_fail(err, STOKER_ECORRUPT, "TIFF: %u x %u pixels do not fit into a file of %zu bytes",
                       t->width, t->height, in.size);
    return STOKER_OK;
}

static int decode_raw(struct st_bytes in, struct st_tiff *t, struct st_tiff_sink *sink,
                      struct stoker_error *err)
{
    struct raw w = {.in = in, .tiff = t, .sink = sink, .err = err};
    if (!packing_of_plane(&w))
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "TIFF: uncompressed planes of %u bits and %u bands are not "
                       "supported",
                       t->bits, t->bands);
    const uint32_t planes = sink->planes ? t->bands : 1;
    const uint64_t across = blocks_across(t), down = blocks_down(t);
    for (uint32_t plane = 0; plane < planes; plane++)
        for (uint64_t row = 0; row < down; row++)
            for (uint64_t col = 0; col < across; col++) {
                const uint64_t index = (plane * down + row) * across + col;
                const int rc = raw_block(&w, index, plane, col * t->block_width, row * t->block_height);
                if (rc)
                    return rc;
            }
    return STOKER_OK;
}

static int decode(void *state, struct st_bytes in, const struct st_decode *how, struct st_arena *arena,
                  struct st_view *out, struct stoker_error *err)
{
    struct st_tiff t;
    struct st_tiff_sink sink;
    (void)state;
    int rc = st_tiff_parse(in, &t, err);
    const bool raw = t.compression == ST_TIFF_RAW;
    if (!rc && raw)
        rc = check_raw(in, &t, err);
    if (!rc)
        rc = st_tiff_sink_open(&sink, &t, how->region, arena, out, err);
    if (!rc)
        rc = raw ? decode_raw(in, &t, &sink, err) : st_tiff_decode_lib(in, &t, &sink, arena, err);
    if (!rc)
        st_tiff_sink_finish(&sink);
    return rc;
}

#define TEXT_OF(macro) TEXT(macro)
#define TEXT(words)    #words

static const char *library(void)
{
    return "libtiff " TEXT_OF(TIFFLIB_MAJOR_VERSION) "." TEXT_OF(TIFFLIB_MINOR_VERSION) "." TEXT_OF(
        TIFFLIB_MICRO_VERSION);
}

const struct st_codec st_codec_tiff = {
    .name = "TIFF",
    .probe = probe,
    .header = header,
    .decode = decode,
    .based_on = library,
};
