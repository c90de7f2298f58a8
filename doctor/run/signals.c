/* signals.c - the names, units and meanings of the signals
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/run/signals.h"

#define DR_DESCRIBE(id, name, unit, meaning) {name, unit, meaning},
const struct dr_signal dr_machine_signals[DR_MACHINE_COUNT] = {DR_MACHINE_SIGNALS(DR_DESCRIBE)};
const struct dr_signal dr_process_signals[DR_PROCESS_COUNT] = {DR_PROCESS_SIGNALS(DR_DESCRIBE)};
