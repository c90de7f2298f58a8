/* PNM: the six kinds and grey PFM from texts written here, scaling, comments, and refusals with a
 * reason. */
#include "check_codec.h"

extern const struct st_codec st_codec_pnm;

static struct file f;

static void write_file(const char *head, const void *data, size_t size)
{
    f.size = 0;
    put(&f, head, strlen(head));
    put(&f, data, size);
}

/* Grey levels to the three bytes of each pixel. */
static void check_grey(const char *head, const void *data, size_t size, uint32_t width, uint32_t height,
                       const uint8_t *levels, const char *what)
{
    uint8_t rgb[300];
    for (uint32_t i = 0; i < 3 * width * height; i++)
        rgb[i] = levels[i / 3];
    write_file(head, data, size);
    check_pixels(&st_codec_pnm, &f, width, height, rgb, what);
}

static void kinds(void)
{
    const uint8_t bits[10] = {255, 0, 255, 0, 255, 255, 255, 0, 0, 255};
    check_grey("P1 5 2\n", "01 0 1 0\n0 0110", 15, 5, 2, bits, "bits as text");
    check_grey("P4\n5 2\n", "\x50\x30", 2, 5, 2, bits, "bits");
    check_grey("P2\n# a comment\n2 2 255\n", "0 17 # here\n 200 255", 20, 2, 2,
               (uint8_t[]){0, 17, 200, 255}, "grey as text");
    check_grey("P5 2 2 255\n", "\0\x11\xc8\xff", 4, 2, 2, (uint8_t[]){0, 17, 200, 255}, "grey");
    check_grey("P5 3 1 2\n", "\0\1\2", 3, 3, 1, (uint8_t[]){0, 128, 255},
               "halves go to the even neighbour");
    check_grey("P5 4 1 65535\n", "\0\0\0\x40\0\xff\1\0", 8, 4, 1, (uint8_t[]){0, 64, 255, 255},
               "16 bits are clipped");
    check_grey("P5 3 1 1000\n", "\0\0\0\1\3\xe8", 6, 3, 1, (uint8_t[]){0, 66, 255},
               "scaled to 16 bits, then clipped");
    const uint8_t colours[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 251, 252};
    write_file("P6\n2 2\n255\n", colours, 12);
    check_pixels(&st_codec_pnm, &f, 2, 2, colours, "colours");
    const char *text = "1 2 3 4 5 6\n7 8 9 250 251 252";
    write_file("P3 2 2 255 ", text, strlen(text));
    check_pixels(&st_codec_pnm, &f, 2, 2, colours, "colours as text");
    write_file("P6 1 1 1000 ", "\0\0\1\xf4\3\xe8", 6);
    check_pixels(&st_codec_pnm, &f, 1, 1, (uint8_t[]){0, 128, 255}, "colours of 16 bits are scaled");
    const uint8_t floats[] = {0, 0, 0, 0x41, 0, 0, 0x7f, 0x43, 0, 0, 0x80, 0xbf, 0xcd, 0xcc, 0x1f, 0x43};
    check_grey("Pf 2 2 -1.0\n", floats, 16, 2, 2, (uint8_t[]){0, 159, 8, 255},
               "floats, bottom up, are cut to bytes");
}

static void refusals(void)
{
    static const struct {
        const char *text, *says, *what;
    } cases[] = {
        {"P2 2 2 255 111 222 33", "row 1 of 2", "too few values"},
        {"P2 2 2 255 1 2 3 256", "not a number from 0 to 255", "a value too large"},
        {"P2 2 2 255 1 2 x 4", "not a number", "a word"},
        {"P1 2 2 01 1 2", "neither 0 nor 1", "a digit among bits"},
        {"P5 2 2 0 abcd", "largest value", "a largest value of 0"},
        {"P5 2 2 65536 abcdabcd", "largest value", "a largest value of 65536"},
        {"P6 30000 30000 255 abc", "row 0 of 30000", "a size that the file cannot hold"},
        {"P3 30000 30000 255 1 2 3", "30000 x 30000", "a size that the text cannot hold"},
        {"P6 -3 2 255 abc", "width", "a negative width"},
        {"P6 3", "ends before the height", "half a header"},
        {"P7\nWIDTH 3\n", "PAM", "PAM"},
        {"Pf 1 1 0.0 abcd", "scale", "a scale of 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(cases[i].text, "", 0);
        check_refused(&st_codec_pnm, &f, cases[i].says, cases[i].what);
    }
}

int main(void)
{
    kinds();
    refusals();
    return done_testing();
}
