/* taps_kept.c - a table of taps that threads add to and never take from
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/resize/taps_kept.h"

#include <stdlib.h>
#include <string.h>

enum {
    PLACES = 1024, /* a power of two */
    TRIES = 8,     /* places in which a side may be */
};

struct entry {
    struct st_side side;
    struct st_taps taps;
    int32_t data[]; /* the taps' firsts, then their weights */
};

struct st_taps_kept {
    struct st_account memory;
    uint64_t most;
    _Atomic uint64_t bytes; /* of entries, also of those about to be added */
    struct entry *_Atomic place[PLACES];
};

struct st_taps_kept *st_taps_kept_new(uint64_t most, struct st_budget *budget)
{
    struct st_taps_kept *kept = st_calloc(1, sizeof *kept);
    if (kept) {
        kept->memory = (struct st_account){.budget = budget, .kind = ST_MEMORY_SCRATCH};
        kept->most = most;
    }
    return kept;
}

void st_taps_kept_free(struct st_taps_kept *kept)
{
    if (!kept)
        return;
    for (uint32_t k = 0; k < PLACES; k++)
        free(atomic_load(&kept->place[k]));
    st_account_sub(&kept->memory, atomic_load(&kept->bytes));
    free(kept);
}

static bool same_side(const struct st_side *a, const struct st_side *b)
{
    return a->filter == b->filter && a->in == b->in && a->out == b->out && a->from == b->from &&
           a->count == b->count && a->span.begin == b->span.begin && a->span.length == b->span.length;
}

/* Sides that differ in their input only, as those of random crops do, get different numbers. */
static uint32_t number_of(const struct st_side *side)
{
    return (uint32_t)side->in + 31 * (uint32_t)side->out + 131 * (uint32_t)side->from;
}

static struct entry *entry_of(const struct st_side *side, const struct st_taps *taps, uint64_t bytes)
{
    const size_t count = (size_t)taps->count;
    struct entry *entry = st_calloc(1, bytes);
    if (!entry)
        return NULL;
    memcpy(entry->data, taps->first, count * sizeof *taps->first);
    memcpy(entry->data + count, taps->weight, count * (size_t)taps->width * sizeof *taps->weight);
    entry->side = *side;
    entry->taps = *taps;
    entry->taps.first = entry->data;
    entry->taps.weight = entry->data + count;
    return entry;
}

static void add(struct st_taps_kept *kept, struct entry *_Atomic *place, const struct st_side *side,
                const struct st_taps *taps)
{
    struct entry *none = NULL;
    uint64_t bytes;
    if (!ST_PRODUCT(&bytes, (uint64_t)taps->count, (uint64_t)taps->width + 1, sizeof(int32_t)) ||
        !st_add(bytes, sizeof(struct entry), &bytes) || bytes > kept->most ||
        atomic_load_explicit(&kept->bytes, memory_order_relaxed) > kept->most - bytes)
        return;
    const bool fits = atomic_fetch_add(&kept->bytes, bytes) <= kept->most - bytes;
    struct entry *entry = fits ? entry_of(side, taps, bytes) : NULL;
    if (entry && atomic_compare_exchange_strong(place, &none, entry)) {
        st_account_add(&kept->memory, bytes);
        return;
    }
    free(entry); /* another thread was faster */
    atomic_fetch_sub(&kept->bytes, bytes);
}

bool st_taps_kept_find(struct st_taps_kept *kept, const struct st_side *side, struct st_arena *arena,
                       struct st_taps *taps)
{
    struct entry *_Atomic *place = NULL;
    for (uint32_t k = 0, number = number_of(side); kept && !place && k < TRIES; k++, number++) {
        struct entry *_Atomic *here = &kept->place[number % PLACES];
        const struct entry *entry = atomic_load_explicit(here, memory_order_acquire);
        if (!entry) {
            place = here;
        } else if (same_side(&entry->side, side)) {
            *taps = entry->taps;
            return true;
        }
    }
    if (!st_side_taps(side, false, arena, taps))
        return false;
    if (place)
        add(kept, place, side, taps);
    return true;
}
