/* albu.c - what the ops that change values as Albumentations does share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/albu/albu.h"

#include "base/functions.h"
#include "op/colour/tables.h"

#include <math.h>

int32_t st_albu_draw_whole(const struct st_list *range, struct st_rng *rng)
{
    const int64_t low = (int64_t)range->value[0], high = (int64_t)range->value[1];
    return (int32_t)(low + (int64_t)st_rng_below(rng, (uint64_t)(high - low + 1)));
}

int st_albu_whole(const struct st_list *range, const char *op, const char *name,
                  struct stoker_error *err)
{
    for (uint32_t k = 0; k < range->count; k++)
        if (range->value[k] != floor(range->value[k]))
            return st_fail(err, STOKER_EINVAL, "%s: %s must be integers, and %g is none", op, name,
                           range->value[k]);
    return STOKER_OK;
}

int32_t st_albu_draw_odd(const struct st_list *range, struct st_rng *rng)
{
    const int32_t low = (int32_t)range->value[0], high = (int32_t)range->value[1];
    return low + 2 * (int32_t)st_rng_below(rng, (uint64_t)((high - low) / 2 + 1));
}

int st_albu_odd(const struct st_list *range, const char *op, const char *name, struct stoker_error *err)
{
    const double low = range->value[0], high = range->value[1];
    if (fmod(low, 2) != 1 || fmod(high, 2) != 1)
        return st_fail(err, STOKER_EINVAL, "%s: %s must be odd, not %g to %g", op, name, low, high);
    return STOKER_OK;
}

int st_albu_replace(struct st_image *image, const uint8_t table[3][256], struct stoker_error *err)
{
    const size_t bytes = 3 * sizeof *table;
    if (!st_albu_changes(image))
        return STOKER_OK;
    uint8_t *kept = st_arena_take(&image->work->arena, bytes);
    if (!kept)
        return st_albu_no_memory("a table of values", err);
    memcpy(kept, table, bytes);
    return st_image_do(image, (struct st_pending){.kind = ST_PENDING_TABLE, .table = kept}, err);
}

void st_albu_turn_hues(uint8_t table[3][256], double by)
{
    for (int v = 0; v < 256; v++) {
        const double sum = v + by;
        const int32_t hue = (int32_t)(sum - ST_ALBU_HUES * floor(sum / ST_ALBU_HUES));
        table[0][v] = (uint8_t)(hue < ST_ALBU_HUES ? hue : 0);
        table[1][v] = table[2][v] = (uint8_t)v;
    }
}

/* The series of all odd powers over odd
 * factorials, whose terms are positive. */
double st_albu_below(double at)
{
    const double distance = fabs(at);
    double term = distance, sum = distance;
    if (distance > 7)
        return at > 0;
    for (int k = 3; term > sum * 1e-17; k += 2) {
        term *= distance * distance / k;
        sum += term;
    }
    const double part = sum * st_exp(-distance * distance / 2) * 0.3989422804014327; /* 1 / sqrt(2 pi) */
    return at < 0 ? 0.5 - part : 0.5 + part;
}

int st_albu_no_memory(const char *op, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: out of memory", op);
}
