/* The default shuffle is a permutation for every count, and no test tells it from chance. */
#include "order/shuffle.h"
#include "stat.h"

#include <string.h>

enum { LARGEST = 1 << 17 };
static uint32_t drawn[LARGEST];
static uint8_t seen[LARGEST];

static uint64_t shuffle_at(const void *self, uint64_t position) { return st_shuffle_at(self, position); }
static uint64_t network_at(const void *self, uint64_t position) { return st_network_at(self, position); }

static bool is_permutation(uint64_t (*at)(const void *, uint64_t), const void *self, uint64_t count)
{
    memset(seen, 0, count);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t sample = at(self, i);
        if (sample >= count || seen[sample]++)
            return false;
    }
    return true;
}

static void permutations(void)
{
    static const uint64_t counts[] = {1 << 12, (1 << 12) + 1, 10007,  (1 << 16) - 1,
                                      1 << 16, (1 << 16) + 1, LARGEST};
    struct st_shuffle shuffle;
    bool holds = true;
    for (uint64_t count = 1; count <= 1100; count++) {
        st_shuffle_init(&shuffle, count, count, 1);
        holds &= is_permutation(shuffle_at, &shuffle, count);
    }
    ok(holds, "a permutation for every count up to 1,100");
    holds = true;
    for (uint64_t count = 2; count <= 300; count++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            st_network_init(&shuffle.network, count, seed, 0);
            holds &= is_permutation(network_at, &shuffle.network, count);
        }
    ok(holds, "and so is the network alone, down to 2");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        st_shuffle_init(&shuffle, counts[i], 3, i);
        ok(is_permutation(shuffle_at, &shuffle, counts[i]), "a permutation of %llu",
           (unsigned long long)counts[i]);
    }
}

/* Where all samples cannot be listed: inside, and no two alike among many. */
static void huge_counts(void)
{
    static const uint64_t counts[] = {1000000000,       (1ull << 32) - 1, 1ull << 32, (1ull << 32) + 1,
                                      (1ull << 62) + 5, (1ull << 63) - 1, 1ull << 63, UINT64_MAX};
    enum { SLOTS = 1 << 16, ASKED = 20000 };
    static uint64_t slots[SLOTS];
    struct st_shuffle shuffle;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        bool inside = true, distinct = true;
        memset(slots, 0xff, sizeof slots);
        st_shuffle_init(&shuffle, counts[k], 9, k);
        for (uint64_t i = 0; i < ASKED; i++) {
            const uint64_t sample = st_shuffle_at(&shuffle, i % 2 ? counts[k] - 1 - i : i);
            inside &= sample < counts[k];
            uint64_t slot = sample * 0x9e3779b97f4a7c15u >> 48;
            while (slots[slot] != UINT64_MAX && slots[slot] != sample)
                slot = (slot + 1) % SLOTS;
            distinct &= slots[slot] != sample;
            slots[slot] = sample;
        }
        ok(inside && distinct, "positions of %llu samples from both ends",
           (unsigned long long)counts[k]);
    }
}

/* The number of the permutation among all `count`! of them. */
static uint32_t permutation_number(const struct st_shuffle *shuffle, uint32_t count)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t smaller_after = 0;
        for (uint32_t j = i + 1; j < count; j++)
            smaller_after += st_shuffle_at(shuffle, j) < st_shuffle_at(shuffle, i);
        number = number * (count - i) + smaller_after;
    }
    return number;
}

/* Every one of the count! permutations is equally likely, over seeds and over epochs. */
static void all_permutations(void)
{
    uint64_t counts[720];
    struct st_shuffle shuffle;
    uint32_t factorial = 1;
    for (uint32_t count = 2; count <= 6; count++) {
        factorial *= count;
        for (int by_epoch = 0; by_epoch < 2; by_epoch++) {
            const uint64_t runs = factorial * 100;
            memset(counts, 0, sizeof counts);
            for (uint64_t run = 0; run < runs; run++) {
                st_shuffle_init(&shuffle, count, by_epoch ? 77 : run, by_epoch ? run : 0);
                counts[permutation_number(&shuffle, count)]++;
            }
            ok_likely(chi_deviate(chi_flat(counts, factorial, 100), factorial - 1.0),
                      "all %u permutations of %u are as likely, over %s", factorial, count,
                      by_epoch ? "epochs" : "seeds");
        }
    }
}

/* Bins of positions against bins of samples. A permutation fills rows and columns evenly by itself,
 * which leaves (bins - 1)^2 degrees of freedom and shrinks the deviations by (count - 1) / count. */
static void positions(uint64_t count, uint64_t bins, uint64_t runs)
{
    static uint64_t counts[64 * 64];
    struct st_shuffle shuffle;
    memset(counts, 0, sizeof counts);
    for (uint64_t seed = 0; seed < runs; seed++) {
        st_shuffle_init(&shuffle, count, seed, 0);
        for (uint64_t i = 0; i < count; i++)
            counts[i * bins / count * bins + st_shuffle_at(&shuffle, i) * bins / count]++;
    }
    const double expected = (double)(count * runs) / (double)(bins * bins);
    const double chi = chi_flat(counts, bins * bins, expected) * (double)(count - 1) / (double)count;
    ok_likely(chi_deviate(chi, (double)((bins - 1) * (bins - 1))),
              "every position of %llu gets every sample as often", (unsigned long long)count);
}

/* Three positions `step` apart, 8 bins each: neighbours, cells of one row or column of the grid,
 * positions of one rank. Draws without replacement are close enough to independent where count is large.
 */
static void triples(uint64_t count, uint64_t step, uint64_t asked)
{
    static uint64_t counts[512], low_counts[512];
    struct st_shuffle shuffle;
    memset(counts, 0, sizeof counts);
    memset(low_counts, 0, sizeof low_counts);
    for (uint64_t i = 0; i < asked; i++) {
        uint64_t cell = 0, low_cell = 0;
        if (i % 1000 == 0)
            st_shuffle_init(&shuffle, count, 1, i / 1000);
        for (uint64_t k = 0; k < 3; k++) {
            const uint64_t sample = st_shuffle_at(&shuffle, ((i % 1000) * 3 * step + k * step) % count);
            cell = cell * 8 + (uint64_t)((unsigned __int128)sample * 8 / count);
            low_cell = low_cell * 8 + sample % 8;
        }
        counts[cell]++;
        low_counts[low_cell]++;
    }
    ok_likely(chi_deviate(chi_flat(counts, 512, (double)asked / 512), 511),
              "positions %llu apart of %llu know nothing of each other", (unsigned long long)step,
              (unsigned long long)count);
    ok_likely(chi_deviate(chi_flat(low_counts, 512, (double)asked / 512), 511),
              "nor do the samples' low bits");
}

/* The step from one sample to the next, round the circle, is any of 1 .. count - 1. */
static void steps(uint64_t count)
{
    enum { BINS = 89, RUNS = 300, ASKED = 1000 }; /* 89 divides 2047, the steps of the smallest count */
    uint64_t counts[BINS] = {0};
    double products = 0;
    struct st_shuffle shuffle;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        st_shuffle_init(&shuffle, count, seed, 5);
        uint64_t before = st_shuffle_at(&shuffle, 0);
        for (uint64_t i = 1; i <= ASKED; i++) {
            const uint64_t sample = st_shuffle_at(&shuffle, i);
            const uint64_t step = sample > before ? sample - before : count - (before - sample);
            counts[(unsigned __int128)(step - 1) * BINS / (count - 1)]++;
            products += ((double)sample / (double)count - 0.5) * ((double)before / (double)count - 0.5);
            before = sample;
        }
    }
    ok_likely(chi_deviate(chi_flat(counts, BINS, (double)RUNS * ASKED / BINS), BINS - 1),
              "steps between neighbours of %llu are even", (unsigned long long)count);
    ok_likely(products * 12 / sqrt((double)RUNS * ASKED), "and neighbours do not correlate");
}

/* The same position under neighbouring seeds, or epochs. */
static void neighbouring_keys(bool by_epoch)
{
    enum { BINS = 16, RUNS = 500, ASKED = 200 };
    const uint64_t count = 1281167;
    uint64_t counts[BINS * BINS] = {0};
    struct st_shuffle a, b;
    for (uint64_t run = 0; run < RUNS; run++) {
        st_shuffle_init(&a, count, by_epoch ? 4 : run, by_epoch ? run : 0);
        st_shuffle_init(&b, count, by_epoch ? 4 : run + 1, by_epoch ? run + 1 : 0);
        for (uint64_t i = 0; i < ASKED; i++)
            counts[st_shuffle_at(&a, i) * BINS / count * BINS + st_shuffle_at(&b, i) * BINS / count]++;
    }
    ok_likely(chi_deviate(chi_flat(counts, BINS * BINS, (double)RUNS * ASKED / (BINS * BINS)),
                          BINS * BINS - 1),
              "one %s says nothing about the next", by_epoch ? "epoch" : "seed");
}

/* Fixed points are Poisson with mean 1, half of all permutations are even, cycles number H(count) on
 * average. */
static void shape(uint64_t count)
{
    enum { RUNS = 3000 };
    static const double poisson[] = {0.36787944, 0.36787944, 0.18393972, 0.06131324,
                                     0.01898816}; /* last: >= 4 */
    uint64_t fixed_counts[5] = {0}, even = 0;
    double cycles_sum = 0, harmonic = 0, harmonic2 = 0, chi = 0;
    struct st_shuffle shuffle;
    for (uint64_t i = 1; i <= count; i++) {
        harmonic += 1 / (double)i;
        harmonic2 += 1 / (double)(i * i);
    }
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        uint64_t fixed = 0, cycles = 0;
        st_shuffle_init(&shuffle, count, seed, 8);
        for (uint64_t i = 0; i < count; i++) {
            drawn[i] = (uint32_t)st_shuffle_at(&shuffle, i);
            fixed += drawn[i] == i;
        }
        memset(seen, 0, count);
        for (uint64_t i = 0; i < count; i++) {
            cycles += !seen[i];
            for (uint64_t j = i; !seen[j]; j = drawn[j])
                seen[j] = 1;
        }
        fixed_counts[fixed < 4 ? fixed : 4]++;
        even += (count - cycles) % 2 == 0;
        cycles_sum += (double)cycles;
    }
    for (int i = 0; i < 5; i++) {
        const double expected = poisson[i] * RUNS;
        chi += ((double)fixed_counts[i] - expected) * ((double)fixed_counts[i] - expected) / expected;
    }
    ok_likely(chi_deviate(chi, 4), "fixed points of %llu are Poisson", (unsigned long long)count);
    ok_likely(((double)even - RUNS / 2.0) / sqrt(RUNS / 4.0), "half of all permutations are even");
    ok_likely((cycles_sum / RUNS - harmonic) / sqrt((harmonic - harmonic2) / RUNS),
              "as many cycles as by chance");
}

/* What a network with too few rounds cannot hide (with four this fails): two cells of one row are pushed
 * apart by the same hash, and come to lie in one column more rarely than chance would have it. */
static void pairs_on_the_grid(void)
{
    enum { COUNT = 64, SIDE = 8, RUNS = 20000 };
    const double expected = COUNT * (SIDE - 1) / 2.0 * (SIDE - 1) / (COUNT - 1);
    double sums[4] = {0}, squares[4] = {0};
    struct st_network network;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        double met[4] = {0};
        st_network_init(&network, COUNT, seed, 0);
        for (uint64_t i = 0; i < COUNT; i++)
            drawn[i] = (uint32_t)st_network_at(&network, i);
        for (uint32_t i = 0; i < COUNT; i++)
            for (uint32_t j = i + 1; j < COUNT; j++) {
                const bool row = drawn[i] / SIDE == drawn[j] / SIDE,
                           column = drawn[i] % SIDE == drawn[j] % SIDE;
                met[0] += i / SIDE == j / SIDE && row;
                met[1] += i / SIDE == j / SIDE && column;
                met[2] += i % SIDE == j % SIDE && row;
                met[3] += i % SIDE == j % SIDE && column;
            }
        for (int k = 0; k < 4; k++) {
            sums[k] += met[k];
            squares[k] += met[k] * met[k];
        }
    }
    for (int k = 0; k < 4; k++) {
        const double mean = sums[k] / RUNS, variance = squares[k] / RUNS - mean * mean;
        ok_likely((mean - expected) / sqrt(variance / RUNS),
                  "cells of one %s meet in one %s as often as by chance", k < 2 ? "row" : "column",
                  k % 2 ? "column" : "row");
    }
}

static void same_bits_everywhere(void)
{
    static const uint64_t counts[] = {5, 1024, 1025, 1281167, 1000000000, UINT64_MAX};
    uint64_t hash = HASH_START;
    struct st_shuffle shuffle;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        st_shuffle_init(&shuffle, counts[k], 42 + k, k);
        for (uint64_t i = 0; i < 1000 && i < counts[k]; i++)
            hash = hash_bits(hash, st_shuffle_at(&shuffle, i));
    }
    if (!ok(hash == 0xe1c2b28f7f3da848u, "the same permutations on every machine and in every release"))
        note("hash 0x%016llx", (unsigned long long)hash);
}

int main(void)
{
    permutations();
    huge_counts();
    all_permutations();
    positions(7, 7, 20000);
    positions(60, 60, 2000);
    positions(1000, 50, 300);
    positions(1025, 41, 300);
    positions(2048, 64, 300);
    positions(10007, 32, 50);
    triples(1281167, 1, 200000);
    triples(1281167, 1024, 200000);
    triples(1281167, 1252, 200000);
    triples(1000000000, 1, 200000);
    triples(1000000000, 1 << 15, 200000);
    triples(UINT64_MAX, 1ull << 32, 200000);
    steps(2048);
    steps(1281167);
    steps(1000000000);
    steps(UINT64_MAX);
    neighbouring_keys(false);
    neighbouring_keys(true);
    shape(64);
    shape(1024);
    shape(1025);
    shape(1500);
    pairs_on_the_grid();
    same_bits_everywhere();
    return done_testing();
}
