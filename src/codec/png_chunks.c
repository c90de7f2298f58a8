/* png_chunks.c - walks the chunks of a PNG file and checks them by Pillow's rules
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/exif.h"
#include "codec/png_file.h"
#include "codec/to_rgb.h"

#include <string.h>

enum { SIGNATURE = 8, CHUNK_HEAD = 8, CHUNK_CRC = 4 };

/* State of the walk. */
struct walk {
    struct st_bytes in;
    struct st_png *png;
    struct stoker_error *err;
    bool has_header, framed, lone_transparent;
    uint32_t frames;  /* from acTL; 0: none, or an invalid one */
    int64_t sequence; /* number of the animation's last chunk, -1 before the first */
};

struct chunk {
    const char *name;
    const uint8_t *data;
    size_t at, size; /* offset of its head, and the size it claims */
    bool whole;      /* the file contains all its bytes */
};

static bool is(const struct chunk *c, const char *name) { return memcmp(c->name, name, 4) == 0; }

static int broken(struct walk *w, const struct chunk *c, const char *what)
{
    return st_fail(w->err, STOKER_ECORRUPT, "PNG: chunk %.4s at byte %zu %s", c->name, c->at, what);
}

static bool name_char(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Reads the chunk at `at`; false if there is none. */
static bool chunk_at(struct st_bytes in, size_t at, struct chunk *c)
{
    if (at > in.size || in.size - at < CHUNK_HEAD)
        return false;
    const uint8_t *head = in.data + at;
    for (int i = 4; i < CHUNK_HEAD; i++)
        if (!name_char(head[i]))
            return false;
    *c = (struct chunk){(const char *)head + 4, head + CHUNK_HEAD, at, st_be32(head), false};
    c->whole = c->size <= in.size - at - CHUNK_HEAD;
    return true;
}

static size_t after(const struct chunk *c) { return c->at + CHUNK_HEAD + c->size + CHUNK_CRC; }

static uint32_t add_to_crc(uint32_t crc, const uint8_t *data, size_t size)
{
    static const uint32_t nibble[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return crc;
}

static uint32_t crc32_of(const uint8_t name[4], const uint8_t *data, size_t size)
{
    return ~add_to_crc(add_to_crc(UINT32_MAX, name, 4), data, size);
}

static bool depth_fits(uint8_t colour, uint8_t depth)
{
    switch (colour) {
    case 0:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case 3:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case 2:
    case 4:
    case 6:
        return depth == 8 || depth == 16;
    default:
        return false;
    }
}

static int take_header(struct walk *w, const struct chunk *c)
{
    struct st_png *png = w->png;
    png->width = st_be32(c->data);
    png->height = st_be32(c->data + 4);
    if (c->data[11] != 0)
        return broken(w, c, "has an unknown filter method");
    png->interlaced = c->data[12] != 0;
    if (!depth_fits(c->data[9], c->data[8])) {
        if (w->has_header)
            return STOKER_OK;
        return st_fail(w->err, STOKER_ECORRUPT, "PNG: invalid combination of colour type %u and %u bits",
                       c->data[9], c->data[8]);
    }
    png->depth = c->data[8];
    png->colour = c->data[9];
    w->has_header = true;
    return STOKER_OK;
}

static int take_palette(struct walk *w, const struct chunk *c)
{
    if (!w->has_header || w->png->colour != 3)
        return STOKER_OK;
    if (c->size / 3 > 256)
        return broken(w, c, "holds more than 256 colours");
    memset(w->png->table, 0, sizeof w->png->table);
    memcpy(w->png->table, c->data, c->size / 3 * 3);
    w->png->has_palette = true;
    return STOKER_OK;
}

static int take_transparency(struct walk *w, const struct chunk *c)
{
    if (w->has_header && w->png->colour == 3) {
        size_t clear = 0, opaque = 0;
        for (size_t i = 0; i < c->size; i++) {
            clear += c->data[i] == 0;
            opaque += c->data[i] == 255;
        }
        w->lone_transparent = clear == 1 && clear + opaque == c->size;
        return STOKER_OK;
    }
    const size_t wanted = !w->has_header ? 0 : w->png->colour == 0 ? 2 : w->png->colour == 2 ? 6 : 0;
    return c->size < wanted ? broken(w, c, "is too short") : STOKER_OK;
}

static int take_animation(struct walk *w, const struct chunk *c)
{
    const uint32_t frames = st_be32(c->data);
    w->frames = w->frames || frames > 0x80000000u ? 0 : frames;
    return STOKER_OK;
}

static int next_in_sequence(struct walk *w, const struct chunk *c)
{
    const int64_t sequence = st_be32(c->data);
    if (sequence != w->sequence + 1)
        return broken(w, c, "is out of sequence");
    w->sequence = sequence;
    return STOKER_OK;
}

static int take_frame(struct walk *w, const struct chunk *c)
{
    const int rc = next_in_sequence(w, c);
    if (rc)
        return rc;
    const struct st_region f = {st_be32(c->data + 12), st_be32(c->data + 16), st_be32(c->data + 4),
                                st_be32(c->data + 8)};
    if ((uint64_t)f.x + f.width > w->png->width || (uint64_t)f.y + f.height > w->png->height)
        return broken(w, c, "reaches beyond the image");
    w->png->frame = f;
    w->framed = true;
    return STOKER_OK;
}

static int take_compressed(struct walk *w, const struct chunk *c)
{
    const uint8_t *zero = memchr(c->data, 0, c->size);
    const size_t method = is(c, "iCCP") || zero ? (zero ? (size_t)(zero - c->data) + 1 : 0) : c->size;
    if (is(c, "iCCP") && method >= c->size)
        return broken(w, c, "is too short");
    if (method < c->size && c->data[method] != 0)
        return broken(w, c, "has an unknown compression method");
    return STOKER_OK;
}

static int take_exif(struct walk *w, const struct chunk *c)
{
    w->png->orientation = st_exif_orientation(c->data, c->size);
    return STOKER_OK;
}

/* Reads what we need from a chunk that is known to be complete. */
static int take(struct walk *w, const struct chunk *c)
{
    static const struct {
        char name[5];
        uint8_t least; /* bytes */
        int (*take)(struct walk *w, const struct chunk *c);
    } known[] = {
        {"IHDR", 13, take_header},
        {"PLTE", 0, take_palette},
        {"tRNS", 0, take_transparency},
        {"gAMA", 4, NULL},
        {"cHRM", 32, NULL},
        {"sRGB", 1, NULL},
        {"pHYs", 9, NULL},
        {"iCCP", 1, take_compressed},
        {"zTXt", 0, take_compressed},
        {"eXIf", 0, take_exif},
        {"acTL", 8, take_animation},
        {"fcTL", 26, take_frame},
        {"fdAT", 4, next_in_sequence},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!is(c, known[i].name))
            continue;
        if (c->size < known[i].least)
            return broken(w, c, "is too short");
        return known[i].take ? known[i].take(w, c) : STOKER_OK;
    }
    return STOKER_OK;
}

static bool is_data(const struct chunk *c) { return is(c, "IDAT") || is(c, "DDAT") || is(c, "fdAT"); }

/* Walks everything up to the image data. */
static int walk_to_data(struct walk *w, struct chunk *c)
{
    for (size_t at = SIGNATURE;; at = after(c)) {
        if (!chunk_at(w->in, at, c))
            return st_fail(w->err, STOKER_ECORRUPT,
                           "PNG: no chunk at byte %zu, and no image data before it", at);
        if (is(c, "IEND"))
            return st_fail(w->err, STOKER_ECORRUPT, "PNG: no image data before IEND");
        if (is(c, "IDAT"))
            return STOKER_OK;
        if (!c->whole && !(is(c, "fdAT") && w->in.size - c->at >= CHUNK_HEAD + 4))
            return broken(w, c, "is truncated");
        const int rc = take(w, c);
        if (rc || is(c, "fdAT"))
            return rc;
        if (w->in.size - c->at - CHUNK_HEAD - c->size < CHUNK_CRC)
            return broken(w, c, "is truncated");
        if (crc32_of((const uint8_t *)c->name, c->data, c->size) != st_be32(c->data + c->size))
            return broken(w, c, "has a wrong checksum");
    }
}

/* Walks everything after the image data, which can only change the orientation. The data itself may end
 * early; that is detected when its rows are read. */
static int walk_after_data(struct walk *w, struct chunk *c)
{
    const bool animated = w->frames + (w->frames && !w->framed) > 1;
    bool in_data = true;
    while (chunk_at(w->in, after(c), c)) {
        w->png->ends = is(c, "IEND") || (is(c, "fcTL") && animated);
        if (w->png->ends)
            break;
        in_data = in_data && is_data(c);
        if (!c->whole)
            return in_data ? STOKER_OK : broken(w, c, "is truncated");
        const int rc = take(w, c);
        if (rc)
            return rc;
    }
    return STOKER_OK;
}

bool st_png_probe(const uint8_t *data, size_t size)
{
    return size >= SIGNATURE && memcmp(data, "\x89PNG\r\n\x1a\n", SIGNATURE) == 0;
}

int st_png_parse(struct st_bytes in, struct st_png *png, struct stoker_error *err)
{
    struct walk w = {.in = in, .png = png, .err = err, .sequence = -1};
    struct chunk c;
    memset(png, 0, sizeof *png);
    png->orientation = 1;
    int rc = walk_to_data(&w, &c);
    if (rc)
        return rc;
    if (!w.has_header || png->width == 0 || png->height == 0)
        return st_fail(err, STOKER_ECORRUPT, "PNG: no valid size in the header");
    if (png->width > INT32_MAX || png->height > INT32_MAX)
        return st_fail(err, STOKER_ECORRUPT, "PNG: %u x %u pixels are more than a PNG can have",
                       png->width, png->height);
    if (png->colour == 3 && !png->has_palette && w.lone_transparent)
        return st_fail(err, STOKER_ECORRUPT, "PNG: it has a transparent colour, but no palette");
    if (!w.framed)
        png->frame = (struct st_region){0, 0, png->width, png->height};
    if (png->frame.width == 0 || png->frame.height == 0 ||
        png->frame.x + png->frame.width > png->width || png->frame.y + png->frame.height > png->height)
        return st_fail(err, STOKER_ECORRUPT,
                       "PNG: the first frame is empty or reaches beyond the image");
    png->data = c.at;
    struct st_png ignored = *png;
    w.png = &ignored;
    rc = walk_after_data(&w, &c);
    png->orientation = ignored.orientation;
    png->ends = ignored.ends;
    return rc;
}

static void put_be32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* A chunk's head, to be followed by `size` bytes from elsewhere. */
static uint8_t *put_head(uint8_t *to, uint32_t size, const char *name)
{
    put_be32(to, size);
    memcpy(to + 4, name, 4);
    return to + CHUNK_HEAD;
}

static uint8_t *put_crc(uint8_t *to, uint32_t size)
{
    put_be32(to, crc32_of(to - size - 4, to - size, size));
    return to + CHUNK_CRC;
}

void st_png_stream_open(struct st_png_stream *s, struct st_bytes in, const struct st_png *png)
{
    *s = (struct st_png_stream){.in = in, .next = png->data, .with_crc = true};
    uint8_t *to = s->head;
    memcpy(to, "\x89PNG\r\n\x1a\n", SIGNATURE);
    to = put_head(to + SIGNATURE, 13, "IHDR");
    put_be32(to, png->frame.width);
    put_be32(to + 4, png->frame.height);
    to[8] = png->depth;
    to[9] = png->colour == 3 ? 0 : png->colour;
    to[10] = to[11] = 0;
    to[12] = png->interlaced;
    to = put_crc(to + 13, 13);
    s->head_size = (size_t)(to - s->head);
}

/* Moves to the next chunk of image data in the file; false at the end. */
static bool next_data(struct st_png_stream *s)
{
    struct chunk c;
    if (!chunk_at(s->in, s->next, &c) || !is_data(&c))
        return false;
    const size_t skip = is(&c, "fdAT") ? 4 : 0; /* its sequence number */
    const size_t there = s->in.size - c.at - CHUNK_HEAD, size = c.size < there ? c.size : there;
    if (size < skip)
        return false;
    s->at = c.at + CHUNK_HEAD + skip;
    s->rest = size - skip;
    s->next = after(&c);
    return true;
}

bool st_png_stream_data(const struct st_png_stream *stream, struct st_arena *arena,
                        struct st_bytes *out)
{
    struct st_png_stream s = *stream;
    size_t size = 0, pieces = 0;
    for (; next_data(&s); pieces++) {
        size += s.rest; /* parts of the file that do not overlap */
        *out = (struct st_bytes){s.in.data + s.at, s.rest};
    }
    if (pieces < 2)
        return pieces == 1;
    uint8_t *whole = st_arena_take(arena, size);
    if (!whole)
        return false;
    *out = (struct st_bytes){whole, size};
    for (s = *stream; next_data(&s); whole += s.rest)
        memcpy(whole, s.in.data + s.at, s.rest);
    return true;
}

/* Writes the head of the next IDAT, or IEND. */
static bool stream_next(struct st_png_stream *s)
{
    if (s->ended)
        return false;
    uint8_t *to = s->head;
    if (s->begun) {
        put_be32(to, s->crc);
        to += CHUNK_CRC;
    }
    s->begun = true;
    if (s->rest > 0 || next_data(s)) {
        enum { CHECKED_PIECE = 256 };
        s->left = s->with_crc && s->rest > CHECKED_PIECE ? CHECKED_PIECE : s->rest;
        s->rest -= s->left;
        s->crc = s->with_crc ? crc32_of((const uint8_t *)"IDAT", s->in.data + s->at, s->left) : 0;
        to = put_head(to, (uint32_t)s->left, "IDAT");
    } else {
        s->ended = true;
        to = put_crc(put_head(to, 0, "IEND"), 0);
    }
    s->head_used = 0;
    s->head_size = (size_t)(to - s->head);
    return true;
}

bool st_png_stream_read(struct st_png_stream *s, uint8_t *to, size_t size)
{
    while (size > 0) {
        const bool made_up = s->head_used < s->head_size;
        const size_t ready = made_up ? s->head_size - s->head_used : s->left;
        const size_t part = size < ready ? size : ready;
        if (part == 0) {
            if (!stream_next(s))
                return false;
            continue;
        }
        memcpy(to, made_up ? s->head + s->head_used : s->in.data + s->at, part);
        if (made_up)
            s->head_used += part;
        else {
            s->at += part;
            s->left -= part;
        }
        to += part;
        size -= part;
    }
    return true;
}
