/* parts.h - shared by the files that reduce a run to facts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_PARTS_H
#define ST_DOCTOR_PARTS_H

#include "doctor/model/facts.h"
#include "doctor/model/load.h"
#include "doctor/model/numbers.h"

/* From one next() of the training loader to the next one, or to the end of the epoch. */
struct dr_interval {
    struct dr_step step;
    uint64_t end_ns, taken_ns; /* taken: next() returned */
    uint32_t epoch;            /* 0: the first one seen */
    bool closed;               /* its end is known */
    bool cut;                  /* only an upper bound is known: the loop was left */
    bool interrupted;          /* interrupted by an evaluation */
    bool stall_known;
    uint32_t optimizer_steps, other_calls, eval_calls; /* next() of other loaders; without gradients */
    bool other_began; /* another loader began an epoch */
    uint64_t eval_from_ns, eval_to_ns;
    double next_cpu;
    /* between the end of its epoch and the first batch of the next one */
    bool last;
    double gap_save, gap_gc;
};

/* All intervals of one training process, in order. */
struct dr_intervals {
    struct dr_interval *all;
    uint32_t count;
    uint16_t loader;        /* the training loader */
    uint32_t first_stepped; /* the first interval with an optimizer step; 0 if there is none */
    double accumulation;    /* calls of next() per optimizer step; NaN if there is none */
    uint64_t optimizer_steps;
};
int dr_intervals_of(struct dr_intervals *out, const struct dr_process *trainer, struct dr_blocks *blocks,
                    struct stoker_error *err);
/* Not the first of an epoch, not interrupted, and with a known end. */
bool dr_is_ordinary(const struct dr_interval *interval);

struct dr_part {
    struct dr_facts *facts;
    const struct dr_run *run;
    const struct dr_process *trainer;
    int trainer_index;
    struct dr_intervals intervals;
    uint32_t first; /* measured from this interval on */
    uint64_t from_ns, to_ns;
    struct dr_rows rows;
    struct dr_blocks *blocks;
    struct stoker_error *err;
};

/* Whether this process makes batches for the loader: a worker, or the training process. */
bool dr_is_maker(const struct dr_part *part, const struct dr_process *process);
/* Whether an event belongs to the training loader and to the measured time. */
bool dr_is_measured(const struct dr_part *part, const struct dr_event *event);

/* Each fills in its part of the facts. */
int dr_facts_steps(struct dr_part *part);
int dr_facts_batches(struct dr_part *part);
void dr_facts_makers(struct dr_part *part);
void dr_facts_alike(struct dr_part *part);
void dr_facts_machine(struct dr_part *part);
void dr_facts_epochs(struct dr_part *part);
int dr_facts_outliers(struct dr_part *part);
void dr_facts_gpu(struct dr_part *part);
int dr_facts_ranks(struct dr_part *part);
int dr_facts_operators(struct dr_part *part);
void dr_facts_tried(struct dr_part *part);

#endif
