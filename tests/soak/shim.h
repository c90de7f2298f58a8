/* shim.h - what the library of shim.c lets a program do that was started with it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_SOAK_SHIM_H
#define ST_TESTS_SOAK_SHIM_H

#include <stdbool.h>

/* Call `number` (from 1) to which a fault of this kind applies, and which concerns something below the
 * folder `under`, goes wrong; 0: none, they are only counted. */
void fault_arm(const char *kind, unsigned long number, const char *under);
void fault_state(unsigned long *calls, bool *fired);

#endif
