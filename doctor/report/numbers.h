/* numbers.h - the facts and limits by name; reduction of long series
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPORT_NUMBERS_H
#define ST_DOCTOR_REPORT_NUMBERS_H

#include "doctor/model/facts.h"

/* One number of a struct, named like its field. An empty unit means a plain number. */
struct dr_number {
    const char *name, *unit, *meaning;
    size_t offset;
};
extern const struct dr_number dr_fact_numbers[];  /* of struct dr_facts; a NULL name at the end */
extern const struct dr_number dr_limit_numbers[]; /* of struct dr_limits */

double dr_number_of(const struct dr_number *number, const void *of);

/* Rows are merged into at most `most` parts; the first row of part `part` of `parts`. */
uint32_t dr_parts(uint64_t rows, uint32_t most);
uint64_t dr_part_begin(uint64_t rows, uint32_t parts, uint32_t part);
/* The mean of the known values of a signal in rows [begin, end); NaN if there are none. */
double dr_mean_between(const struct dr_table *table, uint32_t signal, uint64_t begin, uint64_t end);
double dr_mean_of(const double *values, uint64_t begin, uint64_t end);
/* The same for a process; rows are ticks of the run. */
double dr_process_mean(const struct dr_process *process, uint32_t signal, uint64_t begin, uint64_t end);

#endif
