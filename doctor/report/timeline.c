/* timeline.c - which process made which batch when; tracks on which slices nest
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/timeline.h"

#include <stdlib.h>
#include <string.h>

bool dr_event_sane(const struct dr_run *run, const struct dr_event *event)
{
    const uint64_t slack_ns = 1000000000, last = run->end_ns + slack_ns;
    return event->start_ns >= run->start_ns && event->start_ns <= last &&
           event->dur_ns <= last - event->start_ns;
}

int dr_lane_for(struct dr_lanes *lanes, uint64_t start_ns, uint64_t end_ns)
{
    for (int lane = 0; lane < DR_LANES; lane++) {
        uint32_t *depth = &lanes->depth[lane];
        while (*depth && lanes->end[lane][*depth - 1] <= start_ns)
            --*depth;
        if (*depth < DR_NESTED && (!*depth || end_ns <= lanes->end[lane][*depth - 1])) {
            lanes->end[lane][(*depth)++] = end_ns;
            return lane;
        }
    }
    return -1;
}

/* ---- batches ----------------------------------------------------------------------------------- */

/* Parts of a batch may be recorded before or after the whole; this collects those of one batch. */
enum { PENDING = 256 };
struct pending {
    bool used;
    uint32_t batch;
    uint16_t loader;
    uint64_t first_ns;    /* start of the first part whose whole is missing */
    struct dr_made parts; /* the whole is still missing */
    uint64_t whole;       /* index in the list + 1; 0: none */
};

struct collector {
    const struct dr_run *run;
    uint64_t from, to;
    struct dr_made *list;
    uint64_t count, room;
    struct pending pending[PENDING];
};

static int stage_of(uint16_t kind)
{
    switch (kind) {
    case DR_READ:
        return DR_STAGE_READ;
    case DR_NETWORK:
        return DR_STAGE_NETWORK;
    case DR_DECOMPRESS:
        return DR_STAGE_DECOMPRESS;
    case DR_DECODE:
        return DR_STAGE_DECODE;
    case DR_TRANSFORM:
        return DR_STAGE_TRANSFORM;
    case DR_COLLATE:
        return DR_STAGE_COLLATE;
    case DR_PUT:
        return DR_STAGE_PUT;
    default:
        return -1;
    }
}

static void add_part(struct dr_made *made, const struct dr_event *event)
{
    const int stage = stage_of(event->kind);
    const double seconds = (double)event->dur_ns / 1e9;
    if (stage >= 0)
        made->stage[stage] += seconds;
    else if (event->kind == DR_SLOWEST) {
        made->slowest = seconds;
        made->slowest_index = event->a;
    }
}

static struct pending *pending_of(struct collector *c, const struct dr_event *event)
{
    struct pending *p = &c->pending[(event->batch * 31u + event->loader) % PENDING];
    if (!p->used || p->batch != event->batch || p->loader != event->loader)
        *p = (struct pending){.used = true,
                              .batch = event->batch,
                              .loader = event->loader,
                              .first_ns = UINT64_MAX,
                              .parts = {.slowest = NAN, .slowest_index = DR_UNKNOWN}};
    return p;
}

static void note_part(struct collector *c, const struct dr_event *event)
{
    struct pending *p = pending_of(c, event);
    struct dr_made *whole = p->whole ? &c->list[p->whole - 1] : NULL;
    /* The transfer comes after the whole; everything else lies within it. */
    if (whole && event->start_ns >= whole->start_ns &&
        (event->kind == DR_PUT || event->start_ns <= whole->end_ns)) {
        add_part(whole, event);
        return;
    }
    if (event->start_ns < p->first_ns)
        p->first_ns = event->start_ns;
    add_part(&p->parts, event);
}

static bool note_whole(struct collector *c, const struct dr_event *event, uint32_t process)
{
    struct pending *p = pending_of(c, event);
    const uint64_t end = event->start_ns + event->dur_ns;
    struct dr_made made = {.slowest = NAN, .slowest_index = DR_UNKNOWN};
    if (p->first_ns >= event->start_ns && p->first_ns <= end)
        made = p->parts;
    *p = (struct pending){.used = false};
    if (end < c->from || event->start_ns > c->to)
        return true;
    if (c->count == c->room) {
        const uint64_t room = c->room ? 2 * c->room : 256;
        struct dr_made *list =
            room < SIZE_MAX / sizeof *list ? realloc(c->list, room * sizeof *list) : NULL;
        if (!list)
            return false;
        c->list = list;
        c->room = room;
    }
    made.start_ns = event->start_ns;
    made.end_ns = end;
    made.process = process;
    made.batch = event->batch;
    made.loader = event->loader;
    made.samples = event->a;
    c->list[c->count++] = made;
    p = pending_of(c, event);
    p->whole = c->count;
    return true;
}

static bool collect(struct collector *c, uint32_t number)
{
    const struct dr_process *process = &c->run->process[number];
    memset(c->pending, 0, sizeof c->pending);
    for (uint64_t i = 0; i < process->event_count; i++) {
        const struct dr_event *event = &process->events[i];
        if (!dr_event_sane(c->run, event))
            continue;
        if (event->kind == DR_FETCH && !note_whole(c, event, number))
            return false;
        if (stage_of(event->kind) >= 0 || event->kind == DR_SLOWEST)
            note_part(c, event);
    }
    return true;
}

static int by_process_and_start(const void *left, const void *right)
{
    const struct dr_made *a = left, *b = right;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->end_ns < b->end_ns) - (a->end_ns > b->end_ns);
}

static int by_start_descending(const void *left, const void *right)
{
    const struct dr_made *a = left, *b = right;
    return (a->start_ns < b->start_ns) - (a->start_ns > b->start_ns);
}

static void give_lanes(struct collector *c)
{
    struct dr_lanes lanes = {0};
    uint64_t kept = 0;
    for (uint64_t i = 0; i < c->count; i++) {
        struct dr_made *made = &c->list[i];
        if (i && made->process != c->list[i - 1].process)
            memset(&lanes, 0, sizeof lanes);
        /* Two batches of one maker must not nest: this end is never inside another slice. */
        int lane = 0;
        while (lane < DR_LANES && lanes.depth[lane] && lanes.end[lane][0] > made->start_ns)
            lane++;
        if (lane == DR_LANES)
            continue;
        lanes.depth[lane] = 1;
        lanes.end[lane][0] = made->end_ns;
        made->lane = (uint16_t)lane;
        c->list[kept++] = *made;
    }
    c->count = kept;
}

struct dr_made *dr_made_between(const struct dr_run *run, int trainer, uint64_t from, uint64_t to,
                                uint64_t most, uint64_t *count)
{
    struct collector *c = calloc(1, sizeof *c);
    *count = 0;
    if (!c)
        return NULL;
    c->run = run;
    c->from = from;
    c->to = to;
    bool fine = true;
    for (uint32_t i = 0; i < run->processes && fine; i++)
        if (trainer < 0 || run->process[i].trainer == trainer || i == (uint32_t)trainer)
            fine = collect(c, i);
    struct dr_made *list = c->list;
    if (!fine || !c->count) {
        free(list);
        free(c);
        return NULL;
    }
    if (c->count > most) {
        qsort(list, c->count, sizeof *list, by_start_descending);
        c->count = most;
    }
    qsort(list, c->count, sizeof *list, by_process_and_start);
    give_lanes(c);
    *count = c->count;
    free(c);
    return list;
}
