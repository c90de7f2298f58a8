/* facts_epochs.c - starts and ends of epochs: the cost of a restart, and how the first epoch differs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

struct epochs {
    struct dr_sum start, respawn, length; /* of the same epochs, so that one is a part of another */
    struct dr_sum other_lengths;
    double ends;
    uint64_t iter_ns, first_ns; /* start of the current epoch; 0: unknown */
    double iter_seconds;
    bool respawned, later; /* workers were started in it; it is not the first epoch */
    bool added;            /* its start is part of the sums */
};

/* The first batch of an epoch has arrived. */
static void first_batch(struct epochs *epochs, const struct dr_event *event)
{
    epochs->first_ns = event->start_ns;
    epochs->added = epochs->iter_ns && epochs->later;
    if (epochs->added) {
        dr_sum_add(&epochs->start, (double)(event->start_ns + event->dur_ns - epochs->iter_ns) / 1e9);
        dr_sum_add(&epochs->respawn, epochs->respawned ? epochs->iter_seconds : 0);
    }
    epochs->later = true;
}

/* From its beginning, with the start of workers, until the data end, or until the loop was left and the
 * next epoch begins. */
static void end_epoch(struct epochs *epochs, uint64_t end_ns)
{
    const uint64_t began = epochs->iter_ns ? epochs->iter_ns : epochs->first_ns;
    if (began && end_ns > began)
        dr_sum_add(epochs->added ? &epochs->length : &epochs->other_lengths,
                   (double)(end_ns - began) / 1e9);
}

static void epoch_event(struct epochs *epochs, const struct dr_event *event)
{
    if (event->kind == DR_ITER) {
        if (epochs->first_ns)
            end_epoch(epochs, event->start_ns);
        epochs->iter_ns = event->start_ns;
        epochs->iter_seconds = (double)event->dur_ns / 1e9;
        epochs->respawned = event->a > 0 && event->a != DR_UNKNOWN;
        epochs->first_ns = 0;
        epochs->added = false;
    } else if (event->kind == DR_NEXT && (event->b & DR_NEXT_FIRST)) {
        first_batch(epochs, event);
    } else if (event->kind == DR_EPOCH) {
        end_epoch(epochs, event->start_ns);
        epochs->ends++;
        epochs->iter_ns = epochs->first_ns = 0;
        epochs->added = false;
    }
}

void dr_facts_epochs(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    struct epochs epochs = {.later = part->trainer->events_lost > 0};
    for (uint64_t k = 0; k < part->trainer->event_count; k++)
        if (part->trainer->events[k].loader == part->intervals.loader)
            epoch_event(&epochs, &part->trainer->events[k]);
    facts->epochs = epochs.ends;
    facts->epoch_start = dr_sum_mean(&epochs.start);
    facts->respawn = dr_sum_mean(&epochs.respawn);
    facts->epoch_seconds = dr_sum_mean(epochs.length.count ? &epochs.length : &epochs.other_lengths);
    double stall[2] = {0}, all[2] = {0};
    for (uint32_t k = 0; k < part->intervals.count; k++) {
        const struct dr_interval *interval = &part->intervals.all[k];
        const bool later = interval->epoch > 0 || part->trainer->events_lost;
        if (dr_is_ordinary(interval))
            stall[later] += interval->step.stall, all[later] += interval->step.seconds;
    }
    facts->first_epoch_stall_share = dr_share(stall[0], all[0]);
    facts->later_epochs_stall_share = dr_share(stall[1], all[1]);
}
