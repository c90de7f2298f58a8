/* facts_alike.c - workers that make the same samples, or draw the same random numbers, as another one
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

#include <stdio.h>
#include <string.h>

/* A digest of a sample has eight digits. Fewer samples, or fewer different ones, may be equal by chance
 * or because the data begin so. */
enum { DIGITS = 8, SAMPLES_LEAST = 8, DIFFERENT_LEAST = 4, NEIGHBOURS = 128 };

static bool is_digest(const char *text)
{
    return strspn(text, "0123456789abcdef") == DIGITS && (text[DIGITS] == ' ' || !text[DIGITS]);
}

/* The first samples of two workers are the same, and not all alike among themselves. */
static bool same_samples(const char *a, const char *b)
{
    const char *seen[SAMPLES_LEAST];
    uint32_t samples = 0, different = 0;
    while (samples < SAMPLES_LEAST && is_digest(a) && is_digest(b) && !memcmp(a, b, DIGITS)) {
        bool new = true;
        for (uint32_t k = 0; k < different; k++)
            new &= memcmp(seen[k], a, DIGITS) != 0;
        if (new)
            seen[different++] = a;
        samples++;
        a += DIGITS + (a[DIGITS] == ' ');
        b += DIGITS + (b[DIGITS] == ' ');
    }
    return samples == SAMPLES_LEAST && different >= DIFFERENT_LEAST;
}

static bool same_state(const char *a, const char *b)
{
    return is_digest(a) && is_digest(b) && !memcmp(a, b, DIGITS);
}

static bool at_once(const struct dr_process *a, const struct dr_process *b)
{
    if (!a->event_count || !b->event_count)
        return false;
    return a->events[0].start_ns < b->events[b->event_count - 1].start_ns &&
           b->events[0].start_ns < a->events[a->event_count - 1].start_ns;
}

/* Whether a worker that lives at the same time says the same. One of another epoch may well. */
static bool has_twin(const struct dr_part *part, uint32_t at, const char *key,
                     bool same(const char *, const char *))
{
    const struct dr_run *run = part->run;
    const struct dr_process *worker = &run->process[at];
    const char *said = dr_said(worker, key);
    const uint32_t from = at > NEIGHBOURS ? at - NEIGHBOURS : 0;
    const uint32_t to = run->processes - at > NEIGHBOURS ? at + NEIGHBOURS : run->processes;
    for (uint32_t k = from; said && k < to; k++) {
        const struct dr_process *other = &run->process[k];
        const char *theirs =
            other->worker != worker->worker && dr_is_maker(part, other) ? dr_said(other, key) : NULL;
        if (k != at && theirs && same(said, theirs) && at_once(worker, other))
            return true;
    }
    return false;
}

void dr_facts_alike(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    const struct dr_settings *loader = &facts->loader;
    if (loader->native || loader->workers < 2)
        return;
    double alike = 0, random = 0;
    for (uint32_t k = 0; k < part->run->processes; k++) {
        const struct dr_process *worker = &part->run->process[k];
        if (worker == part->trainer || !dr_is_maker(part, worker))
            continue;
        alike += has_twin(part, k, "worker.samples", same_samples);
        if (!has_twin(part, k, "worker.random", same_state))
            continue;
        random++;
        snprintf(facts->random_at, sizeof facts->random_at, "%s",
                 dr_said(worker, "worker.random") + DIGITS);
    }
    if (loader->iterable) /* workers of all epochs were counted */
        facts->workers_alike = fmin(alike, loader->workers);
    else
        facts->workers_random = fmin(random, loader->workers);
}
