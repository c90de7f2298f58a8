/* PNG: pixels of every colour type and depth from files made here, regions, and refusals with a reason.
 */
#include "check_codec.h"
#include "codec/png_filters.h"

extern const struct st_codec st_codec_png;

static uint32_t crc_of(const uint8_t *data, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void chunk(struct file *f, const char *name, const uint8_t *data, size_t size)
{
    put_number(f, (uint32_t)size, 4, true);
    put(f, name, 4);
    put(f, data, size);
    put_number(f, crc_of(f->data + f->size - size - 4, size + 4), 4, true);
}

static void header(struct file *f, uint32_t width, uint32_t height, uint8_t depth, uint8_t colour,
                   bool interlaced)
{
    struct file h = {0};
    f->size = 0;
    put(f, "\x89PNG\r\n\x1a\n", 8);
    put_number(&h, width, 4, true);
    put_number(&h, height, 4, true);
    put(&h, (uint8_t[]){depth, colour, 0, 0, interlaced}, 5);
    chunk(f, "IHDR", h.data, h.size);
}

/* Stored, not deflated: zlib's frame around the bytes. */
static struct file zlib_of(const struct file *rows)
{
    static struct file z;
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < rows->size; i++) {
        a = (a + rows->data[i]) % 65521;
        b = (b + a) % 65521;
    }
    z.size = 0;
    put(&z, "\x78\x01\x01", 3);
    put_number(&z, (uint32_t)rows->size, 2, false);
    put_number(&z, (uint32_t)~rows->size & 0xffff, 2, false);
    put(&z, rows->data, rows->size);
    put_number(&z, b << 16 | a, 4, true);
    return z;
}

/* Makes a file out of sample values, `channels` a pixel, and the RGB bytes that it must give. */
static void try_kind(uint8_t colour, uint8_t depth, bool interlaced, uint32_t width, uint32_t height)
{
    static const uint32_t channels_of[] = {1, 0, 3, 1, 2, 0, 4};
    static const uint32_t passes[8][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                          {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}, {0, 0, 1, 1}};
    static struct file f, rows;
    static uint32_t samples[64 * 64 * 4];
    static uint8_t rgb[64 * 64 * 3], palette[256 * 3];
    const uint32_t n = channels_of[colour];
    for (size_t i = 0; i < sizeof palette; i++)
        palette[i] = (uint8_t)chance(256);
    for (uint32_t i = 0; i < width * height * n; i++)
        samples[i] = chance(depth == 16 && colour == 0 && i % 2 ? 300 : 1u << depth);
    for (uint32_t i = 0; i < width * height; i++)
        for (uint32_t c = 0; c < 3; c++) {
            const uint32_t v = samples[i * n + (n >= 3 ? c : 0)];
            rgb[3 * i + c] = (uint8_t)(colour == 3                  ? palette[3 * v + c]
                                       : colour == 0 && depth == 16 ? (v > 255 ? 255 : v)
                                       : depth == 16                ? v >> 8
                                                                    : v * 255 / ((1u << depth) - 1));
        }
    rows.size = 0;
    for (uint32_t p = interlaced ? 0 : 7; p < (interlaced ? 7u : 8u); p++)
        for (uint32_t y = passes[p][1]; y < height && passes[p][0] < width; y += passes[p][3]) {
            uint32_t bits = 0;
            rows.data[rows.size++] = 0;
            memset(rows.data + rows.size, 0, 64 * 8);
            for (uint32_t x = passes[p][0]; x < width; x += passes[p][2])
                for (uint32_t c = 0; c < n; c++, bits += depth)
                    for (uint32_t k = 0; k < depth; k++)
                        rows.data[rows.size + (bits + k) / 8] |=
                            (uint8_t)((samples[(y * width + x) * n + c] >> (depth - 1 - k) & 1)
                                      << (7 - (bits + k) % 8));
            rows.size += (bits + 7) / 8;
        }
    header(&f, width, height, depth, colour, interlaced);
    if (colour == 3)
        chunk(&f, "PLTE", palette, (size_t)3 << depth);
    const struct file z = zlib_of(&rows);
    chunk(&f, "IDAT", z.data, z.size / 2);
    chunk(&f, "IDAT", z.data + z.size / 2, z.size - z.size / 2);
    chunk(&f, "IEND", (const uint8_t *)"", 0);
    char what[80];
    snprintf(what, sizeof what, "colour %u, %u bits, %u x %u%s", colour, depth, width, height,
             interlaced ? ", interlaced" : "");
    check_pixels(&st_codec_png, &f, width, height, rgb, what);
}

static void kinds(void)
{
    static const uint8_t kind[][2] = {{0, 1}, {0, 2}, {0, 4},  {0, 8}, {0, 16}, {3, 1}, {3, 2}, {3, 4},
                                      {3, 8}, {2, 8}, {2, 16}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            try_kind(kind[i][0], kind[i][1], interlaced, 1, 1);
            try_kind(kind[i][0], kind[i][1], interlaced, 23, 19);
        }
}

static void orientation(void)
{
    static struct file f;
    static const uint8_t exif[] = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0";
    struct st_header out = {0};
    for (int behind = 0; behind < 2; behind++) {
        header(&f, 1, 1, 8, 0, false);
        const struct file z = zlib_of(&(struct file){{0, 9}, 2});
        if (!behind)
            chunk(&f, "eXIf", exif, sizeof exif - 1);
        chunk(&f, "IDAT", z.data, z.size);
        if (behind)
            chunk(&f, "eXIf", exif, sizeof exif - 1);
        chunk(&f, "IEND", (const uint8_t *)"", 0);
        ok(st_codec_png.header(NULL, (struct st_bytes){f.data, f.size}, &out, NULL) == STOKER_OK &&
               out.orientation == 6,
           "the orientation %s the image data", behind ? "behind" : "before");
    }
}

static void refusals(void)
{
    static struct file f, rows;
    rows.size = 0;
    for (int y = 0; y < 12; y++)
        put(&rows, (uint8_t[31]){0}, 31);
    struct file z = zlib_of(&rows);
    header(&f, 10, 300, 8, 2, false);
    chunk(&f, "IDAT", z.data, z.size);
    check_refused(&st_codec_png, &f, "of 300", "too little image data");
    header(&f, 10, 12, 8, 2, false);
    const size_t start = f.size;
    chunk(&f, "IDAT", z.data, z.size);
    f.size = start + 8 + 100;
    check_refused(&st_codec_png, &f, "of 12", "a file cut off");
    f.size = start;
    z.data[7] = 9;
    chunk(&f, "IDAT", z.data, z.size);
    check_refused(&st_codec_png, &f, "filter", "an unknown filter");
    f.data[20] ^= 1;
    check_refused(&st_codec_png, &f, "IHDR at byte 8 has a wrong checksum", "a wrong checksum");
    f.size = 20;
    check_refused(&st_codec_png, &f, "truncated", "half a header");
    f.size = 8;
    check_refused(&st_codec_png, &f, "no image data", "only a signature");
    header(&f, 10, 12, 4, 2, false);
    chunk(&f, "IDAT", z.data, z.size);
    check_refused(&st_codec_png, &f, "colour type 2 and 4 bits", "a colour type that is none");
    header(&f, 0, 12, 8, 2, false);
    chunk(&f, "IDAT", z.data, z.size);
    check_refused(&st_codec_png, &f, "no valid size", "a width of 0");
}

/* Vectors undo filters as plain C does, in rows of all small widths, and write nothing else. */
static void filters(uint32_t pixel)
{
    enum { WIDEST = 40, ROOM = ST_PNG_GROUP * (8 * WIDEST + 1) + ST_PNG_SPARE, GUARD = 0xA5 };
    static uint8_t from[ROOM], above[8 * WIDEST + ST_PNG_SPARE];
    static uint8_t undone[2][ST_PNG_GROUP * (8 * WIDEST + 2 * ST_PNG_SPARE) + 16];
    bool same = true;
    for (uint32_t k = 0; k < 60 * WIDEST && same; k++) {
        const uint32_t width = 1 + k % WIDEST, values = k / 2 % 3 == 0 ? 256 : k / 2 % 3 == 1 ? 2 : 20;
        struct st_png_lines l = {.from = from, .row = width * pixel, .pixel = pixel, .above = above};
        l.stride = l.row + ST_PNG_SPARE;
        l.count = k % 7 ? ST_PNG_GROUP : 1 + chance(ST_PNG_GROUP);
        for (size_t i = 0; i < sizeof from; i++)
            from[i] = (uint8_t)(chance(values) * (values == 2 ? 255 : 1));
        for (size_t i = 0; i < sizeof above; i++)
            above[i] = (uint8_t)(chance(2) ? chance(256) : chance(2) * 255);
        for (uint32_t y = 0; y < l.count; y++)
            from[y * (l.row + 1)] = (uint8_t)(k % 3 ? chance(ST_PNG_FILTERS) : ST_PNG_PAETH);
        memset(undone, GUARD, sizeof undone);
        for (int own = 0; own < 2; own++) {
            uint8_t *to = undone[own];
            if (k % 2) { /* the row above is the last one of the group before */
                l.above = to + (ST_PNG_GROUP - 1) * l.stride;
                memcpy(to + (ST_PNG_GROUP - 1) * l.stride, above, l.row);
            }
            l.to = to;
            same = same && (own ? st_png_unfilter(&l) : st_png_unfilter_c(&l));
        }
        for (uint32_t y = 0; y < l.count; y++)
            same = same && !memcmp(undone[0] + y * l.stride, undone[1] + y * l.stride, l.row);
        for (size_t i = l.count * l.stride; i < sizeof *undone && l.count == ST_PNG_GROUP; i++)
            same = same && undone[1][i] == GUARD;
        if (!same)
            note("%u pixels, filters from %u", width, from[0]);
    }
    ok(same, "filters of rows with %u bytes a pixel", pixel);
}

int main(void)
{
    for (uint32_t pixel = 1; pixel <= 8; pixel++)
        filters(pixel);
    kinds();
    orientation();
    refusals();
    return done_testing();
}
