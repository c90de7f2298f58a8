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
 *     working directory. It keeps no global state, but for what a thread sets for itself by stoker_on_wait.
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
    X(EINVAL, -1, "an invalid argument")                                                           \
    X(ENOMEM, -2, "out of memory")                                                                 \
    X(EIO, -3, "the bytes could not be read")                                                      \
    X(ECORRUPT, -4, "the bytes are not what they claim to be")                                     \
    X(EUNSUPPORTED, -5, "this build or version cannot do that")                                    \
    X(ELIMIT, -6, "a limit set by the caller was reached")                                         \
    X(EFORK, -7, "the handle belongs to another process")                                          \
    X(ETIMEOUT, -8, "nothing arrived in time")                                                     \
    X(ECANCELED, -9, "the call was interrupted")                                                   \
    X(ENOTFOUND, -10, "there is no such file, folder or object")                                   \
    X(ETRANSIENT, -11, "the machine or the network failed, not the data: trying again may help")

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
    const char *index_dir;          /* keep the index here and reuse it while the data are unchanged;
                                       NULL (default): scan folders each time, and keep the index of an
                                       archive beside it (PATH.stoker-index), where that can be written */
    const char *const *extensions;  /* NULL-terminated, lower case, with the dot; NULL (default): the
                                       nine of torchvision's ImageFolder */
    uint32_t threads;               /* for scanning; 0 (default): the CPUs this process may use, and for
                                       archives, which are waited for, at least 8 (by URL 16) */
    bool allow_empty;               /* a class folder without images is no error (default false) */
    const char *fields;             /* which fields a sample has, separated by commas, as its kind of data
                                       set names them: "jpg,cls"; with a type where the data does not say:
                                       "image/encoded=image,image/class/label=int"; NULL (default): the
                                       kind's own choice */
    const char *cache_dir;          /* keep what is read by URL here, and read it from here again; several
                                       processes may share it; NULL (default): no cache */
    uint64_t cache_bytes;           /* no more than this in cache_dir; 0 (default): 64 GiB */
    uint32_t remote_ms;             /* time for one request by URL, retries included; 0 (default): 60000 */
    uint32_t connections;           /* at most so many to the servers of URLs, opened as they are needed; 0
                                       (default): 256, and no more than a quarter of the files allowed */
    uint64_t max_memory;            /* archives that are packed as a whole are unpacked into no more than so many
                                       bytes, all together; 0 (default): a quarter of what this process may use */
    const char *db;                 /* lmdb: the database of this name; NULL (default): the main one */
};
STOKER_API struct stoker_dataset_options stoker_dataset_defaults(void);

/* Opens "DIR" or "folder:DIR" (one sub-folder a class, as torchvision's ImageFolder) or "flat:DIR"
 * (all images below DIR in sorted order, label 0). `opt` may be NULL. Other data sets by their path alone, if
 * name or first bytes tell what they are, or as "kind:path":
 *
 *   tar:       samples as the Python package webdataset reads them. Fields are suffixes ("jpg;jpeg;png,cls",
 *              "__key__" for the name), decoded by the last part of the suffix unless "=type" says otherwise.
 *   tfrecord:  records of tf.train.Example or SequenceExample. Fields are features, "name=type": image, audio,
 *              text, json or bytes for one value of bytes, int or float for one number, int[2x?] or float[] for
 *              many, u8[32x32x3] for elements that lie in bytes as they are.
 *
 *   hdf5:      row i of data sets, whose names are the fields ("images,train/labels"); by default all at the
 *              file's root. Sequences of uint8 of any length that begin as images do are images.
 *   lmdb:      entries in the order of their keys; `db` chooses a database that has a name. Fields: image, label, key,
 *              value. Values may be encoded images, Caffe's Datums (raw ones come out as RGB), or an image and a number in
 *              MessagePack; keys may be image-N with the texts label-N. __keys__, __len__, num-samples and length are no
 *              samples unless their values are images.
 *   npy:, npz: row i of arrays; fields of an npz are its arrays' names (all by default).
 *   zip:       images with the classes of their folders. Fields: image, label, name.
 *   csv:, jsonl: files named in a table whose first line names its columns, or in one object a line. Fields
 *              are columns, that of the files first, or the first with "=image" or "=audio". It may name URLs; in
 *              one opened by URL paths are relative to that. Damaged rows are bad samples, and so are those with
 *              an empty cell, or a word, in a column of numbers. Words in a column of labels are classes, unless
 *              most of them are whole numbers.
 *
 * In arrays of numbers uint8 rows of [H, W] and [H, W, C <= 4] are images, and single numbers int or float;
 * "=type" says otherwise where that can be. A number beyond int64 is a bad sample, but for "=array". A sample has up to 64
 * fields, and an array up to 16 dimensions with that of the rows.
 *
 * The path of all but folder and flat may be a list ("a.h5::b.h5"), have braces ("a-{000..127}.tar") or be a
 * pattern ("*.tar"): several files of one kind, one behind the other, whose fields and classes must be the same. Or a
 * folder: one that `stoker pack` wrote, with the classes of what was packed, or one that holds archives of one kind
 * and neither folders nor images, in the order of their names; "kind:DIR" are all archives of that kind in it.
 * Each of these may be an http://, https:// or s3://BUCKET/KEY URL, and is then read by ranges: tar, tfrecord and
 * zip sample by sample, what tables name file by file; npy and npz are brought into memory, hdf5 and lmdb copied to
 * a file first. See cache_dir.
 * An archive that is packed as a whole (.tar.gz, .tar.zst) cannot be read at random: it is unpacked into memory
 * where that is small enough, and refused otherwise. */
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

/* Images of pixels in memory, all of one size: uint8 [count, height, width, channels], in any layout. Neither
 * pixels nor labels are copied: both must outlive the data set, and what is changed there is seen by the batches
 * that are made afterwards. In a batch they are RGB, as from an encoded image. */
struct stoker_pixels {
    size_t size;
    const uint8_t *data;   /* the first value of the first image */
    const int64_t *labels; /* one for each image; NULL (default): all 0 */
    uint64_t count;
    int64_t height, width;
    int32_t channels;  /* 1 to 4; 0: [count, height, width], grey */
    int64_t stride[4]; /* bytes from image to image, row to row, pixel to pixel and channel to channel; may be
                          negative. With channels 0 the last does not count */
};
STOKER_API int stoker_dataset_from_pixels(struct stoker_dataset **out, const struct stoker_pixels *pixels,
                                          struct stoker_error *err);

/* Files named one by one: `paths` and `labels` are copied. `labels` may be NULL (all 0). */
STOKER_API int stoker_dataset_from_files(struct stoker_dataset **out, const char *const *paths,
                                         const int64_t *labels, uint64_t count,
                                         struct stoker_error *err);

/* A source of the caller's own. `read` is called from several reading threads at once, may block, and
 * writes the sample's bytes to `buffer` and their number to *size; when `capacity` is too small it writes
 * the number needed to *size and nothing to the buffer, and is called again. It returns a status: STOKER_ETRANSIENT
 * or STOKER_ETIMEOUT where trying again may help, else a status for a bad sample (see `on_error`). The library cannot
 * end a `read` that it is inside of: stopping and closing a loader wait for it.
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

/* Data sets over others, which they hold: the parts may be closed at once. All parts must have the same
 * fields. One behind the other: */
STOKER_API int stoker_dataset_concat(struct stoker_dataset **out, struct stoker_dataset *const *parts,
                                     uint32_t count, struct stoker_error *err);
/* Some samples, in any order, any of them more than once; the indices are copied: */
STOKER_API int stoker_dataset_subset(struct stoker_dataset **out, struct stoker_dataset *data,
                                     const uint64_t *indices, uint64_t count, struct stoker_error *err);
/* Mixed: of any run of samples each part has its share by weight, and all its samples come once before any
 * comes again, in an order that depends on the seed. `samples` 0: until all of all parts have come. */
STOKER_API int stoker_dataset_mix(struct stoker_dataset **out, struct stoker_dataset *const *parts,
                                  const double *weights, uint32_t count, uint64_t samples, uint64_t seed,
                                  struct stoker_error *err);

/* Its kind, as in "kind:path"; NULL for one that was not opened by a path. */
STOKER_API const char *stoker_dataset_kind(const struct stoker_dataset *data);
struct stoker_field {
    const char *name; /* these live as long as the data set */
    const char *type; /* image, audio, int, float, array, text, json or bytes */
};
/* What a sample has, in this order; false past the last. */
STOKER_API bool stoker_dataset_field(const struct stoker_dataset *data, uint32_t index,
                                     struct stoker_field *out);
/* What is read more slowly than it could be, and why (fields of an HDF5 file that only its library can read, a
 * cache that is full); NULL: nothing to say. As long as the data set lives. Any thread. */
STOKER_API const char *stoker_dataset_note(const struct stoker_dataset *data);
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

enum stoker_dtype {
    STOKER_U8, STOKER_F32, STOKER_F16, STOKER_BF16, /* of images */
    STOKER_I64, STOKER_I8, STOKER_I16, STOKER_I32, STOKER_U16, STOKER_U32, STOKER_U64, STOKER_F64, STOKER_BOOL,
};
enum stoker_layout { STOKER_NCHW, STOKER_NHWC }; /* NHWC: torch's channels_last, shape still N,C,H,W */
/* A failure of the machine or the network (STOKER_ETRANSIENT, STOKER_ETIMEOUT: no connection, an answer 5xx or 429, a disk's
 * EIO, no more files or sockets) is no bad sample: it is tried again for about two seconds, by URL after the time that
 * remote_ms gives each request. If that does not help, next fails with STOKER_ETRANSIENT under every on_error, once the
 * batches before are delivered, and again each time until an epoch is started or restored. */
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

/* Where images are resized, coloured and finished once they are decoded. */
enum stoker_place {
    STOKER_PLACE_AUTO,   /* on the loader's device where there is one that can, else by the workers */
    STOKER_PLACE_CPU,    /* by the workers */
    STOKER_PLACE_DEVICE, /* on the device, or the loader is not opened */
};

struct stoker_loader_options {
    size_t size;
    uint32_t batch_size;               /* default 1 */
    int32_t workers;                   /* threads that decode; 0: the calling thread; -1 (default): auto, the
                                          CPUs that this process may use (affinity, cgroup quota), divided by
                                          LOCAL_WORLD_SIZE where torchrun has set it; 0 where the data set is
                                          so small that threads would not pay. Those that are not needed to have
                                          every batch ready rest while the run goes on. A number that is given
                                          is never changed */
    uint32_t prefetch;                 /* batches kept ready ahead; 0 (default): auto, 2 at first, and more (up to
                                          8, and a quarter of max_memory) if that keeps the consumer from waiting;
                                          2 with a device or pin_memory */
    uint32_t read_ahead;               /* samples being read ahead of decoding; 0 (default): auto, 64 or more, by
                                          URL 320, and up to four times as many if that helps */
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
                                          at a half, a quarter or an eighth; on a device with JPEG engines
                                          these decode part of each batch, whatever is free first, so that a
                                          run cannot be repeated bit for bit */
    uint32_t pillow;                   /* whose resize to match: 13 (default) or 12 */
    bool exif_rotate;                  /* turn images as their EXIF orientation says (default false) */
    uint64_t pixel_limit;              /* refuse larger images; default 178956970, as Pillow's error */
    uint64_t max_memory;               /* bytes that the loader may hold: batches (up to a half of it, whether
                                          ready, being made or lent out), samples read ahead, workers' scratch
                                          memory. Where it is short, fewer workers decode at once and fewer
                                          batches are kept ready; the batches are the same. A sample that alone
                                          takes too much is an error, whatever on_error says. 0 (default): a
                                          quarter of what the cgroup allows, or the machine has available,
                                          divided by LOCAL_WORLD_SIZE */
    uint32_t timeout_ms;               /* how long next may wait; 0 (default): for ever */
    const char *device;                /* whose memory batches are handed out in: "cuda", "cuda:1"; NULL
                                          (default) or "cpu": the CPU's. The images must then all be of one
                                          size; nothing but the speed and the place of the bytes differs */
    enum stoker_place augment_on;      /* default auto */
    bool pin_memory;                   /* without a device: batches lie in memory that a GPU copies from by
                                          itself, if that can be had (default false) */
    uint64_t pinned_limit;             /* bytes of such memory, here and for a device; what is beyond is
                                          pageable; 0 (default): as much as max_memory */
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
    /* ORDER_GIVEN. A sample that comes again in an epoch is augmented in another way each time: what is drawn for it
     * follows from its position then. Where `indices` are one part of an epoch: */
    const uint8_t *repeated;       /* of each index, 1 where the sample has come before in the epoch, copied; NULL
                                      (default): where it comes before in `indices` */
    uint64_t first_position;       /* samples, and batches, of the epoch before these; default 0 */
    uint64_t first_batch;
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

/* A field of the samples that is not their image. Arrays of one shape are stacked; text and the like, and
 * arrays of several shapes, lie one behind the other. Further images are arrays too: those that are encoded as RGB,
 * uint8 [H, W, 3], without the pipeline's ops. */
enum stoker_column_kind {
    STOKER_COLUMN_INT,   /* int64 [count] */
    STOKER_COLUMN_FLOAT, /* float64 [count] */
    STOKER_COLUMN_ARRAY, /* [count, ...], or all values in one row and `offsets` */
    STOKER_COLUMN_TEXT, STOKER_COLUMN_JSON, STOKER_COLUMN_BYTES, /* uint8, and `offsets` */
    STOKER_COLUMN_AUDIO, /* encoded: as BYTES */
};
enum { STOKER_COLUMN_DIMS = 16 };
struct stoker_column {
    const char *name;                  /* the field's */
    enum stoker_column_kind kind;
    enum stoker_dtype dtype;
    const void *data;                  /* in the CPU's memory, in C order */
    int32_t ndim;
    int64_t shape[STOKER_COLUMN_DIMS];
    const uint64_t *offsets;           /* not NULL: which elements of `data` are each sample's; count + 1 */
    const int64_t (*shapes)[STOKER_COLUMN_DIMS - 1]; /* arrays with offsets: of each sample; -1 behind the last */
};

struct stoker_batch {
    uint64_t epoch, index;            /* the how manyth batch of which epoch */
    uint32_t count;                   /* samples in it */
    bool ragged;                      /* images.data is NULL and `items` counts */
    struct stoker_tensor images;      /* [count, C, H, W]; of sounds [count, C, T] or [count, C, F, T], zeros
                                         behind the shorter ones; ndim 0 where the data set has no images */
    const struct stoker_tensor *items; /* ragged: count tensors [C, H, W] */
    struct stoker_tensor labels;      /* int64 [count]; of samples with fields the first that is an int */
    const uint64_t *samples;          /* which samples these are; in the CPU's memory */
    int32_t device_type;              /* where images and labels lie, in DLPack's numbers: 1 CPU, 2 CUDA,
                                         3 pinned by CUDA */
    int32_t device_id;                /* which of several devices; 0 for the CPU */
    uint32_t column_count;            /* of data sets whose samples have fields: all but the image */
    const struct stoker_column *columns;
    struct stoker_tensor lengths;     /* sounds whose lengths differ: int64 [count], frames of each, in the CPU's
                                         memory; else ndim 0 */
};

/* The next batch, in order; it is the caller's until released. STOKER_END after the last. After a bad
 * sample (ON_ERROR_RAISE) the following call goes on with the following batch. */
STOKER_API int stoker_loader_next(struct stoker_loader *loader, const struct stoker_batch **out,
                                  struct stoker_error *err);
/* Makes a next that waits in another thread return STOKER_ECANCELED. Any thread. With workers 0 next does not wait but works:
 * it is over when the sample under way is made (stoker_on_wait ends the waits in it). */
STOKER_API void stoker_loader_interrupt(struct stoker_loader *loader);
/* Whether a call of this thread that waits for a server (opening a data set or a loader; next, with workers 0) should
 * end: `asked` is called 40 times a second, by this thread and inside of that call, and once it has answered true the
 * call returns STOKER_ECANCELED within a tenth of a second; next ends the epoch then, and a state saved afterwards resumes
 * at the batch that was due. It holds for the thread's calls until it is set again; NULL: nobody is asked. */
typedef bool stoker_interrupt(void *context);
STOKER_API void stoker_on_wait(stoker_interrupt *asked, void *context);
/* Gives a batch's memory back. Any thread, any time, also after the loader is closed. What streams that
 * joined the batch hold at this moment may still read it; later work may not. */
STOKER_API void stoker_batch_release(const struct stoker_batch *batch);

/* A batch on a device may still be on its way when next hands it out. Work put into `stream` (a CUstream;
 * 0: the default stream) from now on comes after it is there; the CPU does not wait. The stream must live
 * until the batch is released. Nothing to do, and STOKER_OK, for a batch in the CPU's memory. */
STOKER_API int stoker_batch_join(const struct stoker_batch *batch, uintptr_t stream,
                                 struct stoker_error *err);
/* The CPU waits until the batch is there. */
STOKER_API int stoker_batch_sync(const struct stoker_batch *batch, struct stoker_error *err);
/* As stoker_batch_release, but what `stream` holds now, a copy that is still under way, may read the batch
 * to the end: its memory is not written to before. */
STOKER_API void stoker_batch_release_on(const struct stoker_batch *batch, uintptr_t stream);

STOKER_API uint64_t stoker_loader_batches(const struct stoker_loader *loader); /* of this epoch, rank */
STOKER_API uint32_t stoker_loader_workers(const struct stoker_loader *loader);
/* Stops the threads and frees the loader. Requests by URL, retries and substitutes are given up at once; what is waited for
 * is the decoding of a sample, a read of a local file, and a callback's `read`. */
STOKER_API void stoker_loader_close(struct stoker_loader *loader);

/* ---- chance for whole batches ------------------------------------------------------------------ */

/* What an op that mixes the samples of a batch draws for it (MixUp, CutMix): a function of the arguments
 * alone. `batch` is its place among those of all ranks, `op` the op's place in the list of such ops (below
 * 252), `alpha` finite and above 0. Any thread. */
struct stoker_mix {
    double lambda;       /* Beta(alpha, alpha) */
    double choice, x, y; /* even in [0, 1): of several ops, and of a box's centre */
};
STOKER_API struct stoker_mix stoker_mix_draw(uint64_t seed, uint64_t epoch, uint64_t batch, uint32_t op,
                                             double alpha);

/* ---- resume ------------------------------------------------------------------------------------ */

/* Where an epoch stands: the same on every rank after the same number of batches, and valid for any
 * number of threads and ranks afterwards.
 *
 * Saved right after stoker_loader_next failed with a batch's error, it names that batch: who restores it has the batch
 * tried again, which helps where its cause was mended. Who calls next instead goes on with the batch behind it. Where
 * one rank has failed and others have not, theirs name the batch behind: take the state of the one that failed. */
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
    uint64_t slot_bytes, scratch_bytes; /* memory held now: by batches; by workers */
    uint32_t slots, slots_lent, workers;
    uint64_t reads_in_flight_max;       /* ahead of the workers, which read for themselves what is in memory */
    const char *reader;                 /* what reads ahead: "io_uring", "pread pool"; "memory", "inline": nothing */
    enum stoker_place augment_on;       /* CPU or DEVICE: what auto came to */
    uint64_t copied_bytes;              /* handed to the device */
    uint64_t raw_rows, resized_rows;    /* samples the device resizes; those too large for its share of a
                                           slot, which a worker resized for it */
    uint64_t pinned_bytes;              /* of slot_bytes */
    uint64_t engine_rows;               /* samples whose files the device's JPEG engines decoded */
    uint64_t engine_failures;           /* those that they failed at: the CPU decoded them */
    const char *engine_note;            /* why engines that should decode do not; NULL: nothing is amiss. As
                                           long as the loader lives */
    const char *pinned_note;            /* why slots that should be pinned are pageable; NULL: none is. As
                                           long as the loader lives */
    const char *source_note;            /* stoker_dataset_note of the data set */
    uint64_t memory_allowed;            /* max_memory, or what it came to */
    uint64_t memory_held, memory_peak;  /* of that: now, and the most so far. Held are slot_bytes,
                                           scratch_bytes and these two: */
    uint64_t read_bytes, data_bytes;    /* of samples read ahead; kept by the data set */
    uint64_t memory_wait_ns;            /* workers waited for memory, summed over them */
    const char *reader_note;            /* why `reader`, which reads ahead, is not io_uring; NULL: it is, or need
                                           not be. As long as the loader lives */
    /* What is left to the loader (workers -1, prefetch 0, read_ahead 0) it moves at run time, one at a time, and keeps
     * a move only if it helps. No byte of a batch depends on it. */
    uint32_t tuned_workers;             /* that work now; the others of `workers` rest */
    uint32_t tuned_prefetch, tuned_read_ahead; /* batches kept ready, samples read ahead at most, now */
    uint32_t tuning_moves, tuning_reverted;    /* so far; of them those that took one back that did not help */
    const char *tuning_limit;           /* what held the loader back when that was looked at last; for ever */
    char tuning_last[160];              /* the last move, in words; "": there was none */
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

/* ---- one image, one sound, and what this build can do ------------------------------------------- */

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

/* Single images through a pipeline, outside of any loader: what a row of a batch would hold. Any number of
 * threads may use one at the same time; what they need to work with is kept for the next image. */
struct stoker_single;

struct stoker_single_options {
    size_t size;
    enum stoker_layout layout; /* default NCHW */
    uint32_t pillow;           /* 12 or 13 (default): whose way of resizing to match */
    uint64_t pixel_limit;      /* default 178956970; 0: none */
};
STOKER_API struct stoker_single_options stoker_single_defaults(void);
/* The pipeline may be closed afterwards. */
STOKER_API int stoker_single_open(struct stoker_single **out, struct stoker_pipeline *pipe,
                                  const struct stoker_single_options *opt, struct stoker_error *err);
STOKER_API void stoker_single_close(struct stoker_single *single); /* NULL is fine */

struct stoker_picture {
    size_t size;                      /* sizeof(struct stoker_picture) */
    const void *data;                 /* of `bytes` bytes: an encoded image; with `channels` not 0 pixels: */
    size_t bytes;
    uint32_t width, height, channels; /* rows of 1 to 4 interleaved bytes without gaps: grey is tripled, a second
                                         or fourth channel dropped */
    uint32_t x, y, crop_width, crop_height; /* the part that counts as the image; crop_width 0: all of it */
    const char *name;                 /* stands in messages; may be NULL */
};
/* Random draws are a function of (seed, epoch, sample), as in a loader. *out is [C, H, W], or with
 * NHWC [H, W, C], without gaps; its memory is the caller's, who gives it to free(). */
STOKER_API int stoker_single_run(struct stoker_single *single, const struct stoker_picture *picture, uint64_t seed,
                                 uint64_t epoch, uint64_t sample, struct stoker_tensor *out,
                                 struct stoker_error *err);

/* Whether this is a JPEG in which nothing is amiss, from its first byte to its end marker, as far as that can be
 * seen without decoding: baseline, 8 bits, grey or three components. Decoding such a file does not fail. */
STOKER_API bool stoker_jpeg_is_regular(const void *data, size_t size, uint32_t *width, uint32_t *height,
                                       uint32_t *components);

struct stoker_audio_options {
    size_t size;
    uint64_t first, frames; /* the part; frames 0 (default): all from `first` on */
    uint64_t pixel_limit;   /* refuse parts of more values than this; default 178956970 */
};
STOKER_API struct stoker_audio_options stoker_audio_defaults(void);

struct stoker_sound {
    uint32_t rate, channels; /* samples a second */
    uint64_t frames;         /* of each channel */
    uint64_t length;         /* frames of the whole sound */
    float *samples;          /* all of the first channel, then all of the next; full scale is 1 */
};
/* Decodes a sound (WAV, FLAC, Ogg/Vorbis, Opus, MP3), no more of it than is asked for. Any thread. `name`
 * stands in messages. */
STOKER_API int stoker_audio_decode(struct stoker_sound *out, const void *data, size_t size, const char *name,
                                   const struct stoker_audio_options *opt, struct stoker_error *err);
STOKER_API void stoker_sound_free(struct stoker_sound *sound);

STOKER_API const char *stoker_version(void);
struct stoker_feature {
    const char *kind;   /* "codec", "audio", "library", "kernels", "reader", "gpu" */
    const char *name;
    const char *detail; /* version, or why it is missing */
    bool present;
};
STOKER_API bool stoker_feature_at(uint32_t index, struct stoker_feature *out);
/* CPUs this process may really use: affinity and cgroup quota, at least 1. */
STOKER_API uint32_t stoker_cpus(void);

/* ---- how busy a GPU is -------------------------------------------------------------------------- */

/* Numbers that the GPU or its driver does not give are negative; shares are 0 to 1. */
struct stoker_gpu_sample {
    size_t size;                     /* set by the caller */
    double busy;                     /* of the time since the last sample, the share with any kernel at all:
                                        one thread of one kernel makes it 1 */
    double sm_active, sm_occupancy;  /* multiprocessors at work; their warps in use. These and the next six
                                        are of an interval of `seconds`, at least 0.1, that ended with this
                                        sample or, if that came too soon, with the one before; Hopper and
                                        later */
    double tensor_active, dram_active;
    double jpeg_engines;             /* how many of the JPEG engines were at work, on average */
    double pcie_in, pcie_out;        /* bytes a second, to the GPU and from it */
    double seconds;
    double watts;                    /* now */
    uint64_t memory_used, memory_total;
    double clock;                    /* of the multiprocessors, against the highest */
    double limited;                  /* 1 while power or temperature holds that clock down, else 0 */
    double link_generation, link_width, link_generation_most, link_width_most; /* PCIe; a GPU at rest may go down */
    double node;                     /* NUMA node that it is attached to */
    char name[96], driver[80];       /* "" where unknown */
};
struct stoker_gpu_watch;
/* Watches one GPU through the driver's management library; makes no CUDA context. `which`: a PCI address
 * ("0000:17:00.0"), an identifier ("GPU-..."), or a number in the driver's own order ("1"), which is not CUDA's;
 * NULL: "0". STOKER_EUNSUPPORTED where there is no driver or no such GPU. */
STOKER_API int stoker_gpu_watch_open(struct stoker_gpu_watch **out, const char *which,
                                     struct stoker_error *err);
STOKER_API int stoker_gpu_watch_sample(struct stoker_gpu_watch *watch, struct stoker_gpu_sample *out,
                                       struct stoker_error *err);
STOKER_API void stoker_gpu_watch_close(struct stoker_gpu_watch *watch);

#ifdef __cplusplus
}
#endif
#endif
