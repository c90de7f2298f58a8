/* case.c - what the rules share: predicates, plans for this machine, gains, wording
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

#include "base/text.h"

#include "cli/cli.h"

#include <string.h>

const char *dr_bytes_text(struct dr_text *room, double bytes)
{
    return dr_unit_text(room, bytes, "bytes");
}

const char *dr_stage_word(enum dr_stage stage)
{
    static const char *const words[DR_STAGES] = {"reading",   "network",      "decompression",
                                                 "decoding",  "augmentation", "collation",
                                                 "hand-over", "other code"};
    return words[stage];
}

const char *dr_waiter(const struct dr_case *c)
{
    if (c->facts->loader.feeder)
        return "the thread that feeds the training";
    return c->facts->has_gpu ? "the GPU" : "training";
}

const char *dr_makers(const struct dr_case *c, double count)
{
    if (count == 1)
        return c->facts->loader.native ? "thread" : "worker";
    return c->facts->loader.native ? "threads" : "workers";
}

bool dr_cannot_tell(const struct dr_facts *facts)
{
    return !dr_known(facts->stall_share) || dr_below(facts->confidence_steps, DR_STEPS_LEAST);
}

bool dr_starved(const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    return f->stall_share >= DR_STALL_MATTERS && !dr_below(f->stall_share_low, DR_STALL_SURE) &&
           !dr_below(f->confidence_steps, DR_STEPS_LEAST);
}

bool dr_late(const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    return dr_starved(c) && !dr_below(f->late_share, DR_STALL_MATTERS) &&
           !dr_below(f->late_share_low, DR_STALL_SURE);
}

bool dr_has_processes(const struct dr_case *c)
{
    return c->facts->loader.workers > 0 && !c->facts->loader.native;
}

static double mean(const double *values, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += values[i];
    return count ? sum / count : NAN;
}

double dr_waiting_share(const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    double wall = f->batch_mean, cpu = f->batch_cpu_mean;
    if (c->trace && c->trace->batches) {
        wall = mean(c->trace->wall, c->trace->batches) * (1 - fmin(c->trace->queued_share, 0.95));
        cpu = mean(c->trace->cpu, c->trace->batches);
    } else if (dr_known(f->worker_run_queue)) {
        const double busy = dr_below(f->worker_idle, 0.95) ? 1 - f->worker_idle : 1;
        wall *= 1 - fmin(0.95, f->worker_run_queue / busy);
    }
    if (!dr_above(wall, 0) || !dr_known(cpu))
        return NAN;
    return fmax(0, 1 - cpu / wall);
}

double dr_stage_waits(const struct dr_case *c, enum dr_stage stage)
{
    const double wall = c->facts->stage[stage], cpu = c->facts->stage_cpu[stage];
    return dr_above(wall, 0) && dr_known(cpu) ? fmax(0, 1 - cpu / wall) : NAN;
}

bool dr_storage_limits(const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    if (!dr_late(c))
        return false;
    const bool stage = f->stage_share[DR_STAGE_READ] >= DR_STAGE_WAITS &&
                       !dr_below(dr_stage_waits(c, DR_STAGE_READ), DR_WAITING);
    /* Mapped files are read by page faults, which no stage shows; a volume with a limit is
     * never busy. */
    const bool reads = f->read_storage >= DR_STORAGE_READS || f->major_faults >= DR_FAULTS_READ;
    const bool device =
        f->worker_disk >= DR_DISK_STATE && reads && !dr_above(f->hit_ratio, DR_HITS_GOOD);
    return stage || device;
}

enum dr_stage dr_storage_stage(const struct dr_case *c)
{
    return c->facts->stage_share[DR_STAGE_READ] >= DR_STAGE_WAITS ? DR_STAGE_READ : dr_heaviest_stage(c);
}

/* CPUs to keep for the training process: what it needs when it never waits, unless batches need so much
 * more CPU time than steps that it has to wait whatever the number of workers. */
static double training_cpus(const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    double need = NAN;
    if (c->trace && dr_above(f->compute, 0)) {
        need = c->trace->step_cpu / f->compute;
        const double batch = f->batch_cpu_mean + c->trace->put + c->trace->step_cpu;
        if (f->limits.cpus * c->trace->step_cpu / batch < DR_TRAINING_WAITS)
            return 0;
    } else if (dr_known(f->trainer_cpus) && dr_above(f->compute, 0)) {
        const double loading = dr_known(f->main_cpu_in_next) ? f->main_cpu_in_next : 0;
        need = fmax(0, f->trainer_cpus * f->step - loading) / f->compute;
    }
    return dr_below(need, DR_TRAINING_LIGHT) ? 0 : 1;
}

bool dr_held_off_cpu(const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    const double save = dr_known(f->outlier_save) ? f->outlier_save : 0,
                 gc = dr_known(f->outlier_gc) ? f->outlier_gc : 0,
                 eval = dr_known(f->outlier_eval) ? f->outlier_eval : 0;
    return fmax(save, fmax(gc, eval)) < DR_OUTLIER_CAUSE && f->outlier_share > 0 &&
           f->trainer_run_queue >= DR_OUTLIER_QUEUE * f->outlier_share;
}

double dr_cpus_for_workers(const struct dr_case *c)
{
    return fmax(1, c->facts->limits.cpus - training_cpus(c));
}

uint32_t dr_most_workers(const struct dr_case *c)
{
    if (!dr_known(c->facts->limits.cpus))
        return c->facts->loader.workers ? c->facts->loader.workers : 1;
    const double waiting = dr_waiting_share(c);
    const double on_cpu = dr_known(waiting) ? fmax(1 - waiting, 0.02) : 1;
    const double most = floor(dr_cpus_for_workers(c) / on_cpu + 0.1);
    return most < 1 ? 1 : most > DR_WORKERS_MOST ? DR_WORKERS_MOST : (uint32_t)most;
}

enum dr_stage dr_heaviest_stage(const struct dr_case *c)
{
    enum dr_stage heaviest = DR_STAGE_OTHER;
    for (int i = 0; i < DR_STAGES; i++)
        if (dr_known(c->facts->stage[i]) && !(c->facts->stage[i] <= c->facts->stage[heaviest]))
            heaviest = (enum dr_stage)i;
    return heaviest;
}

bool dr_heavy_stage(const struct dr_case *c, struct dr_finding *out, enum dr_stage stage, double limit,
                    const char *where)
{
    const struct dr_facts *f = c->facts;
    if (!dr_late(c) || !(f->stage_share[stage] > limit))
        return false;
    struct dr_text time, batch;
    out->weight = f->stall_share * f->stage_share[stage];
    out->order = DR_ORDER_STAGE;
    DR_SAY(out->sentence, "%.0f %% of the time to make a batch is %s: %s of %s%s%.120s",
           f->stage_share[stage] * 100, dr_stage_word(stage), dr_seconds_text(&time, f->stage[stage]),
           dr_seconds_text(&batch, f->batch_mean), where[0] ? ", in " : "", where);
    return true;
}

/* ---- plans --------------------------------------------------------------------------------------- */

uint64_t dr_room_for_batches(const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    const double in_flight = (f->loader.native ? 1.0 : f->loader.workers) * (f->loader.prefetch + 1.0);
    double most = 4096;
    if (!dr_above(f->loader.batch_bytes, 0))
        return (uint64_t)most;
    if (dr_known(f->memory_available_least)) /* half of the free memory, plus what is in use now */
        most = fmin(most, in_flight + f->memory_available_least / 2 / f->loader.batch_bytes);
    if (!f->loader.native && dr_above(f->shm_size, 0))
        most = fmin(most, f->shm_size * DR_SHM_FULL / f->loader.batch_bytes);
    return most < 1 ? 1 : (uint64_t)most;
}

struct dr_plan dr_plan_best(const struct dr_case *c, uint32_t most_workers)
{
    const struct dr_facts *f = c->facts;
    struct dr_plan plan = c->now;
    if (c->trace)
        plan = dr_best_plan(c->trace, &c->now, most_workers, dr_room_for_batches(c));
    else { /* enough for the mean, plus 10 % */
        double workers = ceil(1.1 * f->batch_mean / f->compute);
        if (f->loader.feeder) /* how fast it would have to be is not known: twice as fast */
            workers = fmax(dr_cpus_for_workers(c), 2.0 * f->loader.workers);
        workers = workers >= 1 ? fmin(workers, most_workers) : 1;
        plan.workers = (uint32_t)workers;
        plan.prefetch = plan.prefetch ? plan.prefetch : 2;
    }
    if (plan.workers > 0)
        plan.persistent = true;
    return plan;
}

struct dr_plan dr_plan_with_cpus(const struct dr_case *c, double cpus)
{
    struct dr_facts facts = *c->facts;
    struct dr_case other = *c;
    facts.limits.cpus = other.now.cpus = cpus;
    other.facts = &facts;
    struct dr_plan plan = dr_plan_best(&other, dr_most_workers(&other));
    if (plan.workers == 0 && c->now.workers > 0)
        plan.workers = 1;
    return plan;
}

void dr_settings_text(char *out, size_t size, const struct dr_case *c, const struct dr_plan *plan)
{
    const struct dr_settings *now = &c->facts->loader;
    char text[192] = "";
    size_t used = 0;
#define ADD(...)                                                                                        \
    do {                                                                                                \
        if (used < sizeof text)                                                                         \
            used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__);                     \
    } while (0)
    const char *comma = "";
    if (plan->workers != now->workers) {
        ADD("num_workers=%u", plan->workers);
        comma = ", ";
    }
    if (plan->workers > 0) {
        if (plan->prefetch != now->prefetch && !(plan->prefetch == 2 && now->workers == 0)) {
            ADD("%sprefetch_factor=%u", comma, plan->prefetch);
            comma = ", ";
        }
        if (plan->in_order != now->in_order && now->workers > 0) {
            ADD("%sin_order=%s", comma, plan->in_order ? "True" : "False");
            comma = ", ";
        }
        if (!now->native && plan->persistent && !now->persistent) {
            ADD("%spersistent_workers=True", comma);
            comma = ", ";
        }
    }
    if (!comma[0])
        ADD("the current settings");
#undef ADD
    (void)snprintf(out, size, "%s", text);
}

void dr_say_stoker(const struct dr_case *c, struct dr_finding *out, const char *change, const char *own)
{
    DR_SAY(out->advice_stoker, "%s", c->facts->loader.stoker || c->facts->loader.native ? own : change);
}

/* ---- gains --------------------------------------------------------------------------------------- */

bool dr_pays(struct dr_range gain)
{
    return !dr_below(gain.mid, DR_GAIN_WORTH) && !dr_below(gain.low, 1);
}

bool dr_fixes(const struct dr_case *c, struct dr_range gain)
{
    return dr_known(gain.mid) && dr_known(c->ceiling) &&
           1 - 1 / gain.mid >= DR_FIX_ENOUGH * (1 - 1 / c->ceiling);
}

const char *dr_not_covered(const struct dr_facts *facts)
{
    if (facts->loader.feeder)
        return "a thread of the program takes the batches ahead of the training";
    if (facts->worker_children >= DR_CHILDREN)
        return "workers leave work to processes of their own";
    if (facts->workers_at_work < DR_UNEVEN)
        return "the dataset ends earlier in some workers than in others";
    return NULL;
}

void dr_no_promise(const struct dr_case *c, struct dr_finding *out)
{
    const char *why = dr_not_covered(c->facts);
    DR_SAY(out->basis, "not simulated%s%s; try it: stoker tune", why ? ": " : "", why ? why : "");
}

static void basis_of_trace(const struct dr_case *c, struct dr_finding *out, const char *more)
{
    struct number_text room;
    DR_SAY(out->basis, "simulated from %s batch%s%s", with_commas(&room, c->trace->batches),
           st_es(c->trace->batches), more);
}

void dr_gain_by_plan(const struct dr_case *c, struct dr_finding *out, const struct dr_plan *plan)
{
    out->plan = *plan;
    if (!c->trace) {
        dr_no_promise(c, out);
        return;
    }
    out->gain = dr_gain(c->trace, &c->now, plan, c->ceiling);
    basis_of_trace(c, out, "");
}

void dr_gain_by_cpus(const struct dr_case *c, struct dr_finding *out, const struct dr_plan *plan)
{
    const struct dr_facts *f = c->facts;
    const double queued = dr_known(f->trainer_run_queue) ? fmin(f->trainer_run_queue, 0.9) : 0;
    out->plan = *plan;
    if (!c->trace) {
        dr_no_promise(c, out);
        return;
    }
    out->gain = dr_gain(c->trace, &c->now, plan, c->ceiling / (1 - queued));
    DR_SAY(out->basis, "simulated with %.3g CPU%s instead of %.3g", plan->cpus, dr_s(plan->cpus),
           f->limits.cpus);
}

/* The share of each stage's time that is left. */
struct left {
    double of[DR_STAGES];
};

static struct left all_left(void)
{
    struct left left;
    for (int i = 0; i < DR_STAGES; i++)
        left.of[i] = 1;
    return left;
}

/* The current plan, with these shares of the stages' times. */
static struct dr_plan with_left(const struct dr_case *c, const struct left *left)
{
    const struct dr_facts *f = c->facts;
    struct dr_plan plan = c->now;
    double wall = 0, cpu = 0, wall_saved = 0, cpu_saved = 0;
    for (int i = 0; i < DR_STAGES; i++)
        if (dr_known(f->stage[i])) {
            const double on_cpu =
                dr_known(f->stage_cpu[i]) ? fmin(f->stage_cpu[i], f->stage[i]) : f->stage[i];
            cpu += on_cpu;
            wall += f->stage[i] - on_cpu;
            cpu_saved += (1 - left->of[i]) * on_cpu;
            wall_saved += (1 - left->of[i]) * (f->stage[i] - on_cpu);
        }
    if (cpu > 0)
        plan.cpu_scale *= 1 - cpu_saved / cpu;
    if (wall > 0)
        plan.wall_scale *= 1 - wall_saved / wall;
    return plan;
}

/* The most, the expected and the least time that is left. */
static void gain_by_left(const struct dr_case *c, struct dr_finding *out, const struct left *most,
                         const struct left *expected, const struct left *least)
{
    const struct dr_plan worst = with_left(c, most), middle = with_left(c, expected),
                         best = with_left(c, least);
    const struct dr_range low = dr_gain(c->trace, &c->now, &worst, c->ceiling);
    const struct dr_range high = dr_gain(c->trace, &c->now, &best, c->ceiling);
    out->gain = dr_gain(c->trace, &c->now, &middle, c->ceiling);
    out->gain.low = fmin(low.low, out->gain.mid);
    out->gain.high = fmax(high.high, out->gain.mid);
    out->plan.cpu_scale = middle.cpu_scale;
    out->plan.wall_scale = middle.wall_scale;
}

void dr_gain_by_stage(const struct dr_case *c, struct dr_finding *out, enum dr_stage stage,
                      struct dr_range left)
{
    if (!c->trace || !dr_above(c->facts->stage[stage], 0)) {
        dr_no_promise(c, out);
        return;
    }
    struct left most = all_left(), expected = most, least = most;
    most.of[stage] = left.low, expected.of[stage] = left.mid, least.of[stage] = left.high;
    gain_by_left(c, out, &most, &expected, &least);
    char more[72];
    DR_SAY(more, " with %.0f %% of the %s time (assumed; %.0f to %.0f %%)", left.mid * 100,
           dr_stage_word(stage), left.high * 100, left.low * 100);
    basis_of_trace(c, out, more);
}

double dr_discarded_share(const struct dr_case *c, enum dr_stage stage)
{
    const struct dr_facts *f = c->facts;
    return dr_above(f->stage[stage], 0) ? f->discarded[stage] / f->stage[stage] : NAN;
}

bool dr_gain_by_size(const struct dr_case *c, struct dr_finding *out, enum dr_stage stage)
{
    const double share = dr_discarded_share(c, stage), known = dr_discarded_share(c, DR_STAGE_TRANSFORM);
    if (!c->trace || !dr_above(share, DR_DISCARDED_MATTERS)) {
        dr_gain_by_stage(c, out, stage, (struct dr_range){0.75, 0.5, 0});
        return false;
    }
    struct left most = all_left(), expected = most, least = most;
    /* What is decoded smaller is also transformed smaller, and what reduces it has less to do: at best
     * all of the transforms depend on the size. */
    if (stage == DR_STAGE_DECODE) {
        const double whole = c->facts->stage[DR_STAGE_TRANSFORM], later = dr_known(known) ? known : 0;
        const double reducing = dr_above(c->facts->reduced, 0) ? share * c->facts->reduced / whole : 0;
        expected.of[DR_STAGE_TRANSFORM] = 1 - fmin(later + reducing, 1);
        most.of[DR_STAGE_TRANSFORM] = 1 - 0.5 * fmin(later + reducing, 1);
        least.of[DR_STAGE_TRANSFORM] = 1 - fmax(share, later);
        expected.of[stage] = fmin(DR_STORED_LARGER * (1 - share), 1);
        most.of[stage] = fmin(DR_DECODE_FIXED + 2 * expected.of[stage], 1);
    } else {
        expected.of[stage] = 1 - share, most.of[stage] = 1 - share / 2;
    }
    least.of[stage] = 0;
    gain_by_left(c, out, &most, &expected, &least);
    char more[72];
    DR_SAY(more, " without the %.0f %% of the %s time spent on surplus data", share * 100,
           dr_stage_word(stage));
    basis_of_trace(c, out, more);
    return true;
}

void dr_gain_by_share(struct dr_finding *out, double share, double ceiling, const char *basis)
{
    if (!(share >= 0 && share < 1))
        return;
    double mid = 1 / (1 - share);
    if (dr_known(ceiling))
        mid = fmin(mid, fmax(ceiling, 1));
    out->gain = (struct dr_range){1 + (mid - 1) * 0.8, mid, mid};
    DR_SAY(out->basis, "%s", basis);
}
