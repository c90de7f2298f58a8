/* The budget: what is held is within the limit where it was asked for, whoever takes; the default is a
 * share of what the cgroup or the machine allows. */
#include "base/budget.h"
#include "base/cpu.h"
#include "base/fake_root.h"
#include "base/mem.h"
#include "tap.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

static void sums(void)
{
    struct st_budget budget = {.limit = 1000};
    ok(st_budget_try(&budget, 600, budget.limit), "what fits is taken");
    ok(!st_budget_try(&budget, 401, budget.limit), "what does not is not");
    ok(!st_budget_try(&budget, UINT64_MAX, budget.limit), "nor what would wrap");
    ok(budget.held == 600, "refused bytes are not counted");
    st_budget_take(&budget, 900);
    ok(budget.held == 1500, "bytes that are taken are counted, even beyond the limit");
    ok(!st_budget_try(&budget, 0, budget.limit), "beyond it nothing more is promised");
    st_budget_give(&budget, 900);
    st_budget_give(&budget, 600);
    ok(budget.held == 0, "given back");
}

static void accounts(void)
{
    struct st_budget budget = {.limit = 1000};
    struct st_account account = {.budget = &budget, .kind = ST_MEMORY_SCRATCH};
    ok(st_account_try(&account, 700, budget.limit) && budget.held == 700, "a promise counts");
    ok(budget.allocated == 0 && budget.peak == 0 && budget.by[ST_MEMORY_SCRATCH] == 0,
       "but not as memory, nor in the peak");
    st_account_add(&account, 500);
    ok(budget.held == 700, "memory within the promise does not count twice");
    ok(budget.allocated == 500 && budget.peak == 500 && budget.by[ST_MEMORY_SCRATCH] == 500,
       "it is memory, counted by kind");
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
    ok(budget.allocated == 0 && budget.by[ST_MEMORY_SCRATCH] == 0 && budget.peak == 900, "the peak stays");
    struct st_account nobody = {0};
    st_account_add(&nobody, 5);
    st_account_sub(&nobody, 5);
    st_account_add(NULL, 5);
    st_account_sub(NULL, 5);
    ok(st_account_try(&nobody, UINT64_MAX, 0), "an account of no budget is never refused");
}

enum { THREADS = 4, ROUNDS = 50000, PIECE = 300 };

/* What a worker promised for its row becomes the slot's, and is never counted twice. */
static void lent(void)
{
    struct st_budget budget = {.limit = 1000};
    struct st_account worker = {.budget = &budget, .kind = ST_MEMORY_SCRATCH};
    struct st_account slot = {.budget = &budget, .kind = ST_MEMORY_BATCHES};
    st_account_promise(&worker, 700);
    st_account_change(&slot, &worker, 0, 300);
    ok(budget.held == 700 && budget.peak == 300 && worker.promised == 400 && slot.bytes == 300 &&
           budget.by[ST_MEMORY_SCRATCH] == 0 && budget.by[ST_MEMORY_BATCHES] == 300,
       "a row within the promise changes hands");
    st_account_change(&slot, &worker, 300, 900);
    ok(budget.held == 900 && worker.promised == 0 && slot.bytes == 900, "beyond it, the rest is counted");
    st_account_add(&worker, 50);
    st_account_change(&slot, &worker, 900, 950);
    ok(budget.held == 1000 && worker.bytes == 50, "what the lender has allocated is not lent");
    st_account_change(&slot, &worker, 950, 0);
    st_account_sub(&worker, 50);
    ok(!budget.held && !budget.by[ST_MEMORY_SCRATCH] && !budget.by[ST_MEMORY_BATCHES] && budget.peak == 1000,
       "nothing is left");
}

static void buffers(void)
{
    enum { FIRST = 3 << 20, THEN = 9 << 20, SLACK = 8192 };
    struct st_budget budget = {.limit = 1 << 30};
    struct st_account worker = {.budget = &budget, .kind = ST_MEMORY_SCRATCH};
    struct st_account slot = {.budget = &budget, .kind = ST_MEMORY_BATCHES};
    struct st_buffer row = {.account = &slot, .lender = &worker}, stacked = {0};
    st_account_promise(&worker, 100 << 20);
    ok(st_buffer_reserve(&row, FIRST) && st_buffer_reserve(&row, THEN) && budget.peak == slot.bytes &&
           budget.held == 100 << 20 && slot.bytes > THEN && worker.promised == (100 << 20) - slot.bytes,
       "a row that grows is paid for by the promise");
    st_account_promise(&worker, 0);
    ok(budget.held == slot.bytes, "and stays when that is over");
    const uint64_t rows = slot.bytes;
    ok(st_buffer_resize(&stacked, FIRST) && budget.held == rows, "a buffer of no account is not counted");
    st_account_add(&slot, FIRST);
    st_buffer_count(&stacked, &slot, FIRST);
    ok(slot.bytes >= rows + FIRST && slot.bytes < rows + FIRST + SLACK, "until it gets one");
    budget.peak = 0;
    ok(st_buffer_resize(&stacked, THEN) && budget.peak == budget.held && budget.held < rows + THEN + SLACK,
       "the old and the new size are never counted together");
    st_buffer_free(&stacked);
    st_buffer_free(&row);
    ok(!budget.held && !slot.bytes, "nothing is left of the buffers");
}

static void *take_and_give(void *argument)
{
    struct st_budget *budget = argument;
    bool within = true;
    for (int k = 0; k < ROUNDS; k++)
        if (st_budget_try(budget, PIECE, budget->limit)) {
            within = within && budget->held <= budget->limit;
            st_budget_give(budget, PIECE);
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
    ok(within && budget.held == 0, "many threads stay within the limit");
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

/* A quarter of what `ulimit` leaves, and of no more than there was without it. */
static void own_limit(int which, const char *what)
{
    enum { MORE = 400 << 20 };
    struct rlimit before, less;
    const uint64_t free = st_budget_default(root), page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long pages[6] = {0};
    FILE *f = fopen("/proc/self/statm", "r");
    const int read = f ? fscanf(f, "%llu %llu %llu %llu %llu %llu", &pages[0], &pages[1], &pages[2], &pages[3], &pages[4],
                                &pages[5])
                       : 0;
    if (f)
        fclose(f);
    if (read != 6 || getrlimit((__rlimit_resource_t)which, &before)) {
        skip(what, "this process cannot see or limit its memory");
        return;
    }
    less = before;
    less.rlim_cur = pages[which == RLIMIT_AS ? 0 : 5] * page + MORE;
    struct rlimit now = before;
    /* qemu-user answers that it set a limit, and sets none. */
    if (setrlimit((__rlimit_resource_t)which, &less) || getrlimit((__rlimit_resource_t)which, &now) ||
        now.rlim_cur != less.rlim_cur) {
        skip(what, "this process cannot limit its memory");
        return;
    }
    const uint64_t limited = st_budget_default(root), all = st_memory_limit();
    setrlimit((__rlimit_resource_t)which, &before);
    ok(limited <= MORE / 4 && limited >= MORE / 8 && free > MORE / 4 && all <= MORE,
       "%s leaves 400 MiB: the default is %.0f MiB, and was %.0f", what, (double)limited / (1 << 20),
       (double)free / (1 << 20));
    ok(st_budget_default(root) == free, "%s no more: as before", what);
}

int main(void)
{
    if (!mkdtemp(root))
        return 1;
    sums();
    accounts();
    lent();
    buffers();
    threads();
    defaults();
    put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
    own_limit(RLIMIT_AS, "ulimit -v");
    own_limit(RLIMIT_DATA, "ulimit -d");
    return done_testing() | remove_root();
}
