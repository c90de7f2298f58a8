/* across_x86.c - plans of the horizontal pass for AVX2 and AVX-512: taps in pairs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/kernels/across_x86.h"

#include <string.h>

enum { VALUES_MAX = 16 };

/* Number of pairs in a wide plan: whole vectors of four taps for three channels, or of sixteen for
 * one. */
static int32_t wide_pairs(const struct st_taps *taps, int32_t channels)
{
    const int32_t vector = channels == 1 ? 16 : 4;
    return (taps->width + vector - 1) / vector * vector / 2;
}

static size_t unit_size(const struct st_taps *taps, struct st_cut cut)
{
    const size_t pairs = ((size_t)taps->width + 1) / 2;
    return sizeof(struct st_unit) + pairs * 2 * (size_t)cut.values * sizeof(int32_t);
}

uint64_t st_pairs_size(const struct st_taps *taps, int32_t channels, struct st_cut cut)
{
    const uint64_t values = (uint64_t)taps->count * (uint64_t)channels;
    const uint64_t units = (values + (uint64_t)cut.values - 1) / (uint64_t)cut.values;
    const uint64_t narrow = units * unit_size(taps, cut);
    const uint64_t wide =
        (uint64_t)taps->count * (uint64_t)wide_pairs(taps, channels) * 2 * sizeof(int32_t);
    return sizeof(struct st_pairs) + (narrow > wide ? narrow : wide);
}

/* The loads and shuffles of one unit whose values' taps start at `start`. False if values that share a
 * load are too far apart. */
static bool plan_index(struct st_unit *unit, const int32_t *start, int32_t channels, struct st_cut cut)
{
    memset(unit->index, 0x80, sizeof unit->index);
    for (int32_t part = 0; part < cut.values / cut.table; part++) {
        const int32_t *of = start + part * cut.table;
        uint8_t *index = unit->index + part * cut.table * 4;
        const int32_t low = unit->start[part] = st_lowest(of, cut.table);
        for (int32_t i = 0; i < cut.table; i++) {
            if (of[i] - low + channels >= cut.reach)
                return false;
            index[i * 4] = (uint8_t)(of[i] - low);
            index[i * 4 + 2] = (uint8_t)(of[i] - low + channels);
        }
    }
    return true;
}

static void plan_weights(struct st_unit *unit, const int32_t *const *weight, int32_t width,
                         struct st_cut cut)
{
    int32_t *to = unit->weight;
    for (int32_t t = 0; t < width; t += 2, to += 2 * cut.values)
        for (int32_t i = 0; i < cut.values; i++) {
            const int32_t a = weight[i][t], b = t + 1 < width ? weight[i][t + 1] : 0;
            to[i] = st_pair_low(a, b);
            to[cut.values + i] = st_pair_high(a, b);
        }
}

static bool plan_units(struct st_pairs *plan, const struct st_taps *taps, struct st_cut cut)
{
    int32_t pixel = 0, channel = 0;
    for (int32_t u = 0; u < plan->units; u++) {
        struct st_unit *unit = (struct st_unit *)(plan->data + (size_t)u * plan->unit_size);
        int32_t start[VALUES_MAX];
        const int32_t *weight[VALUES_MAX];
        for (int32_t i = 0; i < cut.values; i++) {
            start[i] = taps->first[pixel] * plan->channels + channel;
            weight[i] = taps->weight + (size_t)pixel * (size_t)taps->width;
            st_next_value(taps, plan->channels, &pixel, &channel);
        }
        if (!plan_index(unit, start, plan->channels, cut))
            return false;
        plan_weights(unit, weight, taps->width, cut);
    }
    return true;
}

static void plan_wide(struct st_pairs *plan, const struct st_taps *taps)
{
    plan->wide = true;
    plan->first = taps->first;
    plan->pairs = wide_pairs(taps, plan->channels);
    int32_t *low = (int32_t *)plan->data;
    for (int32_t o = 0; o < taps->count; o++, low += 2 * plan->pairs) {
        const int32_t *weight = taps->weight + (size_t)o * (size_t)taps->width;
        for (int32_t p = 0; p < plan->pairs; p++) {
            const int32_t a = 2 * p < taps->width ? weight[2 * p] : 0;
            const int32_t b = 2 * p + 1 < taps->width ? weight[2 * p + 1] : 0;
            low[p] = st_pair_low(a, b);
            low[plan->pairs + p] = st_pair_high(a, b);
        }
    }
}

void st_pairs_plan(struct st_pairs *plan, const struct st_taps *taps, int32_t channels,
                   struct st_cut cut)
{
    const int32_t values = taps->count * channels;
    *plan = (struct st_pairs){.channels = channels,
                              .values = values,
                              .units = (values + cut.values - 1) / cut.values,
                              .pairs = (taps->width + 1) / 2,
                              .unit_size = unit_size(taps, cut)};
    if (!plan_units(plan, taps, cut))
        plan_wide(plan, taps);
}

int32_t st_down_pairs(struct st_down_pair *pairs, const uint8_t *const *rows, const int32_t *weight,
                      int32_t taps)
{
    for (int32_t t = 0; t < taps; t += 2) {
        const bool both = t + 1 < taps;
        const int32_t a = weight[t], b = both ? weight[t + 1] : 0;
        pairs[t / 2] = (struct st_down_pair){
            st_pair_low(a, b), st_pair_high(a, b), {rows[t], both ? rows[t + 1] : rows[t]}};
    }
    return (taps + 1) / 2;
}
