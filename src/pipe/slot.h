/* slot.h - the home of one batch
 *
 * A slot's state names its owner, and only the owner moves it on: FREE (nobody), FILLING (the workers),
 * READY (the consumer may have it), LENT (the consumer has it). All states are guarded by the loader's
 * lock; the contents of a FILLING slot are written by workers, each to rows of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_SLOT_H
#define ST_PIPE_SLOT_H

#include "base/mem.h"
#include "op/finish.h"

#include <stdatomic.h>

enum st_slot_state { ST_SLOT_FREE, ST_SLOT_FILLING, ST_SLOT_READY, ST_SLOT_LENT };

/* A sample of the batch that could not be made. */
struct st_failure {
    struct st_failure *next;
    uint32_t row;
    bool fatal; /* no policy covers it: the batch cannot be delivered */
    uint64_t sample;
    struct stoker_error error;
};

/* What all slots of a loader have in common. */
struct st_slot_shape {
    uint32_t rows;
    int32_t width, height, channels; /* width -1: differs from sample to sample */
    const struct st_finish *finish;
    enum stoker_ragged ragged;
};

struct st_slot {
    struct stoker_batch batch; /* what the consumer sees; first, so that it leads back here */
    struct stoker_loader *loader;
    struct st_slot *next; /* all slots of the loader */
    enum st_slot_state state;
    uint64_t number; /* of the batch, in the epoch */
    uint32_t todo;   /* rows not finished yet */
    struct st_failure *failures;
    _Atomic uint64_t bytes; /* memory of pixels held now; a worker that stacks changes it without the lock */

    struct st_slot_shape shape;
    uint8_t *pixels; /* rows of one size, one behind the other */
    int64_t *labels;
    uint64_t *samples;
    /* samples of different sizes: */
    struct st_buffer *item;
    struct stoker_tensor *tensor;
    struct st_buffer stacked;
};

/* Bytes of pixels that a slot takes when it is made. */
uint64_t st_slot_bytes(const struct st_slot_shape *shape);
/* NULL when out of memory. */
struct st_slot *st_slot_new(const struct st_slot_shape *shape);
void st_slot_free(struct st_slot *slot);

/* Where the sample of this row goes; false when out of memory. */
bool st_slot_place(struct st_slot *slot, uint32_t row, int32_t width, int32_t height,
                   struct st_place *out);
/* Fills the row with zeros. */
bool st_slot_blank(struct st_slot *slot, uint32_t row);
/* All rows are there: sets up `batch` for `count` of them, stacking samples of different sizes where their
 * shapes agree or padding is asked for. False when out of memory. */
bool st_slot_complete(struct st_slot *slot, uint32_t count);
void st_slot_forget_failures(struct st_slot *slot);

#endif
