/* exchange.h - how the memory between a loader and its worker processes is laid out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXT_EXCHANGE_H
#define EXT_EXCHANGE_H

#include "ext.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum slot_state {
    SLOT_FREE,
    SLOT_TASK,
    SLOT_DONE,
    SLOT_LENT,
    SLOT_RETIRED, /* a forked child may still read it */
};

struct slot {
    _Alignas(64) _Atomic uint32_t state;
    uint32_t kind;           /* what the message is: Python's business */
    uint64_t task;           /* its number in the epoch */
    uint64_t offset, length; /* of the message in the slot */
};

/* The tasks of one worker: written by the loader at the tail, read by the worker at the head. */
struct lane {
    _Alignas(64) _Atomic uint32_t tail; /* the worker sleeps on it */
    _Atomic uint32_t sleeping, stop;
    _Alignas(64) uint32_t head;
    _Atomic uint32_t doing, place; /* the slot that was taken last, and how far the worker has come with it */
    uint32_t entry[];              /* numbers of slots */
};

struct header {
    uint64_t magic;
    uint32_t workers, slots;
    uint64_t stride, control;
    _Alignas(64) _Atomic uint32_t posted; /* results so far; the loader sleeps on it */
    _Atomic uint32_t sleeping;
};

struct exchange {
    PyObject_HEAD
    struct header *header;
    uint64_t mapped, control, stride;
    uint32_t workers, slots, regular;
    int fd;
    pid_t owner;
    PyObject *keeper;   /* called with the slot when a lease ends, and frees it itself; or NULL */
    PyObject *farewell; /* called before the memory is unmapped; or NULL */
};

/* A slot's memory as a buffer, lent until the last view of it is gone. `forked`: forks so far. (lease.c) */
PyObject *ext_lease_new(const struct ext_state *state, PyObject *exchange, uint32_t slot, unsigned forked);
void ext_exchange_give_back(PyObject *exchange, uint32_t slot, unsigned forked);

#endif
