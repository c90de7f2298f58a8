/* samples_merge.c - merges ticks into rows and rows in pairs: means over time of known values
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/record/samples_kept.h"

#include <math.h>
#include <string.h>

void dr_row_add(struct dr_row_sum *sums, const double *values, uint32_t count, double seconds)
{
    for (uint32_t k = 0; k < count; k++)
        if (!isnan(values[k])) {
            sums[k].value += values[k] * seconds;
            sums[k].seconds += seconds;
        }
}

void dr_row_end(float *row, struct dr_row_sum *sums, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        row[k] = sums[k].seconds > 0 ? (float)(sums[k].value / sums[k].seconds) : NAN;
    memset(sums, 0, count * sizeof *sums);
}

static float mean(float a, double a_seconds, float b, double b_seconds)
{
    if (isnan(a))
        return b;
    return isnan(b) ? a : (float)((a * a_seconds + b * b_seconds) / (a_seconds + b_seconds));
}

static double row_seconds(const struct dr_samples *samples, uint32_t tick)
{
    const uint64_t from = tick ? samples->tick_ns[tick - 1] : samples->start_ns;
    return samples->tick_ns[tick] > from ? (double)(samples->tick_ns[tick] - from) / 1e9 : 1e-9;
}

/* Rows of one process: those of ticks 2n and 2n+1 become one, even if only one of them exists. */
static void merge_process(struct dr_kept_process *process, const double *seconds)
{
    const uint32_t first = process->first_tick, after = first + process->ticks;
    uint32_t to = 0;
    for (uint32_t tick = first; tick < after; to++) {
        float *row = process->rows + (size_t)to * DR_PROCESS_COUNT;
        const float *a = process->rows + (size_t)(tick - first) * DR_PROCESS_COUNT;
        const bool pair = tick % 2 == 0 && tick + 1 < after;
        for (uint32_t k = 0; k < DR_PROCESS_COUNT; k++)
            row[k] = pair ? mean(a[k], seconds[tick], a[k + DR_PROCESS_COUNT], seconds[tick + 1]) : a[k];
        tick += pair ? 2 : 1;
    }
    process->first_tick = first / 2;
    process->ticks = to;
}

void dr_rows_merge(struct dr_samples *samples)
{
    double seconds[DR_TICKS_MOST];
    for (uint32_t tick = 0; tick < samples->ticks; tick++)
        seconds[tick] = row_seconds(samples, tick);
    for (uint32_t k = 0; k < samples->processes; k++)
        merge_process(samples->process[k], seconds);
    for (uint32_t to = 0; to < samples->ticks / 2; to++) {
        const float *a = samples->machine[2 * to], *b = samples->machine[2 * to + 1];
        for (uint32_t k = 0; k < DR_MACHINE_COUNT; k++)
            samples->machine[to][k] = mean(a[k], seconds[2 * to], b[k], seconds[2 * to + 1]);
        samples->tick_ns[to] = samples->tick_ns[2 * to + 1];
    }
    samples->ticks /= 2;
    samples->merge *= 2;
    samples->behind = true; /* the whole file has to be rewritten */
}
