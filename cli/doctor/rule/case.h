/* case.h - what the rules share: predicates on a case, plans for this machine, gains, words
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_CASE_H
#define ST_DOCTOR_CASE_H

#include "cli/doctor/report/words.h"
#include "cli/doctor/rule.h"
#include "cli/doctor/rule/thresholds.h"

#include <stdio.h>

/* Where a finding stands among the causes of the same stall: what is specific comes before what is
 * general, because the general finding follows from the specific one and not the other way round. From
 * DR_ORDER_OWN on a finding explains time other than the stall, and stands by its own weight. */
enum {
    DR_ORDER_RANK = 10,
    DR_ORDER_TINY,
    DR_ORDER_STORM,
    DR_ORDER_QUOTA,
    DR_ORDER_NEIGHBOUR,
    DR_ORDER_GIL,
    DR_ORDER_SERIAL,
    DR_ORDER_CACHE,
    DR_ORDER_NETWORK,
    DR_ORDER_SMALL_FILES,
    DR_ORDER_DISK,
    DR_ORDER_VARIANCE,
    DR_ORDER_HAND_OVER,
    DR_ORDER_TOO_MANY,
    DR_ORDER_TOO_FEW,
    DR_ORDER_STAGE,
    DR_ORDER_LATER, /* true, but no cure */
    DR_ORDER_NUMA,
    DR_ORDER_REMARK,
    DR_ORDER_OWN = 100,
};

#define DR_SAY(to, ...) ((void)snprintf((to), sizeof(to), __VA_ARGS__))

const char *dr_bytes_text(struct dr_text *room, double bytes); /* "3.2 GB"; "n/a" where unknown */
const char *dr_stage_word(enum dr_stage stage);
/* Who waits: "the GPU" or "training". */
const char *dr_waiter(const struct dr_case *c);
/* What makes batches: "workers" or Stoker's "threads". */
const char *dr_makers(const struct dr_case *c);

/* The stall is large enough to need a cause. */
bool dr_starved(const struct dr_case *c);
/* Batches are made by worker processes of torch's kind (not by Stoker's threads). */
bool dr_has_processes(const struct dr_case *c);
/* Share of making a batch that is spent off the CPU, waits for a CPU left out; NaN. */
double dr_waiting_share(const struct dr_case *c);
/* The same of one stage. */
double dr_stage_waits(const struct dr_case *c, enum dr_stage stage);
/* Workers wait for storage, by the time of their reads or by the device. */
bool dr_storage_limits(const struct dr_case *c);
/* The stage that these waits are in: reading, or, with mapped files, the one that touches them. */
enum dr_stage dr_storage_stage(const struct dr_case *c);
/* Steps that take far longer, and neither a checkpoint nor the like explains it, while the training thread waits for a CPU:
 * that is why. */
bool dr_held_off_cpu(const struct dr_case *c);
/* CPUs that are left beside the training process. */
double dr_cpus_for_workers(const struct dr_case *c);
/* Workers that the CPUs can run beside the training process: more where they mostly wait. */
uint32_t dr_most_workers(const struct dr_case *c);
/* The stage that takes most of the time of making a batch. */
enum dr_stage dr_heaviest_stage(const struct dr_case *c);

/* A stage that takes more than `limit` of making a batch while training waits: sentence and weight. */
bool dr_heavy_stage(const struct dr_case *c, struct dr_finding *out, enum dr_stage stage, double limit,
                    const char *where);

/* The best settings with at most so many workers, within memory and /dev/shm. */
struct dr_plan dr_plan_best(const struct dr_case *c, uint32_t most_workers);
/* The same with so many CPUs. */
struct dr_plan dr_plan_with_cpus(const struct dr_case *c, double cpus);
/* Batches in flight that memory and /dev/shm have room for. */
uint64_t dr_room_for_batches(const struct dr_case *c);
/* "num_workers=11, prefetch_factor=4, persistent_workers=True": what differs from now. */
void dr_settings_text(char *out, size_t size, const struct dr_case *c, const struct dr_plan *plan);
/* The line on Stoker: `change` for a loader of torch's, `own` for one of Stoker's already. */
void dr_say_stoker(const struct dr_case *c, struct dr_finding *out, const char *change, const char *own);
/* Whether it wins back enough of what a perfect loader would. */
bool dr_fixes(const struct dr_case *c, struct dr_range gain);

/* Gains: by settings; by a stage that takes `low`, `mid`, `high` (0: none) of its time; by a share of
 * the time that goes away. NaN where the run cannot be simulated. */
void dr_gain_by_plan(const struct dr_case *c, struct dr_finding *out, const struct dr_plan *plan);
/* By more CPUs: the training thread waits for one no longer, so the step itself may become shorter. */
void dr_gain_by_cpus(const struct dr_case *c, struct dr_finding *out, const struct dr_plan *plan);
void dr_gain_by_stage(const struct dr_case *c, struct dr_finding *out, enum dr_stage stage,
                      struct dr_range left);
void dr_gain_by_share(struct dr_finding *out, double share, double ceiling, const char *basis);

#endif
