/* Workers that make the same samples, or draw the same random numbers. */
#include "made_run.h"

#define SAME "0000000a 0000000b 0000000c 0000000d 0000000e 0000000f 00000010 00000011"
#define CONSTANT "0000000a 0000000a 0000000a 0000000a 0000000a 0000000a 0000000a 0000000a"

/* Two workers of an iterable dataset, or more, that say this of their first samples and of their generators. */
static void run_with(const char *const *samples, const char *const *random, const char *iterable, uint64_t apart)
{
    struct dr_process *trainer = begin();
    say(trainer, "loader.0.workers", "2");
    if (iterable)
        say(trainer, "loader.0.iterable", iterable);
    for (uint32_t k = 0; k < 100; k++)
        step(trainer, k, 10 * MS, 30 * MS);
    end_epoch(trainer);
    for (int k = 0; k < 2; k++) {
        struct dr_process *worker = new_process(DR_WORKER, -1, k);
        for (uint32_t n = 0; n < 10; n++)
            event(worker, DR_FETCH, 1200 * MS + k * apart + n * 20 * MS, 5 * MS, n, 0, 8, 1000);
        if (samples[k])
            say(worker, "worker.samples", samples[k]);
        if (random[k])
            say(worker, "worker.random", random[k]);
    }
}

static const char *const nothing[2] = {NULL, NULL};

int main(void)
{
    const char *const same[] = {SAME, SAME " 00000012"}, *const other[] = {SAME, "0000000b" SAME},
                      *const few[] = {"0000000a 0000000b", "0000000a 0000000b"}, *const all_alike[] = {CONSTANT, CONSTANT},
                      *const hostile[] = {SAME, "0000000a 000"}, *const one[] = {SAME, NULL};
    run_with(same, nothing, "1", 3 * MS);
    ok(!judge(-1) && facts.workers_alike == 2 && isnan(facts.workers_random), "the same samples");
    run_with(same, nothing, "1", 1000 * MS);
    ok(!judge(-1) && facts.workers_alike == 0, "of workers that follow each other");
    run_with(same, nothing, NULL, 3 * MS);
    ok(!judge(-1) && isnan(facts.workers_alike), "of a dataset with indices, nothing is known");
    run_with(other, nothing, "1", 3 * MS);
    ok(!judge(-1) && facts.workers_alike == 0, "other samples");
    run_with(few, nothing, "1", 3 * MS);
    ok(!judge(-1) && facts.workers_alike == 0, "two samples may be equal by chance");
    run_with(all_alike, nothing, "1", 3 * MS);
    ok(!judge(-1) && facts.workers_alike == 0, "data that are all alike tell nothing");
    run_with(hostile, nothing, "1", 3 * MS);
    ok(!judge(-1) && facts.workers_alike == 0, "what is no list");
    run_with(one, nothing, "1", 3 * MS);
    ok(!judge(-1) && facts.workers_alike == 0, "one worker only");
    const char *const copies[] = {"12345678 dataset.rng", "12345678 dataset.rng"},
                      *const own[] = {"12345678 dataset.rng", "12345679 dataset.rng"};
    run_with(nothing, copies, NULL, 3 * MS);
    ok(!judge(-1) && facts.workers_random == 2 && !strcmp(facts.random_at, " dataset.rng"), "copies of a generator: %s",
       facts.random_at);
    run_with(nothing, own, NULL, 3 * MS);
    ok(!judge(-1) && facts.workers_random == 0, "generators of their own");
    dr_facts_free(&facts);
    return done_testing();
}
