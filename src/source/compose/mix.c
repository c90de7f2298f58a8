/* mix.c - datasets mixed by weight
 *
 * Position i of the mix is a pure function of (seed, i), so that the mix can be shuffled, split among
 * ranks and resumed like any dataset. Drawing a part at random for each position would be such a
 * function too, but the number of draws from a part before i could not be computed in O(1), so a part's
 * samples could only be drawn with replacement: after as many draws as it has samples, a third of them
 * would not have been seen.
 *
 * Instead positions are assigned evenly. Part 0 takes those where floor(i * share + phase) steps; part 1
 * takes those of the rest where the same expression with its share of the rest steps, and so on. This
 * gives the number of positions before i that belong to a part directly: the j-th of them is sample j of
 * the part's own endless list, one permutation of all its samples after another, each computed on
 * demand. So in any run of positions each part has its share, within one (or a few, with many parts),
 * and no sample of a part repeats before all of them have appeared once.
 *
 * The default length is such that every sample of every part appears: an epoch misses nothing, and parts
 * that are small for their weight repeat, in a different order each time. A shorter length is always the
 * same prefix of that sequence in every epoch, since a source does not know the epoch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/compose/compound.h"

#include "order/rng.h"
#include "order/shuffle.h"

#include <math.h>
#include <stdlib.h>

#define ONE (1ull << 32) /* a share of 100 % */

struct mix {
    uint64_t seed;
    uint32_t count;
    struct part {
        uint64_t samples;
        uint64_t share, phase; /* of what earlier parts left; fixed point, 32 fractional bits */
    } parts[];
};

/* How many of the first `positions` that reach this part it takes. */
static uint64_t taken(const struct part *part, uint64_t positions)
{
    return (uint64_t)(((unsigned __int128)positions * part->share + part->phase) >> 32);
}

static uint64_t shuffled(const struct mix *mix, uint32_t part, uint64_t draw)
{
    const uint64_t samples = mix->parts[part].samples;
    struct st_network network;
    if (samples == 1)
        return 0;
    st_network_init(&network, samples, mix->seed + part * 0x9e3779b97f4a7c15u, draw / samples);
    return st_network_at(&network, draw % samples);
}

static struct st_found find_draw(const void *map, uint64_t sample)
{
    const struct mix *mix = map;
    uint32_t part = 0;
    for (; part + 1 < mix->count; part++) {
        const uint64_t before = taken(&mix->parts[part], sample);
        if (taken(&mix->parts[part], sample + 1) > before) {
            sample = before;
            break;
        }
        sample -= before;
    }
    return (struct st_found){part, shuffled(mix, part, sample)};
}

/* ---- opening ------------------------------------------------------------------------------------ */

static int check_weights(struct stoker_dataset *const *parts, const double *weights, uint32_t count,
                         double *sum, struct stoker_error *err)
{
    *sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!isfinite(weights[i]) || weights[i] < 0)
            return st_fail(err, STOKER_EINVAL,
                           "mix: weight %u is %g; weights must be finite and at least 0", i, weights[i]);
        if (weights[i] > 0 && !st_dataset_count(parts[i]))
            return st_fail(err, STOKER_EINVAL, "mix: dataset %u is empty, but its weight is %g", i,
                           weights[i]);
        *sum += weights[i];
    }
    if (!(*sum > 0) || !isfinite(*sum))
        return st_fail(err, STOKER_EINVAL, "mix: the weights add up to %g; at least one must be above 0",
                       *sum);
    return 0;
}

/* The last part with a positive weight takes everything that is left. */
static void set_shares(struct mix *mix, const double *weights, double sum)
{
    struct st_rng rng;
    st_rng_init(&rng, mix->seed, 0, 0, ST_RNG_MIX);
    uint32_t last = mix->count - 1;
    while (last && !(weights[last] > 0))
        last--;
    mix->count = last + 1;
    for (uint32_t i = 0; i < mix->count; i++) {
        const double share = i == last ? 1 : weights[i] / sum;
        mix->parts[i].share = share >= 1 ? ONE : (uint64_t)(share * (double)ONE + 0.5);
        mix->parts[i].phase = mix->parts[i].share ? st_rng_u32(&rng) : 0;
        sum -= weights[i];
    }
}

/* How many of the first `positions` belong to the part. */
static uint64_t drawn(const struct mix *mix, uint32_t part, uint64_t positions)
{
    for (uint32_t i = 0; i < part; i++)
        positions -= taken(&mix->parts[i], positions);
    return taken(&mix->parts[part], positions);
}

/* The number of positions after which every sample of every part has appeared; UINT64_MAX if it cannot
 * be represented. */
static uint64_t whole_length(const struct mix *mix)
{
    uint64_t length = 0;
    for (uint32_t k = 0; k < mix->count; k++) {
        const uint64_t wanted = mix->parts[k].samples;
        uint64_t low = length, high = length > wanted ? length : wanted;
        while (mix->parts[k].share && drawn(mix, k, high) < wanted) {
            if (high > INT64_MAX / 2)
                return UINT64_MAX;
            low = high;
            high *= 2;
        }
        while (mix->parts[k].share && low < high) {
            const uint64_t middle = low + (high - low) / 2;
            if (drawn(mix, k, middle) < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        length = low;
    }
    return length;
}

int st_dataset_mix(struct stoker_dataset **out, struct stoker_dataset *const *parts,
                   const double *weights, uint32_t count, uint64_t samples, uint64_t seed,
                   struct stoker_error *err)
{
    double sum;
    if (!count)
        return st_fail(err, STOKER_EINVAL, "mix: no datasets given");
    const int rc = check_weights(parts, weights, count, &sum, err);
    if (rc)
        return rc;
    struct mix *mix = st_calloc(1, sizeof *mix + count * sizeof *mix->parts);
    if (!mix)
        return st_fail(err, STOKER_ENOMEM, "mix: out of memory");
    mix->seed = seed;
    mix->count = count;
    for (uint32_t i = 0; i < count; i++)
        mix->parts[i].samples = st_dataset_count(parts[i]);
    set_shares(mix, weights, sum);
    if (!samples)
        samples = whole_length(mix);
    if (samples > INT64_MAX) {
        free(mix);
        return st_fail(err, STOKER_ELIMIT,
                       "mix: a weight is so small that some samples of its dataset would never appear; "
                       "set the number of samples explicitly");
    }
    return st_compound_new(out, parts, count, samples, find_draw, mix, err);
}
