/* TIFF: strips, tiles and planes of several kinds from files made here, orientation, and refusals by
 * name. */
#include "check_codec.h"

extern const struct st_codec st_codec_tiff;

enum { WIDTH = 37, HEIGHT = 21, PACKBITS = 32773 };
static struct file f;
static uint8_t rgb[WIDTH * HEIGHT * 3];

struct kind {
    uint32_t photometric, bits, samples, compression, rows, tile, orientation;
    bool separate, big_endian;
};

static void tag(struct file *directory, const struct kind *k, uint32_t number, uint32_t type,
                uint32_t count, uint32_t value)
{
    const bool big = k->big_endian;
    put_number(directory, number, 2, big);
    put_number(directory, type, 2, big);
    put_number(directory, count, 4, big);
    put_number(directory, value, type == 3 && count == 1 ? 2 : 4, big);
    if (type == 3 && count == 1)
        put_number(directory, 0, 2, big);
}

/* The value of one sample, a function of its place. */
static uint32_t sample(const struct kind *k, uint32_t x, uint32_t y, uint32_t c)
{
    const uint32_t v = (x * 31 + y * 57 + c * 91) ^ (x * y);
    return k->bits == 16 && k->samples == 1 ? v % 400 : v & ((1u << k->bits) - 1);
}

/* One strip or tile, each byte run stored by itself when packed. */
static void block(const struct kind *k, uint32_t x0, uint32_t y0, uint32_t plane, uint32_t wide,
                  uint32_t high)
{
    for (uint32_t y = y0; y < y0 + high; y++) {
        uint8_t row[1024] = {0};
        uint32_t bit = 0;
        for (uint32_t x = x0; x < x0 + wide; x++)
            for (uint32_t c = k->separate ? plane : 0; c < (k->separate ? plane + 1 : k->samples);
                 c++, bit += k->bits) {
                const uint32_t v = sample(k, x, y, c);
                if (k->bits == 16) {
                    row[bit / 8 + !k->big_endian] = (uint8_t)(v >> 8);
                    row[bit / 8 + k->big_endian] = (uint8_t)v;
                } else {
                    row[bit / 8] |= (uint8_t)(v << (8 - k->bits - bit % 8));
                }
            }
        for (uint32_t at = 0; at < (bit + 7) / 8; at += 100) {
            const uint32_t part = (bit + 7) / 8 - at < 100 ? (bit + 7) / 8 - at : 100;
            if (k->compression == PACKBITS)
                put_number(&f, part - 1, 1, false);
            put(&f, row + at, part);
        }
    }
}

static void write_file(const struct kind *k)
{
    static struct file d;
    const bool big = k->big_endian;
    const uint32_t wide = k->tile ? k->tile : WIDTH, high = k->tile ? k->tile : k->rows;
    uint32_t offsets[64], sizes[64], count = 0;
    f.size = d.size = 0;
    put(&f, big ? "MM\0*\0\0\0\0" : "II*\0\0\0\0\0", 8);
    for (uint32_t plane = 0; plane < (k->separate ? k->samples : 1); plane++)
        for (uint32_t y = 0; y < HEIGHT; y += high)
            for (uint32_t x = 0; x < WIDTH; x += wide, count++) {
                offsets[count] = (uint32_t)f.size;
                block(k, x, y, plane, wide, k->tile || y + high <= HEIGHT ? high : HEIGHT - y);
                sizes[count] = (uint32_t)f.size - offsets[count];
            }
    const uint32_t offsets_at = (uint32_t)f.size, sizes_at = offsets_at + 4 * count,
                   bits_at = sizes_at + 4 * count;
    for (uint32_t i = 0; i < 2 * count; i++)
        put_number(&f, i < count ? offsets[i] : sizes[i - count], 4, big);
    for (uint32_t i = 0; i < k->samples; i++)
        put_number(&f, k->bits, 2, big);
    const uint32_t map_at = (uint32_t)f.size, colours = k->photometric == 3 ? 1u << k->bits : 0;
    for (uint32_t i = 0; i < 3 * colours; i++)
        put_number(&f, i * 257 % 65536, 2, big);
    tag(&d, k, 256, 4, 1, WIDTH);
    tag(&d, k, 257, 4, 1, HEIGHT);
    tag(&d, k, 258, 3, k->samples, k->samples == 1 ? k->bits : bits_at);
    tag(&d, k, 259, 3, 1, k->compression);
    tag(&d, k, 262, 3, 1, k->photometric);
    if (!k->tile)
        tag(&d, k, 273, 4, count, count == 1 ? offsets[0] : offsets_at);
    if (k->orientation)
        tag(&d, k, 274, 3, 1, k->orientation);
    tag(&d, k, 277, 3, 1, k->samples);
    if (!k->tile) {
        tag(&d, k, 278, 4, 1, k->rows);
        tag(&d, k, 279, 4, count, count == 1 ? sizes[0] : sizes_at);
    }
    tag(&d, k, 284, 3, 1, k->separate ? 2 : 1);
    if (colours)
        tag(&d, k, 320, 3, 3 * colours, map_at);
    if (k->tile) {
        tag(&d, k, 322, 4, 1, k->tile);
        tag(&d, k, 323, 4, 1, k->tile);
        tag(&d, k, 324, 4, count, offsets_at);
        tag(&d, k, 325, 4, count, sizes_at);
    }
    struct file at = {0};
    put_number(&at, (uint32_t)f.size, 4, big);
    memcpy(f.data + 4, at.data, 4);
    put_number(&f, (uint32_t)d.size / 12, 2, big);
    put(&f, d.data, d.size);
    put_number(&f, 0, 4, big);
}

/* What the file must give at a place, before turning. */
static void colour_at(const struct kind *k, uint32_t x, uint32_t y, uint8_t out[3])
{
    for (uint32_t c = 0; c < 3; c++) {
        const uint32_t v = sample(k, x, y, k->samples >= 3 ? c : 0), top = (1u << k->bits) - 1;
        if (k->photometric == 3)
            out[c] = (uint8_t)(((v + c * (top + 1)) * 257 % 65536) / 256);
        else if (k->bits == 16)
            out[c] = (uint8_t)(k->samples == 1 ? (v > 255 ? 255 : v) : v >> 8);
        else
            out[c] = (uint8_t)(k->photometric == 0 ? 255 - v * 255 / top : v * 255 / top);
    }
}

static void try_kind(const struct kind *k)
{
    const uint32_t o = k->orientation;
    const uint32_t width = o >= 5 ? HEIGHT : WIDTH, height = o >= 5 ? WIDTH : HEIGHT;
    char what[120];
    write_file(k);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            const uint32_t u = o == 2 || o == 3 || o == 6 || o == 7 ? width - 1 - x : x;
            const uint32_t v = o == 3 || o == 4 || o == 7 || o == 8 ? height - 1 - y : y;
            colour_at(k, o >= 5 ? v : u, o >= 5 ? u : v, rgb + 3 * (y * width + x));
        }
    snprintf(what, sizeof what,
             "photometric %u, %u x %u bits, compression %u, %s of %u, orientation %u%s%s",
             k->photometric, k->samples, k->bits, k->compression, k->tile ? "tiles" : "strips",
             k->tile ? k->tile : k->rows, o, k->separate ? ", planes" : "",
             k->big_endian ? ", big-endian" : "");
    check_pixels(&st_codec_tiff, &f, width, height, rgb, what);
}

static void kinds(void)
{
    static const uint32_t kind[][3] = {{0, 1, 1},  {1, 1, 1}, {0, 4, 1}, {1, 2, 1},  {1, 8, 1},
                                       {1, 16, 1}, {2, 8, 3}, {2, 8, 4}, {2, 16, 3}, {2, 16, 4},
                                       {3, 1, 1},  {3, 4, 1}, {3, 8, 1}};
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        for (uint32_t way = 0; way < 16; way++) {
            struct kind k = {kind[i][0], kind[i][1], kind[i][2], way & 1 ? PACKBITS : 1,
                             way & 2 ? HEIGHT : 5};
            k.big_endian = way & 4;
            k.tile = way & 8 ? 16 : 0;
            if (!k.tile || !(way & 2))
                try_kind(&k);
        }
    for (uint32_t way = 0; way < 32; way++)
        try_kind(&(struct kind){2, 8, 3, way & 1 ? PACKBITS : 1, 5, way & 2 ? 16 : 0, 1 + way / 4, true,
                                false});
    for (uint32_t orientation = 1; orientation <= 8; orientation++)
        for (uint32_t way = 0; way < 4; way++)
            try_kind(&(struct kind){2, 8, 3, way & 1 ? PACKBITS : 1, 4, way & 2 ? 16 : 0, orientation,
                                    false, true});
}

static void refusals(void)
{
    struct kind k = {2, 8, 3, 1, 5, 0, 0, false, false};
    write_file(&k);
    const size_t whole = f.size;
    f.size = 30;
    check_refused(&st_codec_tiff, &f, "no valid size", "a file without its directory");
    f.size = 12;
    check_refused(&st_codec_tiff, &f, "header", "half a header");
    f.size = whole;
    memset(f.data + 4, 0, 4);
    check_refused(&st_codec_tiff, &f, "no image", "a file without image");
    k.compression = 6;
    write_file(&k);
    check_refused(&st_codec_tiff, &f, "compression 6", "old-style JPEG");
    k.compression = PACKBITS;
    write_file(&k);
    memset(f.data + 8, 0x80, 500); /* bytes that stand for nothing */
    check_refused(&st_codec_tiff, &f, "row 0", "a damaged strip");
    write_file(&(struct kind){8, 8, 3, 1, 5, 0, 0, false, false});
    check_refused(&st_codec_tiff, &f, "photometric 8", "CIE Lab");
    write_file(&(struct kind){1, 16, 3, 1, 5, 0, 0, false, false});
    check_refused(&st_codec_tiff, &f, "3 samples of 16 bits", "grey of three samples");
}

int main(void)
{
    kinds();
    refusals();
    return done_testing();
}
