/* test_jpeg_own_kernels.c - every variant of the JPEG decoder's inner loops gives what plain C gives
 *
 * With --bench they are timed as well.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "codec/jpeg/kernels.h"
#include "codec/jpeg/transform.h"
#include "tap.h"

#include <string.h>

enum { ROOM = 2048, GUARD = 0xA5, WIDTH = 200 };

static const struct st_jpeg_kernels *const c = &st_jpeg_kernels_c;
static const struct st_jpeg_kernels *k; /* the variant under test */
static uint64_t random_state = 88172645463325252u;
static uint8_t want[ROOM * 8], got[ROOM * 8];

static uint32_t below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) * limit >> 32);
}

/* Bytes of all kinds, and often the extremes. */
static void fill(uint8_t *to, size_t size)
{
    const uint32_t kind = below(3);
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(kind == 0 ? below(256) : kind == 1 ? below(2) * 255 : 100 + below(20));
}

static void set_guards(void)
{
    memset(want, GUARD, sizeof want);
    memset(got, GUARD, sizeof got);
}

/* `size` equal bytes, and nothing written behind the room that vectors may use. */
static bool same(size_t size, size_t room)
{
    if (memcmp(want, got, size) != 0)
        return false;
    for (size_t i = room; i < sizeof got; i++)
        if (got[i] != GUARD)
            return false;
    return true;
}

static size_t up_to_64(int32_t pixels) { return ((size_t)pixels + 63) / 64 * 64; }

/* ---- rows -------------------------------------------------------------------------------------- */

static bool rows_are_equal(int32_t width)
{
    uint8_t row[3][64 + WIDTH + 128], *a = row[0] + 64, *b = row[1] + 64, *d = row[2] + 64;
    fill(row[0], sizeof row);
    bool good = true;
    set_guards();
    c->h2v1(want, a, width), k->h2v1(got, a, width);
    good = good && same((size_t)width * 2, up_to_64(2 * width));
    set_guards();
    c->h2v2(want, a, b, width), k->h2v2(got, a, b, width);
    good = good && same((size_t)width * 2, up_to_64(2 * width));
    for (int32_t bias = 1; bias <= 2; bias++) {
        set_guards();
        c->h1v2(want, a, b, bias, width), k->h1v2(got, a, b, bias, width);
        good = good && same((size_t)width, up_to_64(width));
    }
    set_guards();
    c->ycc(want, a, b, d, width), k->ycc(got, a, b, d, width);
    good = good && same((size_t)width * 3, up_to_64(width) * 3);
    set_guards();
    c->grey(want, a, width), k->grey(got, a, width);
    return good && same((size_t)width * 3, up_to_64(width) * 3);
}

/* All of the 16.7 million colours, a vector of them at a time. */
static bool colours_are_equal(void)
{
    uint8_t y[256 + 64], cb[256 + 64], cr[256 + 64];
    for (uint32_t i = 0; i < 256; i++)
        y[i] = (uint8_t)i;
    for (uint32_t blue = 0; blue < 256; blue++)
        for (uint32_t red = 0; red < 256; red++) {
            memset(cb, (int)blue, 256);
            memset(cr, (int)red, 256);
            c->ycc(want, y, cb, cr, 256);
            k->ycc(got, y, cb, cr, 256);
            if (memcmp(want, got, 256 * 3) != 0)
                return false;
        }
    return true;
}

/* ---- scan data --------------------------------------------------------------------------------- */

static bool unstuffing_is_equal(size_t size)
{
    uint8_t *in = malloc(size ? size : 1); /* exact, so that a sanitizer sees every byte too far */
    const uint32_t many = 1 + below(100);
    for (size_t i = 0; i < size; i++)
        in[i] = (uint8_t)(below(many) == 0                          ? 255
                          : i > 0 && in[i - 1] == 255 && below(300) ? 0
                                                                    : below(256));
    size_t used_c, used_k;
    set_guards();
    const size_t size_c = c->unstuff(want, in, size, &used_c),
                 size_k = k->unstuff(got, in, size, &used_k);
    free(in);
    return used_c == used_k && size_c == size_k && same(size_c, size_c + 64);
}

/* ---- blocks ------------------------------------------------------------------------------------ */

static void random_quant(struct st_jpeg_quant *quant)
{
    const uint32_t most = below(2) ? 60 : ST_JPEG_STEP_MAX;
    for (uint32_t i = 0; i < 64; i++) {
        quant->zigzag[i] = (int16_t)below(most + 1);
        quant->natural[st_jpeg_natural[i]] = quant->zigzag[i];
    }
}

/* Mostly small values; sometimes as large as a column may have, or larger. */
static void random_block(int16_t *coefs, uint32_t end, const struct st_jpeg_quant *quant)
{
    const uint32_t kind = below(40);
    memset(coefs, 0, 64 * sizeof *coefs);
    for (uint32_t i = 0; i < end; i++) {
        const int32_t step = quant->zigzag[i] ? quant->zigzag[i] : 1,
                      share = ST_JPEG_COLUMN_MAX / 8 / step;
        const int32_t value = kind == 0   ? (int32_t)below(65536) - 32768
                              : kind < 10 ? share
                                          : (int32_t)below((uint32_t)share + 1);
        coefs[i] = (int16_t)(below(2) ? value : -value);
    }
}

static bool transforms_are_equal(int32_t count, uint64_t *refused)
{
    static _Alignas(64) int16_t coefs[17][64];
    struct st_jpeg_block blocks[16 + ST_JPEG_GROUP];
    struct st_jpeg_quant quant;
    const size_t stride = 8 * 16 + below(5) * 8,
                 room = ((size_t)count + ST_JPEG_GROUP - 1) / ST_JPEG_GROUP * ST_JPEG_GROUP * 8;
    const uint32_t most = below(4) == 0 ? 1 : below(3) ? 10 : 64;
    random_quant(&quant);
    for (int32_t i = 0; i < count; i++) {
        blocks[i] = (struct st_jpeg_block){coefs[i], 1 + below(most)};
        random_block(coefs[i], blocks[i].end, &quant);
    }
    /* What fills up the last group would be refused, and does not count. */
    memset(coefs[16], 0x7F, sizeof coefs[16]);
    for (int32_t i = count; i < count + ST_JPEG_GROUP; i++)
        blocks[i] = (struct st_jpeg_block){coefs[16], 64};
    set_guards();
    const bool fine = c->transform(want, stride, blocks, count, &quant);
    if (k->transform(got, stride, blocks, count, &quant) != fine)
        return false;
    *refused += !fine;
    for (size_t y = 0; fine && y < 8; y++) {
        if (memcmp(want + y * stride, got + y * stride, (size_t)count * 8) != 0)
            return false;
        for (size_t x = room; x < stride; x++)
            if (got[y * stride + x] != GUARD)
                return false;
    }
    return true;
}

/* ---- all of it --------------------------------------------------------------------------------- */

static void check_variant(void)
{
    bool good = true;
    for (int32_t round = 0; good && round < 20; round++)
        for (int32_t width = 1; good && width <= WIDTH; width++)
            good = rows_are_equal(width);
    ok(good, "%s: upsampling and colour, widths 1 to %d", k->name, WIDTH);
    ok(colours_are_equal(), "%s: every colour there is", k->name);
    good = true;
    for (uint32_t round = 0; good && round < 20; round++)
        for (size_t size = 0; good && size < 400; size++)
            good = unstuffing_is_equal(size);
    ok(good, "%s: unstuffing, sizes 0 to 399", k->name);
    uint64_t refused = 0;
    good = true;
    for (uint32_t round = 0; good && round < 20000; round++)
        good = transforms_are_equal(1 + (int32_t)below(16), &refused);
    ok(good && refused > 100, "%s: the transform, and what it refuses", k->name);
}

/* ---- time -------------------------------------------------------------------------------------- */

enum { LONG = 512, SCAN = 100000, RUNS = 300 };

/* Large enough for one call of any of them. */
struct work {
    _Alignas(64) int16_t coefs[LONG / 8][64];
    struct st_jpeg_block blocks[LONG / 8];
    struct st_jpeg_quant quant;
    uint8_t in[SCAN], out[SCAN + 64], row[3][64 + 2 * LONG];
};

static void work_unstuff(struct work *w)
{
    size_t used;
    k->unstuff(w->out, w->in, sizeof w->in, &used);
}

static void work_transform(struct work *w)
{
    k->transform(w->out, LONG, w->blocks, LONG / 8, &w->quant);
}
static void work_h2v1(struct work *w) { k->h2v1(w->out, w->row[0] + 64, LONG / 2); }
static void work_h2v2(struct work *w) { k->h2v2(w->out, w->row[0] + 64, w->row[1] + 64, LONG / 2); }
static void work_h1v2(struct work *w) { k->h1v2(w->out, w->row[0] + 64, w->row[1] + 64, 1, LONG); }
static void work_grey(struct work *w) { k->grey(w->out, w->row[0] + 64, LONG); }
static void work_ycc(struct work *w)
{
    k->ycc(w->out, w->row[0] + 64, w->row[1] + 64, w->row[2] + 64, LONG);
}

static void report(const char *what, void (*work)(struct work *), struct work *w, int32_t parts,
                   const char *part)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < RUNS; i++) {
        const uint64_t start = st_now_ns();
        for (int j = 0; j < 10; j++)
            work(w);
        const uint64_t took = st_now_ns() - start;
        best = took < best ? took : best;
    }
    note("%-7s %-40s %8.3f ns a %s", k->name, what, (double)best / 10 / parts, part);
}

static void bench(struct work *w)
{
    for (int32_t i = 0; i < SCAN; i++)
        w->in[i] = (uint8_t)(i > 0 && w->in[i - 1] == 255 ? 0 : below(256));
    fill(w->row[0], sizeof w->row);
    for (int32_t i = 0; i < 64; i++)
        w->quant.zigzag[i] = w->quant.natural[i] = 2;
    report("unstuff", work_unstuff, w, SCAN, "byte");
    static const uint32_t ends[] = {1, ST_IDCT_QUARTER, 32, 64};
    for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
        char what[64];
        for (int32_t b = 0; b < LONG / 8; b++) {
            w->blocks[b] = (struct st_jpeg_block){w->coefs[b], ends[e]};
            for (uint32_t i = 0; i < 64; i++)
                w->coefs[b][i] = (int16_t)(i < ends[e] ? (int32_t)below(9) - 4 : 0);
        }
        snprintf(what, sizeof what, "transform, up to %u coefficients", ends[e]);
        report(what, work_transform, w, LONG / 8, "block");
    }
    report("h2v1", work_h2v1, w, LONG, "pixel");
    report("h2v2", work_h2v2, w, LONG, "pixel");
    report("h1v2", work_h1v2, w, LONG, "pixel");
    report("grey", work_grey, w, LONG, "pixel");
    report("ycc", work_ycc, w, LONG, "pixel");
}

int main(int argc, char **argv)
{
    static struct work work;
    const enum st_cpu_level best = st_cpu_level();
    for (int level = ST_CPU_C; level <= ST_CPU_AVX512; level++) {
        k = st_jpeg_kernels_for((enum st_cpu_level)level);
        if (strcmp(k->name, st_cpu_level_name((enum st_cpu_level)level)))
            continue; /* not of this architecture */
        if (level > (int)best) {
            skip(k->name, "this CPU does not have it");
            continue;
        }
        check_variant();
        if (argc > 1 && !strcmp(argv[1], "--bench"))
            bench(&work);
    }
    return done_testing();
}
