/* thread_storm.c - ST206: libraries in the workers start too many threads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

#include <string.h>

/* With one thread each, workers share the CPUs without switching. A batch then takes at most the CPU
 * time of all threads minus the kernel's part, which includes threads that spin at barriers, and at
 * least the CPU time of the main thread, its part of the work. How much of the rest is spinning is
 * unknown: the estimate is the geometric mean. */
static void gain(const struct dr_case *c, struct dr_finding *out, double workers)
{
    const struct dr_facts *f = c->facts;
    const double cpus = fmin(workers, dr_cpus_for_workers(c));
    const double wasted = fmax(0, f->worker_system_share - DR_STORM_KERNEL);
    const double left = workers * f->worker_cpus * f->step * (1 - wasted) / cpus;
    const double least = f->batch_cpu_mean / cpus, most = fmax(1, c->ceiling);
    const double between = dr_above(least, 0) ? sqrt(left * fmin(least, left)) : left;
    const double mid = fmin(most, fmax(1, f->step / fmax(f->compute, between)));
    const double high = fmin(most, f->step / fmax(f->compute, least));
    if (!dr_known(left) || !dr_known(c->ceiling)) {
        DR_SAY(out->basis, "cannot be estimated from this run: measure it");
        return;
    }
    out->gain = (struct dr_range){1, mid, dr_known(high) ? fmax(mid, high) : most};
    DR_SAY(out->basis, "between the CPU time of all threads and that of the main thread, on %.3g CPU%s",
           cpus, dr_s(cpus));
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_late(c) || !dr_has_processes(c) || !(f->worker_busy_threads >= DR_STORM_BUSY))
        return false;
    if (dr_below(f->worker_threads, DR_TORCH_THREADS + 0.5)) /* no library has started any */
        return false;
    const double workers = dr_known(f->workers_seen) ? fmax(f->workers_seen, 1) : f->loader.workers;
    const double at_work = workers * f->worker_busy_threads;
    if (!(at_work > DR_STORM_THREADS * f->limits.cpus) ||
        !(f->worker_run_queue >= DR_QUEUE_HIGH || f->worker_cpus >= DR_STORM_CPUS))
        return false;
    out->weight = f->stall_share;
    out->order = DR_ORDER_STORM;
    struct dr_text each, all, kernel;
    DR_SAY(out->sentence,
           "%.0f worker%s x %s threads = %s threads on %.3g CPU%s%s%.100s%s; %s of their CPU time is "
           "spent in the kernel",
           workers, dr_s(workers), dr_plain_text(&each, f->worker_threads),
           dr_plain_text(&all, workers * f->worker_threads), f->limits.cpus, dr_s(f->limits.cpus),
           f->storm_names[0] ? " (" : "", f->storm_names, f->storm_names[0] ? ")" : "",
           dr_share_text(&kernel, f->worker_system_share));
    const bool opencv = strstr(f->storm_names, "cv") || strstr(f->storm_names, "CV");
    DR_SAY(out->advice,
           "in worker_init_fn: %s; before Python starts: OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 "
           "OPENBLAS_NUM_THREADS=1",
           opencv ? "cv2.setNumThreads(0)"
                  : "cv2.setNumThreads(0) if it uses OpenCV, torch.set_num_threads(1)");
    dr_say_stoker(c, out, "stoker.DataLoader's ops do not start threads of other libraries",
                  "the same: the Python code of the dataset starts these threads");
    gain(c, out, workers);
    return true;
}

const struct dr_rule dr_rule_thread_storm = {
    .code = "ST206",
    .name = "thread-storm",
    .title = "Workers start more threads than there are CPUs",
    .needs = "step.stall,threads.busy,run_queue,cpus",
    .check = check,
    .symptoms = "Each worker has many busy threads, in total several per CPU; they queue for CPUs; "
                "much of the CPU time is spent in the kernel.",
    .why = "torch limits itself to one thread in a worker, but OpenCV, OpenMP, MKL and OpenBLAS create "
           "a thread pool of the size of the machine in every worker. The pools compete for the CPUs, "
           "and spin while they wait.",
    .fix_torch = "def init(worker):\n"
                 "    import cv2, torch\n"
                 "    cv2.setNumThreads(0)\n"
                 "    torch.set_num_threads(1)\n"
                 "DataLoader(dataset, num_workers=N, worker_init_fn=init)\n"
                 "and set OMP_NUM_THREADS=1 in the environment.",
    .fix_stoker = "stoker.DataLoader(dataset)   # decoding and augmentation run in the engine's "
                  "threads, one per CPU;\n"
                  "your own Python steps still need the worker_init_fn above.",
    .how_to_check = "In the next report, threads per worker fall to about 3, and so do waits for a CPU.",
};
