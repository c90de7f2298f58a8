/* exchange_layout.h - the layout of the memory that a loader shares with its worker processes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXT_EXCHANGE_LAYOUT_H
#define EXT_EXCHANGE_LAYOUT_H

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
    _Atomic uint32_t block;  /* the block of its batch, + 1; 0: none yet */
    uint32_t kind;           /* the kind of the message, defined in Python */
    uint64_t task;           /* its number in the epoch */
    /* For a task: of its message; for a batch: of its description in the block. */
    uint64_t offset, length;
};

struct block {
    _Atomic uint32_t owner; /* the slot that uses it, + 1; 0: free */
    _Atomic uint32_t maker; /* the worker that wrote to it last, + 1; 0: it has no memory */
};

/* The tasks of one worker: written by the loader at the tail, read by the worker at the head. */
struct lane {
    _Alignas(64) _Atomic uint32_t tail; /* the worker sleeps on it */
    _Atomic uint32_t sleeping, stop;
    _Alignas(64) uint32_t head;
    _Atomic uint32_t doing; /* the slot whose task is in progress, + 1; 0: none */
    _Atomic uint32_t place; /* the sample of it that is in progress */
    uint32_t entry[];       /* slot numbers */
};

struct header {
    uint64_t magic;
    uint32_t workers, slots;
    uint64_t stride, control;
    _Alignas(64) _Atomic uint32_t posted; /* results so far; the loader sleeps on it */
    _Atomic uint32_t sleeping;
};

struct exchange {
    PyObject_HEAD struct header *header;
    uint64_t mapped, control, stride;
    uint32_t workers, slots, regular;
    uint32_t worker; /* the one that this process is */
    int fd;
    pid_t owner;
    PyObject *on_drop;      /* called with the slot when one of its tensors is gone; or NULL */
    PyObject *on_release;   /* called with the slot when a lease ends, and must free it; or NULL */
    PyObject *before_unmap; /* called before the memory is unmapped; or NULL */
};

/* ---- layout -------------------------------------------------------------------------------------- */

static inline uint64_t lane_bytes(uint32_t slots)
{
    return (sizeof(struct lane) + slots * sizeof(uint32_t) + 63) / 64 * 64;
}

static inline struct lane *lane_of(const struct exchange *self, uint32_t worker)
{
    return (struct lane *)(void *)((uint8_t *)(self->header + 1) + worker * lane_bytes(self->slots));
}

static inline struct slot *slot_of(const struct exchange *self, uint32_t k)
{
    struct slot *first =
        (struct slot *)(void *)((uint8_t *)(self->header + 1) + self->workers * lane_bytes(self->slots));
    return first + k;
}

static inline struct block *block_at(const struct exchange *self, uint32_t b)
{
    return (struct block *)(void *)slot_of(self, self->slots) + b;
}

/* The largest size of a task's message. */
static inline uint64_t message_most(const struct exchange *self) { return self->stride / 16; }

/* The memory of a block. The messages of tasks follow after all blocks, one for each slot. */
static inline uint8_t *data_of(const struct exchange *self, uint32_t b)
{
    return (uint8_t *)self->header + self->control + b * self->stride;
}

static inline uint8_t *message_of(const struct exchange *self, uint32_t k)
{
    return data_of(self, self->slots) + k * message_most(self);
}

#endif
