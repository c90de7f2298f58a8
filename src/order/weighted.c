/* weighted.c - draws in proportion to weights, by an alias table
 *
 * The weights are scaled to a mean of 1. Samples above the mean (heavy) fill up the cells of those below
 * it (light), so that each cell holds at most two samples and all cells are equally likely.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "order/weighted.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "order/rng.h"

struct scale {
    const double *weights;
    uint64_t count;
    uint64_t largest; /* the sample with the largest weight */
    double factor;
};

/* Divides by the largest weight first, so that no finite weights overflow. */
static double scaled(const struct scale *scale, uint64_t i)
{
    return scale->weights[i] / scale->weights[scale->largest] * scale->factor;
}

static int scale_weights(struct scale *scale, struct stoker_error *err)
{
    const double *weights = scale->weights;
    scale->largest = 0;
    for (uint64_t i = 0; i < scale->count; i++) {
        if (!isfinite(weights[i]) || weights[i] < 0)
            return st_fail(err, STOKER_EINVAL,
                           "weights: the weight at position %" PRIu64
                           " is %g; weights must be finite and not negative",
                           i, weights[i]);
        if (weights[i] > weights[scale->largest])
            scale->largest = i;
    }
    if (weights[scale->largest] == 0)
        return st_fail(err, STOKER_EINVAL,
                       "weights: all of them (%" PRIu64 ") are 0; at least one must be positive",
                       scale->count);
    double sum = 0;
    scale->factor = 1;
    for (uint64_t i = 0; i < scale->count; i++)
        sum += scaled(scale, i);
    scale->factor = (double)scale->count / sum;
    return STOKER_OK;
}

/* The first light (or heavy) sample from `i` on; `count` if there is none. */
static uint64_t next_sample(const struct scale *scale, uint64_t i, bool light)
{
    while (i < scale->count && (scaled(scale, i) < 1) != light)
        i++;
    return i;
}

/* Walks light and heavy samples in parallel. `left` is the remaining weight of the current heavy sample:
 * while it is above 1, it fills the next light cell; then its own cell has a gap, which the next heavy
 * sample fills. */
static void fill_cells(struct st_alias *cells, const struct scale *scale)
{
    const uint64_t count = scale->count;
    uint64_t light = next_sample(scale, 0, true), heavy = next_sample(scale, 0, false);
    if (heavy == count) /* equal weights whose mean was rounded up */
        heavy = scale->largest;
    double left = scaled(scale, heavy);

    for (;;) {
        if (left > 1 && light < count) {
            cells[light] = (struct st_alias){scaled(scale, light), heavy};
            left -= 1 - cells[light].keep;
            light = next_sample(scale, light + 1, true);
            continue;
        }
        const uint64_t next = next_sample(scale, heavy + 1, false);
        if (next == count)
            break;
        cells[heavy] = (struct st_alias){left, next};
        left += scaled(scale, next) - 1;
        heavy = next;
    }
    /* Light cells left over by rounding; those of weight 0 still keep nothing. */
    for (; light < count; light = next_sample(scale, light + 1, true))
        cells[light] = (struct st_alias){scaled(scale, light), heavy};
    cells[heavy] = (struct st_alias){1, heavy};
}

int st_weighted_open(struct st_weighted *weighted, const double *weights, uint64_t count,
                     struct stoker_error *err)
{
    struct scale scale = {.weights = weights, .count = count};
    const int rc = scale_weights(&scale, err);
    if (rc < 0)
        return rc;
    weighted->count = count;
    weighted->cells = st_calloc(count, sizeof *weighted->cells);
    if (!weighted->cells)
        return st_fail(err, STOKER_ENOMEM, "weights: no memory for a table of %" PRIu64 " samples",
                       count);
    fill_cells(weighted->cells, &scale);
    return STOKER_OK;
}

uint64_t st_weighted_at(const struct st_weighted *weighted, uint64_t seed, uint64_t epoch,
                        uint64_t position)
{
    struct st_rng rng;
    st_rng_init(&rng, seed, epoch, position, ST_RNG_WEIGHTED);
    const uint64_t cell = st_rng_below(&rng, weighted->count);
    const struct st_alias *alias = &weighted->cells[cell];
    return st_rng_f64(&rng) < alias->keep ? cell : alias->other;
}

void st_weighted_close(struct st_weighted *weighted)
{
    free(weighted->cells);
    memset(weighted, 0, sizeof *weighted);
}
