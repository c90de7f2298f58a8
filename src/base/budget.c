/* budget.c - how many bytes a loader may hold, and who holds them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/budget.h"

#include "base/cpu.h"

#include <limits.h>
#include <stdio.h>

enum { SHARE = 4 };

void st_budget_take(struct st_budget *budget, uint64_t bytes)
{
    atomic_fetch_add(&budget->held, bytes);
}

bool st_budget_try(struct st_budget *budget, uint64_t bytes, uint64_t most)
{
    uint64_t held = atomic_load(&budget->held);
    do
        if (held > most || bytes > most - held)
            return false;
    while (!atomic_compare_exchange_weak(&budget->held, &held, held + bytes));
    return true;
}

void st_budget_give(struct st_budget *budget, uint64_t bytes)
{
    atomic_fetch_sub(&budget->held, bytes);
}

/* ---- accounts ------------------------------------------------------------------------------------- */

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The account counted as `before` and counts as `now`. */
static void count(struct st_account *account, uint64_t before, uint64_t now)
{
    if (!account->budget || now == before)
        return;
    if (now > before)
        st_budget_take(account->budget, now - before);
    else
        st_budget_give(account->budget, before - now);
}

/* The account has allocated `bytes` more. Returns what it had before. */
static uint64_t allocate(struct st_account *account, uint64_t bytes)
{
    struct st_budget *budget = account->budget;
    if (budget) {
        const uint64_t all = atomic_fetch_add(&budget->allocated, bytes) + bytes;
        uint64_t peak = atomic_load_explicit(&budget->peak, memory_order_relaxed);
        while (all > peak && !atomic_compare_exchange_weak(&budget->peak, &peak, all))
            ;
        atomic_fetch_add(&budget->by[account->kind], bytes);
    }
    return atomic_fetch_add(&account->bytes, bytes);
}

bool st_account_allows(struct st_account *account, uint64_t bytes)
{
    if (!account || !account->limit)
        return true;
    const uint64_t own = atomic_load_explicit(&account->bytes, memory_order_relaxed);
    if (own <= account->limit && bytes <= account->limit - own)
        return true;
    account->refused = own < UINT64_MAX - bytes ? own + bytes : UINT64_MAX;
    return false;
}

void st_account_add(struct st_account *account, uint64_t bytes)
{
    if (!account)
        return;
    const uint64_t before = allocate(account, bytes), promised = account->promised;
    count(account, larger(before, promised), larger(before + bytes, promised));
}

void st_account_sub(struct st_account *account, uint64_t bytes)
{
    if (!account)
        return;
    const uint64_t before = atomic_fetch_sub(&account->bytes, bytes), promised = account->promised;
    if (account->budget) {
        atomic_fetch_sub(&account->budget->by[account->kind], bytes);
        atomic_fetch_sub(&account->budget->allocated, bytes);
    }
    count(account, larger(before, promised), larger(before - bytes, promised));
}

/* `bytes` more are allocated for `account`, out of the promise of `lender`. The sum changes once: adding
 * first would count the bytes twice, and subtracting first would let others take them meanwhile. */
static void add_promised(struct st_account *account, struct st_account *lender, uint64_t bytes)
{
    struct st_budget *budget = account->budget;
    const uint64_t own = atomic_load(&lender->bytes), lent = larger(own, lender->promised);
    lender->promised -= bytes < lender->promised ? bytes : lender->promised;
    const uint64_t less = lent - larger(own, lender->promised);
    const uint64_t had = allocate(account, bytes), promised = account->promised;
    const uint64_t more = larger(had + bytes, promised) - larger(had, promised);
    if (more >= less)
        atomic_fetch_add(&budget->held, more - less);
    else
        atomic_fetch_sub(&budget->held, less - more);
}

void st_account_change(struct st_account *account, struct st_account *lender, uint64_t before,
                       uint64_t now)
{
    if (!account || now == before)
        return;
    if (now < before)
        st_account_sub(account, before - now);
    else if (lender && account->budget && lender->budget == account->budget)
        add_promised(account, lender, now - before);
    else
        st_account_add(account, now - before);
}

void st_account_promise(struct st_account *account, uint64_t bytes)
{
    const uint64_t own = atomic_load(&account->bytes), before = larger(own, account->promised);
    account->promised = bytes;
    count(account, before, larger(own, bytes));
}

bool st_account_try(struct st_account *account, uint64_t bytes, uint64_t most)
{
    const uint64_t own = atomic_load(&account->bytes), before = larger(own, account->promised);
    const uint64_t now = larger(own, bytes);
    if (account->budget && now > before &&
        !st_budget_try(account->budget, now - before, most))
        return false;
    if (now < before)
        count(account, before, now);
    account->promised = bytes;
    return true;
}

/* ---- the default ---------------------------------------------------------------------------------- */

/* MemAvailable, of a kernel that knows it; else all there is. */
static uint64_t available(const char *root)
{
    char name[PATH_MAX], line[256];
    unsigned long long kilobytes = 0;
    FILE *f = NULL;
    if (snprintf(name, sizeof name, "%s/proc/meminfo", root) < (int)sizeof name)
        f = fopen(name, "re");
    while (f && !kilobytes && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) != 1)
            kilobytes = 0;
    if (f)
        fclose(f);
    if (kilobytes && kilobytes < UINT64_MAX / 1024)
        return kilobytes * 1024;
    return st_memory_all();
}

uint64_t st_budget_default(const char *root)
{
    const uint64_t group = st_cgroup_memory(root);
    /* A limit above all memory, as cgroup v1 has it for "none", is no limit. */
    const uint64_t all = (group <= st_memory_all() ? group : available(root)) / st_local_processes();
    const uint64_t own = st_process_memory(); /* ulimit is for each process */
    return (all < own ? all : own) / SHARE;
}
