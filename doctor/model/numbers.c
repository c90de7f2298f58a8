/* numbers.c - statistics of series and of tables
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/numbers.h"

#include "base/mem.h"
#include "doctor/model/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DRAWN = 400,          /* replicas of a bootstrap */
    PERIOD_VALUES = 4096, /* only this many of the last values are used */
    PERIOD_MOST = 512,
};
static const double PERIOD_CORRELATION = 0.4;

void dr_sum_add(struct dr_sum *sum, double value)
{
    if (isnan(value))
        return;
    sum->most = sum->count ? fmax(sum->most, value) : value;
    sum->least = sum->count ? fmin(sum->least, value) : value;
    sum->sum += value;
    sum->count++;
}

double dr_sum_mean(const struct dr_sum *sum) { return sum->count ? sum->sum / (double)sum->count : NAN; }

void dr_forget(void *doubles, size_t size)
{
    for (size_t at = 0; at + sizeof(double) <= size; at += sizeof(double))
        memcpy((char *)doubles + at, &(double){NAN}, sizeof(double));
}

double dr_share(double part, double whole) { return whole > 0 ? part / whole : NAN; }

static int compare_doubles(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

double dr_percentile(double *values, uint32_t count, double share)
{
    if (!count)
        return NAN;
    qsort(values, count, sizeof *values, compare_doubles);
    const double at = share * (count - 1);
    const uint32_t below = (uint32_t)at, above = below + 1 < count ? below + 1 : below;
    return values[below] + (at - below) * (values[above] - values[below]);
}

bool dr_ratio_interval(const double *part, const double *whole, uint32_t count, double *low,
                       double *high)
{
    *low = *high = NAN;
    const uint32_t block = dr_block_length(count);
    if (count < 2 * block)
        return true; /* too few to tell */
    /* Prefix sums over the series twice, so that a block may wrap around. */
    double *sums = st_calloc(4 * (uint64_t)count + 2, sizeof *sums), ratio[DRAWN];
    if (!sums)
        return false;
    double *wholes = sums + 2 * (size_t)count + 1;
    for (uint32_t k = 0; k < 2 * count; k++) {
        sums[k + 1] = sums[k] + part[k % count];
        wholes[k + 1] = wholes[k] + whole[k % count];
    }
    struct dr_random random = {.state = 13};
    for (int k = 0; k < DRAWN; k++) {
        double a = 0, b = 0;
        for (uint32_t n = 0; n < count; n += block) {
            const uint32_t at = dr_random_below(&random, count);
            a += sums[at + block] - sums[at];
            b += wholes[at + block] - wholes[at];
        }
        ratio[k] = b > 0 ? a / b : 0;
    }
    free(sums);
    *low = dr_percentile(ratio, DRAWN, 0.025);
    *high = dr_percentile(ratio, DRAWN, 0.975);
    return true;
}

double dr_period(const double *values, uint32_t count)
{
    if (count > PERIOD_VALUES)
        values += count - PERIOD_VALUES, count = PERIOD_VALUES;
    double correlation[PERIOD_MOST + 2] = {1}, mean = 0, variance = 0, best = 0;
    for (uint32_t k = 0; k < count; k++)
        mean += values[k] / count;
    for (uint32_t k = 0; k < count; k++)
        variance += (values[k] - mean) * (values[k] - mean);
    const uint32_t most = count / 4 < PERIOD_MOST ? count / 4 : PERIOD_MOST;
    if (!(variance > 0) || most < 3 || !(variance > 1e-12 * mean * mean * count))
        return NAN;
    for (uint32_t lag = 1; lag <= most; lag++) {
        double sum = 0;
        for (uint32_t k = lag; k < count; k++)
            sum += (values[k] - mean) * (values[k - lag] - mean);
        correlation[lag] = sum / variance * count / (count - lag);
    }
    for (uint32_t lag = 2; lag < most; lag++)
        best = fmax(best, correlation[lag]);
    for (uint32_t lag = 2; lag < most && best > PERIOD_CORRELATION; lag++)
        if (correlation[lag] >= 0.9 * best && correlation[lag] > correlation[lag - 1] &&
            correlation[lag] >= correlation[lag + 1])
            return lag;
    return NAN;
}

struct dr_rows dr_rows_between(const struct dr_run *run, uint64_t from_ns, uint64_t to_ns)
{
    struct dr_rows rows = {0, 0};
    if (!run->tick_ns)
        return rows;
    while (rows.from < run->machine.ticks && run->tick_ns[rows.from] < from_ns)
        rows.from++;
    for (rows.to = rows.from; rows.to < run->machine.ticks && run->tick_ns[rows.to] <= to_ns;)
        rows.to++;
    return rows;
}

struct dr_rows dr_rows_of(const struct dr_process *process, struct dr_rows rows)
{
    const uint32_t first = process->first_tick, ticks = process->table.values ? process->table.ticks : 0;
    rows.from = rows.from > first ? rows.from - first : 0;
    rows.to = rows.to > first ? rows.to - first : 0;
    rows.to = rows.to < ticks ? rows.to : ticks;
    rows.from = rows.from < rows.to ? rows.from : rows.to;
    return rows;
}

struct dr_sum dr_column(const struct dr_table *table, struct dr_rows rows, uint32_t signal)
{
    struct dr_sum sum = {0};
    for (uint32_t row = rows.from; table->values && row < rows.to; row++)
        dr_sum_add(&sum, dr_at(table, row, signal));
    return sum;
}

double dr_column_mean(const struct dr_table *table, struct dr_rows rows, uint32_t signal)
{
    const struct dr_sum sum = dr_column(table, rows, signal);
    return dr_sum_mean(&sum);
}
