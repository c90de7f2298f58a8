/* The tuner against simulated loaders: where it ends, how soon, how often it moves, and that it never
 * leaves its bounds. */
#include "pipe/tune.h"
#include "tap.h"

#include <math.h>

enum { WINDOWS = 10000, LAST = 2000, SOON = 40 };

/* ---- a loader on paper ---------------------------------------------------------------------------- */

struct plant {
    double cost;      /* seconds of a worker for a sample */
    double latency;   /* of a read, in seconds; 0: in memory */
    double bandwidth; /* samples a second that the store gives at most */
    double own;       /* seconds of the consumer for a sample */
    double unsteady;  /* seconds for a sample that the consumer waits where one batch is kept ready */
    double noise;     /* of both, in parts of them */
    uint32_t room;    /* batches that memory has room for */
    uint32_t cpus;
};

struct setting {
    uint32_t workers, prefetch, depth;
};

static uint64_t dice = 1;

static double even(void) /* in [-1, 1) */
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (double)(dice >> 11) / (double)(1ull << 52) - 1;
}

static struct st_tune_seen window(const struct plant *plant, struct setting at)
{
    const double making = plant->cost / at.workers * (1 + plant->noise * even());
    const double own = plant->own * (1 + plant->noise * even());
    const double fetched = plant->latency / at.depth;
    const double reading = plant->latency == 0              ? 0
                           : fetched > 1 / plant->bandwidth ? fetched
                                                            : 1 / plant->bandwidth;
    const double made = making > reading ? making : reading;
    const double full = made / own; /* close to 1, it is chance whether a batch is ready */
    const double chance = full < 0.8 ? 0 : full > 1 ? own * 0.02 : own * 0.1 * (full - 0.8);
    const double period =
        (made > own ? made : own) + plant->unsteady / at.prefetch / at.prefetch + chance;
    const double samples = 0.5 / period, work = samples * plant->cost;
    const bool waits = reading > making && reading > own;
    return (struct st_tune_seen){.seconds = 0.5,
                                 .samples = samples,
                                 .late = samples * (period - own),
                                 .work = work,
                                 .read = waits ? 0.5 * at.workers - work : 0,
                                 .cpu = work / 0.5 / plant->cpus,
                                 .read_held = waits,
                                 .prefetch_room = plant->room};
}

static struct setting now_at(const struct st_tune *tune)
{
    return (struct setting){tune->lever[ST_TUNE_WORKERS].now, tune->lever[ST_TUNE_PREFETCH].now,
                            tune->lever[ST_TUNE_DEPTH].now};
}

static struct st_tune tuner(uint32_t workers)
{
    struct st_tune tune = {0};
    st_tune_lever(&tune, ST_TUNE_WORKERS, 1, workers, workers);
    st_tune_lever(&tune, ST_TUNE_PREFETCH, 2, 2, 8);
    st_tune_lever(&tune, ST_TUNE_DEPTH, 64, 64, 512);
    return tune;
}

static bool within(const struct st_tune *tune)
{
    bool good = true;
    for (int k = 0; k < ST_TUNE_LEVERS; k++)
        good = good && tune->lever[k].now >= tune->lever[k].least &&
               tune->lever[k].now <= tune->lever[k].most;
    return good;
}

/* ---- runs ----------------------------------------------------------------------------------------- */

struct outcome {
    double rate;       /* samples a second in the last windows */
    uint32_t slow_at;  /* the last window with less than 0.97 of the best */
    uint32_t moved_at; /* the last move */
    bool bounded;      /* no lever left its bounds, or memory */
};

static struct outcome run(struct st_tune *tune, const struct plant *plant, uint32_t windows, double best)
{
    struct outcome out = {.bounded = true};
    double samples = 0;
    for (uint32_t k = 0; k < windows; k++) {
        const struct st_tune_seen seen = window(plant, now_at(tune));
        const uint32_t moves = tune->moves;
        samples += k >= windows - LAST ? seen.samples : 0;
        out.slow_at = seen.samples < 0.97 * best * 0.5 ? k : out.slow_at;
        const bool moved = st_tune_window(tune, &seen);
        out.bounded = out.bounded && within(tune) && moved == (tune->moves > moves) &&
                      tune->moves <= moves + 1 &&
                      (now_at(tune).prefetch <= plant->room || now_at(tune).prefetch == 2);
        if (moved)
            out.moved_at = k;
    }
    out.rate = samples / LAST / 0.5;
    return out;
}

static double fixed_rate(const struct plant *plant, struct setting at, uint32_t windows)
{
    double samples = 0;
    for (uint32_t k = 0; k < windows; k++)
        samples += window(plant, at).samples;
    return samples / windows / 0.5;
}

/* The best of all fixed settings, with the same noise. */
static double best_rate(const struct plant *plant, uint32_t workers)
{
    struct plant quiet = *plant;
    struct setting best = {workers, 2, 64};
    quiet.noise = 0;
    for (uint32_t w = 1; w <= workers; w++)
        for (uint32_t p = 2; p <= 8 && (p <= plant->room || p == 2); p++)
            for (uint32_t d = 64; d <= 512; d *= 2) {
                const struct setting at = {w, p, d};
                if (fixed_rate(&quiet, at, 1) >= fixed_rate(&quiet, best, 1))
                    best = at;
            }
    return fixed_rate(plant, best, LAST);
}

static struct setting settles(const char *name, struct plant plant, uint32_t workers, uint32_t moves)
{
    struct setting end = {0};
    for (int noisy = 0; noisy < 2; noisy++) {
        struct st_tune tune = tuner(workers);
        plant.noise = noisy ? 0.1 : 0;
        const double best = best_rate(&plant, workers);
        const struct outcome out = run(&tune, &plant, WINDOWS, best);
        end = now_at(&tune);
        note("%s: %u workers, %u batches, depth %u; %u moves, %u undone; last: %s (window %u); %s", name,
             end.workers, end.prefetch, end.depth, tune.moves, tune.reverted, tune.last, out.moved_at,
             tune.limit);
        ok(out.rate > 0.97 * best, "%s%s: %.3f of the best setting's speed", name,
           noisy ? ", noise of 10 %" : "", out.rate / best);
        ok(tune.moves <= moves + (noisy ? 24 : 0) && out.bounded,
           "%u moves in %d windows, within bounds", tune.moves, WINDOWS);
        if (!noisy)
            ok(out.slow_at < SOON, "never below 0.97 of it behind window %u", out.slow_at);
    }
    return end;
}

static void plants(void)
{
    const struct plant cpu = {.cost = 8e-3, .own = 1e-5, .room = 8, .cpus = 8};
    struct setting end = settles("CPUs are the limit", cpu, 8, 0);
    ok(end.workers == 8 && end.prefetch == 2 && end.depth == 64, "and nothing is moved");

    const struct plant reads = {
        .cost = 1e-3, .latency = 0.1, .bandwidth = 4000, .own = 1e-5, .room = 8, .cpus = 8};
    end = settles("reads are the limit", reads, 8, 3);
    ok(end.depth == 512 && end.workers == 8, "it reads further ahead");

    const struct plant store = {
        .cost = 1e-3, .latency = 0.1, .bandwidth = 640, .own = 1e-5, .room = 8, .cpus = 8};
    end = settles("the store's bandwidth is the limit", store, 8, 26);
    ok(end.depth == 64, "and does not where that brings nothing");

    const struct plant consumer = {.cost = 20e-3, .own = 10e-3, .room = 8, .cpus = 16};
    end = settles("the consumer is the limit", consumer, 16, 4);
    ok(end.workers >= 3 && end.workers <= 4,
       "workers that are not needed are released: %u of 16 are left", end.workers);

    const struct plant unsteady = {.cost = 20e-3, .own = 5e-3, .unsteady = 3e-3, .room = 8, .cpus = 16};
    end = settles("unsteady times", unsteady, 16, 10);
    ok(end.prefetch >= 4, "more batches are kept ready");

    const struct plant small = {.cost = 20e-3, .own = 5e-3, .unsteady = 3e-3, .room = 3, .cpus = 16};
    end = settles("unsteady times, little memory", small, 16, 10);
    ok(end.prefetch == 3, "as far as memory allows");
}

/* Training becomes faster, and slower again. */
static void steps(void)
{
    struct plant plant = {.cost = 20e-3, .own = 10e-3, .noise = 0.1, .room = 8, .cpus = 16};
    struct st_tune tune = tuner(16);
    run(&tune, &plant, LAST, 0);
    const uint32_t slow = now_at(&tune).workers;
    plant.own = 2e-3;
    const struct outcome fast = run(&tune, &plant, LAST, 0);
    const uint32_t busy = now_at(&tune).workers;
    const double best = best_rate(&plant, 16);
    plant.own = 10e-3;
    const struct outcome again = run(&tune, &plant, LAST, 0);
    ok(slow <= 4 && busy >= 11 && fast.rate > 0.97 * best,
       "a consumer 5 times as fast: %u workers, then %u, %.3f of the best", slow, busy,
       fast.rate / best);
    ok(now_at(&tune).workers <= 4 && again.rate > 0.97 * best_rate(&plant, 16),
       "as slow as before: %u workers", now_at(&tune).workers);
    ok(tune.moves < 40, "%u moves", tune.moves);

    struct st_tune restless = tuner(16);
    for (uint32_t k = 0; k < WINDOWS / 50; k++) {
        plant.own = k % 2 ? 2e-3 : 10e-3;
        for (uint32_t n = 0; n < 50; n++) {
            const struct st_tune_seen seen = window(&plant, now_at(&restless));
            st_tune_window(&restless, &seen);
        }
    }
    ok(restless.moves < 120, "one that changes its speed every 50 windows: %u moves in %d",
       restless.moves, WINDOWS);
}

/* Whatever is seen, sense or nonsense. */
static void anything(void)
{
    uint32_t most = 0;
    bool bounded = true;
    for (uint32_t seed = 1; seed <= 50; seed++) {
        struct st_tune tune = tuner(1 + seed % 20);
        dice = seed;
        for (uint32_t k = 0; k < WINDOWS; k++) {
            const double seconds = exp(3 * even());
            const struct st_tune_seen seen = {.seconds = k % 100 == 99 ? 0 : seconds,
                                              .late = seconds * (even() > 0 ? fabs(even()) : 0),
                                              .samples = exp(3 * even()),
                                              .work = 5 * seconds * (1 + even()),
                                              .read = 5 * seconds * (1 + even()),
                                              .memory = even() > 0 ? 0 : seconds,
                                              .cpu = fabs(even()),
                                              .read_held = even() > 0,
                                              .prefetch_room = (uint32_t)(10 * fabs(even()))};
            st_tune_window(&tune, &seen);
            bounded = bounded && within(&tune) &&
                      (!(seen.seconds > 0) || now_at(&tune).prefetch <= seen.prefetch_room ||
                       now_at(&tune).prefetch == 2);
        }
        most = tune.moves > most ? tune.moves : most;
    }
    ok(bounded, "no lever leaves its bounds, nor memory, whatever is seen");
    ok(most < 200, "and none oscillates: %u moves in %d windows at most", most, WINDOWS);
}

/* What the caller has fixed. */
static void fixed(void)
{
    struct st_tune tune = {0};
    struct plant plant = {
        .cost = 20e-3, .own = 10e-3, .unsteady = 3e-3, .noise = 0.1, .room = 8, .cpus = 16};
    st_tune_lever(&tune, ST_TUNE_WORKERS, 16, 16, 16);
    st_tune_lever(&tune, ST_TUNE_PREFETCH, 3, 3, 3);
    st_tune_lever(&tune, ST_TUNE_DEPTH, 100, 100, 100);
    run(&tune, &plant, LAST, 0);
    plant.own = 1e-3;
    run(&tune, &plant, LAST, 0);
    ok(tune.moves == 0 && now_at(&tune).workers == 16, "what the caller has fixed stays");
}

int main(void)
{
    plants();
    steps();
    anything();
    fixed();
    return done_testing();
}
