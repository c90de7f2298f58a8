/* memory.h - who takes how much of max_memory, and who waits for it: the state of gate.c and alone.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_MEMORY_H
#define ST_PIPE_MEMORY_H

#include "base/budget.h"

#include <pthread.h>

struct st_worker;

/* Parts of max_memory: for bytes that are read ahead, and for marks, some 300 bytes per JPEG file. */
enum { ST_GATE_READ_PART = 8, ST_GATE_MARKS_PART = 32 };

struct st_gate {
    struct st_budget budget;
    uint32_t threads;              /* threads that make samples */
    uint64_t small;                /* bytes a worker may take without asking, and keep */
    uint64_t sample_limit;         /* bytes that one sample may take, made alone */
    uint64_t shared_limit;         /* the same beside others: less, by more than it could vary */
    uint64_t data_fixed;           /* held by the dataset when opened; not part of the budget */
    struct st_account read;        /* bytes read ahead */
    struct st_account data;        /* added by the dataset since it was opened; with the lock */
    _Atomic uint64_t largest_read; /* recent maximum of a sample's bytes; 0: nothing was read yet */
    _Atomic uint32_t inside, waiting;
    pthread_cond_t room;        /* with the loader's lock */
    struct st_gate_wait *queue; /* waiting workers */
    _Atomic uint32_t turns;     /* workers that want a turn alone or have it; changed with the lock */
    struct st_gate_wait *alone; /* those that want it; guarded by the lock, like the next one: */
    const struct st_worker *only; /* who has it; NULL: nobody */
};

/* A waiting worker, and the row that it waits for. */
struct st_gate_wait {
    struct st_gate_wait *next;
    uint64_t batch;
    uint32_t row;
    bool reads;           /* before a read: `bytes` is updated while it waits */
    uint64_t bytes, most; /* what it needs; the limit for all, unless its batch is due */
};

#endif
