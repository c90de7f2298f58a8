/* facts_tried.c - samples made once more at the end of the run, by torch's loader and by Stoker's
 *
 * Both make the same samples in turn. Only CPU time is compared: what else uses the machine makes both
 * wait, but hardly changes how much work a sample is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

#include <stdio.h>

enum { MOST = 64 };

struct measured {
    double torch[MOST], stoker[MOST]; /* CPU seconds */
    double samples;
    uint32_t count;
};

static const char *said(const struct dr_process *process, uint32_t loader, const char *key)
{
    char name[64];
    snprintf(name, sizeof name, "loader.%u.try.%s", loader, key);
    const char *text = dr_said(process, name);
    return text && *text ? text : NULL;
}

/* Each measurement is two events, torch's first. */
static void collect(struct measured *out, const struct dr_process *process, uint32_t loader)
{
    const struct dr_event *torch = NULL;
    for (uint64_t k = 0; k < process->event_count && out->count < MOST; k++) {
        const struct dr_event *event = &process->events[k];
        if (event->loader != loader)
            continue;
        if (event->kind == DR_TRIED_TORCH) {
            torch = event;
        } else if (event->kind == DR_TRIED_STOKER && torch && torch->batch == event->batch &&
                   torch->a == event->a && event->a && event->a != DR_UNKNOWN &&
                   torch->b != DR_UNKNOWN && event->b != DR_UNKNOWN) {
            out->torch[out->count] = torch->b / 1e6;
            out->stoker[out->count++] = event->b / 1e6;
            out->samples += event->a;
            torch = NULL;
        }
    }
}

/* The ratio of the sums, and its interval by the deviations from it, with about Student's quantiles. */
static void compare(struct dr_tried *out, const struct measured *measured)
{
    double torch = 0, stoker = 0, squares = 0;
    const uint32_t n = measured->count;
    for (uint32_t k = 0; k < n; k++)
        torch += measured->torch[k], stoker += measured->stoker[k];
    if (!(torch > 0))
        return;
    out->samples = measured->samples;
    out->torch_cpu = torch / measured->samples;
    out->stoker_cpu = stoker / measured->samples;
    out->share = stoker / torch;
    for (uint32_t k = 0; k < n; k++) {
        const double off = measured->stoker[k] - out->share * measured->torch[k];
        squares += off * off;
    }
    const double half =
        n > 1 ? (2 + 3.0 / (n - 1)) * sqrt(squares * n / (n - 1)) / torch : out->share / 2;
    out->share_low = fmax(out->share - half, 0);
    out->share_high = out->share + half;
}

void dr_facts_tried(struct dr_part *part)
{
    const uint32_t loader = part->intervals.loader;
    for (uint32_t k = 0; k < part->run->processes; k++) {
        const struct dr_process *process = &part->run->process[k];
        const char *plan = said(process, loader, "plan"), *error = said(process, loader, "error");
        if (process->role != DR_TRAINER || (!plan && !error))
            continue;
        struct dr_tried *tried = &part->facts->tried;
        struct measured measured = {.count = 0};
        char name[64];
        snprintf(name, sizeof name, "loader.%u.try.workers", loader);
        tried->plan = plan;
        tried->error = error;
        tried->why = said(process, loader, "why");
        tried->on_gpu = part->facts->has_gpu && said(process, loader, "device");
        tried->workers = dr_said_number(process, name);
        collect(&measured, process, loader);
        compare(tried, &measured);
        return;
    }
}
