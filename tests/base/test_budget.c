/* The budget: what is held is within the limit where it was asked for, whoever takes; the default is a
 * share of what the cgroup or the machine allows. */
#include "base/budget.h"
#include "base/cpu.h"
#include "base/fake_root.h"
#include "tap.h"

#include <pthread.h>
#include <unistd.h>

static void sums(void)
{
    struct st_budget budget = {.limit = 1000};
    ok(st_budget_try(&budget, ST_MEMORY_SCRATCH, 600, budget.limit), "what fits is taken");
    ok(!st_budget_try(&budget, ST_MEMORY_READ, 401, budget.limit), "what does not is not");
    ok(!st_budget_try(&budget, ST_MEMORY_READ, UINT64_MAX, budget.limit), "nor what would wrap");
    ok(budget.held == 600 && budget.by[ST_MEMORY_SCRATCH] == 600 && budget.by[ST_MEMORY_READ] == 0,
       "counted by kind");
    st_budget_take(&budget, ST_MEMORY_BATCHES, 900);
    ok(budget.held == 1500 && budget.peak == 1500, "what is there is counted, beyond the limit too");
    ok(!st_budget_try(&budget, ST_MEMORY_READ, 0, budget.limit), "beyond it nothing more is promised");
    st_budget_give(&budget, ST_MEMORY_BATCHES, 900);
    st_budget_give(&budget, ST_MEMORY_SCRATCH, 600);
    ok(budget.held == 0 && budget.peak == 1500, "given back; the peak stays");
}

static void accounts(void)
{
    struct st_budget budget = {.limit = 1000};
    struct st_account account = {.budget = &budget, .kind = ST_MEMORY_SCRATCH};
    ok(st_account_try(&account, 700, budget.limit) && budget.held == 700, "a promise counts");
    st_account_add(&account, 500);
    ok(budget.held == 700, "memory within the promise does not count twice");
    st_account_add(&account, 400);
    ok(budget.held == 900, "beyond it, it does");
    ok(!st_account_try(&account, 1001, budget.limit) && budget.held == 900,
       "a promise that does not fit changes nothing");
    st_account_promise(&account, 0);
    ok(budget.held == 900, "without the promise its memory is left");
    ok(st_account_try(&account, 1000, budget.limit) && budget.held == 1000,
       "what it has already is part of a promise");
    st_account_sub(&account, 900);
    ok(budget.held == 1000, "until that is over");
    st_account_promise(&account, 0);
    ok(budget.held == 0 && account.bytes == 0, "nothing is left");
    struct st_account nobody = {0};
    st_account_add(&nobody, 5);
    st_account_sub(&nobody, 5);
    st_account_add(NULL, 5);
    st_account_sub(NULL, 5);
    ok(st_account_try(&nobody, UINT64_MAX, 0), "an account of no budget is never refused");
}

enum { THREADS = 4, ROUNDS = 50000, PIECE = 300 };

static void *take_and_give(void *argument)
{
    struct st_budget *budget = argument;
    bool within = true;
    for (int k = 0; k < ROUNDS; k++)
        if (st_budget_try(budget, ST_MEMORY_SCRATCH, PIECE, budget->limit)) {
            within = within && budget->held <= budget->limit;
            st_budget_give(budget, ST_MEMORY_SCRATCH, PIECE);
        }
    return within ? budget : NULL;
}

static void threads(void)
{
    struct st_budget budget = {.limit = 1000};
    pthread_t thread[THREADS];
    bool within = true;
    for (int k = 0; k < THREADS; k++)
        pthread_create(&thread[k], NULL, take_and_give, &budget);
    for (int k = 0; k < THREADS; k++) {
        void *result;
        pthread_join(thread[k], &result);
        within = within && result;
    }
    ok(within && budget.peak <= 900 && budget.held == 0,
       "many threads stay within the limit (peak %llu)", (unsigned long long)budget.peak);
}

static void defaults(void)
{
    unsetenv("LOCAL_WORLD_SIZE");
    const uint64_t nothing = st_budget_default(root);
    ok(nothing == st_memory_all() / 4, "where nothing is known: a quarter of the machine");
    put("/proc/meminfo",
        "MemTotal:       8000000 kB\nMemFree:         100000 kB\nMemAvailable:   4096000 kB\n");
    ok(st_budget_default(root) == 1024ull * 1024000, "a quarter of what the machine has available");
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    ok(st_budget_default(root) == 1024ull * 1024000, "cgroup v2 without a limit changes nothing");
    put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
    ok(st_budget_default(root) == 1u << 28, "a quarter of an ancestor's limit");
    put("/sys/fs/cgroup/a/b/memory.max", "536870912\n");
    ok(st_budget_default(root) == 1u << 27, "the smaller of two counts");
    setenv("LOCAL_WORLD_SIZE", "8", 1);
    ok(st_budget_default(root) == 1u << 24, "divided by the processes of this host");
    setenv("LOCAL_WORLD_SIZE", "many", 1);
    ok(st_budget_default(root) == 1u << 27, "what is no number is not heeded");
    unsetenv("LOCAL_WORLD_SIZE");
    put("/proc/self/cgroup", "5:memory:/m\n");
    put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
    ok(st_budget_default(root) == 1024ull * 1024000, "cgroup v1: its number for none is no limit");
    put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "268435456\n");
    ok(st_budget_default(root) == 1u << 26, "cgroup v1: a quarter of its limit");
}

int main(void)
{
    if (!mkdtemp(root))
        return 1;
    sums();
    accounts();
    threads();
    defaults();
    return done_testing() | remove_root();
}
