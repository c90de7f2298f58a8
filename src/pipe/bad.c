/* bad.c - a bad sample is data, not a crash: applies the on_error policy, and keeps a ledger of bad
 * samples
 *
 * The outcome depends only on the sample, never on which worker met it or when, so that skipping stays
 * deterministic and resumable. Failures are counted and written to the ledger when their batch is due.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/failure.h"
#include "pipe/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUBSTITUTES = 64 }; /* attempts: if all of these are bad, so is the dataset */

/* Whether the sample is not to blame, but the machine, the library, or the size of the batch. */
static bool is_general(const struct st_worker *worker, int rc)
{
    return rc == STOKER_ENOMEM || rc == STOKER_EINTERNAL || st_is_transient(rc) || worker->too_large;
}

/* Another sample of the epoch takes the row, with the random draws of the sample it replaces. */
static int substitute(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t bad,
                      struct stoker_error *err)
{
    struct stoker_loader *loader = worker->loader;
    struct st_rng rng;
    st_rng_init(&rng, slot->seeds[row], loader->epoch.number, bad, ST_RNG_SUBSTITUTE);
    for (int k = 0; k < SUBSTITUTES; k++) {
        const uint64_t other =
            st_order_global(loader->order, st_rng_below(&rng, st_order_total(loader->order)));
        struct stoker_error why = {0};
        if (other == bad)
            continue;
        int rc = st_retry_sample(worker, other, bad, slot, row, &why);
        if (rc && rc != STOKER_ECANCELED)
            rc = st_rescue_sample(worker, other, bad, slot, row, &why);
        if (!rc) {
            slot->samples[row] = other;
            return 0;
        }
        if (rc == STOKER_ECANCELED || is_general(worker, rc)) {
            *err = why; /* further attempts would fail as well */
            return rc;
        }
    }
    char reason[600];
    snprintf(reason, sizeof reason, "%.599s", err->message);
    return st_fail(err, STOKER_ECORRUPT, "a bad sample, and no good substitute in %d attempts: %s",
                   SUBSTITUTES, reason);
}

static int apply_policy(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t sample,
                        struct stoker_error *err)
{
    if (is_general(worker, err->code))
        return err->code;
    switch (worker->loader->opt.on_error) {
    case STOKER_ON_ERROR_SKIP:
        return substitute(worker, slot, row, sample, err);
    case STOKER_ON_ERROR_REPLACE:
        return st_slot_blank(slot, row) ? 0
                                        : st_fail(err, STOKER_ENOMEM, "no memory for a blank sample");
    default:
        return err->code;
    }
}

/* Inserts the failure into the slot's list, sorted by row. Lock held. */
static void note_failure(struct stoker_loader *loader, struct st_slot *slot,
                         const struct st_failure *what)
{
    struct st_failure **at = &slot->failures, *failure = st_calloc(1, sizeof *failure);
    if (!failure) {
        struct stoker_error err;
        st_fail(&err, STOKER_ENOMEM, "no memory to note a bad sample: %.900s", what->error.message);
        st_loader_break(loader, &err);
        slot->made[what->row] = false; /* so that the row is never delivered unnoticed */
        return;
    }
    *failure = *what;
    while (*at && (*at)->row < what->row)
        at = &(*at)->next;
    failure->next = *at;
    *at = failure;
}

void st_bad_sample(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t sample,
                   const struct stoker_error *err)
{
    struct stoker_loader *loader = worker->loader;
    struct stoker_error why = *err;
    int rc = why.code == STOKER_ECANCELED ? st_bad_cancelled(loader, &why) : why.code;
    if (st_is_transient(rc))
        rc = st_retry_sample(worker, sample, sample, slot, row, &why);
    if (rc && rc != STOKER_ECANCELED)
        rc = st_rescue_sample(worker, sample, sample, slot, row, &why);
    if (!rc || rc == STOKER_ECANCELED)
        return; /* made after all, or no longer needed */
    struct stoker_error outcome = why;
    rc = apply_policy(worker, slot, row, sample, &outcome);
    worker->too_large = false;
    if (rc == STOKER_ECANCELED)
        return;
    pthread_mutex_lock(&loader->lock);
    if (st_is_transient(rc))
        st_loader_break(loader, &outcome);
    else
        note_failure(loader, slot, &(struct st_failure){.row = row, .fatal = rc != 0, .sample = sample,
                                                        .error = rc ? outcome : why});
    pthread_mutex_unlock(&loader->lock);
}

static void add_to_ledger(struct stoker_loader *loader, const struct st_failure *failure)
{
    const uint64_t number = loader->count.bad++;
    loader->count.epoch_bad++;
    struct stoker_bad_sample *entry = &loader->ledger[number % ST_LEDGER_SIZE];
    entry->sample = failure->sample;
    entry->epoch = loader->epoch.number;
    entry->code = failure->error.code;
    memcpy(entry->reason, failure->error.message, sizeof entry->reason);
}

bool st_bad_is_fatal(const struct st_slot *slot)
{
    const struct st_failure *f = slot->failures;
    while (f && !f->fatal)
        f = f->next;
    return f != NULL;
}

int st_bad_deliver(struct stoker_loader *loader, struct st_slot *slot, struct stoker_error *err)
{
    const struct st_failure *fatal = NULL, *last = NULL;
    for (const struct st_failure *f = slot->failures; f; f = f->next) {
        add_to_ledger(loader, f);
        fatal = fatal ? fatal : f->fatal ? f : NULL;
        last = f;
    }
    if (fatal) {
        if (err)
            *err = fatal->error;
        return fatal->error.code;
    }
    if (last && loader->count.epoch_bad > loader->opt.error_limit)
        return st_fail(
            err, STOKER_ELIMIT,
            "%llu bad sample%s in epoch %llu, more than error_limit (%llu); the last one: %.800s",
            (unsigned long long)loader->count.epoch_bad, loader->count.epoch_bad == 1 ? "" : "s",
            (unsigned long long)loader->epoch.number, (unsigned long long)loader->opt.error_limit,
            last->error.message);
    return 0;
}
