/* metrics.h - the numbers of a run while it runs, for Prometheus: `stoker run --metrics PORT`
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_COMMAND_METRICS_H
#define ST_DOCTOR_COMMAND_METRICS_H

#include "stoker/stoker.h"

struct dr_metrics;
/* Listens on this port of 127.0.0.1. */
int dr_metrics_open(struct dr_metrics **out, uint16_t port, struct stoker_error *err);
/* Answers what has been asked since the last call, and waits for nobody. */
void dr_metrics_serve(struct dr_metrics *metrics, const char *directory);
void dr_metrics_close(struct dr_metrics *metrics);

#endif
