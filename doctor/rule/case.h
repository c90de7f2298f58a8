/* case.h - what the rules share: predicates, plans for this machine, gains, wording
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_CASE_H
#define ST_DOCTOR_CASE_H

#include "doctor/rule/rule.h"
#include "doctor/rule/thresholds.h"
#include "doctor/rule/words.h"

#include <stdio.h>

/* The rank of a finding among the causes of the same stall: specific ones come before general ones,
 * because the general finding follows from the specific one, not the other way round. From DR_ORDER_OWN
 * on, a finding explains time other than the stall, and is ranked by its own weight. */
enum {
    DR_ORDER_RANK = 10,
    DR_ORDER_TINY,
    DR_ORDER_STORM,
    DR_ORDER_QUOTA,
    DR_ORDER_NEIGHBOUR,
    DR_ORDER_GIL,
    DR_ORDER_LOCK,
    DR_ORDER_UNEVEN,
    DR_ORDER_SWAP,
    DR_ORDER_OPENING,
    DR_ORDER_SAMPLER,
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
    DR_ORDER_LATER, /* true, but not a cure */
    DR_ORDER_NUMA,
    DR_ORDER_REMARK,
    DR_ORDER_OWN = 100,
};

#define DR_SAY(to, ...) ((void)snprintf((to), sizeof(to), __VA_ARGS__))

const char *dr_bytes_text(struct dr_text *room, double bytes); /* "3.2 GB"; "n/a" where unknown */
const char *dr_stage_word(enum dr_stage stage);
/* What waits: "the GPU" or "training". */
const char *dr_waiter(const struct dr_case *c);
/* What makes the batches: "workers" or, with Stoker's engine, "threads"; singular if `count` is 1. */
const char *dr_makers(const struct dr_case *c, double count);

/* Too few steps were measured to judge anything by them. */
bool dr_cannot_tell(const struct dr_facts *facts);
/* The stall is large enough to need a cause. */
bool dr_starved(const struct dr_case *c);
/* The stall is large enough even without the transfer of batches that were ready: they are made too
 * late. */
bool dr_late(const struct dr_case *c);
/* Worker processes make the batches, not the threads of Stoker's engine. */
bool dr_has_processes(const struct dr_case *c);
/* Share of the time to make a batch that is spent off the CPU, without waits for a CPU; NaN. */
double dr_waiting_share(const struct dr_case *c);
/* The same for one stage. */
double dr_stage_waits(const struct dr_case *c, enum dr_stage stage);
/* Workers wait for storage, judged by the time of their reads or by the device. */
bool dr_storage_limits(const struct dr_case *c);
/* The stage of these waits: reading, or, with mapped files, the stage that touches them. */
enum dr_stage dr_storage_stage(const struct dr_case *c);
/* Waits of the training thread for a CPU explain the long steps, which have no other known cause. */
bool dr_held_off_cpu(const struct dr_case *c);
/* CPUs that the training process leaves free. */
double dr_cpus_for_workers(const struct dr_case *c);
/* Workers that these CPUs can run: more than CPUs where workers mostly wait. */
uint32_t dr_most_workers(const struct dr_case *c);
/* The stage that takes the most time of a batch. */
enum dr_stage dr_heaviest_stage(const struct dr_case *c);

/* Whether a stage takes more than `limit` of the time of a batch while training waits. Fills in sentence
 * and weight. */
bool dr_heavy_stage(const struct dr_case *c, struct dr_finding *out, enum dr_stage stage, double limit,
                    const char *where);

/* The best settings with at most `most_workers`, within memory and /dev/shm. */
struct dr_plan dr_plan_best(const struct dr_case *c, uint32_t most_workers);
/* The same with this number of CPUs. */
struct dr_plan dr_plan_with_cpus(const struct dr_case *c, double cpus);
/* The number of batches in flight that fit into memory and /dev/shm. */
uint64_t dr_room_for_batches(const struct dr_case *c);
/* The settings that change: "num_workers=11, prefetch_factor=4, persistent_workers=True". */
void dr_settings_text(char *out, size_t size, const struct dr_case *c, const struct dr_plan *plan);
/* The advice about Stoker: `change` for torch's loader, `own` where Stoker's loader is in
 * use already. */
void dr_say_stoker(const struct dr_case *c, struct dr_finding *out, const char *change, const char *own);
/* Whether this share of the steps is most of them: what happens more rarely makes single steps long. */
bool dr_is_constant(double steps);
/* Whether work of so many seconds per step, done in this share of the steps, costs enough. Fills in
 * weight and gain. */
bool dr_cost(const struct dr_case *c, struct dr_finding *out, double seconds, double steps);
/* Whether this gain is worth a change, and larger than its own uncertainty. An unknown gain may be. */
bool dr_pays(struct dr_range gain);
/* Whether this gain is a large enough part of what a perfect loader would gain. */
bool dr_fixes(const struct dr_case *c, struct dr_range gain);

/* Why the simulator does not cover this run, in words; NULL: it does, if enough was measured. */
const char *dr_not_covered(const struct dr_facts *facts);
/* The basis of a gain that is not predicted. */
void dr_no_promise(const struct dr_case *c, struct dr_finding *out);

/* Gains: by new settings; by a stage that takes only `low`, `mid` or `high` (0: none) of its time; by a
 * share of the time that disappears. NaN where the run cannot be simulated. */
void dr_gain_by_plan(const struct dr_case *c, struct dr_finding *out, const struct dr_plan *plan);
/* By more CPUs: the training thread no longer waits for one, so the step itself may become shorter. */
void dr_gain_by_cpus(const struct dr_case *c, struct dr_finding *out, const struct dr_plan *plan);
void dr_gain_by_stage(const struct dr_case *c, struct dr_finding *out, enum dr_stage stage,
                      struct dr_range left);
/* By data that have the size of the samples from this stage on (crop first, store smaller images):
 * without the time that was spent on elements which are discarded later. False: that is unknown or less
 * than half of the stage, and half of it is assumed. */
bool dr_gain_by_size(const struct dr_case *c, struct dr_finding *out, enum dr_stage stage);
/* The share of the stage's time that is spent on such elements; NaN. */
double dr_discarded_share(const struct dr_case *c, enum dr_stage stage);
void dr_gain_by_share(struct dr_finding *out, double share, double ceiling, const char *basis);

#endif
