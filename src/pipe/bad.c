/* bad.c - a bad sample is data, not a crash: the policy for it, and the ledger that names it
 *
 * What happens depends on the sample alone, never on which worker met it or when, so that skipping
 * stays deterministic and resumable. Failures are counted and written down when their batch is due.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/interrupt.h"
#include "pipe/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUBSTITUTES = 64 }; /* tries before giving up: if so many are bad, the data set is */

void st_bad_name(const struct stoker_loader *loader, uint64_t sample, struct stoker_error *err)
{
    char name[PATH_MAX];
    st_dataset_name(loader->data, sample, name, sizeof name);
    st_fail_in(err, err->code, name);
}

int st_bad_cancelled(struct stoker_loader *loader, struct stoker_error *err)
{
    pthread_mutex_lock(&loader->lock);
    const bool stops = !loader->epoch.running || st_interrupt_came();
    pthread_mutex_unlock(&loader->lock);
    return err->code = stops ? STOKER_ECANCELED : STOKER_EIO;
}

/* Another sample of the epoch takes the row, with the chance of the one whose place it takes. */
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
        const int rc = st_retry_sample(worker, other, bad, slot, row, &why);
        if (!rc) {
            slot->samples[row] = other;
            return 0;
        }
        if (rc == STOKER_ECANCELED || st_is_transient(rc) || worker->too_large) {
            *err = why; /* the next ones would fare no better */
            return rc;
        }
    }
    char reason[600];
    snprintf(reason, sizeof reason, "%.599s", err->message);
    return st_fail(err, STOKER_ECORRUPT, "no substitute after %d tries for a bad sample: %s", SUBSTITUTES,
                   reason);
}

static int apply_policy(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t sample,
                        struct stoker_error *err)
{
    if (err->code == STOKER_ENOMEM || err->code == STOKER_EINTERNAL || st_is_transient(err->code) ||
        worker->too_large)
        return err->code; /* the machine's, the caller's or our own failure or limit: not the sample's */
    switch (worker->loader->opt.on_error) {
    case STOKER_ON_ERROR_SKIP:
        return substitute(worker, slot, row, sample, err);
    case STOKER_ON_ERROR_REPLACE:
        return st_slot_blank(slot, row) ? 0 : st_fail(err, STOKER_ENOMEM, "no memory for a blank sample");
    default:
        return err->code;
    }
}

/* Written to the slot in the order of its rows. Lock held. */
static void note_failure(struct stoker_loader *loader, struct st_slot *slot, const struct st_failure *what)
{
    struct st_failure **at = &slot->failures, *failure = st_calloc(1, sizeof *failure);
    if (!failure) {
        struct stoker_error err;
        st_fail(&err, STOKER_ENOMEM, "no memory to note a bad sample: %.900s", what->error.message);
        st_loader_break(loader, &err);
        slot->made[what->row] = false; /* so that nobody gets it without knowing */
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
    if (!rc || rc == STOKER_ECANCELED)
        return; /* made after all; or nobody wants it any more */
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

static void write_down(struct stoker_loader *loader, const struct st_failure *failure)
{
    const uint64_t number = loader->count.bad++;
    loader->count.epoch_bad++;
    if (!loader->ledger)
        loader->ledger = st_calloc(ST_LEDGER_SIZE, sizeof *loader->ledger);
    if (!loader->ledger)
        return; /* the count is kept, the names are not */
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
        write_down(loader, f);
        fatal = fatal ? fatal : f->fatal ? f : NULL;
        last = f;
    }
    if (fatal) {
        if (err)
            *err = fatal->error;
        return fatal->error.code;
    }
    if (last && loader->count.epoch_bad > loader->opt.error_limit)
        return st_fail(err, STOKER_ELIMIT, "%llu bad samples in epoch %llu, more than error_limit allows (%llu); "
                       "the last: %.800s",
                       (unsigned long long)loader->count.epoch_bad, (unsigned long long)loader->epoch.number,
                       (unsigned long long)loader->opt.error_limit, last->error.message);
    return 0;
}

bool st_loader_bad(struct stoker_loader *loader, uint64_t k, struct stoker_bad_sample *out)
{
    pthread_mutex_lock(&loader->lock);
    const uint64_t all = loader->count.bad, first = all > ST_LEDGER_SIZE ? all - ST_LEDGER_SIZE : 0;
    const bool there = loader->ledger && k < all - first;
    if (there)
        *out = loader->ledger[(first + k) % ST_LEDGER_SIZE];
    pthread_mutex_unlock(&loader->lock);
    return there;
}
