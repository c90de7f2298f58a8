/* device.h - the interface to a device that holds the finished batches
 *
 * The interface is declared here, implemented by layers above (gpu/ for CUDA; tests implement one in
 * plain memory) and connected by api/. A slot then has two halves: host memory, which workers write, and
 * device memory, which the consumer sees. There are two ways from one to the other:
 *
 *   finished rows    workers do everything; the device only copies.
 *   raw rows         workers decode the region; the device does the rest (one st_job per row).
 *
 * The device's results are bit-equal to the workers', so the choice affects only speed and may differ
 * from row to row: a region too large for the slot's heap is resized by its worker and arrives as a job
 * without a resize.
 *
 * Host memory of a slot with raw rows; all offsets count from its start:
 *
 *     struct st_job [rows] | int64_t label [rows] | heap: taps, ops, erased values, pixels (align 64)
 *
 * With finished rows: the rows themselves, then int64_t label [rows] (aligned to 64).
 *
 * Only `idle` with `wait` set and `sync` make the CPU wait for the device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_DEVICE_H
#define ST_PIPE_DEVICE_H

#include "base/mem.h"
#include "op/tensor/finish.h"
#include "op/pending.h"

/* The taps of one axis in the heap, as in struct st_taps: int32_t first[count], then int32_t
 * weight[count][width]. width 0: this axis is not resized. width -1: nearest; only `first`, the input
 * pixel of each output pixel. */
struct st_job_side {
    uint64_t at;
    int32_t width;
    int32_t window; /* st_job_window */
};

enum { ST_JOB_GROUP = 8 };

/* The most inputs that ST_JOB_GROUP outputs from a multiple of that on need. Not for nearest. */
static inline int32_t st_job_window(const int32_t *first, int32_t count, int32_t width)
{
    int32_t most = 0;
    for (int32_t o = 0; o < count; o += ST_JOB_GROUP) {
        const int32_t last = o + ST_JOB_GROUP < count ? o + ST_JOB_GROUP - 1 : count - 1;
        const int32_t needed = first[last] - first[o] + width;
        most = needed > most ? needed : most;
    }
    return most;
}

enum st_job_from {
    ST_JOB_BLANK,  /* a bad sample: zeros */
    ST_JOB_HEAP,   /* pixels in the slot's heap */
    ST_JOB_MADE,   /* what the job's front makes; `pixels` counts from the device's memory for that */
    ST_JOB_PLANES, /* a JPEG's samples, decoded by the device itself; addresses are the device's */
};

enum { ST_CHROMA_NONE = 128 }; /* the chroma of grey */

/* The chroma of an image whose luma is at st_job.pixels, and where the row's region lies in it.
 * Addresses are those that the image's first samples would have: only the region and its surroundings
 * need to be there. The device interpolates chroma and converts to RGB as codec/jpeg/pixels.c does. A
 * grey image has no chroma on the device: the heap has a row of ST_CHROMA_NONE for it, which is used for
 * all rows. */
struct st_job_planes {
    uint64_t chroma[2];       /* Cb, Cr; of a grey image, in the heap */
    uint32_t stride;          /* of both; 0: the image is grey */
    int32_t width, height;    /* of both, in samples */
    uint32_t h, v;            /* pixels per sample across and down: 1 or 2 */
    int32_t x, y;             /* of the region, in pixels */
    uint32_t unused;
};

/* The remaining work for one row. */
struct st_job {
    uint64_t pixels;          /* where they start; rows `stride` bytes apart, interleaved channels. With
                                 ST_JOB_PLANES: the image's luma */
    uint32_t from;            /* enum st_job_from */
    uint32_t stride;
    int32_t in_width, in_height;
    int32_t width, height;    /* of the output, after the resize */
    int32_t channels;         /* 1 or 3; of three, the output may have the first one only */
    uint32_t vertical_first;  /* order of the passes, if there are two */
    struct st_job_side x, y;
    uint32_t mirror, flip;    /* after the resize; the taps are not mirrored. Before the first warp */
    uint64_t pending;         /* struct st_job_pending [pending_count] */
    uint64_t erases;          /* struct st_job_erase [erase_count] */
    uint32_t pending_count, erase_count;
    struct st_job_planes planes; /* with ST_JOB_PLANES */
    /* With a border: all pixels but these are `fill`, after the resize, before mirroring. */
    uint32_t bordered, fill;  /* a byte per channel, the first one lowest */
    int32_t inner_x, inner_y, inner_width, inner_height;
    /* With ST_JOB_MADE: another job, in the heap, of any size, whose result is this one's input: bytes
     * with interleaved channels, of which this one has `channels`. It has no front, and erases none. */
    uint64_t front;
    /* Of a front: where in that memory its result goes, in rows of st_job_pitch pixels, and what its
     * pending ops need in between (st_job_between bytes). Both are aligned to cache lines. */
    uint64_t made, between;
};

static inline int32_t st_job_pitch(int32_t width) { return (int32_t)st_align((uint64_t)width, 4); }
static inline uint64_t st_job_made_bytes(int32_t width, int32_t height, int32_t channels)
{
    const uint64_t pixels = (uint64_t)st_job_pitch(width) * (uint64_t)height;
    return st_align(pixels * (uint64_t)channels, ST_CACHE_LINE);
}
/* `stages`: pending ops that see more than a pixel. */
static inline uint64_t st_job_between(int32_t width, int32_t height, uint32_t stages)
{
    const uint64_t plane = (uint64_t)width * (uint64_t)height * sizeof(uint32_t);
    return (stages < 2 ? stages : 2) * st_align(plane, ST_CACHE_LINE);
}

struct st_job_pending {
    uint32_t kind;           /* enum st_pending_kind */
    uint32_t level;          /* struct st_pending's */
    float factor;            /* hue: the shift, 0 to 255 */
    uint64_t more;           /* blur: float across[across / 2 + 1], then down[...]; centre first. Warp:
                                struct st_job_warp. Table: uint8_t [3][256] */
    int32_t across, down;    /* blur: the whole kernels' widths, odd */
};

enum st_job_warp_how {
    ST_JOB_WARP_PLACES, /* the pixel of a column and a row, from lists */
    ST_JOB_WARP_FIXED,  /* the nearest pixel, in fixed point */
    ST_JOB_WARP_TRANSPOSED, /* rows become columns, in a square image */
    ST_JOB_WARP_NEAREST, ST_JOB_WARP_BILINEAR, ST_JOB_WARP_BICUBIC, /* by the map, in doubles */
};

/* A map of a row's pixels to others, as in op/geometry/warp_pixels.c and warp_nearest.c. */
struct st_job_warp {
    double map[8];
    int64_t at[2], right[2], down[2]; /* in fixed point: struct st_warp_fixed; and the sides' limits */
    int64_t limit[2];
    uint64_t places;         /* int32_t [width], then [height]; -1: from outside */
    uint32_t how;            /* enum st_job_warp_how */
    uint32_t perspective;
    uint32_t fill;           /* a byte per channel, the first one lowest */
    uint32_t mirror, flip;   /* afterwards */
    uint32_t unused;
};

/* A box of the finished row that is overwritten after everything else. */
struct st_job_erase {
    int32_t x, y, width, height;
    uint64_t values;         /* 0: `bits` for each channel; else their bits in the order channel, y, x,
                                each of the output's element size */
    uint32_t bits[4];
};

/* Offsets of the parts of a host half. */
static inline uint64_t st_host_raw_labels(uint64_t rows) { return rows * sizeof(struct st_job); }
static inline uint64_t st_host_heap(uint64_t rows)
{
    return st_align(rows * (sizeof(struct st_job) + sizeof(int64_t)), ST_CACHE_LINE);
}
static inline uint64_t st_host_finished_labels(uint64_t rows, uint64_t row_bytes)
{
    return st_align(rows * row_bytes, ST_CACHE_LINE);
}

/* What a loader's slots require of the device. Plain values, and pointers that outlive the device. */
struct st_device_want {
    int32_t ordinal;               /* index of the device; -1: the current or first one */
    uint32_t rows;
    int32_t width, height, channels;
    const struct st_finish *finish;
    bool raw;                      /* raw rows; else finished rows */
    bool plain;                    /* pending ops of raw rows never see more than a pixel, so the device
                                      needs no room */
    uint64_t host_bytes;           /* per slot */
    uint64_t made_bytes;           /* raw rows: for what their fronts make; 0: they have none */
};

struct st_device_slot; /* private to the device */

/* A device, opened for one loader. Any thread may call any function; calls for one slot do not
 * overlap. */
struct st_device {
    const struct st_device_kind *kind;
    int32_t ordinal;
};

struct st_device_kind {
    const char *name; /* "cuda", "host" */
    int32_t type;     /* DLPack device type of its memory: 2 for CUDA */
    /* STOKER_EUNSUPPORTED if it cannot handle raw rows; the caller then asks for finished rows. */
    int (*open)(struct st_device **out, const struct st_device_want *want, struct stoker_error *err);
    void (*close)(struct st_device *device); /* all slots are freed by then */

    /* A slot's two halves. `*host` is written by workers. `*pinned`: in, whether the memory may be
     * pinned (there is a budget); out, whether it is. */
    int (*slot_new)(struct st_device *device, struct st_device_slot **out, void **host, bool *pinned,
                    struct stoker_error *err);
    void (*slot_free)(struct st_device *device, struct st_device_slot *slot); /* waits for the device */
    /* The host half is complete: `count` rows, `used` bytes from its start. Starts the copy and the
     * kernels and returns. Submissions are executed in the order in which they are made. */
    int (*submit)(struct st_device *device, struct st_device_slot *slot, uint32_t count, uint64_t used,
                  struct stoker_error *err);
    /* Where the finished batch will be: images as described by `finish`, and int64_t labels. */
    void (*where)(const struct st_device_slot *slot, void **images, void **labels);
    /* Whether the host half may be overwritten, because the copy is complete. */
    bool (*idle)(struct st_device *device, struct st_device_slot *slot, bool wait);

    /* Orders work queued in `stream` from now on after the batch; the device remembers the stream. */
    int (*join)(struct st_device *device, struct st_device_slot *slot, uintptr_t stream,
                struct stoker_error *err);
    /* Work now queued in `stream` may still read the batch, which is released later. */
    void (*mark)(struct st_device *device, struct st_device_slot *slot, uintptr_t stream);
    /* The CPU waits until the batch is done. */
    int (*sync)(struct st_device *device, struct st_device_slot *slot, struct stoker_error *err);
    /* The consumer has released the batch: work now queued in its streams may still read it, later work
     * may not. The slot may be submitted again at once; the device overwrites it only after that work. A
     * batch that was never delivered is submitted again without a release. */
    void (*release)(struct st_device *device, struct st_device_slot *slot);
};

/* ---- JPEG hardware ------------------------------------------------------------------------------- */

struct st_jpeg_frame;
struct st_flag; /* base/threads.h */

/* A region of one component, in the device's memory. There is room for whole MCUs. */
struct st_jpeg_hw_plane {
    uint64_t at;           /* of the region's first sample, */
    int32_t x, y;          /* which has this place in the component */
    uint32_t stride;
    int32_t width, height; /* of the whole component, in samples, without the padding of the last MCUs */
};

/* A region of an image, decoded from its file to Y, Cb and Cr on the device: the same samples as
 * libjpeg's. A grey image only has Y; its other planes are {0}. */
struct st_jpeg_hw_image {
    struct st_bytes bytes;
    struct st_region region; /* in pixels: whole MCUs, as far as the image has them */
    uint32_t components;     /* 3, or 1: grey */
    uint32_t h, v;           /* pixels per chroma sample across and down */
    uint64_t at, size;       /* its device memory, with the planes in it: all may be overwritten */
    struct st_jpeg_hw_plane plane[3];
    bool there;              /* out: whether it was decoded */
};

struct st_jpeg_hw; /* private to the device */

/* Host memory from which the device can copy directly, for files and images. */
struct st_jpeg_pinned {
    uint8_t *memory;
    uint64_t bytes;
};

/* Hardware of the device that decodes JPEGs alongside its kernels. It does not notice damaged data.
 * Opened once per thread that uses it. */
struct st_jpeg_hw_kind {
    const char *name; /* "nvjpeg" */
    /* STOKER_EUNSUPPORTED if there are none; err says what was looked for. `most`: images at once.
     * pinned->bytes: in, how much it may pin; out, how much it has, at pinned->memory. Opening takes
     * long, so it is abandoned, with STOKER_ECANCELED, soon after `unwanted` (NULL: never) is set. */
    int (*open)(struct st_jpeg_hw **out, struct st_device *device, uint32_t most,
                struct st_jpeg_pinned *pinned, const struct st_flag *unwanted, struct stoker_error *err);
    void (*close)(struct st_jpeg_hw *hw);
    /* Whether it decodes regions; if not, every region has to be the whole image. */
    bool (*regions)(const struct st_jpeg_hw *hw);
    /* Whether it can decode files of this kind. Any thread may call it. */
    bool (*takes)(const struct st_jpeg_frame *frame);
    /* Starts decoding these images; `finish` waits for them and sets `there` of each. The destination
     * memory must be idle. Only single images can fail, never the call. The caller may have put files
     * into the first `used` bytes of the pinned memory, which saves copying them there; until `finish`,
     * the rest is the hardware's. */
    void (*start)(struct st_jpeg_hw *hw, struct st_jpeg_hw_image *image, uint32_t count,
                  uint64_t used);
    void (*finish)(struct st_jpeg_hw *hw, struct st_jpeg_hw_image *image, uint32_t count);
    /* Memory for images; 0 if it cannot be allocated, or would take what the training program needs. */
    uint64_t (*take)(struct st_device *device, uint64_t bytes);
    void (*give)(struct st_device *device, uint64_t memory);
};

/* ---- pinned memory ------------------------------------------------------------------------------ */

/* Host memory from which the device can copy directly; for batches that stay on the CPU. */
struct st_pinned_kind {
    /* NULL if it cannot be allocated; err says why. */
    void *(*take)(uint64_t bytes, struct stoker_error *err);
    void (*give)(void *memory);
    /* Work now queued in `stream` may still read the memory; 0: in the default stream of any device.
     * `*mark` is created if NULL, and collects these until all of them are done. */
    void (*mark)(void **mark, uintptr_t stream);
    bool (*marked_done)(void *mark, bool wait);
    void (*mark_free)(void *mark);
};

/* ---- what a loader is given --------------------------------------------------------------------- */

/* Where batches may go; filled in by the layers above. All NULL: batches stay in plain CPU memory. */
struct st_devices {
    const struct st_device_kind *kind;   /* of the requested device */
    int32_t ordinal;                     /* index of the device; -1: the current or first one */
    const struct st_pinned_kind *pinned; /* for batches that stay on the CPU */
    const struct st_jpeg_hw_kind *jpeg_hw; /* the device's JPEG hardware */
};

#endif
