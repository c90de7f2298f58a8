/* quota.c - ST205: the CPU quota of the cgroup throttles the run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

#include <string.h>

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_starved(c) || !(f->throttled_share > DR_THROTTLED) || !dr_known(f->limits.cpus_quota) ||
        f->limits.cpus_quota >= f->limits.cpus_affinity)
        return false;
    const double quota = f->limits.cpus_quota;
    const double wanted = fmin(f->limits.cpus_affinity, ceil(f->batch_cpu_mean / f->compute) + 1);
    const struct dr_plan within = dr_plan_with_cpus(c, quota),
                         beyond = dr_plan_with_cpus(c, dr_above(wanted, quota) ? wanted : quota);
    struct dr_finding raised = *out;
    dr_gain_by_plan(c, out, &within);
    dr_gain_by_cpus(c, &raised, &beyond);
    out->weight = f->stall_share;
    out->order = DR_ORDER_QUOTA;
    struct dr_text machine;
    DR_SAY(out->sentence,
           "the cgroup allows %.3g CPU%s and throttles the run %.0f %% of the time; os.cpu_count() "
           "returns %s",
           quota, dr_s(quota), f->throttled_share * 100,
           dr_plain_text(&machine, f->limits.cpus_machine));
    char settings[192], more[192];
    dr_settings_text(settings, sizeof settings, c, &within);
    dr_settings_text(more, sizeof more, c, &beyond);
    /* If a higher quota gains no more, the quota is enough: too many workers use it up. */
    if (out->gain.mid >= DR_GAIN_WORTH && !(raised.gain.mid > out->gain.mid * DR_GAIN_WORTH))
        DR_SAY(out->advice, "%s, and OMP_NUM_THREADS=1; or raise the quota", settings);
    else {
        DR_SAY(out->advice,
               "raise the quota (docker --cpus, Kubernetes limits.cpu) to %.3g CPU%s, with %s; until "
               "then %s",
               beyond.cpus, dr_s(beyond.cpus), more, settings);
        out->gain = raised.gain;
        out->plan = raised.plan;
        memcpy(out->basis, raised.basis, sizeof out->basis);
    }
    dr_say_stoker(c, out,
                  "stoker.DataLoader respects the quota when it counts CPUs, and needs fewer of them",
                  "num_workers=\"auto\" respects the quota when it counts CPUs");
    return true;
}

const struct dr_rule dr_rule_quota = {
    .code = "ST205",
    .name = "cpu-quota",
    .title = "The container's CPU quota throttles the run",
    .needs = "step.stall,cpu.throttled",
    .check = check,
    .symptoms = "cpu.stat counts throttled time; os.cpu_count() is far larger than the quota; all "
                "threads stop together for tens of milliseconds.",
    .why = "A cgroup with cpu.max may use quota/period CPUs. Once its threads have used up the share "
           "of a period, all of them stop until the next period, including the training thread. More "
           "workers use up the share sooner.",
    .fix_torch = "Raise the limit: docker run --cpus=16, or resources.limits.cpu in Kubernetes. "
                 "Otherwise set num_workers below the quota, and OMP_NUM_THREADS=1.",
    .fix_stoker = "stoker.DataLoader(dataset, num_workers=\"auto\")   # counts CPUs by affinity and "
                  "quota",
    .how_to_check = "`stoker doctor` shows the quota; throttled time is near 0 in the next report.",
};
