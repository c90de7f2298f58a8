/* lock.c - ST231: workers wait for a lock that only one of them can hold
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

/* Stoker's idle workers wait for a futex, which looks the same. */
static double lock_share(const struct dr_facts *f)
{
    return f->loader.stoker ? f->worker_lock - f->worker_idle : f->worker_lock;
}

/* The gain with batches that all take the same time: it is the waits that make some of them long and let
 * other workers idle meanwhile, which the simulation of the measured batches would keep. */
static double even_gain(const struct dr_case *c, double seconds)
{
    const struct dr_facts *f = c->facts;
    const double cpus = fmax(dr_cpus_for_workers(c), 1);
    const double pace = fmax(seconds / f->loader.workers, f->batch_cpu_mean / cpus);
    return fmin(f->step / fmax(f->compute, pace), c->ceiling);
}

/* Without these waits. What the holder of the lock does meanwhile remains; at best without its waits for
 * the disk, too, where it is the lock that is written there: a database commits for each. */
static void predict(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double waiting = f->batch_mean - f->batch_cpu_mean;
    const double making = 1 - (dr_known(f->worker_idle) ? fmin(f->worker_idle, 0.95) : 0);
    const double lock = fmin(lock_share(f) / making * f->batch_mean, waiting);
    const double disk = dr_above(f->worker_disk, 0) ? f->worker_disk / making * f->batch_mean : 0;
    struct dr_plan then = c->now;
    if (!c->trace || !(waiting > 0)) {
        dr_no_promise(c, out);
        return;
    }
    then.wall_scale = 1 - 0.5 * lock / waiting;
    const struct dr_range least = dr_gain(c->trace, &c->now, &then, c->ceiling);
    then.wall_scale = 1 - lock / waiting;
    out->gain = dr_gain(c->trace, &c->now, &then, c->ceiling);
    out->gain.mid = fmax(out->gain.mid, even_gain(c, f->batch_mean - lock));
    out->gain.low = fmin(least.low, out->gain.mid);
    out->gain.high = fmax(fmax(out->gain.high, out->gain.mid),
                          even_gain(c, f->batch_mean - fmin(lock + disk, waiting)));
    out->plan.wall_scale = then.wall_scale;
    DR_SAY(out->basis, "simulated without the waits for the lock; more workers would only wait longer");
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_late(c) || !dr_has_processes(c) || !(lock_share(f) >= DR_LOCK_WAITS))
        return false;
    struct dr_text share;
    out->weight = f->stall_share;
    out->order = DR_ORDER_LOCK;
    DR_SAY(out->sentence,
           "the workers wait %s of their time for a lock of a file or a database, or one that they "
           "share: one holds it, the others queue, and more workers change nothing",
           dr_share_text(&share, lock_share(f)));
    DR_SAY(out->advice, "let every worker use a file, a connection or a cache of its own, hold the lock "
                        "for less (not while reading or decoding), or read without one");
    dr_say_stoker(c, out, "stoker.open reads shared files without locks",
                  "the same: the lock is in the Python code of the dataset");
    predict(c, out);
    return true;
}

const struct dr_rule dr_rule_lock = {
    .code = "ST231",
    .name = "lock-contention",
    .title = "Workers wait for a lock",
    .needs = "step.stall,main.lock",
    .check = check,
    .symptoms = "Workers neither run nor read; they are blocked in flock(), fcntl(), or on a lock of "
                "multiprocessing. More workers are not faster.",
    .why = "A lock lets one worker at a time through, so the throughput is that of one, however many "
           "there are. A file lock around a cache, a lock that came with the dataset, and databases "
           "that are opened for writing all do this.",
    .fix_torch = "One file or connection per worker (open it in worker_init_fn); read-only modes "
                 "(lmdb.open(..., lock=False), SQLite's mode=ro and immutable=1).",
    .fix_stoker = "stoker.open(\"file.lmdb\"), .h5, .zip or tar: one handle for all threads, "
                  "without a lock.",
    .how_to_check = "In the next report, the workers' waits for a lock are below 15 %.",
};
