/* slot.h - the memory of one batch
 *
 * A slot's state names its owner, and only the owner changes it: FREE (nobody), FILLING (the workers),
 * READY (the consumer may take it), LENT (the consumer has it). The states are guarded by the loader's
 * lock; in a FILLING slot each worker writes only its own rows.
 *
 * With a device, workers write to the slot's host half and the consumer sees its device half. The device
 * may still be reading a FREE slot, and a copy may still be reading pinned memory: whoever takes the
 * slot waits for that first (st_slot_wait).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_SLOT_H
#define ST_PIPE_SLOT_H

#include "base/budget.h"
#include "base/mem.h"
#include "op/sound/audio.h"
#include "op/tensor/finish.h"
#include "pipe/columns.h"
#include "pipe/device.h"

#include <stdatomic.h>

enum st_slot_state { ST_SLOT_FREE, ST_SLOT_FILLING, ST_SLOT_READY, ST_SLOT_LENT };

/* A sample of the batch that failed. */
struct st_failure {
    struct st_failure *next;
    uint32_t row;
    bool fatal; /* no policy covers it: the batch cannot be delivered */
    uint64_t sample;
    struct stoker_error error;
};

/* Properties shared by all slots of a loader. */
struct st_slot_shape {
    uint32_t rows;
    int32_t width, height, channels; /* width -1: sizes vary by sample */
    const struct st_finish *finish;
    enum stoker_ragged ragged;
    const struct st_columns_plan *columns; /* NULL: samples are an image and a label */
    const struct st_audio_shape *sound;  /* NULL: samples are images */
    uint32_t crops;                      /* of a sample, which follow from its boxes */
    bool imageless;                      /* samples have no image; width is -1 */
    struct st_device *device;            /* NULL: batches stay on the CPU */
    const struct st_pinned_kind *pinned; /* for batches on the CPU; NULL: they need not be pinned */
    bool raw;                            /* the device gets raw rows */
    uint64_t reserve, share;             /* raw: heap bytes reserved per row, and shared by all rows */
    uint64_t front_bytes;                /* raw: memory of the device for what fronts make */
    const struct st_jpeg_hw_kind *jpeg_hw; /* the device's JPEG hardware; NULL: none */
    uint64_t hw_bytes;                   /* of a block of device memory for what it decodes */
    struct st_budget *budget;            /* NULL: memory is not counted */
};

enum { ST_JPEG_HW_BLOCKS = 4 };

/* Device memory that the JPEG hardware decodes to: as many blocks as a batch needs, filled one after the
 * other. Guarded by st_jpeg_threads.memory. */
struct st_jpeg_hw_memory {
    uint64_t block[ST_JPEG_HW_BLOCKS]; /* 0: not allocated yet */
    uint32_t now;                     /* the one that is being filled */
    uint64_t used;                    /* of its bytes */
    uint64_t refused_ns;              /* when one could not be allocated; 0: the last one could */
};

struct st_slot {
    struct stoker_batch batch; /* seen by the consumer; first, so that a batch can be cast to its slot */
    struct stoker_loader *loader;
    struct st_slot *next; /* list of all slots of the loader */
    enum st_slot_state state;
    uint64_t freed;  /* serial number of the moment it became free: loader->freed at that time */
    uint64_t number; /* index of its batch in the epoch */
    uint32_t todo;   /* rows not finished yet */
    struct st_failure *failures;
    uint8_t *made; /* per row: whether it holds a sample of this batch; written by the row's worker */
    struct st_account memory; /* what it holds; workers that make its rows add to it without the lock */
    _Atomic uint64_t rows_bytes; /* of the rows made so far: what depends on their samples */

    struct st_slot_shape shape;
    uint64_t *samples;
    uint64_t *seeds;            /* per row: seed of its random draws */
    uint8_t *views;             /* per row: which view of its sample it is */
    struct st_region *crops;    /* per row: shape.crops of them; NULL: none */
    int64_t *labels;
    int64_t *lengths;           /* per row: frames, for sounds whose lengths vary; else NULL */
    struct st_columns *columns; /* NULL: none */
    /* samples of equal size: */
    uint8_t *host; /* rows and labels; for raw rows laid out as in device.h */
    bool pinned;
    struct st_device_slot *on_device;
    void *mark; /* if `marked`: the point at which the pinned memory was released */
    bool marked;
    _Atomic uint64_t front_used; /* raw: bytes of the device's memory for fronts */
    _Atomic uint64_t heap_used, heap_share; /* raw: bytes used so far; left in the common share */
    struct st_jpeg_hw_memory hw_memory;
    /* samples of varying size: */
    struct st_buffer *item;
    struct stoker_tensor *tensor;
    struct st_buffer stacked;
};

/* Bytes that a new slot takes: its pixels, or its host half. */
uint64_t st_slot_bytes(const struct st_slot_shape *shape);
/* Bytes of host memory that the device or the pinned allocator is asked for. */
uint64_t st_slot_host_bytes(const struct st_slot_shape *shape);
/* `*pinned_note` receives the reason if memory that should be pinned is not; otherwise its code stays 0.
 * `pin` is false once the budget for pinned memory is used up. */
int st_slot_new(struct st_slot **out, const struct st_slot_shape *shape, bool pin,
                struct stoker_error *pinned_note, struct stoker_error *err);
void st_slot_free(struct st_slot *slot);

/* Whether its memory use depends on the samples. */
bool st_slot_grows(const struct st_slot *slot);
/* Bytes of the row that depend on its sample. */
uint64_t st_slot_row_bytes(const struct st_slot *slot, uint32_t row);
/* Frees the memory that depends on samples. */
void st_slot_shrink(struct st_slot *slot);

/* Waits until nobody reads the slot's memory. */
void st_slot_wait(struct st_slot *slot);
/* The consumer releases the slot; if `stream` is not NULL, after the work now queued in that stream. */
void st_slot_release(struct st_slot *slot, const uintptr_t *stream);
/* Work now queued in `stream` may still read the lent slot, although it is released later. */
void st_slot_mark(struct st_slot *slot, uintptr_t stream);

/* Where the sample of this row is written; false when out of memory. */
bool st_slot_place(struct st_slot *slot, uint32_t row, int32_t width, int32_t height,
                   struct st_place *out);
/* The job of a row; for raw rows. */
struct st_job *st_slot_job(struct st_slot *slot, uint32_t row);
/* Fills the row of a failed sample: zeros, and the label that torch's losses ignore. */
bool st_slot_blank(struct st_slot *slot, uint32_t row);
/* Starts a batch: no row is made, and the whole heap is free. */
void st_slot_begin(struct st_slot *slot);
/* All rows are done; this is checked, since a row that was not made would show an earlier batch. Sets up
 * `batch` for `count` rows, stacks samples of varying size if their shapes agree or padding was
 * requested, and submits the batch to the device: `*copied` bytes. */
int st_slot_complete(struct st_slot *slot, uint32_t count, uint64_t *copied, struct stoker_error *err);
void st_slot_forget_failures(struct st_slot *slot);

/* Images; slot_image.c. [C, H, W] with the strides of the layout, or [H, W, C] of a pipeline with
 * to_array, and [N, C, H, W] or [N, H, W, C] of such images. */
struct stoker_tensor st_slot_describe_image(const struct st_finish *finish, void *data, int64_t width,
                                            int64_t height);
struct stoker_tensor st_slot_describe_images(const struct st_finish *finish, void *data, uint32_t count,
                                             int64_t width, int64_t height);
/* Stacks images of varying size into one tensor if they turn out equal or are to be padded; otherwise
 * the batch is a list. */
int st_slot_complete_images(struct st_slot *slot, uint32_t count, struct stoker_error *err);
/* Whether `count` samples of varying size may be stacked into one tensor of `bytes`. */
int st_slot_check_stack(const struct st_slot *slot, uint32_t count, uint64_t bytes,
                        struct stoker_error *err);

/* Sounds; slot_sound.c. Where the row's sound is written, channel by channel; NULL when out of
 * memory. */
uint8_t *st_slot_place_sound(struct st_slot *slot, uint32_t row, uint32_t channels, int32_t bins,
                             uint64_t frames);
/* Stacks sounds of varying size into one tensor, padded with zeros at the end. */
int st_slot_complete_sounds(struct st_slot *slot, uint32_t count, struct stoker_error *err);
/* Gives the batch's tensor the axes of sounds, and sets its lengths. */
void st_slot_describe_sounds(struct st_slot *slot, uint32_t count);

#endif
