/* tiff_tags.c - parses the first directory of a TIFF file and determines its pixel format
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/tiff_file.h"

#include <string.h>

enum {
    WIDTH = 256,
    HEIGHT = 257,
    BITS = 258,
    COMPRESSION = 259,
    PHOTOMETRIC = 262,
    FILL_ORDER = 266,
    STRIP_OFFSETS = 273,
    ORIENTATION = 274,
    SAMPLES = 277,
    ROWS_PER_STRIP = 278,
    PLANAR = 284,
    COLOUR_MAP = 320,
    TILE_WIDTH = 322,
    TILE_HEIGHT = 323,
    TILE_OFFSETS = 324,
    EXTRA_SAMPLES = 338,
    SAMPLE_FORMAT = 339,
    XMP = 700,
    WINDOWS_MEDIA = 0xbc01,
};
static const uint16_t wanted[] = {WIDTH,          HEIGHT,        BITS,          COMPRESSION,
                                  PHOTOMETRIC,    FILL_ORDER,    ORIENTATION,   SAMPLES,
                                  ROWS_PER_STRIP, PLANAR,        COLOUR_MAP,    TILE_WIDTH,
                                  TILE_HEIGHT,    TILE_OFFSETS,  EXTRA_SAMPLES, XMP,
                                  SAMPLE_FORMAT,  STRIP_OFFSETS, WINDOWS_MEDIA};
enum { WANTED = sizeof wanted / sizeof *wanted, SAMPLES_MAX = 6 };

struct directory {
    const struct st_tiff *tiff;
    struct st_tiff_tag tag[WANTED];
};

static uint64_t number(const struct st_tiff *t, const uint8_t *p, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)p[i] << 8 * (t->big_endian ? bytes - 1 - i : i);
    return value;
}

static uint32_t size_of_type(uint32_t type)
{
    static const uint8_t sizes[17] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};
    return type < sizeof sizes ? sizes[type] : 0;
}

static bool is_whole(const struct st_tiff_tag *tag)
{
    switch (tag->type) {
    case 3:
    case 4:
    case 6:
    case 8:
    case 9:
    case 13:
    case 16:
        return true;
    default:
        return false;
    }
}

int64_t st_tiff_value(const struct st_tiff *t, const struct st_tiff_tag *tag, uint64_t i)
{
    const uint32_t size = size_of_type(tag->type);
    const uint64_t value = number(t, tag->data + i * size, (int)size);
    switch (tag->type) {
    case 6:
        return (int8_t)value;
    case 8:
        return (int16_t)value;
    case 9:
        return (int32_t)value;
    default:
        return value > INT64_MAX ? INT64_MAX : (int64_t)value;
    }
}

static struct st_tiff_tag *tag_of(struct directory *d, uint32_t number_of_tag)
{
    for (size_t i = 0; i < WANTED; i++)
        if (wanted[i] == number_of_tag)
            return &d->tag[i];
    return NULL;
}

/* Reads the tags. A truncated directory keeps the tags before its end; of two equal tags the first
 * counts; tags are omitted if their values together exceed the size of the file. */
static void read_directory(struct st_bytes in, uint64_t at, bool large, struct directory *d)
{
    const struct st_tiff *t = d->tiff;
    const int count_size = large ? 8 : 2, offset_size = large ? 8 : 4, entry = large ? 20 : 12;
    uint64_t outside = 0;
    if (at > in.size || in.size - at < (uint64_t)count_size)
        return;
    uint64_t count = number(t, in.data + at, count_size);
    at += (uint64_t)count_size;
    for (; count > 0 && in.size - at >= (uint64_t)entry; count--, at += (uint64_t)entry) {
        const uint8_t *p = in.data + at, *data = p + entry - offset_size;
        const struct st_tiff_tag found = {.type = (uint32_t)number(t, p + 2, 2),
                                          .count = number(t, p + 4, offset_size)};
        struct st_tiff_tag *tag = tag_of(d, (uint32_t)number(t, p, 2));
        uint64_t size;
        if ((tag && tag->count) || size_of_type(found.type) == 0)
            continue;
        if (!st_mul(found.count, size_of_type(found.type), &size))
            size = UINT64_MAX / 2;
        if (size > (uint64_t)offset_size) {
            const uint64_t offset = number(t, data, offset_size);
            if (offset > INT64_MAX)
                continue;
            if (!st_add(outside, size, &outside))
                outside = UINT64_MAX;
            if (outside > in.size)
                continue;
            if (offset > in.size || in.size - offset < size)
                return;
            data = in.data + offset;
        }
        if (tag)
            *tag = (struct st_tiff_tag){found.type, found.count, data};
    }
}

/* A tag with one value; false if it is not an integer. */
static bool one(struct directory *d, uint32_t number_of_tag, int64_t absent, int64_t *out)
{
    const struct st_tiff_tag *tag = tag_of(d, number_of_tag);
    *out = absent;
    if (tag->count == 0)
        return true;
    if (!is_whole(tag))
        return false;
    *out = st_tiff_value(d->tiff, tag, 0);
    return true;
}

/* Up to SAMPLES_MAX values of a tag; returns their number, or -1 if they are not integers. */
static int several(struct directory *d, uint32_t number_of_tag, int64_t out[SAMPLES_MAX])
{
    const struct st_tiff_tag *tag = tag_of(d, number_of_tag);
    const int count = tag->count > SAMPLES_MAX ? SAMPLES_MAX : (int)tag->count;
    if (count > 0 && !is_whole(tag))
        return -1;
    for (int i = 0; i < count; i++)
        out[i] = st_tiff_value(d->tiff, tag, (uint64_t)i);
    return count;
}

/* Description of the samples, after normalising unusual encodings. */
struct samples {
    int64_t photometric, format, fill_order;
    int64_t count, bits; /* bits: the same for all samples */
    int extra;
    int64_t extras[SAMPLES_MAX];
};

/* Whether the first `count` values of a tag are the same integer, which is stored in *out; 1 if the tag
 * is missing. */
static bool all_same(struct directory *d, uint32_t number_of_tag, uint64_t count, int64_t *out)
{
    const struct st_tiff_tag *tag = tag_of(d, number_of_tag);
    if (!one(d, number_of_tag, 1, out))
        return false;
    for (uint64_t i = 1; i < tag->count && i < count; i++)
        if (st_tiff_value(d->tiff, tag, i) != *out)
            return false;
    return true;
}

static bool read_samples(struct directory *d, bool separate, struct samples *s)
{
    const bool whole = one(d, SAMPLES, 1, &s->count) && one(d, FILL_ORDER, 1, &s->fill_order) &&
                       one(d, PHOTOMETRIC, 0, &s->photometric) && tag_of(d, PHOTOMETRIC)->count <= 1;
    const bool one_format = all_same(d, SAMPLE_FORMAT, UINT64_MAX, &s->format);
    int64_t given = tag_of(d, BITS)->count ? (int64_t)tag_of(d, BITS)->count : 1;
    s->extra = several(d, EXTRA_SAMPLES, s->extras);
    if (separate && s->extra > 0 && tag_of(d, EXTRA_SAMPLES)->count <= SAMPLES_MAX) {
        int64_t any = 0;
        for (int i = 0; i < s->extra; i++)
            any = any > s->extras[i] ? any : s->extras[i];
        if (any == 0) { /* planes without a stated meaning are ignored */
            given -= s->extra;
            s->count -= s->extra;
            s->extra = 0;
        }
    }
    const uint64_t used = given < s->count || s->count < 1 ? 1 : (uint64_t)s->count;
    return all_same(d, BITS, used, &s->bits) && whole && one_format && s->extra >= 0 && s->count >= 1 &&
           s->count <= SAMPLES_MAX && given >= 1 && (given >= s->count || given == 1);
}

/* Grey levels and palettes of 1 to 8 bits. */
static bool pack_small(struct st_tiff *t, const struct samples *s)
{
    if (s->bits != 1 && s->bits != 2 && s->bits != 4 && s->bits != 8)
        return false;
    t->packing = (struct st_packing){.kind = ST_PACK_TABLE, .bits = (uint32_t)s->bits};
    t->reversed = s->fill_order == 2;
    if (s->photometric != 3)
        st_grey_table(t->table, (uint32_t)s->bits, s->photometric == 0);
    /* Two modes that Pillow recognises but cannot unpack, unless libtiff has already reversed the
     * bits. */
    const bool known = s->photometric == 3 ? s->bits == 8 : s->photometric == 1 || s->bits < 8;
    return known || !t->reversed || t->compression != ST_TIFF_RAW;
}

static bool pack_wide(struct st_tiff *t, const struct samples *s)
{
    const bool big = t->big_endian, min_is_white = s->photometric == 0;
    t->packing = (struct st_packing){.kind = s->format == 3 ? ST_PACK_FLOAT : ST_PACK_INT,
                                     .bits = (uint32_t)s->bits,
                                     .big_endian = big,
                                     .is_signed = s->format == 2};
    t->reversed = s->fill_order == 2;
    if (s->bits == 12) {
        t->packing.kind = ST_PACK_INT12;
        return !big && s->format == 1 && s->fill_order == 1 && !min_is_white;
    }
    if (s->bits == 16 && s->format == 1)
        return s->fill_order == 1 ? !(big && min_is_white) : !big && !min_is_white;
    if (s->bits == 16)
        return s->format == 2 && s->fill_order == 1 && !min_is_white;
    if (s->bits != 32 || s->fill_order != 1)
        return false;
    return s->format == 3 || (!min_is_white && (s->format == 2 || (s->format == 1 && !big)));
}

static bool pack_grey(struct st_tiff *t, const struct samples *s)
{
    t->bands = 1;
    if (s->count == 1 && s->extra == 0 && s->format == 1 && s->bits <= 8)
        return pack_small(t, s);
    if (s->count == 1 && s->extra == 0 && s->format == 2 && s->bits == 8) {
        t->packing = (struct st_packing){.bits = 8};
        return s->photometric == 1 && s->fill_order == 1;
    }
    if (s->count == 1 && s->extra == 0)
        return pack_wide(t, s);
    t->bands = s->extras[0] == 2 ? 2 : 1;
    t->packing = (struct st_packing){.bits = 16};
    return s->photometric == 1 && s->count == 2 && s->extra == 1 && s->bits == 8 && s->format == 1 &&
           s->fill_order == 1 && (s->extras[0] == 0 || s->extras[0] == 2);
}

/* The meaning of samples beyond the colours: alpha, premultiplied alpha, or none. */
static bool pack_colour(struct st_tiff *t, const struct samples *s)
{
    const bool wide = s->bits == 16, cmyk = s->photometric == 5;
    const int64_t colours = cmyk ? 4 : 3;
    const int64_t first = s->extra ? s->extras[0] : -1;
    const uint8_t step = wide ? 2 : 1, high = wide && !t->big_endian;
    if (s->format != 1 || (s->bits != 8 && !wide) || s->count > (wide ? 4 : 6))
        return false;
    if (s->count != colours + s->extra && !(s->count == 4 && !cmyk && s->extra == 0))
        return false;
    for (int i = 1; i < s->extra; i++)
        if (s->extras[i] != 0)
            return false;
    if (s->fill_order != 1 && (s->fill_order != 2 || s->count != 3 || wide || cmyk))
        return false;
    const bool corel = first == 999 && s->count == 4 && !wide; /* Corel Draw's number for alpha */
    if (cmyk ? first > 0 : first > 2 && !corel)
        return false;
    t->reversed = s->fill_order == 2;
    t->bands = cmyk || (s->count > 3 && first != 0) ? 4 : 3;
    t->packing = (struct st_packing){.kind = cmyk         ? ST_PACK_CMYK
                                             : first == 1 ? ST_PACK_PREMULTIPLIED
                                                          : ST_PACK_BYTES,
                                     .bits = (uint32_t)(s->bits * s->count)};
    for (uint8_t i = 0; i < 4; i++)
        t->packing.at[i] = (uint8_t)(i * step + high);
    return true;
}

static bool pack_palette(struct st_tiff *t, struct directory *d, const struct samples *s)
{
    const struct st_tiff_tag *map = tag_of(d, COLOUR_MAP);
    const uint64_t colours = map->count / 3;
    t->bands = 1;
    if (s->format != 1 || map->count == 0 || !is_whole(map) || colours > 256)
        return false;
    for (uint64_t i = 0; i < 3 * colours; i++)
        t->table[i % colours][i / colours] = (uint8_t)(st_tiff_value(t, map, i) / 256);
    if (s->count == 1 && s->extra == 0)
        return pack_small(t, s);
    t->packing = (struct st_packing){.kind = ST_PACK_TABLE, .bits = 16};
    t->bands = s->extras[0] == 2 ? 2 : 1;
    return s->count == 2 && s->extra == 1 && s->bits == 8 && s->fill_order == 1 &&
           (s->extras[0] == 0 || s->extras[0] == 2);
}

/* libtiff returns such pixels as RGB, converted by itself or by libjpeg. */
static bool pack_ycbcr(struct st_tiff *t, const struct samples *s)
{
    const bool plain = t->compression == ST_TIFF_JPEG && !t->separate;
    t->bands = 3;
    t->packing = (struct st_packing){.bits = plain ? 24 : 32, .at = {0, 1, 2}};
    return t->compression != ST_TIFF_RAW && s->format == 1 && s->fill_order == 1 && s->extra == 0 &&
           s->bits == 8 && s->count == 3;
}

static bool pack(struct st_tiff *t, struct directory *d, const struct samples *s)
{
    t->bits = (uint32_t)s->bits;
    if (s->fill_order != 1 && s->fill_order != 2)
        return false;
    switch (s->photometric) {
    case 0:
    case 1:
        return pack_grey(t, s);
    case 2:
    case 5:
        return pack_colour(t, s);
    case 3:
        return pack_palette(t, d, s);
    case ST_TIFF_YCBCR:
        return pack_ycbcr(t, s);
    default:
        return false;
    }
}

static bool known_compression(int64_t compression)
{
    static const uint16_t known[] = {1,     2,     3,     4,     5,     7,     8,     32771,
                                     32773, 32809, 32946, 34676, 34677, 34925, 50000, 50001};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (compression == known[i])
            return true;
    return false;
}

static bool read_layout(struct st_tiff *t, struct directory *d)
{
    int64_t width = t->width, height = t->height;
    t->offsets = *tag_of(d, STRIP_OFFSETS);
    if (t->offsets.count == 0) {
        t->offsets = *tag_of(d, TILE_OFFSETS);
        if (!one(d, TILE_WIDTH, 0, &width) || !one(d, TILE_HEIGHT, 0, &height))
            return false;
    } else if (!one(d, ROWS_PER_STRIP, height, &height)) {
        return false;
    }
    t->block_width = (uint64_t)width;
    t->block_height = (uint64_t)height;
    return width > 0 && height > 0 && t->offsets.count > 0 && is_whole(&t->offsets);
}

/* If the tag is missing, XMP may contain the orientation. */
static uint32_t xmp_orientation(const struct st_tiff_tag *xmp)
{
    static const char name[] = "tiff:Orientation";
    if (xmp->count == 0 || (xmp->type != 1 && xmp->type != 7))
        return 1;
    const uint8_t *p = xmp->data, *end = p + xmp->count;
    while ((p = memmem(p, (size_t)(end - p), name, sizeof name - 1)) != NULL) {
        p += sizeof name - 1;
        const size_t skip = p < end && *p == '>' ? 1 : end - p > 1 && p[0] == '=' && p[1] == '"' ? 2 : 0;
        if (skip && (size_t)(end - p) > skip && p[skip] >= '0' && p[skip] <= '9')
            return p[skip] - (uint32_t)'0';
    }
    return 1;
}

static uint32_t orientation_of(struct directory *d)
{
    const struct st_tiff_tag *tag = tag_of(d, ORIENTATION);
    int64_t turned = 1;
    if (tag->count > 0)
        one(d, ORIENTATION, 1, &turned);
    else
        turned = xmp_orientation(tag_of(d, XMP));
    return turned >= 1 && turned <= 8 ? (uint32_t)turned : 1;
}

static int read_tags(struct st_tiff *t, struct directory *d, struct stoker_error *err)
{
    int64_t width, height, compression, planar;
    struct samples s = {0};
    if (!one(d, WIDTH, 0, &width) || !one(d, HEIGHT, 0, &height) || width < 1 || height < 1 ||
        width > INT32_MAX || height > INT32_MAX)
        return st_fail(err, STOKER_ECORRUPT, "TIFF: no valid size in the first directory");
    if (tag_of(d, WINDOWS_MEDIA)->count)
        return st_fail(err, STOKER_EUNSUPPORTED, "TIFF: Windows Media Photo is not supported");
    if (!one(d, COMPRESSION, 1, &compression) || !known_compression(compression))
        return st_fail(err, STOKER_EUNSUPPORTED, "TIFF: compression %lld is not supported",
                       (long long)compression);
    if (!one(d, PLANAR, 1, &planar))
        planar = 1;
    t->width = (uint32_t)width;
    t->height = (uint32_t)height;
    t->compression = (uint32_t)compression;
    t->separate = planar == 2;
    if (!read_samples(d, t->separate, &s) || !pack(t, d, &s))
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "TIFF: photometric %lld with %lld samples of %lld bits (format %lld, fill order %lld, %d "
            "extra) and compression %u is not supported",
            (long long)s.photometric, (long long)s.count, (long long)s.bits, (long long)s.format,
            (long long)s.fill_order, s.extra, t->compression);
    t->photometric = (uint32_t)s.photometric;
    t->orientation = orientation_of(d);
    if (t->compression == ST_TIFF_RAW && !read_layout(t, d))
        return st_fail(err, STOKER_ECORRUPT, "TIFF: the directory does not say where the pixels are");
    return STOKER_OK;
}

int st_tiff_parse(struct st_bytes in, struct st_tiff *t, struct stoker_error *err)
{
    struct directory d = {.tiff = t};
    memset(t, 0, sizeof *t);
    if (in.size < 16)
        return st_fail(err, STOKER_ECORRUPT, "TIFF: the file ends inside its header");
    t->big_endian = in.data[0] == 'M';
    const bool large = in.data[2] == 43;
    if (t->big_endian && in.data[3] == 43)
        return st_fail(err, STOKER_EUNSUPPORTED, "TIFF: BigTIFF in big-endian order is not supported");
    const uint64_t at = large ? number(t, in.data + 8, 8) : number(t, in.data + 4, 4);
    if (at == 0)
        return st_fail(err, STOKER_ECORRUPT, "TIFF: the file contains no image");
    read_directory(in, at, large, &d);
    return read_tags(t, &d, err);
}
