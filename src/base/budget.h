/* budget.h - how many bytes a loader may hold, and who holds them
 *
 * A budget is a sum with a limit. Memory is counted where it is allocated; arenas and buffers that have
 * an account do so themselves. Code that is about to need much memory promises it first: the sum counts
 * each account as its promise or its memory, whichever is larger. Statistics count only what is
 * allocated, because a promise may be far more than what is then used. Nothing here waits; a caller
 * whose promise is refused decides what to do (pipe/gate.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_BUDGET_H
#define ST_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum st_memory {
    ST_MEMORY_BATCHES, /* slots: rows, columns, what is stacked */
    ST_MEMORY_SCRATCH, /* of workers: pixels in progress, decoders, bytes of substitutes */
    ST_MEMORY_READ,    /* bytes of samples, read ahead or being decoded */
    ST_MEMORY_DATA,    /* what the dataset keeps: unpacked archives, chunks */
    ST_MEMORY_KINDS
};

struct st_budget {
    uint64_t limit;
    _Atomic uint64_t held;                /* promised or allocated */
    _Atomic uint64_t allocated, peak;     /* allocated now, and the maximum so far */
    _Atomic uint64_t by[ST_MEMORY_KINDS]; /* allocated now, by kind */
};

/* Adds these bytes to `held`, even beyond the limit. */
void st_budget_take(struct st_budget *budget, uint64_t bytes);
/* Adds them if `held` is then at most `most`. */
bool st_budget_try(struct st_budget *budget, uint64_t bytes, uint64_t most);
void st_budget_give(struct st_budget *budget, uint64_t bytes);

/* A part of the sum, such as a slot or a worker. A zeroed account counts for no budget. Any thread may
 * add memory; promises are made by one thread only. */
struct st_account {
    struct st_budget *budget;
    enum st_memory kind;
    _Atomic uint64_t bytes; /* allocated now */
    uint64_t promised;
    uint64_t limit;   /* for an account of one thread: its maximum; 0: no limit */
    uint64_t refused; /* the total that was refused last; 0: none */
};

/* Whether `bytes` more may be allocated. */
bool st_account_allows(struct st_account *account, uint64_t bytes); /* NULL is fine */

void st_account_add(struct st_account *account, uint64_t bytes); /* NULL is fine */
void st_account_sub(struct st_account *account, uint64_t bytes); /* NULL is fine */
/* Changes what the account has allocated from `before` to `now` bytes in one step: the budget never
 * counts both. If there is a `lender` (of the calling thread, in the same budget), an increase is taken
 * from its promise. */
void st_account_change(struct st_account *account, struct st_account *lender, uint64_t before,
                       uint64_t now); /* NULL is fine */
/* Makes the account count as at least `bytes`; with `most`, only if that fits, as in st_budget_try. */
void st_account_promise(struct st_account *account, uint64_t bytes);
bool st_account_try(struct st_account *account, uint64_t bytes, uint64_t most);

/* A loader's share where its caller names none: a quarter of what the cgroup allows, or else of what the
 * machine has available, divided by the processes of this host that a launcher has started
 * (LOCAL_WORLD_SIZE); and at most a quarter of what the process's own limits leave (ulimit -v and -d).
 * `root` is "" except in tests. */
uint64_t st_budget_default(const char *root);

#endif
