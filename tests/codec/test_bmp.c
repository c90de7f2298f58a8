/* BMP: depths, headers and masks from files made here, both row orders, run lengths, and refusals by
 * name. */
#include "check_codec.h"

extern const struct st_codec st_codec_bmp;

enum { WIDTH = 13, HEIGHT = 7 };
static struct file f;
static uint8_t rgb[WIDTH * HEIGHT * 3];

static void header(uint32_t head, int32_t width, int32_t height, uint32_t bits, uint32_t compression,
                   uint32_t behind)
{
    f.size = 0;
    put(&f, "BM", 2);
    put_number(&f, 0, 4, false);
    put_number(&f, 0, 4, false);
    put_number(&f, 14 + head + behind, 4, false);
    put_number(&f, head, 4, false);
    put_number(&f, (uint32_t)width, head == 12 ? 2 : 4, false);
    put_number(&f, (uint32_t)height, head == 12 ? 2 : 4, false);
    put_number(&f, 1, 2, false);
    put_number(&f, bits, 2, false);
    if (head > 12)
        put_number(&f, compression, 4, false);
    while (f.size < 14 + head)
        put_number(&f, 0, 1, false);
}

/* Random pixels of so many bits, rows bottom up or top down; palettes are 3 or 4 bytes a colour. */
static void pixels(uint32_t bits, bool top_down, const uint8_t *palette, uint32_t step,
                   uint32_t green_bits)
{
    for (uint32_t row = 0; row < HEIGHT; row++) {
        const uint32_t y = top_down ? row : HEIGHT - 1 - row;
        const size_t start = f.size;
        memset(f.data + start, 0, WIDTH * 4 + 4);
        for (uint32_t x = 0; x < WIDTH; x++) {
            uint8_t *to = rgb + 3 * (y * WIDTH + x);
            const uint32_t v = chance(1u << (bits < 16 ? bits : 16)), u = chance(256);
            if (bits <= 8) {
                f.data[start + x * bits / 8] |= (uint8_t)(v << (8 - bits - x * bits % 8));
                for (int c = 0; c < 3; c++)
                    to[c] = palette[v * step + 2 - (uint32_t)c];
            } else if (bits == 16) {
                const uint32_t top = (1u << green_bits) - 1;
                f.data[start + 2 * x] = (uint8_t)v;
                f.data[start + 2 * x + 1] = (uint8_t)(v >> 8);
                to[0] = (uint8_t)((v >> (5 + green_bits) & 31) * 255 / 31);
                to[1] = (uint8_t)((v >> 5 & top) * 255 / top);
                to[2] = (uint8_t)((v & 31) * 255 / 31);
            } else {
                uint8_t *at = f.data + start + x * bits / 8;
                at[0] = to[2] = (uint8_t)v;
                at[1] = to[1] = (uint8_t)(v >> 8);
                at[2] = to[0] = (uint8_t)u;
            }
        }
        f.size = start + (WIDTH * bits + 31) / 32 * 4;
    }
}

static void kinds(void)
{
    static const uint32_t heads[] = {12, 40, 52, 56, 64, 108, 124}, depths[] = {1, 4, 8, 16, 24, 32};
    uint8_t palette[1024];
    char what[80];
    for (size_t h = 0; h < sizeof heads / sizeof *heads; h++)
        for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
            for (int top_down = 0; top_down < (heads[h] == 12 ? 1 : 2); top_down++) {
                const uint32_t bits = depths[d], step = heads[h] == 12 ? 3 : 4;
                const uint32_t size = bits <= 8 ? step << bits : 0;
                for (size_t i = 0; i < sizeof palette; i++)
                    palette[i] = (uint8_t)chance(256);
                header(heads[h], WIDTH, top_down ? -HEIGHT : HEIGHT, bits, 0, size);
                put(&f, palette, size);
                pixels(bits, top_down, palette, step, 5);
                snprintf(what, sizeof what, "header of %u bytes, %u bits%s", heads[h], bits,
                         top_down ? ", top down" : "");
                check_pixels(&st_codec_bmp, &f, WIDTH, HEIGHT, rgb, what);
            }
    header(40, WIDTH, HEIGHT, 16, 3, 12);
    put_number(&f, 0xf800, 4, false);
    put_number(&f, 0x07e0, 4, false);
    put_number(&f, 0x001f, 4, false);
    pixels(16, false, NULL, 0, 6);
    check_pixels(&st_codec_bmp, &f, WIDTH, HEIGHT, rgb, "masks of 5, 6 and 5 bits");
}

/* 4 x 3 pixels in every kind of run: a run, single pixels, end of line, a jump. */
static void runs(void)
{
    static const uint8_t bytes[] = {4, 1, 0, 0, 0, 3, 2, 3, 1, 0, 0, 0, 0, 2, 2, 0, 2, 3, 0, 1};
    static const uint8_t index[12] = {0, 0, 3, 3, 2, 3, 1, 0, 1, 1, 1, 1}; /* top row first */
    uint8_t palette[1024], expected[36];
    for (size_t i = 0; i < sizeof palette; i++)
        palette[i] = (uint8_t)chance(256);
    for (int i = 0; i < 36; i++)
        expected[i] = palette[index[i / 3] * 4 + 2 - i % 3];
    header(40, 4, 3, 8, 1, 1024);
    put(&f, palette, 1024);
    put(&f, bytes, sizeof bytes);
    check_pixels(&st_codec_bmp, &f, 4, 3, expected, "run lengths");
    f.size -= 6;
    check_refused(&st_codec_bmp, &f, "row", "too few runs");
    f.size += 4;
    f.data[14 + 4 + 2] = f.data[14 + 8 + 2] = 1; /* 65540 x 65539 pixels */
    check_refused(&st_codec_bmp, &f, "ends", "a size that the runs cannot fill");
}

static void refusals(void)
{
    header(40, WIDTH, HEIGHT, 24, 6, 0);
    check_refused(&st_codec_bmp, &f, "compression 6", "compression 6");
    header(40, WIDTH, HEIGHT, 2, 0, 0);
    check_refused(&st_codec_bmp, &f, "2 bits", "2 bits per pixel");
    header(41, WIDTH, HEIGHT, 24, 0, 0);
    check_refused(&st_codec_bmp, &f, "41 bytes", "a header of 41 bytes");
    header(40, 30000, 30000, 24, 0, 0);
    check_refused(&st_codec_bmp, &f, "row 0 of 30000", "a size that the file cannot hold");
    header(40, 0, 5, 24, 0, 0);
    check_refused(&st_codec_bmp, &f, "0 x 5", "a width of 0");
    header(56, WIDTH, HEIGHT, 32, 3, 0);
    f.data[14 + 40] = 1;
    check_refused(&st_codec_bmp, &f, "masks", "odd masks");
    f.size = 20;
    check_refused(&st_codec_bmp, &f, "inside the header", "half a header");
}

int main(void)
{
    kinds();
    runs();
    refusals();
    return done_testing();
}
