/* quota.c - ST205: a cgroup's CPU quota holds the run back
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_starved(c) || !(f->throttled_share > DR_THROTTLED) || !dr_known(f->limits.cpus_quota) ||
        f->limits.cpus_quota >= f->limits.cpus_affinity)
        return false;
    const uint32_t most = dr_most_workers(c);
    struct dr_plan plan = dr_plan_best(c, most);
    if (plan.workers > most)
        plan.workers = most;
    dr_gain_by_plan(c, out, &plan);
    out->weight = f->stall_share;
    out->order = DR_ORDER_QUOTA;
    struct dr_text need;
    DR_SAY(out->sentence,
           "the cgroup allows %.3g CPUs and keeps the run off them %.0f %% of the time; "
           "os.cpu_count() says %.0f",
           f->limits.cpus_quota, f->throttled_share * 100, f->limits.cpus_machine);
    const double wanted = f->batch_cpu_mean / f->compute + 1;
    char settings[192];
    dr_settings_text(settings, sizeof settings, c, &plan);
    if (dr_known(wanted))
        DR_SAY(need.text, "%.0f", ceil(wanted));
    else
        DR_SAY(need.text, "more");
    DR_SAY(out->advice,
           "raise the quota (docker --cpus, Kubernetes limits.cpu) to %s CPUs; within this one: "
           "%s, and OMP_NUM_THREADS=1",
           need.text, settings);
    dr_say_stoker(c, out, "stoker.DataLoader counts CPUs by the quota, and needs fewer of them",
                  "num_workers=\"auto\" counts CPUs by the quota");
    return true;
}

const struct dr_rule dr_rule_quota = {
    .code = "ST205",
    .name = "cpu-quota",
    .title = "A CPU quota of the container holds the run back",
    .needs = "step.stall,cpu.throttled",
    .check = check,
    .symptoms =
        "cpu.stat counts throttled time; os.cpu_count() is far larger than the quota; all threads "
        "stop together for tens of milliseconds.",
    .why = "A cgroup with cpu.max may use quota/period CPUs. When its threads have used up a "
           "period's share, all of them, the training thread too, stand still until the next "
           "period. More workers use the share up sooner.",
    .fix_torch = "Raise the limit: docker run --cpus=16, or resources.limits.cpu. Otherwise "
                 "num_workers below the quota, and OMP_NUM_THREADS=1.",
    .fix_stoker = "stoker.DataLoader(dataset, num_workers=\"auto\")   # counts by affinity and quota",
    .how_to_check = "`stoker doctor` shows the quota; throttled time in the next report is near 0.",
};
