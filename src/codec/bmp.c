/* bmp.c - Windows and OS/2 bitmaps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/codec.h"
#include "codec/to_rgb.h"

#include <string.h>

enum { FILE_HEAD = 14 };
enum { RAW = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3 };

struct bmp {
    uint32_t width, height, bits, compression, colours;
    uint32_t head_size;
    bool top_down, bilevel; /* bilevel: two colours, black and white */
    uint64_t data;          /* offset of the pixels */
    uint32_t mask[4];
    struct st_packing packing;
    uint8_t table[256][3];
};

static int cut_off(struct stoker_error *err, const char *what)
{
    return st_fail(err, STOKER_ECORRUPT, "BMP: the file ends inside %s", what);
}

static bool probe(const uint8_t *data, size_t size)
{
    return size >= 2 && data[0] == 'B' && data[1] == 'M';
}

static void read_masks(struct bmp *b, const uint8_t *head, const uint8_t *after)
{
    const bool inside = b->head_size >= 52;
    for (int i = 0; i < 3; i++)
        b->mask[i] = inside ? st_le32(head + 40 + 4 * i) : st_le32(after + 4 * i);
    b->mask[3] = b->head_size >= 56 ? st_le32(head + 52) : 0;
}

/* The info header, which states its own size. *at is set to its end. */
static int read_head(struct st_bytes in, struct bmp *b, uint64_t *at, struct stoker_error *err)
{
    if (in.size < FILE_HEAD + 4)
        return cut_off(err, "the header");
    const uint8_t *head = in.data + FILE_HEAD;
    b->head_size = st_le32(head);
    if (b->head_size != 12 && b->head_size != 40 && b->head_size != 52 && b->head_size != 56 &&
        b->head_size != 64 && b->head_size != 108 && b->head_size != 124)
        return st_fail(err, STOKER_EUNSUPPORTED, "BMP: a header of %u bytes is not supported",
                       b->head_size);
    if (in.size - FILE_HEAD < b->head_size)
        return cut_off(err, "the header");
    *at = FILE_HEAD + b->head_size;
    if (b->head_size == 12) {
        b->width = st_le16(head + 4);
        b->height = st_le16(head + 6);
        b->bits = st_le16(head + 10);
        return STOKER_OK;
    }
    b->width = st_le32(head + 4);
    b->height = st_le32(head + 8);
    b->top_down = head[11] == 0xff;
    if (b->top_down)
        b->height = 0 - b->height;
    b->bits = st_le16(head + 14);
    b->compression = st_le32(head + 16);
    b->colours = st_le32(head + 32);
    if (b->compression == BITFIELDS) {
        const bool after = b->head_size < 52;
        if (after && in.size - *at < 12)
            return cut_off(err, "the colour masks");
        read_masks(b, head, in.data + *at);
        *at += after ? 12 : 0;
    }
    return STOKER_OK;
}

/* Derives the bytes of red, green and blue in a pixel from the masks. Supports only masks of whole
 * bytes, in the orders that Pillow supports. */
static bool packing_of_masks(struct bmp *b)
{
    static const struct {
        uint32_t bits, mask[4];
        struct st_packing packing;
    } known[] = {
        {32, {0xff0000, 0xff00, 0xff, 0}, {.bits = 32, .at = {2, 1, 0}}},
        {32, {0xff000000, 0xff0000, 0xff00, 0}, {.bits = 32, .at = {3, 2, 1}}},
        {32, {0xff000000, 0xff00, 0xff, 0}, {.bits = 32, .at = {3, 1, 0}}},
        {32, {0xff000000, 0xff0000, 0xff00, 0xff}, {.bits = 32, .at = {3, 2, 1}}},
        {32, {0xff, 0xff00, 0xff0000, 0xff000000}, {.bits = 32, .at = {0, 1, 2}}},
        {32, {0xff0000, 0xff00, 0xff, 0xff000000}, {.bits = 32, .at = {2, 1, 0}}},
        {32, {0xff000000, 0xff00, 0xff, 0xff0000}, {.bits = 32, .at = {3, 1, 0}}},
        {32, {0, 0, 0, 0}, {.bits = 32, .at = {2, 1, 0}}},
        {24, {0xff0000, 0xff00, 0xff}, {.bits = 24, .at = {2, 1, 0}}},
        {16, {0xf800, 0x7e0, 0x1f}, {.kind = ST_PACK_BITS, .bits = 16, .green_bits = 6}},
        {16, {0x7c00, 0x3e0, 0x1f}, {.kind = ST_PACK_BITS, .bits = 16, .green_bits = 5}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t masks =
            known[i].bits == 32 ? 4 : 3; /* alpha only where there is room for it */
        if (b->bits == known[i].bits && !memcmp(b->mask, known[i].mask, masks * sizeof *b->mask)) {
            b->packing = known[i].packing;
            return true;
        }
    }
    return false;
}

/* Pillow drops a palette that consists of grey levels in order, and then treats the pixels as bits (two
 * colours) or bytes, regardless of their depth. */
static bool palette_is_grey(const struct bmp *b, const uint8_t *palette, uint64_t size, uint32_t step)
{
    for (uint32_t i = 0; i < b->colours; i++) {
        const uint8_t level = (uint8_t)(b->colours == 2 ? 255 * i : i);
        const uint8_t *c = palette + (uint64_t)i * step;
        if ((uint64_t)i * step + 3 > size || c[0] != level || c[1] != level || c[2] != level)
            return false;
    }
    return true;
}

static int read_palette(struct st_bytes in, struct bmp *b, uint64_t *at, struct stoker_error *err)
{
    const uint32_t step = b->head_size == 12 ? 3 : 4;
    if (b->colours > 65536)
        return st_fail(err, STOKER_ECORRUPT, "BMP: invalid palette of %u colours", b->colours);
    const uint8_t *palette = in.data + *at;
    uint64_t size = (uint64_t)b->colours * step;
    if (size > in.size - *at)
        size = in.size - *at;
    *at += size;
    if (palette_is_grey(b, palette, size, step)) {
        b->bilevel = b->colours <= 2;
        const uint32_t bits = b->bilevel ? 1 : 8;
        st_grey_table(b->table, bits, false);
        b->packing = (struct st_packing){.kind = ST_PACK_TABLE, .bits = bits};
        return STOKER_OK;
    }
    if (size / step > 256)
        return st_fail(err, STOKER_ECORRUPT, "BMP: invalid palette of %u colours", b->colours);
    for (uint64_t i = 0; i < size / step; i++)
        for (int c = 0; c < 3; c++)
            b->table[i][c] = palette[i * step + 2 - (uint64_t)c];
    b->packing = (struct st_packing){.kind = ST_PACK_TABLE, .bits = b->bits};
    return STOKER_OK;
}

static int pick_packing(struct bmp *b, struct stoker_error *err)
{
    switch (b->bits) {
    case 1:
    case 4:
    case 8:
        break;
    case 16:
        b->packing = (struct st_packing){.kind = ST_PACK_BITS, .bits = 16, .green_bits = 5};
        break;
    case 24:
    case 32:
        b->packing = (struct st_packing){.bits = b->bits, .at = {2, 1, 0}};
        break;
    default:
        return st_fail(err, STOKER_EUNSUPPORTED, "BMP: %u bits per pixel are not supported", b->bits);
    }
    if (b->compression > BITFIELDS)
        return st_fail(err, STOKER_EUNSUPPORTED, "BMP: compression %u is not supported", b->compression);
    if (b->compression == BITFIELDS && !packing_of_masks(b))
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "BMP: colour masks %08x %08x %08x %08x with %u bits are not "
                       "supported",
                       b->mask[0], b->mask[1], b->mask[2], b->mask[3], b->bits);
    if (b->bits > 8 && (b->compression == RLE8 || b->compression == RLE4))
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "BMP: run-length encoding with %u bits per pixel is not supported", b->bits);
    return STOKER_OK;
}

static int parse(struct st_bytes in, struct bmp *b, struct stoker_error *err)
{
    uint64_t at = 0;
    *b = (struct bmp){0};
    int rc = read_head(in, b, &at, err);
    if (!rc)
        rc = pick_packing(b, err);
    if (rc)
        return rc;
    if (b->width == 0 || b->height == 0 || b->width > INT32_MAX || b->height > INT32_MAX)
        return st_fail(err, STOKER_ECORRUPT, "BMP: invalid size of %u x %u pixels", b->width, b->height);
    if (b->colours == 0 && b->bits <= 8)
        b->colours = 1u << b->bits;
    b->data = st_le32(in.data + 10);
    if (b->data == FILE_HEAD + b->head_size && b->bits <= 8) /* some offsets ignore the palette */
        b->data += (uint64_t)(b->head_size == 12 ? 3 : 4) * b->colours;
    if (b->bits <= 8 && (rc = read_palette(in, b, &at, err)) != 0)
        return rc;
    if (b->data == 0)
        b->data = at;
    return STOKER_OK;
}

/* Unpacks runs to one byte per pixel, rows in file order. */
struct runs {
    struct st_bytes in;
    uint64_t at, done, total;
    uint32_t width;
    uint8_t *to;
    bool nibbles;
};

static void put(struct runs *r, uint8_t value)
{
    if (r->done < r->total)
        r->to[r->done] = value;
    r->done++;
}

static void put_zeros(struct runs *r, uint64_t count)
{
    const uint64_t room = r->done < r->total ? r->total - r->done : 0;
    memset(r->to + (room ? r->done : 0), 0, count < room ? count : room);
    r->done += count;
}

/* Literal pixels; false at the end of the file. */
static bool put_absolute(struct runs *r, uint32_t count, uint64_t *x)
{
    const uint64_t room = r->total - r->done, pixels = count < room ? count : room;
    const uint64_t wanted = r->nibbles ? (pixels + 1) / 2 : pixels;
    const uint64_t there = r->in.size > r->at ? r->in.size - r->at : 0;
    if (there < wanted)
        return false;
    for (uint64_t i = 0; i < pixels; i++) {
        const uint8_t byte = r->in.data[r->at + (r->nibbles ? i / 2 : i)];
        put(r, r->nibbles ? (i % 2 ? byte & 15 : byte >> 4) : byte);
    }
    r->at += wanted;
    r->at += r->at % 2; /* runs start at even offsets */
    *x += count;
    return true;
}

/* Escapes: end of line, a jump, literal pixels; false at the end. */
static bool escape(struct runs *r, uint8_t code, uint64_t *x)
{
    if (code == 1)
        return false;
    if (code == 0) {
        put_zeros(r, (r->width - r->done % r->width) % r->width);
        *x = 0;
        return true;
    }
    if (code > 2)
        return put_absolute(r, code, x);
    if (r->in.size - r->at < 2)
        return false;
    const uint64_t jump = r->in.data[r->at] + (uint64_t)r->in.data[r->at + 1] * r->width;
    const uint64_t room = r->total - r->done;
    r->at += 2;
    put_zeros(r, jump < room ? jump : room);
    *x = r->done % r->width;
    return true;
}

static bool unpack_runs(struct runs *r)
{
    uint64_t x = 0;
    while (r->done < r->total && r->in.size > r->at && r->in.size - r->at >= 2) {
        const uint8_t count = r->in.data[r->at], byte = r->in.data[r->at + 1];
        r->at += 2;
        if (count == 0) {
            if (!escape(r, byte, &x))
                break;
            continue;
        }
        const uint64_t room = x < r->width ? r->width - x : 0;
        const uint32_t pixels = count < room ? count : (uint32_t)room;
        for (uint32_t i = 0; i < pixels; i++)
            put(r, r->nibbles ? (i % 2 ? byte & 15 : byte >> 4) : byte);
        x += pixels;
    }
    return r->done >= r->total;
}

static int decode_runs(struct st_bytes in, struct bmp *b, struct st_arena *arena, const uint8_t **pixels,
                       struct stoker_error *err)
{
    struct runs r = {.in = in, .at = b->data, .width = b->width, .nibbles = b->compression == RLE4};
    r.total = (uint64_t)b->width * b->height;
    /* Two bytes give at most 255 pixels; four skip at most 255 rows and 255 pixels. */
    const uint64_t there = b->data < in.size ? in.size - b->data : 0;
    const uint64_t most = 255 * (there / 2) + ((uint64_t)b->width * 255 + 255) * (there / 4);
    r.to = r.total <= most ? st_arena_take(arena, r.total) : NULL;
    if (r.total > most)
        return cut_off(err, "the runs");
    if (!r.to)
        return st_fail(err, STOKER_ENOMEM, "BMP: no memory for %u x %u pixels", b->width, b->height);
    if (!unpack_runs(&r))
        return st_fail(err, STOKER_ECORRUPT, "BMP: the runs end in row %llu of %u",
                       (unsigned long long)(r.done / b->width), b->height);
    if (b->bilevel) /* now one byte per pixel; everything but 0 is white */
        memset(b->table[1], 255, sizeof b->table - sizeof *b->table);
    b->packing.bits = 8;
    *pixels = r.to;
    return STOKER_OK;
}

static int header(void *state, struct st_bytes in, struct st_header *out, struct stoker_error *err)
{
    struct bmp b;
    (void)state;
    const int rc = parse(in, &b, err);
    *out = (struct st_header){b.width, b.height, 1, 1, st_scratch_for(1, b.width, b.height)};
    return rc;
}

static int decode(void *state, struct st_bytes in, const struct st_decode *how, struct st_arena *arena,
                  struct st_view *out, struct stoker_error *err)
{
    const struct st_region *r = &how->region;
    struct bmp b;
    const uint8_t *pixels = NULL;
    (void)state;
    int rc = parse(in, &b, err);
    if (rc)
        return rc;
    b.packing.table = b.table;
    uint64_t stride = ((uint64_t)b.width * b.bits + 31) / 32 * 4,
             row = st_packed_size(&b.packing, b.width);
    if (b.compression == RLE8 || b.compression == RLE4) {
        rc = decode_runs(in, &b, arena, &pixels, err);
        stride = row = b.width;
    } else if (row > stride) {
        return st_fail(err, STOKER_ECORRUPT,
                       "BMP: a grey palette of %u colours does not match %u bits per pixel", b.colours,
                       b.bits);
    } else if (b.data > in.size || (in.size - b.data) / stride < b.height - 1u ||
               in.size - b.data - stride * (b.height - 1u) < row) {
        const uint64_t there = b.data < in.size ? in.size - b.data : 0;
        return st_fail(err, STOKER_ECORRUPT, "BMP: the pixels end in row %llu of %u",
                       (unsigned long long)(there / stride), b.height);
    } else {
        pixels = in.data + b.data;
    }
    if (!rc)
        rc = st_rgb_take(out, arena, r->width, r->height, err);
    for (uint32_t y = 0; y < r->height && !rc; y++) {
        const uint32_t at = b.top_down ? r->y + y : b.height - 1 - (r->y + y);
        st_to_rgb(&b.packing, pixels + at * stride, r->x, r->width, st_row(out, (int32_t)y));
    }
    return rc;
}

const struct st_codec st_codec_bmp = {.name = "BMP", .probe = probe, .header = header, .decode = decode};
