/* pnm.c - PBM, PGM and PPM, plain (text) and raw (binary), and grey PFM
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/codec.h"
#include "codec/to_rgb.h"

#include <math.h>
#include <string.h>

enum { TOKEN_MAX = 10, BLOCK = 1 << 20 };

struct pnm {
    char kind; /* the letter or digit after 'P' */
    uint32_t width, height, maxval;
    bool little_endian; /* PFM */
    size_t data;
};

static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static uint32_t bands(const struct pnm *p) { return p->kind == '3' || p->kind == '6' ? 3 : 1; }

static bool probe(const uint8_t *data, size_t size)
{
    return size >= 3 && data[0] == 'P' && ((data[1] >= '1' && data[1] <= '7') || data[1] == 'f') &&
           is_space(data[2]);
}

/* Skips a comment; *at is at '#' and moves past the end of the line. */
static void skip_comment(struct st_bytes in, size_t *at)
{
    while (*at < in.size && in.data[*at] != '\n' && in.data[*at] != '\r')
        (*at)++;
    if (*at < in.size)
        (*at)++;
}

/* The next word and one white space after it. A comment may occur anywhere, even inside a word. Returns
 * the word's length: 0 at the end, TOKEN_MAX + 1 if it is too long. */
static size_t next_word(struct st_bytes in, size_t *at, char word[TOKEN_MAX + 1])
{
    size_t length = 0;
    while (length <= TOKEN_MAX && *at < in.size) {
        const uint8_t c = in.data[*at];
        if (c == '#') {
            skip_comment(in, at);
            continue;
        }
        (*at)++;
        if (!is_space(c))
            word[length++] = (char)c;
        else if (length > 0)
            break;
    }
    return length;
}

/* An integer as parsed by Python's int(): a sign, and single underscores between digits. */
static bool to_number(const char *word, size_t length, int64_t *out)
{
    const bool minus = *word == '-';
    int64_t value = 0;
    char before = '_';
    for (size_t i = minus || *word == '+'; i < length; before = word[i++]) {
        if (word[i] >= '0' && word[i] <= '9')
            value = value * 10 + (word[i] - '0');
        else if (word[i] != '_' || before == '_')
            return false;
    }
    *out = minus ? -value : value;
    return before != '_';
}

static int next_number(struct st_bytes in, size_t *at, const char *what, int64_t most, uint32_t *out,
                       struct stoker_error *err)
{
    char word[TOKEN_MAX + 1];
    int64_t value;
    const size_t length = next_word(in, at, word);
    if (length == 0)
        return st_fail(err, STOKER_ECORRUPT, "PNM: the file ends before the %s", what);
    if (length > TOKEN_MAX || !to_number(word, length, &value) || value < 1 || value > most)
        return st_fail(err, STOKER_ECORRUPT,
                       "PNM: the %s before byte %zu is not a number from 1 to %lld", what, *at,
                       (long long)most);
    *out = (uint32_t)value;
    return STOKER_OK;
}

static size_t digits(const char *word, size_t length, size_t at)
{
    size_t count = 0;
    while (at + count < length && word[at + count] >= '0' && word[at + count] <= '9')
        count++;
    return count;
}

/* PFM's scale, of which only the sign matters: it gives the byte order. */
static int read_scale(struct st_bytes in, struct pnm *p, size_t *at, struct stoker_error *err)
{
    char word[TOKEN_MAX + 1];
    const size_t length = next_word(in, at, word);
    size_t i = length > 0 && (*word == '-' || *word == '+');
    const size_t mantissa = i, whole = digits(word, length, i);
    i += whole;
    const size_t part = i < length && word[i] == '.' ? digits(word, length, ++i) : 0;
    i += part;
    bool nonzero = false;
    for (size_t k = mantissa; k < i; k++)
        nonzero = nonzero || (word[k] >= '1' && word[k] <= '9');
    if (i < length && (word[i] == 'e' || word[i] == 'E')) {
        i += 1 + (i + 1 < length && (word[i + 1] == '-' || word[i + 1] == '+'));
        const size_t exponent = digits(word, length, i);
        i = exponent == 1 || exponent == 2 ? i + exponent : SIZE_MAX; /* only what a float can hold */
    }
    if (length > TOKEN_MAX || i != length || !nonzero)
        return st_fail(err, STOKER_ECORRUPT, "PFM: the scale before byte %zu is not a nonzero number",
                       *at);
    p->little_endian = *word == '-';
    return STOKER_OK;
}

static int parse(struct st_bytes in, struct pnm *p, struct stoker_error *err)
{
    size_t at = 3;
    *p = (struct pnm){.kind = (char)in.data[1], .maxval = 1};
    if (p->kind == '7')
        return st_fail(err, STOKER_EUNSUPPORTED, "PNM: PAM files (P7) are not supported");
    int rc = next_number(in, &at, "width", INT32_MAX, &p->width, err);
    if (!rc)
        rc = next_number(in, &at, "height", INT32_MAX, &p->height, err);
    if (!rc && p->kind == 'f')
        rc = read_scale(in, p, &at, err);
    else if (!rc && p->kind != '1' && p->kind != '4')
        rc = next_number(in, &at, "largest value", 65535, &p->maxval, err);
    p->data = at;
    return rc;
}

static int header(void *state, struct st_bytes in, struct st_header *out, struct stoker_error *err)
{
    struct pnm p;
    (void)state;
    const int rc = parse(in, &p, err);
    *out = (struct st_header){p.width, p.height, 1, 1};
    return rc;
}

/* One sample, scaled like Pillow: colours to 0..255, grey beyond 8 bits to 0..65535 and then clipped. A
 * rounded division and a rounded product of doubles, then round half to even: the bytes depend on this
 * order. */
static uint8_t scale_sample(const struct pnm *p, uint32_t value)
{
    const double top = bands(p) == 1 && p->maxval > 255 ? 65535 : 255;
    const double level = nearbyint((double)value / (double)p->maxval * top);
    return level >= 255 ? 255 : (uint8_t)level;
}

static int ends_in_row(const struct pnm *p, uint64_t row, struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT, "PNM: the pixels end in row %llu of %u",
                   (unsigned long long)row, p->height);
}

/* Binary pixels whose largest value is not 255, so that they need scaling. */
static void scale_row(const struct pnm *p, const uint8_t *in, uint32_t count, uint8_t *rgb)
{
    const uint32_t n = bands(p), wide = p->maxval > 255 ? 2 : 1;
    for (uint32_t i = 0; i < count * n; i++, in += wide) {
        const uint8_t level = scale_sample(p, wide == 2 ? st_be16(in) : *in);
        if (n == 3)
            rgb[i] = level;
        else
            memset(rgb + 3 * (size_t)i, level, 3);
    }
}

static int decode_bytes(struct st_bytes in, const struct pnm *p, const struct st_region *r,
                        struct st_arena *arena, struct st_view *out, struct stoker_error *err)
{
    uint8_t greys[256][3];
    struct st_packing packing = {.bits = (p->maxval > 255 ? 16 : 8) * bands(p), .at = {0, 1, 2}};
    bool scaled = p->maxval != 255;
    if (p->kind == '4') {
        st_grey_table(greys, 1, true);
        packing = (struct st_packing){.kind = ST_PACK_TABLE, .bits = 1, .table = greys};
        scaled = false;
    } else if (p->kind == 'f') {
        packing =
            (struct st_packing){.kind = ST_PACK_FLOAT, .bits = 32, .big_endian = !p->little_endian};
        scaled = false;
    }
    const uint64_t stride = st_packed_size(&packing, p->width), there = in.size - p->data;
    if (there / stride < p->height)
        return ends_in_row(p, there / stride, err);
    const int rc = st_rgb_take(out, arena, r->width, r->height, err);
    for (uint32_t y = 0; y < r->height && !rc; y++) {
        const uint32_t at = p->kind == 'f' ? p->height - 1 - (r->y + y) : r->y + y;
        const uint8_t *row = in.data + p->data + at * stride;
        if (scaled)
            scale_row(p, row + (size_t)r->x * (packing.bits / 8), r->width, st_row(out, (int32_t)y));
        else
            st_to_rgb(&packing, row, r->x, r->width, st_row(out, (int32_t)y));
    }
    return rc;
}

/* Stores the next sample of a plain file if it lies in the region. */
static void place(const struct pnm *p, const struct st_region *r, struct st_view *out, uint64_t index,
                  uint8_t level)
{
    const uint32_t n = bands(p);
    const uint64_t x = index / n % p->width - r->x, y = index / n / p->width - r->y;
    if (x >= r->width || y >= r->height) /* also true to the left and above, where they wrap around */
        return;
    uint8_t *pixel = st_row(out, (int32_t)y) + 3 * x;
    if (n == 3)
        pixel[index % 3] = level;
    else
        memset(pixel, level, 3);
}

/* Bits in plain files need no space between them. Pillow reads blocks, and requires each block to
 * consist of bits. */
static int decode_text_bits(struct st_bytes in, const struct pnm *p, const struct st_region *r,
                            struct st_view *out, struct stoker_error *err)
{
    const uint64_t total = (uint64_t)p->width * p->height;
    uint64_t done = 0;
    for (size_t at = p->data; at < in.size;) {
        const uint8_t c = in.data[at];
        if (done >= total && (at - p->data) % BLOCK == 0)
            break;
        if (c == '#') {
            skip_comment(in, &at);
            continue;
        }
        at++;
        if (is_space(c))
            continue;
        if (c != '0' && c != '1')
            return st_fail(err, STOKER_ECORRUPT, "PNM: byte %zu is neither 0 nor 1", at - 1);
        if (done < total)
            place(p, r, out, done, c == '0' ? 255 : 0);
        done++;
    }
    return done < total ? ends_in_row(p, done / p->width, err) : STOKER_OK;
}

static int decode_text(struct st_bytes in, const struct pnm *p, const struct st_region *r,
                       struct st_view *out, struct stoker_error *err)
{
    const uint64_t row = (uint64_t)p->width * bands(p), total = row * p->height;
    size_t at = p->data;
    for (uint64_t i = 0; i < total; i++) {
        char word[TOKEN_MAX + 1];
        int64_t value;
        const size_t length = next_word(in, &at, word);
        if (length == 0)
            return ends_in_row(p, i / row, err);
        if (length > TOKEN_MAX || !to_number(word, length, &value) || value < 0 || value > p->maxval)
            return st_fail(err, STOKER_ECORRUPT,
                           "PNM: in row %llu, the value before byte %zu is not a number from 0 to %u",
                           (unsigned long long)(i / row), at, p->maxval);
        place(p, r, out, i, scale_sample(p, (uint32_t)value));
    }
    return STOKER_OK;
}

static int decode(void *state, struct st_bytes in, const struct st_decode *how, struct st_arena *arena,
                  struct st_view *out, struct stoker_error *err)
{
    struct pnm p;
    (void)state;
    int rc = parse(in, &p, err);
    if (rc)
        return rc;
    if (p.kind > '3')
        return decode_bytes(in, &p, &how->region, arena, out, err);
    /* Each sample takes one character and, except for bits, a separator. */
    const uint64_t samples = (uint64_t)p.width * p.height * bands(&p);
    if ((in.size - p.data) / (p.kind == '1' ? 1 : 2) + 1 < samples)
        return st_fail(err, STOKER_ECORRUPT, "PNM: the text is too short for %u x %u pixels", p.width,
                       p.height);
    rc = st_rgb_take(out, arena, how->region.width, how->region.height, err);
    if (rc)
        return rc;
    return p.kind == '1' ? decode_text_bits(in, &p, &how->region, out, err)
                         : decode_text(in, &p, &how->region, out, err);
}

const struct st_codec st_codec_pnm = {.name = "PNM", .probe = probe, .header = header, .decode = decode};
