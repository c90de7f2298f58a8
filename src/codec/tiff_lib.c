/* tiff_lib.c - compressed TIFF by libtiff, with the same checks as Pillow
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/tiff_sink.h"

#include <stdio.h>
#include <string.h>
#include <tiffio.h>

/* The bytes that libtiff reads, and its last message: it complains about many harmless tags before the
 * actual error. */
struct memory {
    struct st_bytes in;
    uint64_t at;
    char said[160];
};

struct lib {
    TIFF *file;
    struct memory *memory;
    const struct st_tiff *tiff;
    struct st_tiff_sink *sink;
    struct st_arena *arena;
    struct stoker_error *err;
    struct st_region wanted; /* what is decoded: the sink's region, or more */
    uint32_t planes, step;   /* planes: 1 if the samples are contiguous; step: bytes per sample */
};

static tmsize_t give(thandle_t handle, void *to, tmsize_t size)
{
    struct memory *m = handle;
    const uint64_t there = m->at < m->in.size ? m->in.size - m->at : 0;
    const uint64_t part = size < 0 ? 0 : (uint64_t)size < there ? (uint64_t)size : there;
    memcpy(to, m->in.data + (part ? m->at : 0), part);
    m->at += part;
    return (tmsize_t)part;
}

static tmsize_t take_nothing(thandle_t handle, void *from, tmsize_t size)
{
    (void)handle, (void)from, (void)size;
    return 0;
}

static toff_t seek(thandle_t handle, toff_t offset, int whence)
{
    struct memory *m = handle;
    m->at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? m->at + offset : m->in.size + offset;
    return m->at;
}

static int leave_open(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t size_of(thandle_t handle) { return ((struct memory *)handle)->in.size; }

static int map(thandle_t handle, void **base, toff_t *size)
{
    struct memory *m = handle;
    *base = (void *)(uintptr_t)m->in.data; /* libtiff only reads mapped memory */
    *size = m->in.size;
    return 1;
}

static void unmap(thandle_t handle, void *base, toff_t size) { (void)handle, (void)base, (void)size; }

static int on_error(TIFF *file, void *user, const char *module, const char *format, va_list args)
{
    struct memory *m = user;
    (void)file, (void)module;
    vsnprintf(m->said, sizeof m->said, format, args);
    return 1; /* handled: no other handler is called */
}

static int on_warning(TIFF *file, void *user, const char *module, const char *format, va_list args)
{
    (void)file, (void)user, (void)module, (void)format, (void)args;
    return 1;
}

static TIFF *open_file(struct memory *m)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, m);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, m);
    TIFF *file = TIFFClientOpenExt("memory", "rC", m, give, take_nothing, seek, leave_open, size_of, map,
                                   unmap, options);
    TIFFOpenOptionsFree(options);
    return file;
}

static int corrupt(struct lib *l, const char *what, uint32_t row)
{
    const char *said = l->memory->said;
    return st_fail(l->err, STOKER_ECORRUPT, "TIFF: %s at row %u of %u%s%s", what, row, l->tiff->height,
                   *said ? ": " : "", said);
}

/* For errors found by us, regardless of what libtiff said about the tags. */
static int misfit(struct lib *l, const char *what)
{
    return st_fail(l->err, STOKER_ECORRUPT, "TIFF: %s", what);
}

static uint8_t *take(struct lib *l, uint64_t bytes)
{
    uint8_t *memory = st_arena_take(l->arena, bytes);
    if (!memory)
        st_fail(l->err, STOKER_ENOMEM, "TIFF: no memory for a block of %llu bytes",
                (unsigned long long)bytes);
    return memory;
}

/* Passes rows of a decoded strip or tile to the sink. */
static void put_rows(struct lib *l, uint32_t plane, uint32_t x, uint32_t y, uint32_t count,
                     uint32_t rows, const uint8_t *data, uint64_t stride)
{
    for (uint32_t i = 0; i < rows; i++, data += stride) {
        if (l->planes > 1)
            st_tiff_put_plane(l->sink, plane, x, y + i, count, data, l->step, l->step - 1);
        else
            st_tiff_put(l->sink, x, y + i, count, data);
    }
}

/* Called before libtiff fills a block. For a damaged block it may report success after writing only a
 * part, and the rest must not show earlier contents. Its earlier messages are dropped. */
static void clear(struct lib *l, uint8_t *data, uint64_t size)
{
    memset(data, 0, size);
    l->memory->said[0] = '\0';
}

static uint32_t at_most(uint64_t a, uint64_t b) { return (uint32_t)(a < b ? a : b); }

static int decode_strips(struct lib *l)
{
    const struct st_region *r = &l->wanted;
    const uint32_t width = l->tiff->width, height = l->tiff->height;
    uint32_t rows = 0;
    if (!TIFFGetField(l->file, TIFFTAG_ROWSPERSTRIP, &rows) || rows == UINT32_MAX)
        rows = height;
    const tmsize_t size = TIFFStripSize(l->file), stride = TIFFScanlineSize(l->file);
    const uint64_t row_bytes = ((uint64_t)width * l->sink->packing.bits / l->planes + 7) / 8;
    if (rows == 0 || size <= 0 || stride <= 0 || size > INT32_MAX || (uint64_t)stride < row_bytes ||
        (uint64_t)size > row_bytes * rows || (uint64_t)size < (uint64_t)stride * at_most(rows, height))
        return misfit(l, "the sizes of strips and image do not match");
    uint8_t *data = take(l, (uint64_t)size);
    if (!data)
        return STOKER_ENOMEM;
    for (uint64_t y = r->y - r->y % rows; y < (uint64_t)r->y + r->height; y += rows) {
        for (uint32_t plane = 0; plane < l->planes; plane++) {
            const uint32_t strip = TIFFComputeStrip(l->file, (uint32_t)y, (uint16_t)plane);
            clear(l, data, (uint64_t)size);
            if (TIFFReadEncodedStrip(l->file, strip, data, size) < 0)
                return corrupt(l, "a damaged strip", (uint32_t)y);
            put_rows(l, plane, 0, (uint32_t)y, width, at_most(rows, height - y), data, (uint64_t)stride);
        }
    }
    return STOKER_OK;
}

static int decode_tiles(struct lib *l)
{
    const struct st_region *r = &l->wanted;
    const uint32_t width = l->tiff->width, height = l->tiff->height;
    uint32_t wide = 0, high = 0;
    TIFFGetField(l->file, TIFFTAG_TILEWIDTH, &wide);
    TIFFGetField(l->file, TIFFTAG_TILELENGTH, &high);
    const tmsize_t size = TIFFTileSize(l->file), stride = TIFFTileRowSize(l->file);
    const uint64_t bits = l->sink->packing.bits,
                   most = ((uint64_t)high * bits / l->planes + 7) / 8 * wide;
    /* A tile may be larger than a small image, but not excessively so. */
    const uint64_t sane = ((uint64_t)64 << 20) + 4 * ((uint64_t)width * height * bits / 8);
    if (wide == 0 || high == 0 || wide > INT32_MAX || high > INT32_MAX || size <= 0 || stride <= 0 ||
        size > INT32_MAX || (uint64_t)size > most || (uint64_t)size > sane ||
        (uint64_t)stride < ((uint64_t)wide * bits / l->planes + 7) / 8 ||
        (uint64_t)size / high < (uint64_t)stride)
        return misfit(l, "the sizes of tiles and image do not match");
    uint8_t *data = take(l, (uint64_t)size);
    if (!data)
        return STOKER_ENOMEM;
    for (uint64_t y = r->y - r->y % high; y < (uint64_t)r->y + r->height; y += high) {
        for (uint32_t plane = 0; plane < l->planes; plane++) {
            for (uint64_t x = r->x - r->x % wide; x < (uint64_t)r->x + r->width; x += wide) {
                clear(l, data, (uint64_t)size);
                if (TIFFReadTile(l->file, data, (uint32_t)x, (uint32_t)y, 0, (uint16_t)plane) < 0)
                    return corrupt(l, "a damaged tile", (uint32_t)y);
                put_rows(l, plane, (uint32_t)x, (uint32_t)y, at_most(wide, width - x),
                         at_most(high, height - y), data, (uint64_t)stride);
            }
        }
    }
    return STOKER_OK;
}

/* Luminance and colour differences, perhaps at different resolutions: libtiff converts them to RGBA. */
static int decode_as_rgba(struct lib *l)
{
    const struct st_region *r = &l->wanted;
    const uint32_t width = l->tiff->width, height = l->tiff->height;
    uint32_t rows = 0;
    TIFFRGBAImage image;
    if (!TIFFGetFieldDefaulted(l->file, TIFFIsTiled(l->file) ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP,
                               &rows) ||
        rows > height)
        rows = height;
    char said[1024] = "";
    if (rows == 0 || !TIFFRGBAImageOK(l->file, said) || !TIFFRGBAImageBegin(&image, l->file, 0, said)) {
        return st_fail(l->err, STOKER_ECORRUPT, "TIFF: cannot be converted to RGB: %.200s", said);
    }
    image.orientation = image.req_orientation = ORIENTATION_TOPLEFT;
    image.col_offset = 0;
    uint8_t *data = take(l, 4 * (uint64_t)width * rows);
    int rc = data ? STOKER_OK : STOKER_ENOMEM;
    for (uint64_t y = r->y - r->y % rows; y < (uint64_t)r->y + r->height && !rc; y += rows) {
        const uint32_t count = at_most(rows, height - y);
        image.row_offset = (int)y;
        clear(l, data, 4 * (uint64_t)width * count);
        if (TIFFRGBAImageGet(&image, (uint32_t *)(void *)data, width, count))
            put_rows(l, 0, 0, (uint32_t)y, width, count, data, 4 * (uint64_t)width);
        else
            rc = corrupt(l, "a damaged block", (uint32_t)y);
    }
    TIFFRGBAImageEnd(&image);
    return rc;
}

/* libtiff returns wide samples in the machine's byte order, with bits in the right order. Pillow treats
 * signed ones and floats as if they were still in the file's order. */
static void in_native_order(struct st_packing *packing, uint32_t bits)
{
    if (bits != 16)
        return;
    if (packing->kind == ST_PACK_INT && !packing->is_signed)
        packing->big_endian = false;
    for (int i = 0; i < 4; i++)
        packing->at[i] |= 1;
}

/* Whether the file ends inside or before a strip or tile. */
static bool is_cut_off(TIFF *file, uint64_t size)
{
    const uint32_t blocks = TIFFIsTiled(file) ? TIFFNumberOfTiles(file) : TIFFNumberOfStrips(file);
    for (uint32_t i = 0; i < blocks; i++) {
        const uint64_t at = TIFFGetStrileOffset(file, i), bytes = TIFFGetStrileByteCount(file, i);
        if (at > size || bytes > size - at)
            return true;
    }
    return false;
}

static int decode_open(struct lib *l)
{
    const struct st_tiff *t = l->tiff;
    uint32_t width = 0, height = 0;
    TIFFGetField(l->file, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(l->file, TIFFTAG_IMAGELENGTH, &height);
    if (width != t->width || height != t->height)
        return misfit(l, "libtiff and the first directory disagree about the size");
    /* A bad file is refused whatever part of it is needed. */
    if (is_cut_off(l->file, l->memory->in.size))
        l->wanted = (struct st_region){0, 0, width, height};
    uint16_t bits = 0, extra = 0, *meaning = NULL;
    TIFFGetFieldDefaulted(l->file, TIFFTAG_BITSPERSAMPLE, &bits);
    in_native_order(&l->sink->packing, t->bits);
    /* With libdeflate, libtiff treats "more data than room" as success, although the block may then be
     * incomplete: the last strip of a valid file may hold rows below the image. zlib fills all the
     * room. */
    if ((t->compression == COMPRESSION_ADOBE_DEFLATE || t->compression == COMPRESSION_DEFLATE) &&
        !TIFFSetField(l->file, TIFFTAG_DEFLATE_SUBCODEC, DEFLATE_SUBCODEC_ZLIB))
        return st_fail(l->err, STOKER_EUNSUPPORTED, "TIFF: libtiff was built without zlib");
    if (t->photometric == ST_TIFF_YCBCR) {
        if (t->compression != ST_TIFF_JPEG || t->separate)
            return decode_as_rgba(l);
        TIFFSetField(l->file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    } else if (t->separate && t->bands > 1) {
        l->planes = t->bands;
        l->step = bits / 8;
        if (bits != 8 && bits != 16)
            return misfit(l, "separate planes must have 8 or 16 bits");
        TIFFGetFieldDefaulted(l->file, TIFFTAG_EXTRASAMPLES, &extra, &meaning);
    }
    const int rc = TIFFIsTiled(l->file) ? decode_tiles(l) : decode_strips(l);
    if (l->planes == 4 && t->photometric == 2) {
        const bool multiplied = extra >= 1 && meaning[0] != EXTRASAMPLE_UNASSALPHA && meaning[0] <= 2;
        l->sink->packing.kind = multiplied ? ST_PACK_PREMULTIPLIED : ST_PACK_BYTES;
    }
    return rc;
}

int st_tiff_decode_lib(struct st_bytes in, struct st_tiff *tiff, struct st_tiff_sink *sink,
                       struct st_arena *arena, struct stoker_error *err)
{
    struct memory m = {.in = in};
    struct lib l = {.memory = &m,
                    .tiff = tiff,
                    .sink = sink,
                    .arena = arena,
                    .err = err,
                    .wanted = sink->region,
                    .planes = 1,
                    .step = 1};
    l.file = open_file(&m);
    if (!l.file)
        return corrupt(&l, "libtiff cannot open it", 0);
    const int rc = decode_open(&l);
    TIFFClose(l.file);
    return rc;
}
