/* numbers.h - statistics of series and of tables
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_NUMBERS_H
#define ST_DOCTOR_NUMBERS_H

#include "doctor/run/run.h"

/* Unknown values (NaN) are ignored everywhere; without any value the result is NaN. */
struct dr_sum {
    double sum, most, least;
    uint64_t count;
};
void dr_sum_add(struct dr_sum *sum, double value);
double dr_sum_mean(const struct dr_sum *sum);

/* Sorts the values; share 0.5 is the median. */
double dr_percentile(double *values, uint32_t count, double share);
/* The ratio of two sums over a series, with a 95 % interval by bootstrap over blocks. False: out of
 * memory. */
bool dr_ratio_interval(const double *part, const double *whole, uint32_t count, double *low,
                       double *high);
/* The period of a series, by its autocorrelation; NaN: it has none. */
double dr_period(const double *values, uint32_t count);
/* Sets `size` bytes of doubles to unknown. */
void dr_forget(void *doubles, size_t size);
/* part / whole; NaN if whole is not positive. */
double dr_share(double part, double whole);

/* Rows of the run within a time span: from <= row < to. */
struct dr_rows {
    uint32_t from, to;
};
struct dr_rows dr_rows_between(const struct dr_run *run, uint64_t from_ns, uint64_t to_ns);
/* The same rows in the table of a process. */
struct dr_rows dr_rows_of(const struct dr_process *process, struct dr_rows rows);
double dr_column_mean(const struct dr_table *table, struct dr_rows rows, uint32_t signal);
struct dr_sum dr_column(const struct dr_table *table, struct dr_rows rows, uint32_t signal);

#endif
