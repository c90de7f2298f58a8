/* slot.h - the home of one batch
 *
 * A slot's state names its owner, and only the owner moves it on: FREE (nobody), FILLING (the workers),
 * READY (the consumer may have it), LENT (the consumer has it). All states are guarded by the loader's
 * lock; the contents of a FILLING slot are written by workers, each to rows of its own.
 *
 * With a device the workers write to the slot's host half, and the consumer sees the device's. A FREE slot
 * may then still be read by the device, as may pinned memory whose copy is under way: whoever takes it waits
 * for that first (st_slot_wait).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_SLOT_H
#define ST_PIPE_SLOT_H

#include "base/budget.h"
#include "base/mem.h"
#include "op/audio.h"
#include "op/finish.h"
#include "pipe/columns.h"
#include "pipe/device.h"

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
    const struct st_columns_plan *columns; /* NULL: samples are an image and a label */
    const struct st_audio_shape *sound;  /* NULL: samples are images */
    bool imageless;                      /* samples have no image; width is -1 */
    struct st_device *device;            /* NULL: batches stay on the CPU */
    const struct st_pinned_kind *pinned; /* for those: NULL where they need not be pinned */
    bool raw;                            /* the device gets raw rows */
    uint64_t reserve, share;             /* raw: bytes of the heap for each row, and for all together */
    const struct st_engine_kind *engine; /* NULL: none that decode by themselves */
    uint64_t engine_bytes;               /* of the device's memory for what they decode */
    struct st_budget *budget;            /* NULL: nobody counts */
};

struct st_slot {
    struct stoker_batch batch; /* what the consumer sees; first, so that it leads back here */
    struct stoker_loader *loader;
    struct st_slot *next; /* all slots of the loader */
    enum st_slot_state state;
    uint64_t freed;  /* the how manyth slot that became free this was */
    uint64_t number; /* of the batch, in the epoch */
    uint32_t todo;   /* rows not finished yet */
    struct st_failure *failures;
    uint8_t *made; /* of each row: whether it holds a sample of this batch; its worker's to write */
    struct st_account memory; /* what it holds; workers that make its rows add to it without the lock */

    struct st_slot_shape shape;
    uint64_t *samples;
    uint64_t *seeds;            /* of what is drawn for each row */
    int64_t *labels;
    int64_t *lengths;           /* sounds whose lengths differ: frames of each; else NULL */
    struct st_columns *columns; /* NULL: none */
    /* samples of one size: */
    uint8_t *host; /* rows and labels; with raw rows as device.h says */
    bool pinned;
    struct st_device_slot *on_device;
    void *mark; /* when pinned memory was let go of, if `marked` */
    bool marked;
    _Atomic uint64_t heap_used, heap_share; /* raw: taken so far; left of what all rows share */
    uint64_t engine_memory; /* where engines decode to; 0: not taken yet, or not to be had if engine_full */
    bool engine_full;
    _Atomic uint64_t engine_used;
    /* samples of different sizes: */
    struct st_buffer *item;
    struct stoker_tensor *tensor;
    struct st_buffer stacked;
};

/* Bytes that a slot takes when it is made: of pixels, or of its host half. */
uint64_t st_slot_bytes(const struct st_slot_shape *shape);
/* Of the memory that a device or its pinned memory is asked for. */
uint64_t st_slot_host_bytes(const struct st_slot_shape *shape);
/* `*pinned_note` is told why memory that should be pinned is not; its code stays 0 otherwise. With `pin` false
 * the budget is used up. */
int st_slot_new(struct st_slot **out, const struct st_slot_shape *shape, bool pin,
                struct stoker_error *pinned_note, struct stoker_error *err);
void st_slot_free(struct st_slot *slot);

/* Whether its memory depends on the samples. */
bool st_slot_grows(const struct st_slot *slot);
/* Gives back what has grown. */
void st_slot_shrink(struct st_slot *slot);

/* Until nobody reads the slot's memory any more. */
void st_slot_wait(struct st_slot *slot);
/* The consumer lets go; with `stream` not NULL after what it holds now. */
void st_slot_let_go(struct st_slot *slot, const uintptr_t *stream);

/* Where the sample of this row goes; false when out of memory. */
bool st_slot_place(struct st_slot *slot, uint32_t row, int32_t width, int32_t height,
                   struct st_place *out);
/* The job of a row, raw rows. */
struct st_job *st_slot_job(struct st_slot *slot, uint32_t row);
/* What stands for a sample that could not be made: zeros, and the label that torch's losses ignore. */
bool st_slot_blank(struct st_slot *slot, uint32_t row);
/* A batch is begun: no row is made, and all of its heap is free again. */
void st_slot_begin(struct st_slot *slot);
/* All rows are there, which is checked: a row that nobody made would show an earlier batch's. Sets up `batch` for `count` of them, stacking samples of different sizes where their
 * shapes agree or padding is asked for, and sends it to the device: `*copied` bytes. */
int st_slot_complete(struct st_slot *slot, uint32_t count, uint64_t *copied, struct stoker_error *err);
void st_slot_forget_failures(struct st_slot *slot);

/* Whether `count` samples of different sizes may become one tensor of so many bytes. */
int st_slot_check_stack(const struct st_slot *slot, uint32_t count, uint64_t bytes, struct stoker_error *err);

/* Sounds; slot_sound.c. Where that of this row goes, channel by channel; NULL when out of memory. */
uint8_t *st_slot_place_sound(struct st_slot *slot, uint32_t row, uint32_t channels, int32_t bins, uint64_t frames);
/* Sounds of different sizes in one tensor, zeros behind the shorter ones. */
int st_slot_complete_sounds(struct st_slot *slot, uint32_t count, struct stoker_error *err);
/* Gives the batch's tensor the axes of sounds, and the lengths. */
void st_slot_describe_sounds(struct st_slot *slot, uint32_t count);

#endif
