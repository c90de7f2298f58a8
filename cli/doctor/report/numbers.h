/* numbers.h - the facts, limits and settings by name, and series that are too long to be written whole
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPORT_NUMBERS_H
#define ST_DOCTOR_REPORT_NUMBERS_H

#include "cli/doctor/facts.h"

/* One number of a struct: its name is the field's. An empty unit is a plain number. */
struct dr_number {
    const char *name, *unit, *meaning;
    size_t offset;
};
extern const struct dr_number dr_fact_numbers[];  /* of struct dr_facts; a NULL name at the end */
extern const struct dr_number dr_limit_numbers[]; /* of struct dr_limits */

double dr_number_of(const struct dr_number *number, const void *of);

/* Rows are put together so that at most `most` remain: the first row of part `part` of `parts`. */
uint32_t dr_parts(uint64_t rows, uint32_t most);
uint64_t dr_part_begin(uint64_t rows, uint32_t parts, uint32_t part);
/* The mean of what is known of a signal in rows [begin, end); NaN where nothing is. */
double dr_mean_between(const struct dr_table *table, uint32_t signal, uint64_t begin, uint64_t end);
double dr_mean_of(const double *values, uint64_t begin, uint64_t end);
/* The same for a process, by the run's ticks. */
double dr_process_mean(const struct dr_process *process, uint32_t signal, uint64_t begin, uint64_t end);

#endif
