/* Philox gives the published answers, and what is drawn from it has the promised distribution. */
#include "order/normals.h"
#include "order/rng.h"
#include "stat.h"

#include <string.h>

static void known_answers(void)
{
    static const struct {
        const char *what;
        uint32_t counter[4], key[2], want[4];
    } vectors[] = {
        {"zeros", {0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {"ones",
         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {"digits of pi",
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        uint32_t out[4];
        st_philox4x32(vectors[i].key, vectors[i].counter, out);
        ok(memcmp(out, vectors[i].want, sizeof out) == 0, "Random123's vector of %s", vectors[i].what);
    }
}

static uint64_t first_draw(uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t op)
{
    struct st_rng rng;
    st_rng_init(&rng, seed, epoch, sample, op);
    return st_rng_u64(&rng);
}

static void function_of_its_key(void)
{
    const uint64_t seed = 0x0123456789abcdef, high = 1ull << 32;
    const uint32_t key[2] = {0x89abcdef, 0x01234567}, counter[4] = {7, 1, 5, 3u << 16};
    uint32_t out[4];
    st_philox4x32(key, counter, out);
    const uint64_t draw = first_draw(seed, 5, high + 7, 3);
    ok(draw == ((uint64_t)out[1] << 32 | out[0]), "seed is the key; sample, epoch and op the counter");
    ok(draw == first_draw(seed, 5, high + 7, 3), "equal keys draw equal numbers");
    const uint64_t others[] = {
        first_draw(seed + 1, 5, high + 7, 3), first_draw(seed + high, 5, high + 7, 3),
        first_draw(seed, 6, high + 7, 3),     first_draw(seed, 5 + high, high + 7, 3),
        first_draw(seed, 5, high + 8, 3),     first_draw(seed, 5, 7, 3),
        first_draw(seed, 5, high + 7, 4),     first_draw(seed, 5, high + 7, ST_RNG_ORDER),
    };
    bool differ = true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        differ &= others[i] != draw;
    ok(differ, "both halves of seed, epoch and sample count, and so does the op");
}

static void long_streams(void)
{
    struct st_rng rng, next_op;
    st_rng_init(&rng, 1, 2, 3, 4);
    const uint32_t first = st_rng_u32(&rng), second = st_rng_u32(&rng);
    for (uint32_t i = 2; i < 4u << 16; i++)
        st_rng_u32(&rng);
    st_rng_init(&next_op, 1, 2, 3, 5);
    const uint32_t a = st_rng_u32(&rng), b = st_rng_u32(&rng);
    ok(a != first && b != second, "2^16 blocks later the stream does not repeat");
    ok(a != st_rng_u32(&next_op) && b != st_rng_u32(&next_op), "nor is it the next op's");
}

static void uniform(void)
{
    enum { CELLS = 1000 };
    const int draws = (int)share_of(1000000);
    static uint64_t counts[CELLS];
    struct st_rng rng;
    bool inside = true;
    double sum = 0, products = 0, before = 0.5;
    st_rng_init(&rng, 11, 0, 0, 0);
    for (int i = 0; i < draws; i++) {
        const double x = st_rng_f64(&rng);
        inside &= x >= 0 && x < 1;
        counts[(int)(x * CELLS)]++;
        sum += x;
        products += (x - 0.5) * (before - 0.5);
        before = x;
    }
    ok(inside, "f64 lies in [0, 1)");
    ok_likely(chi_deviate(chi_flat(counts, CELLS, draws / CELLS), CELLS - 1), "and is spread evenly");
    ok_likely((sum / draws - 0.5) * sqrt(12.0 * draws), "with mean 1/2");
    ok_likely(products * 12 / sqrt(draws), "one draw says nothing about the next");

    inside = true;
    for (int i = 0; i < 10000; i++) {
        const double x = st_rng_range(&rng, -3, 0.5), y = st_rng_range(&rng, 1, nextafter(1, 2));
        inside &= x >= -3 && x < 0.5 && y == 1;
    }
    ok(inside && st_rng_range(&rng, 2, 2) == 2,
       "range stays below its upper end, also where that rounds");
}

/* Bounds of 3/4 of the range show the bias of a plain modulo at once: a third of the results twice. */
static void below(void)
{
    const int draws = (int)share_of(300000);
    static const uint64_t bounds[] = {1,        2,          3,          7,          1000,
                                      3u << 30, UINT32_MAX, 1ull << 32, 3ull << 62, UINT64_MAX};
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
        const uint64_t bound = bounds[k], cells = bound < 12 ? bound : 12;
        uint64_t counts[12] = {0};
        bool inside = true;
        struct st_rng rng;
        st_rng_init(&rng, 5, k, 0, 0);
        for (int i = 0; i < draws; i++) {
            const uint64_t x = st_rng_below(&rng, bound);
            inside &= x < bound;
            counts[(unsigned __int128)x * cells / bound % 12]++;
        }
        double chi = 0;
        for (uint64_t c = 0; c < cells; c++) {
            const unsigned __int128 low = ((unsigned __int128)bound * c + cells - 1) / cells;
            const unsigned __int128 high = ((unsigned __int128)bound * (c + 1) + cells - 1) / cells;
            const double expected = draws * ((double)(high - low) / (double)bound);
            chi += ((double)counts[c] - expected) * ((double)counts[c] - expected) / expected;
        }
        ok(inside, "below(%llu) stays below", (unsigned long long)bound);
        if (cells > 1)
            ok_likely(chi_deviate(chi, (double)cells - 1), "below(%llu) is even",
                      (unsigned long long)bound);
    }
}

/* `layers`: NULL for st_rng_normal. */
static void normal(const char *name, const struct st_normals *layers)
{
    enum { CELLS = 200 };
    const int draws = (int)share_of(400000);
    uint64_t counts[CELLS] = {0};
    struct st_rng rng;
    double sum = 0, squares = 0, fourths = 0;
    st_rng_init(&rng, 3, 1, 4, 1);
    for (int i = 0; i < draws; i++) {
        const double x = layers ? st_normals_draw(layers, &rng) : st_rng_normal(&rng);
        sum += x;
        squares += x * x;
        fourths += x * x * x * x;
        const double below = 0.5 * erfc(-x / sqrt(2)); /* uniform if x is normal */
        counts[below < 1 ? (int)(below * CELLS) : CELLS - 1]++;
    }
    ok_likely(sum / sqrt(draws), "%s has mean 0", name);
    ok_likely((squares / draws - 1) * sqrt(draws / 2.0), "variance 1");
    ok_likely((fourths / draws - 3) * sqrt(draws / 96.0), "and the right tails");
    ok_likely(chi_deviate(chi_flat(counts, CELLS, draws / CELLS), CELLS - 1),
              "every half percent is hit evenly");
}

/* Both moments of the variate are its shape k; the variance of (x - k)^2 is 2 k^2 + 6 k. */
static void gamma_variates(void)
{
    static const double shapes[] = {0.4, 1, 7.5};
    const int draws = (int)share_of(200000);
    for (int i = 0; i < 3; i++) {
        const double k = shapes[i];
        double sum = 0, squares = 0;
        struct st_rng rng;
        st_rng_init(&rng, 2, 7, 1, 8);
        for (int n = 0; n < draws; n++) {
            const double apart = exp(st_rng_log_gamma(&rng, k)) - k;
            sum += apart;
            squares += apart * apart;
        }
        ok_likely(sum / sqrt(draws * k), "gamma variates of shape %g have that mean", k);
        ok_likely((squares / draws - k) * sqrt(draws / (2 * k * k + 6 * k)), "and that variance");
    }
}

static void same_bits_everywhere(void)
{
    uint64_t hash = HASH_START;
    struct st_rng rng;
    st_rng_init(&rng, 42, 7, 1000, 2);
    for (int i = 0; i < 1000; i++) {
        double value[] = {st_rng_f64(&rng), st_rng_range(&rng, -1, 3), st_rng_normal(&rng)};
        for (int k = 0; k < 3; k++) {
            uint64_t bits;
            memcpy(&bits, &value[k], sizeof bits);
            hash = hash_bits(hash, bits);
        }
        hash = hash_bits(hash, st_rng_below(&rng, 1000 + (uint64_t)i));
    }
    if (!ok(hash == 0x583dcb3a4b2b5a43u, "draws have the same bits on every machine"))
        note("hash 0x%016llx", (unsigned long long)hash);
}

int main(void)
{
    static struct st_normals layers;
    known_answers();
    function_of_its_key();
    long_streams();
    uniform();
    below();
    normal("normal", NULL);
    st_normals_init(&layers);
    normal("of many", &layers);
    gamma_variates();
    same_bits_everywhere();
    return done_testing();
}
