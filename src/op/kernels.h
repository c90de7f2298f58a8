/* kernels.h - the inner loops, one table for each kind of CPU
 *
 * The C version is complete and is the specification; every other variant gives the same bytes, and
 * tests/op/test_kernels compares them over all small widths with guard bytes around the output.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_KERNELS_H
#define ST_OP_KERNELS_H

#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct st_kernels;
/* The table for a level, or for the nearest one below it that this build has. */
const struct st_kernels *st_kernels_for(enum st_cpu_level level);

#endif
