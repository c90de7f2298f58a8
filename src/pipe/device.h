/* device.h - what the pipeline asks of a device that batches are handed out on
 *
 * A device is declared here, filled in by floors above (gpu/ for CUDA; tests fill in one made of plain
 * memory), and joined by api/. A slot then has two halves: host memory, which workers write, and device
 * memory, which the consumer sees. Two ways from one to the other:
 *
 *   finished rows    workers do everything; the device copies.
 *   raw rows         workers decode the region; the device resizes, colours, finishes (one st_job a row).
 *
 * The device's answer is bit-equal to the workers', so which way a row goes is a matter of speed alone, and
 * may differ from row to row: a region too large for the slot's heap is resized by its worker, and comes
 * as a job without a resize.
 *
 * Host memory of a slot with raw rows, all offsets counted from its beginning:
 *
 *     struct st_job [rows] | int64_t label [rows] | heap: taps, deeds, erased values, pixels; 64-byte aligned
 *
 * With finished rows: the rows themselves, then int64_t label [rows] (aligned to 64).
 *
 * Nothing here makes the CPU wait for the device except `idle` with `wait` set and `sync`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_DEVICE_H
#define ST_PIPE_DEVICE_H

#include "base/mem.h"
#include "op/deed.h"
#include "op/finish.h"

/* One side's taps in the heap, as struct st_taps: int32_t first[count], then int32_t weight[count][width].
 * width 0: this side stays as it is. width -1: nearest; `first` alone, the one input pixel of each output. */
struct st_job_side {
    uint64_t at;
    int32_t width, unused;
};

enum st_job_from {
    ST_JOB_BLANK,  /* a bad sample: zeros */
    ST_JOB_HEAP,   /* pixels in the slot's heap */
    ST_JOB_DEVICE, /* pixels that the device itself has decoded: `pixels` is an address of its own */
};

/* What is left to do for one row. */
struct st_job {
    uint64_t pixels;          /* where they begin; rows `stride` bytes apart, interleaved */
    uint32_t from;            /* enum st_job_from */
    uint32_t stride;
    int32_t in_width, in_height;
    int32_t width, height;    /* behind the resize: of the output */
    int32_t channels;         /* 1 or 3, of input and output alike */
    uint32_t vertical_first;  /* which pass comes first, where both are done */
    struct st_job_side x, y;
    uint32_t mirror, flip;    /* after the resize; taps are never mirrored here */
    uint64_t deeds;           /* struct st_job_deed [deed_count] */
    uint64_t erases;          /* struct st_job_erase [erase_count] */
    uint32_t deed_count, erase_count;
};

struct st_job_deed {
    uint32_t kind;           /* enum st_deed_kind */
    float factor;            /* hue: the shift, 0 to 255 */
    uint64_t weights;        /* blur: float across[across / 2 + 1], then down[...]: half kernels, centre first */
    int32_t across, down;    /* blur: the whole kernels' widths, odd */
};

/* A box of the finished row that is overwritten, after everything else. */
struct st_job_erase {
    int32_t x, y, width, height;
    uint64_t values;         /* 0: `bits` of each channel; else bits of channel c, y, x in this order, each
                                of the output's element size */
    uint32_t bits[4];
};

/* Where the parts of a host half begin. */
static inline uint64_t st_host_raw_labels(uint64_t rows) { return rows * sizeof(struct st_job); }
static inline uint64_t st_host_heap(uint64_t rows)
{
    return st_align(rows * (sizeof(struct st_job) + sizeof(int64_t)), ST_CACHE_LINE);
}
static inline uint64_t st_host_finished_labels(uint64_t rows, uint64_t row_bytes)
{
    return st_align(rows * row_bytes, ST_CACHE_LINE);
}

/* What all slots of a loader want of the device. Plain values and pointers that outlive the device. */
struct st_device_want {
    int32_t ordinal;               /* which of several; -1: the current or first one */
    uint32_t rows;
    int32_t width, height, channels;
    const struct st_finish *finish;
    bool raw;                      /* raw rows; else finished ones */
    bool plain;                    /* raw rows never have deeds: the device needs no room for them */
    uint64_t host_bytes;           /* of a slot */
};

struct st_device_slot; /* the device's own */

/* One device, opened for one loader. Any thread may call anything; calls for one slot do not overlap. */
struct st_device {
    const struct st_device_kind *kind;
    int32_t ordinal;
};

struct st_device_kind {
    const char *name; /* "cuda", "host" */
    int32_t type;     /* of its memory, in DLPack's numbers: 2 for CUDA */
    /* STOKER_EUNSUPPORTED for raw rows it cannot do: finished ones are then asked for. */
    int (*open)(struct st_device **out, const struct st_device_want *want, struct stoker_error *err);
    void (*close)(struct st_device *device); /* all slots are freed by then */

    /* A slot's two halves. `*host` is written by workers. `*pinned` comes in saying whether it may be pinned
     * (there is a budget), and goes out saying whether it is. */
    int (*slot_new)(struct st_device *device, struct st_device_slot **out, void **host, bool *pinned,
                    struct stoker_error *err);
    void (*slot_free)(struct st_device *device, struct st_device_slot *slot); /* waits for the device */
    /* The host half is complete: `count` rows, `used` bytes from its beginning. Starts the copy and the
     * kernels, and returns. Submissions are carried out in the order they are made. */
    int (*submit)(struct st_device *device, struct st_device_slot *slot, uint32_t count, uint64_t used,
                  struct stoker_error *err);
    /* Where the batch will be once done: images as `finish` says, and int64_t labels. */
    void (*where)(const struct st_device_slot *slot, void **images, void **labels);
    /* Whether the host half may be written again: the copy has been made. */
    bool (*idle)(struct st_device *device, struct st_device_slot *slot, bool wait);

    /* Work put into `stream` from now on comes after the batch is done; the device remembers the stream. */
    int (*join)(struct st_device *device, struct st_device_slot *slot, uintptr_t stream,
                struct stoker_error *err);
    /* The CPU waits until the batch is done. */
    int (*sync)(struct st_device *device, struct st_device_slot *slot, struct stoker_error *err);
    /* The consumer has let go: what its streams hold now may still read the batch, later work may not. The
     * slot may be submitted again at once; the device overwrites it only after that work. A batch that
     * nobody took is not released, only submitted again. */
    void (*release)(struct st_device *device, struct st_device_slot *slot);
};

/* ---- engines ------------------------------------------------------------------------------------ */

struct st_jpeg_frame;

/* A whole image, from its file to RGB on the device. */
struct st_engine_image {
    struct st_bytes bytes;
    int32_t width, height;
    uint64_t pixels; /* where they go, an address on the device; rows `stride` bytes apart */
    uint32_t stride;
    bool there;      /* out: they are */
};

struct st_engine; /* the device's own */

/* Engines of a device that decode JPEGs by themselves, beside its kernels; for loaders that need not be exact.
 * Opened for each thread that uses them. */
struct st_engine_kind {
    const char *name; /* "nvjpeg" */
    /* STOKER_EUNSUPPORTED where there are none; err says what was looked for. `most`: images at once. */
    int (*open)(struct st_engine **out, struct st_device *device, uint32_t most, struct stoker_error *err);
    void (*close)(struct st_engine *engine);
    /* Whether files of this kind are theirs. Any thread. */
    bool (*takes)(const struct st_jpeg_frame *frame);
    /* Begins with these images; `finish` returns when they are there, or says that they are not. The memory
     * must be idle, and nothing may fail but single images. */
    void (*start)(struct st_engine *engine, struct st_engine_image *image, uint32_t count);
    void (*finish)(struct st_engine *engine, struct st_engine_image *image, uint32_t count);
    /* Memory for images; 0 when it cannot be had. */
    uint64_t (*take)(struct st_device *device, uint64_t bytes);
    void (*give)(struct st_device *device, uint64_t memory);
};

/* ---- pinned memory ------------------------------------------------------------------------------ */

/* Host memory that the device can copy from without help; for batches that stay on the CPU. */
struct st_pinned_kind {
    /* NULL when it cannot be had; err says why. */
    void *(*take)(uint64_t bytes, struct stoker_error *err);
    void (*give)(void *memory);
    /* Marks the moment at which a batch is let go: work that `stream` (and the default stream) holds now may
     * still read it. `*mark` is made when NULL. */
    void (*mark)(void **mark, uintptr_t stream);
    bool (*marked_done)(void *mark, bool wait);
    void (*mark_free)(void *mark);
};

#endif
