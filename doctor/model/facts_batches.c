/* facts_batches.c - how batches are made: durations, stages, files, pinning
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>

struct made {
    uint64_t start_ns;
    double wall, cpu;
};

struct tally {
    struct made *made;
    uint32_t count;
    double samples, opens, opened_bytes, opens_sized, shared_cpu, helpers;
    double opening, opening_cpu, openings, reduced;
    double wall[DR_STAGES], cpu[DR_STAGES], discarded[DR_STAGES];
    bool seen[DR_STAGES], sized[DR_STAGES], opened;
    struct dr_sum slowest;
};

static int compare_made(const void *a, const void *b)
{
    const struct made *one = a, *other = b;
    return (one->start_ns > other->start_ns) - (one->start_ns < other->start_ns);
}

/* DR_READ to DR_PUT are the stages, in the same order. */
static void tally_event(struct tally *tally, const struct dr_event *event, const struct dr_event *batch)
{
    const double seconds = (double)event->dur_ns / 1e9;
    switch (event->kind) {
    case DR_FETCH:
        tally->made[tally->count++] = (struct made){event->start_ns, seconds, event->b / 1e6};
        tally->samples += event->a;
        break;
    case DR_OPENED:
        tally->opened = true;
        tally->opens += event->a;
        if (event->b)
            tally->opens_sized += event->a, tally->opened_bytes += event->b * 1024.0;
        break;
    case DR_DISCARDED:
        if (event->a >= DR_READ && event->a <= DR_PUT) {
            tally->sized[event->a - DR_READ] = true;
            tally->discarded[event->a - DR_READ] += seconds;
        }
        break;
    case DR_REDUCED:
        tally->reduced += seconds;
        break;
    case DR_SHARED:
        tally->shared_cpu += event->b / 1e6;
        break;
    case DR_HELPERS:
        tally->helpers += seconds;
        break;
    case DR_ARCHIVE:
        tally->opening += seconds;
        tally->opening_cpu += event->b / 1e6;
        tally->openings += event->a;
        break;
    case DR_SLOWEST:
        if (batch && batch->batch == event->batch && batch->dur_ns)
            dr_sum_add(&tally->slowest, fmin((double)event->dur_ns / (double)batch->dur_ns, 1));
        break;
    default:
        if (event->kind < DR_READ || event->kind > DR_PUT)
            break;
        tally->seen[event->kind - DR_READ] = true;
        tally->wall[event->kind - DR_READ] += seconds;
        tally->cpu[event->kind - DR_READ] += event->b / 1e6;
        break;
    }
}

static int tally_all(struct dr_part *part, struct tally *tally)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < part->run->processes; k++)
        most += dr_is_maker(part, &part->run->process[k]) ? part->run->process[k].event_count : 0;
    if (most > UINT32_MAX || !(tally->made = dr_blocks_new(part->blocks, most, sizeof *tally->made)))
        return st_fail(part->err, STOKER_ENOMEM, "out of memory for the batches of %llu events",
                       (unsigned long long)most);
    for (uint32_t k = 0; k < part->run->processes; k++) {
        const struct dr_process *process = &part->run->process[k];
        const struct dr_event *batch = NULL;
        for (uint64_t n = 0; dr_is_maker(part, process) && n < process->event_count; n++) {
            const struct dr_event *event = &process->events[n];
            if (event->kind < DR_FETCH || !dr_is_measured(part, event))
                continue;
            if (event->kind == DR_FETCH)
                batch = event;
            tally_event(tally, event, batch);
        }
    }
    return STOKER_OK;
}

static void stages(struct dr_facts *facts, const struct tally *tally)
{
    double inside = 0, inside_cpu = 0;
    for (int k = 0; k < DR_STAGE_OTHER; k++) {
        facts->stage[k] = tally->wall[k] / tally->count;
        facts->stage_cpu[k] = tally->cpu[k] / tally->count;
        if (tally->sized[k])
            facts->discarded[k] = fmin(tally->discarded[k] / tally->count, facts->stage[k]);
        if (k != DR_STAGE_PUT) /* the transfer follows after the batch is made */
            inside += facts->stage[k], inside_cpu += facts->stage_cpu[k];
    }
    facts->stage[DR_STAGE_OTHER] = fmax(facts->batch_mean - inside, 0);
    facts->stage_cpu[DR_STAGE_OTHER] = fmax(facts->batch_cpu_mean - inside_cpu, 0);
    for (int k = 0; k < DR_STAGES; k++)
        facts->stage_share[k] = dr_share(facts->stage[k], facts->batch_mean);
    facts->put = facts->stage[DR_STAGE_PUT];
    facts->reduced = fmin(tally->reduced / tally->count, facts->stage[DR_STAGE_TRANSFORM]);
}

static void pinning(struct dr_part *part)
{
    struct dr_sum seconds = {0}, kib = {0};
    for (uint64_t k = 0; k < part->trainer->event_count; k++) {
        const struct dr_event *event = &part->trainer->events[k];
        if (event->kind == DR_PIN && dr_is_measured(part, event)) {
            dr_sum_add(&seconds, (double)event->dur_ns / 1e9);
            dr_sum_add(&kib, event->a);
        }
    }
    part->facts->pin = dr_sum_mean(&seconds);
    part->facts->pin_bytes = dr_sum_mean(&kib) * 1024;
}

int dr_facts_batches(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    struct tally tally = {0};
    pinning(part);
    const int rc = tally_all(part, &tally);
    const uint32_t count = tally.count;
    if (rc || !count)
        return rc;
    qsort(tally.made, count, sizeof *tally.made, compare_made);
    double *wall = dr_blocks_new(part->blocks, 3 * (uint64_t)count, sizeof *wall);
    if (!wall)
        return st_fail(part->err, STOKER_ENOMEM, "out of memory for %u batches", count);
    double *cpu = wall + count, *sorted = cpu + count, sum = 0, squares = 0, cpu_sum = 0;
    for (uint32_t k = 0; k < count; k++) {
        sorted[k] = wall[k] = tally.made[k].wall;
        cpu[k] = tally.made[k].cpu;
        sum += wall[k], squares += wall[k] * wall[k], cpu_sum += cpu[k];
    }
    facts->batch_seconds = wall;
    facts->batch_cpu = cpu;
    facts->batch_count = count;
    facts->batch_mean = sum / count;
    facts->batch_cpu_mean = cpu_sum / count;
    facts->batch_cv = dr_share(sqrt(fmax(squares / count - facts->batch_mean * facts->batch_mean, 0)),
                               facts->batch_mean);
    facts->batch_p99 = dr_percentile(sorted, count, 0.99);
    memcpy(sorted, cpu, count * sizeof *cpu);
    facts->batch_cpu_fast = dr_percentile(sorted, count, 0.01);
    facts->batch_cpu_least = sorted[0];
    facts->shared_cpu = fmin(tally.shared_cpu / count, facts->batch_cpu_mean);
    facts->helpers_cpu = tally.helpers / count;
    facts->opening = fmin(tally.opening / count, facts->batch_mean);
    facts->opening_cpu = fmin(fmin(tally.opening_cpu / count, facts->batch_cpu_mean), facts->opening);
    facts->openings_per_sample = dr_share(tally.openings, tally.samples);
    facts->slowest_share = dr_sum_mean(&tally.slowest);
    if (tally.opened) {
        facts->opens_per_sample = dr_share(tally.opens, tally.samples);
        facts->bytes_per_open = dr_share(tally.opened_bytes, tally.opens_sized);
    }
    stages(facts, &tally);
    return STOKER_OK;
}
