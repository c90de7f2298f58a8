/* stoker.h - the whole public interface of libstoker, and its manual
 *
 * Stoker turns a data set of encoded images into finished batches: read, decode, augment and collate
 * in threads, the same bytes for any number of threads.
 *
 *     struct stoker_error err;
 *     struct stoker_dataset *data;
 *     struct stoker_pipeline *pipe;
 *     struct stoker_loader *loader;
 *     struct stoker_loader_options opt = stoker_loader_defaults();
 *     const struct stoker_batch *batch;
 *     int rc;
 *
 *     if (stoker_dataset_open(&data, "train", NULL, &err) < 0) ...
 *     if (stoker_pipeline_open(&pipe, "random_resized_crop(size=224); to_tensor", &err) < 0) ...
 *     opt.batch_size = 256;
 *     opt.order.kind = STOKER_ORDER_SHUFFLE;
 *     if (stoker_loader_open(&loader, data, pipe, &opt, &err) < 0) ...
 *     if (stoker_loader_start(loader, NULL, &err) < 0) ...
 *     while ((rc = stoker_loader_next(loader, &batch, &err)) == STOKER_OK) {
 *         train(batch->images.data, batch->labels, batch->count);
 *         stoker_batch_release(batch);
 *     }
 *     if (rc != STOKER_END) fprintf(stderr, "%s\n", err.message);
 *     stoker_loader_close(loader);
 *     stoker_pipeline_close(pipe);
 *     stoker_dataset_close(data);
 *
 * Rules that hold for every call
 *   - A function that can fail returns STOKER_OK (0), STOKER_END (1), or a negative status, and then
 *     writes a sentence for people into *err. `err` belongs to the caller and may be NULL.
 *   - The library never exits, aborts, prints, or changes the process's signal handlers, locale or
 *     working directory. It keeps no global state.
 *   - Handles may be passed between threads. Unless a call says otherwise, one handle is used by one
 *     thread at a time; different handles are independent.
 *   - Every *_close accepts NULL. Handles are counted: a loader keeps its data set and pipeline alive,
 *     and a batch keeps its memory alive, so the order of closing does not matter.
 *   - After fork() the child may use data sets and pipelines, and may close what it inherited. A loader
 *     belongs to the process that opened it: in the child stoker_loader_next answers STOKER_EFORK.
 *   - Structures that may grow begin with `size`, the size the caller was compiled with; fill them with
 *     their *_defaults() function.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STOKER_STOKER_H
#define STOKER_STOKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STOKER_VERSION_MAJOR 0
#define STOKER_VERSION_MINOR 1
#define STOKER_VERSION_PATCH 0

#if defined(__GNUC__)
#define STOKER_API __attribute__((visibility("default")))
#else
#define STOKER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ------------------------------------------------------------------------------------ */

#define STOKER_STATUS_MAP(X)                                                                       \
    X(OK, 0, "no error")                                                                           \
    X(END, 1, "the epoch has ended")                                                               \
    X(EINVAL, -1, "the request makes no sense")                                                    \
    X(ENOMEM, -2, "out of memory")                                                                 \
    X(EIO, -3, "the bytes could not be read")                                                      \
    X(ECORRUPT, -4, "the bytes are not what they claim to be")                                     \
    X(EUNSUPPORTED, -5, "this build or version cannot do that")                                    \
    X(ELIMIT, -6, "a limit set by the caller was reached")                                         \
    X(EFORK, -7, "the handle belongs to another process")                                          \
    X(ETIMEOUT, -8, "nothing arrived in time")                                                     \
    X(ECANCELED, -9, "the call was interrupted")

enum stoker_status {
#define X(name, value, text) STOKER_##name = value,
    STOKER_STATUS_MAP(X)
#undef X
};

struct stoker_error {
    int code;           /* an enum stoker_status */
    char message[1020]; /* what, where (file, offset) and the remedy; always terminated */
};

/* The name of a status ("ECORRUPT") and its meaning in a few words. Any thread. */
STOKER_API const char *stoker_status_name(int status);
STOKER_API const char *stoker_status_text(int status);

/* ---- data sets --------------------------------------------------------------------------------- */

struct stoker_dataset; /* immutable once open: any number of threads and loaders may share it */

struct stoker_dataset_options {
    size_t size;
    const char *index_dir;          /* keep the index here and reuse it while the tree is unchanged;
                                       NULL (default): scan each time */
    const char *const *extensions;  /* NULL-terminated, lower case, with the dot; NULL (default): the
                                       nine of torchvision's ImageFolder */
    uint32_t threads;               /* for scanning; 0 (default): the CPUs this process may use */
    bool allow_empty;               /* a class folder without images is no error (default false) */
};
STOKER_API struct stoker_dataset_options stoker_dataset_defaults(void);

/* Opens "DIR" or "folder:DIR" (one sub-folder a class, as torchvision's ImageFolder) or "flat:DIR"
 * (all images below DIR in sorted order, label 0). `opt` may be NULL. */
STOKER_API int stoker_dataset_open(struct stoker_dataset **out, const char *uri,
                                   const struct stoker_dataset_options *opt,
                                   struct stoker_error *err);

/* One encoded image in memory. The bytes are not copied and must outlive the data set. */
struct stoker_item {
    const void *data;
    size_t size;
    int64_t label;
};
STOKER_API int stoker_dataset_from_memory(struct stoker_dataset **out, const struct stoker_item *items,
                                          uint64_t count, struct stoker_error *err);

/* Files named one by one: `paths` and `labels` are copied. `labels` may be NULL (all 0). */
STOKER_API int stoker_dataset_from_files(struct stoker_dataset **out, const char *const *paths,
                                         const int64_t *labels, uint64_t count,
                                         struct stoker_error *err);

/* A source of the caller's own. `read` is called from several reading threads at once, may block, and
 * writes the sample's bytes to `buffer` and their number to *size; when `capacity` is too small it writes
 * the number needed to *size and nothing to the buffer, and is called again. It returns a status.
 * `label` (NULL: 0) is called from one thread at a time; `close` (may be NULL) once, at the end. */
struct stoker_callbacks {
    size_t size;
    uint64_t count;
    int (*read)(void *cookie, uint64_t sample, void *buffer, size_t capacity, size_t *size,
                struct stoker_error *err);
    int64_t (*label)(void *cookie, uint64_t sample);
    void (*close)(void *cookie);
};
STOKER_API int stoker_dataset_from_callbacks(struct stoker_dataset **out,
                                             const struct stoker_callbacks *callbacks, void *cookie,
                                             struct stoker_error *err);

STOKER_API uint64_t stoker_dataset_count(const struct stoker_dataset *data);
STOKER_API int64_t stoker_dataset_label(const struct stoker_dataset *data, uint64_t sample);
/* What messages call the sample: its path, or "sample 17". Writes at most `size` bytes, terminated;
 * returns the length the whole name has. */
STOKER_API size_t stoker_dataset_name(const struct stoker_dataset *data, uint64_t sample, char *buffer,
                                      size_t size);
STOKER_API uint32_t stoker_dataset_class_count(const struct stoker_dataset *data);
STOKER_API const char *stoker_dataset_class_name(const struct stoker_dataset *data, uint32_t index);
STOKER_API void stoker_dataset_close(struct stoker_dataset *data);

/* ---- pipelines --------------------------------------------------------------------------------- */

struct stoker_pipeline; /* immutable */

/* Describes what happens to each image, as a list of ops separated by ';':
 *
 *     resize(size=256); center_crop(size=224); to_tensor; normalize(mean=[0.5,0.5,0.5], std=[0.2,0.2,0.2])
 *
 * An op is a name and, in parentheses, name=value pairs; a value is a number, a word (bilinear, true) or
 * a list [a, b]. random_apply(p=0.5){ ... } holds ops of its own. Names, defaults and meaning are those
 * of torchvision.transforms in lower case with underscores; stoker_op_at lists them all. */
STOKER_API int stoker_pipeline_open(struct stoker_pipeline **out, const char *text,
                                    struct stoker_error *err);
STOKER_API void stoker_pipeline_close(struct stoker_pipeline *pipe);

struct stoker_op_info {
    const char *name;
    const char *help; /* one line */
};
/* The ops of this build, by number; false past the last. Any thread. */
STOKER_API bool stoker_op_at(uint32_t index, struct stoker_op_info *out);

/* ---- order ------------------------------------------------------------------------------------- */

enum stoker_order_kind {
    STOKER_ORDER_SEQUENTIAL, /* 0, 1, 2, ... */
    STOKER_ORDER_SHUFFLE,    /* a keyed bijection: O(1) memory and start for any count */
    STOKER_ORDER_TORCH,      /* torch.randperm under a generator seeded with seed (+ epoch): O(N) memory */
    STOKER_ORDER_WEIGHTED,   /* draws with replacement, in proportion to weights */
    STOKER_ORDER_GIVEN,      /* the indices handed to stoker_loader_start */
};

struct stoker_order_options {
    enum stoker_order_kind kind;
    uint64_t seed;
    uint32_t rank, world;   /* world 0 and 1 both mean: not distributed */
    bool drop_uneven;       /* DistributedSampler's drop_last: false (default) pads to equal counts */
    bool epoch_fixed;       /* ORDER_TORCH: false (default) seeds with seed + epoch, true with seed */
    const double *weights;  /* ORDER_WEIGHTED: one for each sample; copied at open */
    uint64_t draws;         /* ORDER_WEIGHTED, ORDER_TORCH (as RandomSampler's num_samples): samples an
                               epoch; 0 (default): as many as the data set has */
};

struct stoker_order;
/* An order by itself, without a loader: which sample stands at which position. `count` is the number of
 * samples in the data set. */
STOKER_API int stoker_order_open(struct stoker_order **out, uint64_t count,
                                 const struct stoker_order_options *opt, struct stoker_error *err);
/* Begins an epoch. `indices` is for ORDER_GIVEN (copied), else NULL. */
STOKER_API int stoker_order_start(struct stoker_order *order, uint64_t epoch, const uint64_t *indices,
                                  uint64_t index_count, struct stoker_error *err);
STOKER_API uint64_t stoker_order_length(const struct stoker_order *order); /* of this rank, this epoch */
/* UINT64_MAX past the last position. Any number of threads, while none starts an epoch. */
STOKER_API uint64_t stoker_order_at(const struct stoker_order *order, uint64_t position);
STOKER_API void stoker_order_close(struct stoker_order *order);

/* ---- loaders ----------------------------------------------------------------------------------- */

enum stoker_dtype { STOKER_U8, STOKER_F32, STOKER_F16, STOKER_BF16, STOKER_I64 };
enum stoker_layout { STOKER_NCHW, STOKER_NHWC }; /* NHWC: torch's channels_last, shape still N,C,H,W */
enum stoker_on_error {
    STOKER_ON_ERROR_RAISE,   /* next answers with the sample's error when its batch is due */
    STOKER_ON_ERROR_SKIP,    /* another sample of the data set takes its place, chosen by (seed, epoch,
                                sample): batch sizes and counts stay as they are */
    STOKER_ON_ERROR_REPLACE, /* its place is filled with zeros and the label -100, which torch's losses
                                ignore by default */
};
enum stoker_fidelity { STOKER_EXACT, STOKER_FAST };
enum stoker_ragged {
    STOKER_RAGGED_LIST, /* images of different shapes are handed out one by one */
    STOKER_RAGGED_PAD,  /* padded right and below with zeros to the largest of the batch */
};

struct stoker_loader_options {
    size_t size;
    uint32_t batch_size;               /* default 1 */
    int32_t workers;                   /* threads that decode; 0: the calling thread; -1 (default): auto */
    uint32_t prefetch;                 /* batches kept ready ahead; default 2 */
    uint32_t read_ahead;               /* samples being read ahead of decoding; 0 (default): auto */
    bool drop_last;                    /* leave out a last batch that is not full (default false) */
    struct stoker_order_options order; /* default: sequential, seed 0, not distributed */
    enum stoker_dtype dtype;           /* STOKER_F32 (default) where the pipeline ends in floats */
    bool dtype_given;                  /* false (default): the type that the pipeline itself ends in */
    enum stoker_layout layout;         /* default NCHW */
    enum stoker_ragged ragged;         /* default list */
    enum stoker_on_error on_error;     /* default raise */
    uint64_t error_limit;              /* bad samples an epoch before next fails all the same; default
                                          UINT64_MAX: none */
    enum stoker_fidelity fidelity;     /* default exact; fast: JPEGs at least twice too large are decoded
                                          at a half, a quarter or an eighth */
    uint32_t pillow;                   /* whose resize to match: 13 (default) or 12 */
    bool exif_rotate;                  /* turn images as their EXIF orientation says (default false) */
    uint64_t pixel_limit;              /* refuse larger images; default 178956970, as Pillow's error */
    uint64_t max_memory;               /* bytes in slots before next fails because all are lent out;
                                          0 (default): a quarter of the machine's or cgroup's memory */
    uint32_t timeout_ms;               /* how long next may wait; 0 (default): for ever */
};
STOKER_API struct stoker_loader_options stoker_loader_defaults(void);

struct stoker_loader;
/* Plans the pipeline, refuses what cannot work, allocates slots and starts the threads. */
STOKER_API int stoker_loader_open(struct stoker_loader **out, struct stoker_dataset *data,
                                  struct stoker_pipeline *pipe,
                                  const struct stoker_loader_options *opt, struct stoker_error *err);

struct stoker_epoch {
    size_t size;
    uint64_t epoch;                /* default 0 */
    const uint64_t *indices;       /* ORDER_GIVEN: the samples, copied */
    uint64_t index_count;
    const uint32_t *batch_sizes;   /* NULL (default): batch_size each; else the sizes of the batches, none
                                      above batch_size, copied */
    uint64_t batch_count;
};
STOKER_API struct stoker_epoch stoker_epoch_defaults(void);
/* Begins an epoch, and abandons the one under way. NULL: epoch 0. */
STOKER_API int stoker_loader_start(struct stoker_loader *loader, const struct stoker_epoch *epoch,
                                   struct stoker_error *err);

struct stoker_tensor {
    void *data;
    enum stoker_dtype dtype;
    int32_t ndim;
    int64_t shape[4];
    int64_t stride[4]; /* in elements */
};

struct stoker_batch {
    uint64_t epoch, index;            /* the how manyth batch of which epoch */
    uint32_t count;                   /* samples in it */
    bool ragged;                      /* images.data is NULL and `items` counts */
    struct stoker_tensor images;      /* [count, C, H, W] */
    const struct stoker_tensor *items; /* ragged: count tensors [C, H, W] */
    struct stoker_tensor labels;      /* int64 [count] */
    const uint64_t *samples;          /* which samples these are */
};

/* The next batch, in order; it is the caller's until released. STOKER_END after the last. After a bad
 * sample (ON_ERROR_RAISE) the following call goes on with the following batch. */
STOKER_API int stoker_loader_next(struct stoker_loader *loader, const struct stoker_batch **out,
                                  struct stoker_error *err);
/* Makes a next that waits in another thread return STOKER_ECANCELED. Any thread. */
STOKER_API void stoker_loader_interrupt(struct stoker_loader *loader);
/* Gives a batch's memory back. Any thread, any time, also after the loader is closed. */
STOKER_API void stoker_batch_release(const struct stoker_batch *batch);

STOKER_API uint64_t stoker_loader_batches(const struct stoker_loader *loader); /* of this epoch, rank */
STOKER_API uint32_t stoker_loader_workers(const struct stoker_loader *loader);
/* Stops the threads (within one sample's time) and frees the loader. */
STOKER_API void stoker_loader_close(struct stoker_loader *loader);

/* ---- resume ------------------------------------------------------------------------------------ */

/* Where an epoch stands: the same on every rank after the same number of batches, and valid for any
 * number of threads and ranks afterwards. */
struct stoker_state {
    uint8_t bytes[64];
};
STOKER_API int stoker_loader_save(const struct stoker_loader *loader, struct stoker_state *out,
                                  struct stoker_error *err);
/* Starts the epoch at the place `state` was saved at. Pass the same stoker_epoch contents (indices, batch
 * sizes) as then, or NULL; its epoch number is taken from the state. */
STOKER_API int stoker_loader_restore(struct stoker_loader *loader, const struct stoker_state *state,
                                     const struct stoker_epoch *epoch, struct stoker_error *err);

/* ---- what happened ----------------------------------------------------------------------------- */

enum stoker_stage {
    STOKER_STAGE_READ,    /* a worker waited for a sample's bytes */
    STOKER_STAGE_DECODE,  /* headers and pixels */
    STOKER_STAGE_AUGMENT, /* ops, the final write included */
    STOKER_STAGE_SLOT,    /* a worker waited for a free slot: the consumer is the slower */
    STOKER_STAGES
};
struct stoker_stats {
    size_t size;                        /* set by the caller */
    uint64_t batches, samples, bytes;   /* delivered; encoded bytes read */
    uint64_t bad;                       /* samples that failed */
    uint64_t stage_ns[STOKER_STAGES];   /* summed over workers */
    uint64_t wait_ns;                   /* next waited for a batch */
    uint64_t first_batch_ns;            /* from start to the first batch of this epoch */
    uint64_t slot_bytes, scratch_bytes; /* memory held now */
    uint32_t slots, slots_lent, workers;
    uint64_t reads_in_flight_max;
    const char *reader;                 /* "io_uring", "pread pool", "memory", "inline" */
};
/* Since the loader was opened. Any thread. */
STOKER_API int stoker_loader_stats(const struct stoker_loader *loader, struct stoker_stats *out);
/* The same for one worker's stages; false past the last. Any thread. */
STOKER_API bool stoker_loader_worker_stats(const struct stoker_loader *loader, uint32_t worker,
                                           uint64_t stage_ns[STOKER_STAGES], uint64_t *samples);

/* How files were decoded: by which codec, and which way through it ("own decoder", or why libjpeg-turbo took
 * a file). The k-th way that any file took; false past the last. Any thread. */
struct stoker_path {
    const char *codec, *path;
    uint64_t files;
};
STOKER_API bool stoker_loader_path(const struct stoker_loader *loader, uint32_t k, struct stoker_path *out);

struct stoker_bad_sample {
    uint64_t sample, epoch;
    int code;
    char reason[1020]; /* names the file and where in it */
};
/* The ledger: the k-th bad sample delivered; false past the last. The latest 1,024 are kept. Any thread. */
STOKER_API bool stoker_loader_bad(const struct stoker_loader *loader, uint64_t k,
                                  struct stoker_bad_sample *out);

/* ---- one image, and what this build can do ------------------------------------------------------ */

struct stoker_decode_options {
    size_t size;
    uint32_t x, y, width, height; /* the region; width 0 (default): the whole image */
    bool exif_rotate;             /* default false */
    uint64_t pixel_limit;         /* default 178956970 */
};
STOKER_API struct stoker_decode_options stoker_decode_defaults(void);

struct stoker_image {
    uint32_t width, height;
    uint8_t *pixels; /* RGB, width * 3 bytes a row */
};
/* Decodes to RGB bytes, equal to PIL.Image.open(...).convert("RGB"). Any thread. `name` stands in
 * messages. */
STOKER_API int stoker_decode(struct stoker_image *out, const void *data, size_t size, const char *name,
                             const struct stoker_decode_options *opt, struct stoker_error *err);
STOKER_API void stoker_image_free(struct stoker_image *image);

STOKER_API const char *stoker_version(void);
struct stoker_feature {
    const char *kind;   /* "codec", "library", "kernels", "reader" */
    const char *name;
    const char *detail; /* version, or why it is missing */
    bool present;
};
STOKER_API bool stoker_feature_at(uint32_t index, struct stoker_feature *out);
/* CPUs this process may really use: affinity and cgroup quota, at least 1. */
STOKER_API uint32_t stoker_cpus(void);

#ifdef __cplusplus
}
#endif
#endif
