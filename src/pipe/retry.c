/* retry.c - failures of the machine or the network, for which the sample is not to blame
 *
 * Examples: a refused connection, a disk that returns EIO, a process out of file descriptors. The sample
 * itself is fine, so skipping it would change the training data, and the ledger of bad samples should
 * not list it. It is retried for about two seconds (a read by URL has already been retried for longer).
 * If that does not help, the epoch stops there, because the next sample would fail as well.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "pipe/alone.h"
#include "pipe/failure.h"
#include "pipe/gate.h"
#include "pipe/run.h"

#include <stdio.h>
#include <time.h>

#define MS_NS 1000000ull
enum {
    TRIES = 6,
    PAUSE_MS = 25,      /* before the second attempt; doubled each time */
    PATIENCE_MS = 2000, /* no attempt starts later than this after the first failure */
    LOOK_MS = 10,       /* how often a pause checks whether the epoch is being stopped */
};

/* False if the epoch is being stopped. */
static bool wait_ms(const struct stoker_loader *loader, uint64_t ms)
{
    const uint64_t until = st_now_ns() + ms * MS_NS;
    while (!atomic_load(&loader->stopping) && !st_interrupted() && st_now_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * (long)MS_NS}, NULL);
    return !atomic_load(&loader->stopping) && !st_was_interrupted();
}

static int stopped(struct stoker_error *err)
{
    return st_fail(err, STOKER_ECANCELED, "reading was stopped");
}

/* Reads the sample and makes it; if that ends with worker->again, this is to be repeated. */
static int read_and_make(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                         uint32_t row, struct stoker_error *err)
{
    struct stoker_loader *loader = worker->loader;
    struct st_bytes bytes;
    int rc;
    st_alone_yield(worker);
    worker->again = false;
    if (worker->wants_alone)
        rc = st_alone_take(worker, slot, row, err);
    else
        rc = st_gate_read(worker, slot, row, err);
    if (rc)
        return rc;
    rc = st_read_until(loader->data, sample, &loader->stopping, &worker->bytes, &bytes, err);
    st_gate_was_read(worker, rc ? 0 : bytes.size);
    if (rc) {
        rc = st_gate_not_read(worker, sample, rc, err);
        st_gate_leave(worker);
    } else if ((rc = st_run_sample(worker, bytes, sample, key, slot, row, err)) && !worker->again) {
        st_bad_name(loader, sample, err);
    }
    return rc;
}

int st_retry_once(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                  uint32_t row, struct stoker_error *err)
{
    int rc;
    worker->too_large = worker->over_memory = false;
    do
        rc = read_and_make(worker, sample, key, slot, row, err);
    while (rc && worker->again);
    return rc == STOKER_ECANCELED ? st_bad_cancelled(worker->loader, err) : rc;
}

/* Whether another worker has already given up. */
static bool is_broken(struct stoker_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    const bool broken = loader->broken.code;
    pthread_mutex_unlock(&loader->lock);
    return broken;
}

/* Always ETRANSIENT: ETIMEOUT from next() means that the batch may still come. */
static int give_up(uint32_t tries, uint64_t began, struct stoker_error *err)
{
    char why[800];
    snprintf(why, sizeof why, "%.799s", err->message);
    return st_fail(err, STOKER_ETRANSIENT,
                   "%s (tried %u time%s in %.1f s; the machine or the network failed, not the data: the "
                   "epoch stops here, "
                   "and a state saved now resumes at this batch)",
                   why, tries, st_s(tries), (double)(st_now_ns() - began) / 1e9);
}

int st_retry_sample(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                    uint32_t row, struct stoker_error *err)
{
    struct stoker_loader *loader = worker->loader;
    const uint64_t began = st_now_ns();
    uint32_t tries = 1;
    if (atomic_load(&loader->stopping))
        return stopped(err);
    int rc = err->code ? err->code : st_retry_once(worker, sample, key, slot, row, err);
    while (st_is_transient(rc) && tries < TRIES && st_now_ns() - began < PATIENCE_MS * MS_NS &&
           !is_broken(loader)) {
        if (!wait_ms(loader, (uint64_t)PAUSE_MS << (tries - 1)))
            return stopped(err);
        rc = st_retry_once(worker, sample, key, slot, row, err);
        tries++;
    }
    return st_is_transient(rc) ? give_up(tries, began, err) : rc;
}
