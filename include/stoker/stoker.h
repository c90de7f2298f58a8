/* stoker.h - the public interface of libstoker: declarations, and behind them the manual
 *
 * Stoker turns a dataset of encoded images or sounds into finished training batches. Threads read,
 * decode, augment and collate; the bytes of a batch do not depend on the number of threads.
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
 *     opt.order = STOKER_ORDER_SHUFFLE;
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
 * A name in brackets is a chapter of the manual, at the end of this file:
 *
 *   - every call: [Calls], [Names], [Versions], [Process]
 *   - data: [Kinds of data], [Fields], [Files and URLs], [Index], [Own sources], [Mixtures], [Pipelines]
 *   - loaders: [Order], [Threads], [Memory], [Bad samples], [Device], [JPEG hardware], [Waiting],
 *     [Resume]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STOKER_STOKER_H
#define STOKER_STOKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of this header, which a program is compiled against. stoker_version() is the library's. */
#define STOKER_VERSION_MAJOR 0
#define STOKER_VERSION_MINOR 1
#define STOKER_VERSION_PATCH 0
#define STOKER_VERSION (STOKER_VERSION_MAJOR * 10000 + STOKER_VERSION_MINOR * 100 + STOKER_VERSION_PATCH)

#if defined(__GNUC__)
#define STOKER_API __attribute__((visibility("default")))
#else
#define STOKER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library, as a number to compare with STOKER_VERSION (0.1.0 is 100) and as text. */
STOKER_API uint32_t stoker_version(void);
STOKER_API const char *stoker_version_string(void);

/* Whether a batch or a column, which the library allocates, has this member: STOKER_HAS(batch, lengths).
 * An older library does not know the members that were added after it. */
#define STOKER_HAS(pointer, member)                                                                \
    ((size_t)((const char *)(&(pointer)->member + 1) - (const char *)(pointer)) <= (pointer)->size)

/* ---- errors ------------------------------------------------------------------------------------ */

#define STOKER_STATUS_MAP(X)                                                                       \
    X(OK, 0, "no error")                                                                           \
    X(END, 1, "the epoch has ended")                                                               \
    X(EINVAL, -1, "invalid argument")                                                              \
    X(ENOMEM, -2, "out of memory")                                                                 \
    X(EIO, -3, "a read, a write or a copy failed")                                                 \
    X(ECORRUPT, -4, "the data is damaged, or not in the format it claims to be in")                \
    X(EUNSUPPORTED, -5, "not supported by this version, this build or this machine")               \
    X(ELIMIT, -6, "a limit set by the caller was exceeded")                                        \
    X(EFORK, -7, "the handle belongs to another process")                                          \
    X(ETIMEOUT, -8, "timed out")                                                                   \
    X(ECANCELED, -9, "the call was interrupted")                                                   \
    X(ENOTFOUND, -10, "no such file, folder or object")                                            \
    X(ETRANSIENT, -11, "the machine or the network failed, not the data: retrying may help")       \
    X(EINTERNAL, -12, "an error in libstoker itself: please report it")

enum stoker_status {
#define STOKER_STATUS_CONSTANT(name, value, text) STOKER_##name = value,
    STOKER_STATUS_MAP(STOKER_STATUS_CONSTANT)
#undef STOKER_STATUS_CONSTANT
};

struct stoker_error {
    int code;           /* an enum stoker_status */
    char message[1020]; /* what failed, where (file, offset) and what to do; always terminated */
};

/* The name of a status ("ECORRUPT") and its meaning in a few words. Any thread. */
STOKER_API const char *stoker_status_name(int status);
STOKER_API const char *stoker_status_text(int status);

/* ---- datasets ---------------------------------------------------------------------------------- */

struct stoker_dataset; /* immutable once open: any number of threads and loaders may share it */

/* See [Fields], [Index] and [Files and URLs]. */
struct stoker_dataset_options {
    size_t size;                   /* default     meaning */
    /* what it contains */
    const char *fields;            /* NULL        of a sample: "jpg,cls"; NULL: the kind decides */
    const char *const *extensions; /* NULL        lower case, with the dot, NULL-terminated; NULL:
                                                  the nine of torchvision's ImageFolder */
    bool allow_empty;              /* false       accept class folders without images */
    const char *db;                /* NULL        lmdb: the named database; NULL: the main one */
    /* opening it */
    const char *index_dir;         /* NULL        keep the index here; NULL: beside archives */
    uint32_t threads;              /* 0 (auto)    that scan the data */
    uint64_t max_memory;           /* 0 (auto)    bytes for unpacking compressed archives; auto: a
                                                  quarter of what this process may use */
    /* by URL */
    const char *cache_dir;         /* NULL        keep what is read here; NULL: no cache */
    uint64_t cache_bytes;          /* 0           size limit of cache_dir; 0: 64 GiB */
    uint32_t remote_ms;            /* 0           time limit of a request, retries included; 0: 60000 */
    uint32_t connections;          /* 0           limit for connections to servers; 0: 256 */
};
/* Writes the defaults to the `size` bytes at `opt`. C and C++ programs call stoker_dataset_defaults. */
STOKER_API void stoker_dataset_options_init(struct stoker_dataset_options *opt, size_t size);
static inline struct stoker_dataset_options stoker_dataset_defaults(void)
{
    struct stoker_dataset_options opt;
    stoker_dataset_options_init(&opt, sizeof opt);
    return opt;
}

/* Opens a folder of class folders ("DIR"), all images below a folder ("flat:DIR"), an archive ("a.tar"),
 * several ("a-{000..127}.tar"), a table or a URL: see [Kinds of data] and [Files and URLs]. */
STOKER_API int stoker_dataset_open(struct stoker_dataset **out, const char *uri,
                                   const struct stoker_dataset_options *opt,
                                   struct stoker_error *err);

/* One encoded image in memory. Frozen. The bytes are not copied and must outlive the dataset. */
struct stoker_item {
    const void *data;
    size_t size; /* bytes of `data` */
    int64_t label;
};
STOKER_API int stoker_dataset_from_memory(struct stoker_dataset **out, const struct stoker_item *items,
                                          uint64_t count, struct stoker_error *err);

/* Raw images in memory, all of the same size: uint8 [count, height, width, channels] with any strides.
 * Pixels and labels are not copied: both must outlive the dataset, and batches made later see changes to
 * them. Batches contain them as RGB, like encoded images. */
struct stoker_pixels {
    size_t size;
    const uint8_t *data;   /* the first value of the first image */
    const int64_t *labels; /* one per image; NULL (default): all 0 */
    uint64_t count;
    int64_t height, width;
    int32_t channels;  /* 1 to 4; 0: [count, height, width], grey */
    int64_t stride[4]; /* in bytes, between images, rows, pixels and channels; may be negative. The last
                          is ignored if channels is 0 */
};
STOKER_API int stoker_dataset_from_pixels(struct stoker_dataset **out,
                                          const struct stoker_pixels *pixels, struct stoker_error *err);

/* A list of files. `paths` and `labels` are copied; `labels` may be NULL (all 0). */
STOKER_API int stoker_dataset_from_files(struct stoker_dataset **out, const char *const *paths,
                                         const int64_t *labels, uint64_t count,
                                         struct stoker_error *err);

/* Images and the masks or boxes that belong to them, in files. With masks, samples have the fields image
 * and mask, which `masks` of struct stoker_loader_options is to name; labels, where a layout has some,
 * are a third. With boxes they have the fields of [Boxes]. */
enum stoker_pairs_layout {
    STOKER_PAIRS_STEMS,      /* two folders, with the same names but for the extension */
    STOKER_PAIRS_VOC,        /* Pascal VOC: JPEGImages, SegmentationClass, ImageSets/Segmentation */
    STOKER_PAIRS_PETS,       /* Oxford-IIIT Pet: images, annotations/trimaps; labels are breeds */
    STOKER_PAIRS_CITYSCAPES, /* leftImg8bit and gtFine */
    STOKER_PAIRS_COCO,       /* a folder of images and a JSON file of COCO with their boxes */
    STOKER_PAIRS_VOC_BOXES,  /* Pascal VOC: JPEGImages, Annotations, ImageSets/Main */
    STOKER_PAIRS_YOLO,       /* images, and for each a text file with its objects: [Boxes] */
};
/* Masks that are drawn from the shapes of objects, as a last field: [Boxes]. */
enum stoker_shapes {
    STOKER_SHAPES_NONE,
    STOKER_SHAPES_OBJECTS, /* one for each object */
    STOKER_SHAPES_CLASSES, /* one with the numbers of classes */
};
struct stoker_pairs {
    size_t size;
    enum stoker_pairs_layout layout;
    enum stoker_shapes masks; /* COCO, YOLO */
    uint32_t points;          /* YOLO: key points in each line, as a field behind the others; 0: none */
    uint32_t point_numbers;   /* 2: x and y, or 3: and visibility */
    bool contiguous;     /* COCO: labels are 0, 1, ... in the order of the category ids, not these */
    bool keypoints;      /* COCO: samples have them behind the other fields */
    const char *images;  /* STEMS, COCO, YOLO: the folder of the images, with folders in it; for YOLO also
                            a text file that lists images; else the root */
    const char *targets; /* STEMS: the folder of the masks; COCO: the JSON file, or its URL; YOLO: the
                            folder of the text files (NULL: where YOLO has them) */
    const char *set;     /* the list or the split: "train"; not for STEMS, COCO and YOLO */
    const char *suffix;  /* STEMS: of the masks' names before the extension: "_mask" (NULL: none);
                            CITYSCAPES: NULL means "gtFine_labelIds.png" */
    const char *mode;    /* CITYSCAPES: NULL means "gtFine" */
    const char *names;   /* YOLO: of the classes, a line each; labels from 0 on must be below their number
                            (NULL: no names, and any labels) */
};
STOKER_API int stoker_dataset_from_pairs(struct stoker_dataset **out, const struct stoker_pairs *pairs,
                                         const struct stoker_dataset_options *opt,
                                         struct stoker_error *err);

/* A source implemented by the caller: see [Own sources]. */
struct stoker_callbacks {
    size_t size;
    uint64_t count; /* of samples */
    int (*read)(void *cookie, uint64_t sample, void *buffer, size_t capacity, size_t *size,
                struct stoker_error *err);           /* called by several threads at the same time */
    int64_t (*label)(void *cookie, uint64_t sample); /* by one thread at a time; NULL: all 0 */
    void (*close)(void *cookie);                     /* once, at the end; may be NULL */
};
STOKER_API int stoker_dataset_from_callbacks(struct stoker_dataset **out,
                                             const struct stoker_callbacks *callbacks, void *cookie,
                                             struct stoker_error *err);

/* Datasets made of others, which they keep alive: the parts may be closed at once. All parts must have
 * the same fields.
 * All samples of the first part, then those of the second, and so on: */
STOKER_API int stoker_dataset_concat(struct stoker_dataset **out, struct stoker_dataset *const *parts,
                                     uint32_t count, struct stoker_error *err);
/* Selected samples, in any order, with repetitions allowed; the indices are copied: */
STOKER_API int stoker_dataset_subset(struct stoker_dataset **out, struct stoker_dataset *data,
                                     const uint64_t *indices, uint64_t count, struct stoker_error *err);
/* All samples, with their first image as a field of bytes, which loaders do not decode.
 * STOKER_EUNSUPPORTED if it is not encoded: */
STOKER_API int stoker_dataset_encoded(struct stoker_dataset **out, struct stoker_dataset *data,
                                      struct stoker_error *err);
/* Images of one dataset with the masks of another, both without fields, in the same order: */
STOKER_API int stoker_dataset_paired(struct stoker_dataset **out, struct stoker_dataset *images,
                                     struct stoker_dataset *masks, struct stoker_error *err);
/* A mixture in proportion to weights: see [Mixtures]. */
STOKER_API int stoker_dataset_mix(struct stoker_dataset **out, struct stoker_dataset *const *parts,
                                  const double *weights, uint32_t count, uint64_t samples, uint64_t seed,
                                  struct stoker_error *err);

/* The kind, as in "kind:path"; NULL for a dataset that was not opened by a path. */
STOKER_API const char *stoker_dataset_kind(const struct stoker_dataset *data);
struct stoker_field {
    size_t size;
    const char *name; /* valid as long as the dataset, as is `type` */
    const char *type; /* image, audio, int, float, array, text, json or bytes */
};
/* The fields of a sample, in order; false past the last. */
STOKER_API bool stoker_dataset_field_at(const struct stoker_dataset *data, uint32_t index,
                                        struct stoker_field *out);
/* What is slower than it could be, and why (fields of an HDF5 file that only its library can read, a
 * full cache); NULL: nothing. Valid as long as the dataset. Any thread. */
STOKER_API const char *stoker_dataset_note(const struct stoker_dataset *data);
STOKER_API uint64_t stoker_dataset_count(const struct stoker_dataset *data);
STOKER_API int64_t stoker_dataset_label(const struct stoker_dataset *data, uint64_t sample);
/* The sample's name in messages: its path, or "sample 17". Writes at most `size` bytes, terminated, and
 * returns the length of the whole name. */
STOKER_API size_t stoker_dataset_name(const struct stoker_dataset *data, uint64_t sample, char *buffer,
                                      size_t size);
STOKER_API uint32_t stoker_dataset_class_count(const struct stoker_dataset *data);
STOKER_API const char *stoker_dataset_class_name(const struct stoker_dataset *data, uint32_t index);
/* The label of samples, or of objects, of a class below the count: its index, or COCO's category id. */
STOKER_API int64_t stoker_dataset_class_label(const struct stoker_dataset *data, uint32_t index);
STOKER_API void stoker_dataset_close(struct stoker_dataset *data);

/* ---- pipelines --------------------------------------------------------------------------------- */

struct stoker_pipeline; /* immutable */

/* What happens to each image, as a list of ops separated by ';':
 *
 *     resize(size=256); center_crop(size=224); to_tensor; normalize(mean=[0.5,0.5,0.5],std=[1,1,1])
 *
 * See [Pipelines]. */
STOKER_API int stoker_pipeline_open(struct stoker_pipeline **out, const char *text,
                                    struct stoker_error *err);
STOKER_API void stoker_pipeline_close(struct stoker_pipeline *pipe);

struct stoker_op {
    size_t size;
    const char *name;
    const char *help; /* one line */
};
/* The ops of this build; false past the last. Any thread. */
STOKER_API bool stoker_op_at(uint32_t index, struct stoker_op *out);

/* ---- order ------------------------------------------------------------------------------------- */

enum stoker_order_kind {
    STOKER_ORDER_SEQUENTIAL, /* 0, 1, 2, ... */
    STOKER_ORDER_SHUFFLE,    /* a keyed bijection: O(1) memory and start-up time for any count */
    STOKER_ORDER_TORCH,      /* torch.randperm, its generator seeded with seed (+ epoch): O(N) memory */
    STOKER_ORDER_WEIGHTED,   /* draws with replacement, in proportion to weights */
    STOKER_ORDER_GIVEN,      /* the indices passed to stoker_loader_start or stoker_order_start */
};

struct stoker_order_options {
    size_t size;                 /* default     meaning */
    enum stoker_order_kind kind; /* SEQUENTIAL */
    uint64_t seed;               /* 0 */
    uint32_t rank, world;        /* 0, 0        this process; how many there are (0: one) */
    bool drop_uneven;            /* false       DistributedSampler's drop_last; false: pad to equal
                                                counts */
    bool epoch_fixed;            /* false       TORCH: seed with seed alone; false: with seed + epoch */
    const double *weights;       /* NULL        WEIGHTED: one per sample; copied */
    uint64_t draws;              /* 0           WEIGHTED, TORCH: samples per epoch, like RandomSampler's
                                                num_samples; 0: as many as the dataset has */
};
/* Writes the defaults to the `size` bytes at `opt`. C and C++ programs call stoker_order_defaults. */
STOKER_API void stoker_order_options_init(struct stoker_order_options *opt, size_t size);
static inline struct stoker_order_options stoker_order_defaults(void)
{
    struct stoker_order_options opt;
    stoker_order_options_init(&opt, sizeof opt);
    return opt;
}

struct stoker_order;
/* An order without a loader: which sample is at which position. `count` is the number of samples in the
 * dataset. */
STOKER_API int stoker_order_open(struct stoker_order **out, uint64_t count,
                                 const struct stoker_order_options *opt, struct stoker_error *err);
/* Begins an epoch. `indices` (copied) is for ORDER_GIVEN and NULL otherwise. */
STOKER_API int stoker_order_start(struct stoker_order *order, uint64_t epoch, const uint64_t *indices,
                                  uint64_t index_count, struct stoker_error *err);
STOKER_API uint64_t stoker_order_count(const struct stoker_order *order); /* of this rank and epoch */
/* UINT64_MAX past the last position. Any thread, while none starts an epoch. */
STOKER_API uint64_t stoker_order_at(const struct stoker_order *order, uint64_t position);
STOKER_API void stoker_order_close(struct stoker_order *order);

/* ---- loader options ---------------------------------------------------------------------------- */

enum stoker_dtype {
    STOKER_DTYPE_U8, STOKER_DTYPE_F32, STOKER_DTYPE_F16, STOKER_DTYPE_BF16, /* for images */
    STOKER_DTYPE_I64, STOKER_DTYPE_I8, STOKER_DTYPE_I16, STOKER_DTYPE_I32, STOKER_DTYPE_U16,
    STOKER_DTYPE_U32, STOKER_DTYPE_U64, STOKER_DTYPE_F64, STOKER_DTYPE_BOOL,
};
enum stoker_layout {
    STOKER_LAYOUT_NCHW,
    STOKER_LAYOUT_NHWC, /* torch's channels_last: the shape is still N, C, H, W */
};
enum stoker_ragged {
    STOKER_RAGGED_LIST, /* images of different shapes are returned as a list */
    STOKER_RAGGED_PAD,  /* images are padded with zeros, right and below, to the largest of the batch */
};
enum stoker_fidelity {
    STOKER_FIDELITY_EXACT,
    STOKER_FIDELITY_FAST, /* without a device, JPEGs at least twice too large are decoded at a half, a
                             quarter or an eighth of their size; with one it means STOKER_JPEG_HARDWARE_ALL,
                             and the pixels are exact */
};
/* What happens to a bad sample: see [Bad samples], also for what is not one. */
enum stoker_on_error {
    STOKER_ON_ERROR_RAISE,   /* next returns the sample's error when its batch is due */
    STOKER_ON_ERROR_SKIP,    /* replace it by another sample of the dataset, chosen by (seed, epoch,
                                sample): batch sizes and counts do not change */
    STOKER_ON_ERROR_REPLACE, /* fill its row with zeros and the label -100, which torch's losses ignore
                                by default */
};
/* Where images are resized, colour-adjusted and converted after decoding. */
enum stoker_place {
    STOKER_PLACE_AUTO,   /* on the loader's device if it can, otherwise by the workers */
    STOKER_PLACE_CPU,    /* by the workers */
    STOKER_PLACE_DEVICE, /* on the device; the loader is not opened if that is impossible */
};
/* Which JPEGs the hardware decoders of the device decode: see [JPEG hardware]. */
enum stoker_jpeg_hardware {
    STOKER_JPEG_HARDWARE_KNOWN, /* those that a worker has decoded before, without any irregularity */
    STOKER_JPEG_HARDWARE_ALL,   /* every baseline JPEG; damage in one goes unnoticed */
    STOKER_JPEG_HARDWARE_OFF,   /* none */
};

struct stoker_loader_options {
    size_t size;                   /* default     meaning */
    /* batches */
    uint32_t batch_size;           /* 1           samples per batch */
    bool drop_last;                /* false       drop the last batch if it is not full */
    enum stoker_dtype dtype;       /* F32         of the images, if dtype_given is true */
    bool dtype_given;              /* false       false: the type that the pipeline ends in */
    enum stoker_layout layout;     /* NCHW        of the images */
    enum stoker_ragged ragged;     /* LIST        how images of different shapes are returned */
    /* order: see struct stoker_order_options */
    enum stoker_order_kind order;  /* SEQUENTIAL */
    uint64_t seed;                 /* 0           of the order and of random ops */
    uint32_t rank, world;          /* 0, 0        this process, the number of processes */
    bool drop_uneven;              /* false       drop samples instead of padding to equal counts */
    bool epoch_fixed;              /* false       TORCH: the same order in every epoch */
    const double *weights;         /* NULL        WEIGHTED: one per sample */
    uint64_t draws;                /* 0           WEIGHTED, TORCH: samples per epoch */
    /* images */
    enum stoker_fidelity fidelity; /* EXACT       FAST may decode JPEGs at a smaller size */
    uint32_t pillow;               /* 13          Pillow's major version, for its resize: 13 or 12 */
    bool exif_rotate;              /* false       apply the EXIF orientation */
    uint64_t pixel_limit;          /* 178956970   refuse larger images, as Pillow does */
    const char *masks;             /* NULL        fields that are masks of the image, "mask": [Fields] */
    const char *boxes;             /* NULL        boxes in it, "boxes+labels": [Fields] */
    /* errors: see [Bad samples] */
    enum stoker_on_error on_error; /* RAISE       what happens to a bad sample */
    uint32_t timeout_ms;           /* 0           how long next may wait; 0: no limit */
    uint64_t error_limit;          /* UINT64_MAX  bad samples per epoch above which next fails */
    /* threads: see [Threads] */
    int32_t workers;               /* -1 (auto)   threads that decode; 0: the calling thread does */
    uint32_t prefetch;             /* 0 (auto)    batches kept ready ahead */
    uint32_t read_ahead;           /* 0 (auto)    samples read ahead of decoding */
    /* memory: see [Memory] */
    uint64_t max_memory;           /* 0 (auto)    bytes that the loader may hold */
    bool pin_memory;               /* false       batches in pinned memory, without a device */
    uint64_t pinned_limit;         /* 0           limit for pinned memory; 0: max_memory */
    /* device: see [Device] and [JPEG hardware] */
    const char *device;            /* NULL        "cuda", "cuda:1"; NULL or "cpu": host memory */
    enum stoker_place augment_on;  /* AUTO        where images are resized and converted */
    enum stoker_jpeg_hardware jpeg_hardware; /* KNOWN  which JPEGs the device's hardware decodes */
};
/* Writes the defaults to the `size` bytes at `opt`. C and C++ programs call stoker_loader_defaults. */
STOKER_API void stoker_loader_options_init(struct stoker_loader_options *opt, size_t size);
static inline struct stoker_loader_options stoker_loader_defaults(void)
{
    struct stoker_loader_options opt;
    stoker_loader_options_init(&opt, sizeof opt);
    return opt;
}

/* ---- batches ----------------------------------------------------------------------------------- */

enum { STOKER_TENSOR_DIMS = 8 }; /* never changes */
/* Frozen. */
struct stoker_tensor {
    void *data;
    enum stoker_dtype dtype;
    int32_t ndim;
    int64_t shape[STOKER_TENSOR_DIMS];
    int64_t stride[STOKER_TENSOR_DIMS]; /* in elements */
};

/* A field of the samples other than their image: see [Fields]. */
enum stoker_column_kind {
    STOKER_COLUMN_INT,   /* int64 [count] */
    STOKER_COLUMN_FLOAT, /* float64 [count] */
    STOKER_COLUMN_ARRAY, /* [count, ...], or all values in one row with `offsets` */
    STOKER_COLUMN_TEXT, STOKER_COLUMN_JSON, STOKER_COLUMN_BYTES, /* uint8 with `offsets` */
    STOKER_COLUMN_AUDIO, /* encoded, like BYTES */
};
enum { STOKER_COLUMN_DIMS = 16 }; /* never changes */
struct stoker_column {
    size_t size;                       /* set by the library */
    const char *name;                  /* of the field */
    enum stoker_column_kind kind;
    enum stoker_dtype dtype;
    const void *data;                  /* in host memory, in C order */
    int32_t ndim;
    int64_t shape[STOKER_COLUMN_DIMS];
    const uint64_t *offsets;           /* if not NULL, count + 1: sample i has the elements offsets[i] to
                                          offsets[i + 1] of `data` */
    const int64_t (*shapes)[STOKER_COLUMN_DIMS - 1]; /* arrays with offsets: each sample's, then -1 */
};

struct stoker_batch {
    size_t size;                       /* set by the library */
    uint64_t epoch, index;             /* `index` is the position of the batch in the epoch */
    uint32_t count;                    /* samples in it */
    bool ragged;                       /* images.data is NULL, and `items` has the images */
    struct stoker_tensor images;       /* [count, C, H, W], with the op to_array [count, H, W, C]; sounds:
                                          [count, C, T] or [count, C, F, T], with zeros after the shorter
                                          ones; ndim 0 if the dataset has no images */
    const struct stoker_tensor *items; /* ragged: count tensors [C, H, W], or [H, W, C] */
    struct stoker_tensor lengths;      /* sounds of different lengths: int64 [count], their frames, in
                                          host memory; otherwise ndim 0 */
    struct stoker_tensor labels;       /* int64 [count]; for samples with fields, the first int field */
    const uint64_t *samples;           /* the indices of the samples, in host memory */
    uint32_t column_count;             /* of samples with fields: one per field but the image */
    const struct stoker_column *const *columns; /* an array of pointers, since columns may grow */
    int32_t device_type;               /* the memory of images and labels, as in DLPack: 1 CPU, 2 CUDA, 3
                                          pinned by CUDA */
    int32_t device_id;                 /* the device; 0 for the CPU */
};

/* Gives a batch's memory back. Any thread, at any time, even after the loader is closed. Work that is
 * already in a stream that joined the batch may still read it; later work may not. */
STOKER_API void stoker_batch_release(const struct stoker_batch *batch);

/* For batches on a device: see [Device]. `stream` is a CUstream; 0: the default stream.
 * Work put into `stream` after this call waits for the batch; the CPU does not: */
STOKER_API int stoker_batch_join(const struct stoker_batch *batch, uintptr_t stream,
                                 struct stoker_error *err);
/* The CPU waits for the batch: */
STOKER_API int stoker_batch_sync(const struct stoker_batch *batch, struct stoker_error *err);
/* Gives it back; what is already in `stream` may still read it: */
STOKER_API void stoker_batch_release_on(const struct stoker_batch *batch, uintptr_t stream);
/* The same for one of several streams, before it is given back: */
STOKER_API void stoker_batch_mark(const struct stoker_batch *batch, uintptr_t stream);

/* ---- loaders ----------------------------------------------------------------------------------- */

struct stoker_loader;

/* Plans the pipeline, checks the options, allocates memory for batches, and starts the threads. */
STOKER_API int stoker_loader_open(struct stoker_loader **out, struct stoker_dataset *data,
                                  struct stoker_pipeline *pipe,
                                  const struct stoker_loader_options *opt, struct stoker_error *err);

/* All are 0 or NULL by default. See [Order] for epochs in parts. */
struct stoker_epoch {
    size_t size;
    uint64_t epoch;              /* its number */
    const uint64_t *indices;     /* ORDER_GIVEN: the samples; copied */
    uint64_t index_count;
    const uint32_t *batch_sizes; /* of each batch, none above batch_size; copied; NULL: batch_size */
    uint64_t batch_count;
    /* if `indices` are only a part of the epoch */
    const uint8_t *repeated;     /* per index, 1 if the sample has appeared before in the epoch; copied;
                                    NULL: if it appears before in `indices` */
    uint64_t first_position;     /* samples of the epoch before this part */
    uint64_t first_batch;        /* batches of the epoch before this part */
};
/* Writes the defaults to the `size` bytes at `epoch`. C and C++ programs call stoker_epoch_defaults. */
STOKER_API void stoker_epoch_init(struct stoker_epoch *epoch, size_t size);
static inline struct stoker_epoch stoker_epoch_defaults(void)
{
    struct stoker_epoch epoch;
    stoker_epoch_init(&epoch, sizeof epoch);
    return epoch;
}
/* Begins an epoch and abandons the current one. NULL: epoch 0. */
STOKER_API int stoker_loader_start(struct stoker_loader *loader, const struct stoker_epoch *epoch,
                                   struct stoker_error *err);

/* Returns the next batch, in order; it belongs to the caller until it is released. STOKER_END after the
 * last. After a bad sample (ON_ERROR_RAISE) the next call continues with the following batch. */
STOKER_API int stoker_loader_next(struct stoker_loader *loader, const struct stoker_batch **out,
                                  struct stoker_error *err);
/* Makes a next that waits in another thread return STOKER_ECANCELED. Any thread. See [Waiting]. */
STOKER_API void stoker_loader_interrupt(struct stoker_loader *loader);
STOKER_API uint32_t stoker_loader_worker_count(const struct stoker_loader *loader);
/* Of this epoch and rank. */
STOKER_API uint64_t stoker_loader_batch_count(const struct stoker_loader *loader);
/* Stops the threads and frees the loader. See [Waiting] for what it waits for. */
STOKER_API void stoker_loader_close(struct stoker_loader *loader);

/* A sample that could not be read or decoded, before it counts as bad: see [Bad samples]. */
struct stoker_failed_sample {
    size_t size;
    uint64_t sample;
    const void *bytes; /* what was read; NULL: it could not be */
    size_t byte_count;
    const struct stoker_error *error;
};
/* Returns true with an encoded image in *image, in the sample's place; false: the sample is bad. */
typedef bool stoker_failure_callback(void *context, const struct stoker_failed_sample *failed,
                                     const void **image, size_t *image_size);
/* Sets that callback, before an epoch is started; NULL (default): none. */
STOKER_API void stoker_loader_on_failure(struct stoker_loader *loader, stoker_failure_callback *callback,
                                         void *context);

/* Sets a callback that may end a call of this thread that waits for a server, by returning true: see
 * [Waiting]. NULL (default): none. */
typedef bool stoker_wait_callback(void *context);
STOKER_API void stoker_thread_on_wait(stoker_wait_callback *callback, void *context);

/* ---- random numbers for whole batches ----------------------------------------------------------- */

/* What an op that mixes the samples of a batch (MixUp, CutMix) draws for it: a function of the arguments
 * alone. `batch` is the position among the batches of all ranks, `op` the position in the list of such
 * ops (below 252), `alpha` is finite and above 0. Any thread. Frozen. */
struct stoker_mix {
    double lambda;       /* Beta(alpha, alpha) */
    double choice, x, y; /* uniform in [0, 1): to choose among several ops; the centre of a box */
};
STOKER_API struct stoker_mix stoker_mix_draw(uint64_t seed, uint64_t epoch, uint64_t batch, uint32_t op,
                                             double alpha);

/* ---- resume ------------------------------------------------------------------------------------ */

/* A position in an epoch: the same on every rank after the same number of batches, and valid for any
 * number of threads and ranks afterwards. Frozen; the bytes carry a version. See [Resume]. */
struct stoker_state {
    uint8_t bytes[64];
};
STOKER_API int stoker_loader_save(const struct stoker_loader *loader, struct stoker_state *out,
                                  struct stoker_error *err);
/* Starts the epoch at the position that was saved. Pass the same contents of stoker_epoch (indices,
 * batch sizes) as then, or NULL; the epoch number is taken from the state. */
STOKER_API int stoker_loader_restore(struct stoker_loader *loader, const struct stoker_state *state,
                                     const struct stoker_epoch *epoch, struct stoker_error *err);

/* ---- statistics -------------------------------------------------------------------------------- */

enum stoker_stage {
    STOKER_STAGE_READ,    /* a worker waited for a sample's bytes */
    STOKER_STAGE_DECODE,  /* headers and pixels */
    STOKER_STAGE_AUGMENT, /* ops, including the final write */
    STOKER_STAGE_SLOT,    /* a worker waited for a free slot: the consumer is slower */
    STOKER_STAGE_COUNT    /* the stages of this header */
};
enum { STOKER_STAGE_MAX = 16 }; /* never changes: room for the stages that later versions add */
/* Texts are valid as long as the loader. NULL in a note: no problem. */
struct stoker_stats {
    size_t size;
    /* samples */
    uint64_t batches, samples;           /* delivered */
    uint64_t bytes;                      /* encoded, read */
    uint64_t bad;                        /* samples that failed */
    const char *source_note;             /* stoker_dataset_note of the dataset */
    /* time */
    uint64_t stage_ns[STOKER_STAGE_MAX]; /* by enum stoker_stage, summed over workers; the rest is 0 */
    uint64_t wait_ns;                    /* next waited for a batch */
    uint64_t memory_wait_ns;             /* workers waited for memory, summed over them */
    uint64_t first_batch_ns;             /* from start to the first batch of this epoch */
    /* memory, in bytes */
    uint64_t memory_allowed;             /* max_memory, or its automatic value */
    uint64_t memory_held, memory_peak;   /* of it, now and at most; held are these four: */
    uint64_t slot_bytes, scratch_bytes;  /* by batches and by workers */
    uint64_t read_bytes, data_bytes;     /* samples read ahead; kept by the dataset, or about files */
    uint64_t pinned_bytes;               /* of slot_bytes, and up to 118 MB more for JPEG hardware */
    const char *pinned_note;             /* why memory that should be pinned is pageable */
    uint32_t slots, slots_lent;          /* room for batches; of it, batches not yet released */
    /* reading ahead */
    const char *reader;                  /* "io_uring", "pread pool"; nothing does: "memory", "inline" */
    const char *reader_note;             /* why `reader` is not io_uring, if anything is read ahead */
    uint64_t reads_in_flight_max;        /* of the reads ahead; workers read data in memory themselves */
    /* threads, and their tuning: see [Threads] */
    uint32_t workers;
    uint32_t tuned_workers;              /* workers in use now; the rest of `workers` pause */
    uint32_t tuned_prefetch, tuned_read_ahead; /* limits now: batches prefetched, samples read ahead */
    uint32_t tuning_moves, tuning_reverted;    /* changes so far; those that undid one */
    const char *tuning_limit;            /* what limited the loader at the last look; a constant */
    char tuning_last[160];               /* the last change, in words; "": none */
    /* device: see [JPEG hardware] */
    enum stoker_place augment_on;        /* CPU or DEVICE: the outcome of AUTO */
    uint32_t jpeg_hardware_open;         /* threads that have opened the hardware; 0: there is none, or
                                            jpeg_hardware_note says why they are not used */
    uint64_t copied_bytes;               /* to the device */
    uint64_t raw_rows, resized_rows;     /* samples that the device resizes; those too large for its
                                            share of a slot, which a worker resized instead */
    uint64_t jpeg_hardware_rows;         /* samples that the device's JPEG hardware decoded */
    uint64_t jpeg_hardware_failures;     /* samples that it failed to decode and the CPU decoded */
    uint64_t jpeg_hardware_known;        /* samples whose files are known to decode; 0 unless the option
                                            is STOKER_JPEG_HARDWARE_KNOWN */
    const char *jpeg_hardware_note;      /* why JPEG hardware that should decode does not */
};
/* Since the loader was opened. Any thread. */
STOKER_API int stoker_loader_stats(const struct stoker_loader *loader, struct stoker_stats *out);

struct stoker_worker_stats {
    size_t size;
    uint64_t stage_ns[STOKER_STAGE_MAX];
    uint64_t samples;
};
/* The same for each worker; false past the last. Any thread. */
STOKER_API bool stoker_loader_worker_stats_at(const struct stoker_loader *loader, uint32_t worker,
                                              struct stoker_worker_stats *out);

struct stoker_decode_path {
    size_t size;
    const char *codec, *path; /* "JPEG"; "own decoder", or why libjpeg-turbo decoded the file */
    uint64_t files;
};
/* How files were decoded: by which codec, and by which path through it; one entry for each path that any
 * file took, false past the last. Any thread. */
STOKER_API bool stoker_loader_decode_path_at(const struct stoker_loader *loader, uint32_t k,
                                             struct stoker_decode_path *out);

struct stoker_bad_sample {
    size_t size;
    uint64_t sample, epoch;
    int code;
    char reason[1020]; /* names the file and the position in it */
};
/* The ledger of bad samples, each written down when its batch is due; false past the last. It keeps the
 * latest 1,024. Any thread. */
STOKER_API bool stoker_loader_bad_sample_at(const struct stoker_loader *loader, uint64_t k,
                                            struct stoker_bad_sample *out);

/* ---- single images and sounds ------------------------------------------------------------------- */

struct stoker_image_options {
    size_t size;                  /* default     meaning */
    uint32_t x, y, width, height; /* 0           the region; width 0: the whole image */
    bool exif_rotate;             /* false       apply the EXIF orientation */
    uint64_t pixel_limit;         /* 178956970   refuse larger images */
};
/* Writes the defaults to the `size` bytes at `opt`. C and C++ programs call stoker_image_defaults. */
STOKER_API void stoker_image_options_init(struct stoker_image_options *opt, size_t size);
static inline struct stoker_image_options stoker_image_defaults(void)
{
    struct stoker_image_options opt;
    stoker_image_options_init(&opt, sizeof opt);
    return opt;
}

/* Frozen. */
struct stoker_image {
    uint32_t width, height;
    uint8_t *pixels; /* RGB, width * 3 bytes per row */
};
/* Decodes to RGB bytes, equal to PIL.Image.open(...).convert("RGB"). Any thread. `name`, which may be
 * NULL, is used in messages. */
STOKER_API int stoker_image_decode(struct stoker_image *out, const void *data, size_t size,
                                   const char *name, const struct stoker_image_options *opt,
                                   struct stoker_error *err);
STOKER_API void stoker_image_close(struct stoker_image *image); /* frees its pixels */

/* Runs single images through a pipeline, without a loader: the result is what a row of a batch would
 * contain. Any number of threads may use one handle at the same time; working memory is kept for the
 * next image. */
struct stoker_single;

struct stoker_single_options {
    size_t size;               /* default     meaning */
    enum stoker_layout layout; /* NCHW        of the result */
    uint32_t pillow;           /* 13          Pillow's major version, for its resize: 13 or 12 */
    bool fused;                /* false       round contrast and saturation as Pillow's aarch64 build
                                              does, which differs from others by a level at times */
    uint64_t pixel_limit;      /* 178956970   refuse larger images; 0: none */
};
/* Writes the defaults to the `size` bytes at `opt`. C and C++ programs call stoker_single_defaults. */
STOKER_API void stoker_single_options_init(struct stoker_single_options *opt, size_t size);
static inline struct stoker_single_options stoker_single_defaults(void)
{
    struct stoker_single_options opt;
    stoker_single_options_init(&opt, sizeof opt);
    return opt;
}
STOKER_API int stoker_single_open(struct stoker_single **out, struct stoker_pipeline *pipe,
                                  const struct stoker_single_options *opt, struct stoker_error *err);
STOKER_API void stoker_single_close(struct stoker_single *single);

/* A change of one image with given numbers. Sizes and boxes are those of the image as the edits before
 * it left it. Frozen. */
enum stoker_edit_kind {
    STOKER_EDIT_CROP,       /* to the box x, y, width, height */
    STOKER_EDIT_RESIZE,     /* to width x height, as Pillow does */
    STOKER_EDIT_MIRROR,     /* left to right */
    STOKER_EDIT_FLIP,       /* upside down */
    STOKER_EDIT_BRIGHTNESS, /* by a factor of at least 0; 1 changes nothing */
    STOKER_EDIT_CONTRAST,   /* likewise */
    STOKER_EDIT_SATURATION, /* likewise */
    STOKER_EDIT_HUE,        /* by -0.5 to 0.5 of the colour circle */
    STOKER_EDIT_GREY,       /* to three equal channels */
    STOKER_EDIT_AFFINE,     /* to width x height pixels, each from the place that `map` gives */
    STOKER_EDIT_PERSPECTIVE,/* likewise */
    STOKER_EDIT_SHARPNESS,  /* by a factor; 1 changes nothing, 0 softens */
    STOKER_EDIT_SOLARIZE,   /* values that are not less than `factor` are inverted; 0: all */
    STOKER_EDIT_POSTERIZE,  /* to the highest `factor` bits of each value, 1 to 8 */
    STOKER_EDIT_AUTOCONTRAST, /* each channel to the range 0 to 255 */
    STOKER_EDIT_EQUALIZE,   /* each channel to an even histogram */
    STOKER_EDIT_PERMUTE,    /* channel k becomes channel x, y and width, for k = 0, 1 and 2 */
    STOKER_EDIT_BOX_BLUR,   /* as Pillow's BoxBlur: radii map[0] across and map[1] down, 0 to 65535 */
    STOKER_EDIT_GAUSSIAN_BLUR, /* as Pillow's GaussianBlur, with these standard deviations, 0 to 65535 */
    STOKER_EDIT_POINT,      /* a value v of channel c, 0 to 2, becomes table[256 c + v] */
};
enum stoker_filter {
    STOKER_FILTER_NEAREST,
    STOKER_FILTER_BOX,
    STOKER_FILTER_BILINEAR,
    STOKER_FILTER_HAMMING,
    STOKER_FILTER_BICUBIC,
    STOKER_FILTER_LANCZOS,
};
struct stoker_edit {
    enum stoker_edit_kind kind;
    uint32_t x, y, width, height;
    enum stoker_filter filter; /* of a map: nearest, bilinear or bicubic */
    double factor;
    /* As Pillow's Image.transform takes them: (x, y) of the result comes from ((a x + b y + c) / q,
     * (d x + e y + f) / q), q being g x + h y + 1, or 1 if the map is affine. */
    double map[8];   /* a, b, ..., h; six of an affine map */
    uint8_t fill[4]; /* red, green and blue of what comes from outside */
    const uint8_t *table; /* 768 bytes */
};

struct stoker_picture {
    size_t size;
    const void *data;                 /* `bytes` bytes: pixels, or if `channels` is 0 an encoded image */
    size_t bytes;
    uint32_t width, height, channels; /* of pixels: rows of 1 to 4 interleaved bytes without gaps. Grey
                                         is tripled; a second or fourth channel is dropped */
    uint32_t x, y, crop_width, crop_height; /* the part that counts; crop_width 0: all of it */
    const char *name;                 /* used in messages; may be NULL */
    const struct stoker_edit *edits;  /* changes, made in this order before the pipeline's steps */
    size_t edit_count;
};
/* Random draws are a function of (seed, epoch, sample), as in a loader. *out is [C, H, W], or [H, W, C]
 * with NHWC or to_array, without gaps. Its data belongs to the caller, who frees it with free(). Any thread. */
STOKER_API int stoker_single_run(struct stoker_single *single, const struct stoker_picture *picture,
                                 uint64_t seed, uint64_t epoch, uint64_t sample,
                                 struct stoker_tensor *out, struct stoker_error *err);
/* The same into memory of the caller's, which stays the caller's: out->data is `memory`. It is an error if
 * the result has not exactly `bytes` bytes. After an error the memory's contents are undefined. */
STOKER_API int stoker_single_run_into(struct stoker_single *single, const struct stoker_picture *picture,
                                      uint64_t seed, uint64_t epoch, uint64_t sample, void *memory,
                                      size_t bytes, struct stoker_tensor *out, struct stoker_error *err);

/* Runs one operation on an array of pixels with OpenCV's arithmetic: see [Arrays]. `in` and `out` are
 * uint8 [H, W, C] without gaps inside of a row, 1 to 4 channels, which do not overlap. `tables` are
 * arrays without gaps that the operation needs beside its numbers. Any thread. */
STOKER_API int stoker_cv_run(const char *op, const double *numbers, uint32_t number_count,
                             const struct stoker_tensor *tables, uint32_t table_count,
                             const struct stoker_tensor *in, const struct stoker_tensor *out,
                             struct stoker_error *err);

/* The kernels that stoker_cv_run uses on this CPU: "c", "neon", "sse2", "avx2" or "avx512". It has
 * vector instructions of its own for the last two. Any thread. */
STOKER_API const char *stoker_cv_level(void);

/* Whether this is a JPEG (baseline, 8 bits, grey or three components) without any irregularity from its
 * first byte to its end marker, as far as that can be checked without decoding. Decoding such a file
 * does not fail. Any thread. */
STOKER_API bool stoker_jpeg_is_regular(const void *data, size_t size, uint32_t *width, uint32_t *height,
                                       uint32_t *components);

struct stoker_sound_options {
    size_t size;            /* default     meaning */
    uint64_t first, frames; /* 0, 0        the part; frames 0: everything from `first` on */
    uint64_t pixel_limit;   /* 178956970   refuse parts with more values than this */
};
/* Writes the defaults to the `size` bytes at `opt`. C and C++ programs call stoker_sound_defaults. */
STOKER_API void stoker_sound_options_init(struct stoker_sound_options *opt, size_t size);
static inline struct stoker_sound_options stoker_sound_defaults(void)
{
    struct stoker_sound_options opt;
    stoker_sound_options_init(&opt, sizeof opt);
    return opt;
}

/* Frozen. */
struct stoker_sound {
    uint32_t rate, channels; /* frames per second */
    uint64_t frames;         /* values per channel */
    uint64_t length;         /* frames of the whole sound */
    float *samples;          /* the first channel, then the next; full scale is 1 */
};
/* Decodes a sound (WAV, FLAC, Ogg/Vorbis, Opus, MP3), and only the part that is asked for. Any thread.
 * `name`, which may be NULL, is used in messages. */
STOKER_API int stoker_sound_decode(struct stoker_sound *out, const void *data, size_t size,
                                   const char *name, const struct stoker_sound_options *opt,
                                   struct stoker_error *err);
STOKER_API void stoker_sound_close(struct stoker_sound *sound); /* frees its samples */

/* ---- this build and this machine ---------------------------------------------------------------- */

struct stoker_feature {
    size_t size;
    bool present;
    const char *kind;   /* "codec", "audio", "library", "kernels", "reader", "gpu" */
    const char *name;
    const char *detail; /* the version, or why it is missing */
};
/* What this build can do on this machine; false past the last. Any thread. */
STOKER_API bool stoker_feature_at(uint32_t index, struct stoker_feature *out);
/* The CPUs that this process may use, by affinity and cgroup quota; at least 1. Any thread. */
STOKER_API uint32_t stoker_cpu_count(void);

/* ---- GPU utilisation ---------------------------------------------------------------------------- */

/* Values that the GPU or its driver does not report are negative; shares are from 0 to 1. */
struct stoker_gpu_sample {
    size_t size;
    double busy;                     /* the share of the time since the last sample in which any kernel
                                        ran: one thread of one kernel makes it 1 */
    /* over an interval of `seconds`, at least 0.1, that ended with this sample or, if it came too soon,
     * with the one before; Hopper and later */
    double sm_active, sm_occupancy;  /* active multiprocessors; their warps in use */
    double tensor_active, dram_active;
    double jpeg_hardware;            /* JPEG decoders in use, on average */
    double pcie_in, pcie_out;        /* bytes per second to and from the GPU */
    double seconds;
    /* now */
    double watts;
    uint64_t memory_used, memory_total;
    double clock;                    /* of the multiprocessors, relative to the highest */
    double limited;                  /* 1 while power or temperature limits that clock, otherwise 0 */
    double link_generation, link_width; /* of PCIe; an idle GPU may lower them */
    double link_generation_most, link_width_most;
    double node;                     /* the NUMA node that it is attached to */
    char name[96], driver[80];       /* "" if unknown */
};
struct stoker_gpu_watch;
/* Watches one GPU through the driver's management library, without a CUDA context. `which`: a PCI
 * address ("0000:17:00.0"), an identifier ("GPU-..."), or an index in the driver's order ("1"), which is
 * not CUDA's; NULL: "0". STOKER_EUNSUPPORTED if there is no driver or no such GPU. */
STOKER_API int stoker_gpu_watch_open(struct stoker_gpu_watch **out, const char *which,
                                     struct stoker_error *err);
STOKER_API int stoker_gpu_watch_sample(struct stoker_gpu_watch *watch, struct stoker_gpu_sample *out,
                                       struct stoker_error *err);
STOKER_API void stoker_gpu_watch_close(struct stoker_gpu_watch *watch);

#ifdef __cplusplus
}
#endif
#endif

/* ---- manual ------------------------------------------------------------------------------------ */

/* [Calls]
 *
 *   - A function that can fail returns STOKER_OK (0), STOKER_END (1) or a negative status. With a
 *     negative status it also writes a sentence for people to *err. `err` belongs to the caller and may
 *     be NULL.
 *   - Options may be NULL: then the defaults are used.
 *   - Handles may be passed between threads. Unless a function says "Any thread", only one thread at a
 *     time may use a handle. Different handles are independent.
 *   - Handles are reference-counted inside: a loader keeps its dataset and its pipeline alive, and a
 *     batch keeps its memory alive, so they may be closed in any order.
 *   - After fork() the child may use datasets and pipelines, and may close everything it inherited. A
 *     loader belongs to the process that opened it: in the child, stoker_loader_next returns
 *     STOKER_EFORK.
 */

/* [Names]
 *
 *   - A function is named stoker_OBJECT_VERB. *_close frees what *_open, *_from_* or *_decode made, and
 *     accepts NULL. A batch is lent rather than opened: stoker_batch_release gives it back.
 *   - *_count returns a number of entries. *_at writes one entry of a list, by its index, and returns
 *     false past the last.
 *   - A constant is named after its enum (STOKER_DTYPE_U8); only statuses are shorter (STOKER_EIO).
 */

/* [Versions]
 *
 *   - A structure whose first member is `size` may grow: later versions add members at its end. Whoever
 *     provides the memory sets `size`: the caller, except in batches and columns, where the library
 *     does. Fill options with their *_defaults() function, and set the size of other structures
 *     yourself: struct stoker_stats stats = {.size = sizeof stats};
 *   - A program may therefore be older or newer than the library. A newer library uses the default for a
 *     member that the program does not know. An older library sets such members to 0 in what it fills
 *     in, and refuses with STOKER_EUNSUPPORTED a structure in which one is not 0. STOKER_HAS tells
 *     whether a batch or a column has a member.
 *   - All other structures are frozen: stoker_error, stoker_item, stoker_tensor, stoker_state,
 *     stoker_mix, stoker_image, stoker_edit and stoker_sound never change. Nor does the value of a
 *     constant. Enumerations may get new constants: treat a negative status that you do not know as a
 *     failure.
 *   - Exported symbols carry the version that introduced them (STOKER_0.1), so that the dynamic linker
 *     refuses a library that lacks a function.
 */

/* [Process]
 *
 *   - The library never exits, aborts or prints. It leaves signal handlers, the locale, the environment
 *     and the working directory alone. Its threads block all signals but those of faults (SIGSEGV and
 *     the like).
 *   - It keeps no settings outside of handles, except for the callback that a thread sets by
 *     stoker_thread_on_wait.
 *   - What it keeps for the life of the process holds no settings either: the driver's entry points and
 *     the description of the GPUs (from the first use of a GPU, of pinned memory or of
 *     stoker_feature_at), two locks and a fork handler (pthread_atfork) that guards them (from the first
 *     HDF5 or LMDB file, and in a forked child from its first call of a `label` callback), the list of
 *     open LMDB databases, and what the libraries that it calls keep themselves (CUDA, HDF5; libcurl
 *     while a dataset is open by URL). HDF5's error printing is off during a call and then restored.
 *   - An open loader shows its counters to other processes of the same user in an anonymous file in
 *     memory ("stoker-loader" among /proc/PID/fd), which `stoker top` reads.
 *   - It reads these environment variables and writes none: STOKER_CPU (the best instructions to use: c,
 *     neon, sse2, avx2 or avx512), STOKER_READER (auto, uring, pool or inline), STOKER_JPEG (libjpeg:
 *     not the built-in decoder), LOCAL_WORLD_SIZE (processes that share this machine's CPUs),
 *     CUDA_VISIBLE_DEVICES (for the message that no GPU was found), TMPDIR (for copies of HDF5 and LMDB
 *     files opened by URL without a cache_dir), SSL_CERT_FILE, and for s3:// HOME, AWS_PROFILE,
 *     AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
 *     AWS_SESSION_TOKEN, AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL.
 *     libcurl reads the proxy variables, and the CUDA driver its own.
 */

/* [Kinds of data]
 *
 * stoker_dataset_open opens "DIR" or "folder:DIR" (one subfolder per class, like torchvision's
 * ImageFolder) or "flat:DIR" (all images below DIR in sorted order, label 0). Other datasets are opened
 * by their path if its name or first bytes tell the kind, or as "kind:path":
 *
 *   tar:       samples as the Python package webdataset groups them: members without a name before the
 *              first dot ("...", "..jpg") or without a dot belong to no sample. Fields are suffixes
 *              ("jpg;jpeg;png,cls", "__key__" for the name), decoded according to the last part of the
 *              suffix unless "=type" says otherwise.
 *   tfrecord:  records of tf.train.Example or SequenceExample. Fields are features, "name=type": image,
 *              audio, text, json or bytes for one value of bytes; int or float for one number; int[2x?]
 *              or float[] for several; u8[32x32x3] for raw elements stored as bytes.
 *   hdf5:      row i of datasets, whose names are the fields ("images,train/labels"); by default all at
 *              the root. Variable-length uint8 sequences that begin like an image are images.
 *   lmdb:      entries in the order of their keys; `db` selects a named database. Fields: image, label,
 *              key, value. Values may be encoded images, Caffe's Datum (raw ones are returned as RGB),
 *              or an image and a number in MessagePack; keys may be image-N with the texts label-N.
 *              __keys__, __len__, num-samples and length are not samples unless their values are images.
 *   npy:, npz: row i of arrays; the fields of an npz are the names of its arrays (default: all).
 *   zip:       images whose classes are their folders. Fields: image, label, name.
 *   csv:, jsonl: files listed in a table whose first line names its columns, or in one JSON object per
 *              line. Fields are columns; the files are in the first one, or in the first with "=image"
 *              or "=audio". A table may list URLs; if it was itself opened by URL, paths are relative to
 *              that URL. Damaged rows are bad samples, and so are rows with an empty cell or a word in a
 *              column of numbers. Words in a column of labels are class names, unless most of them are
 *              integers.
 *
 * In numeric arrays, uint8 rows of shape [H, W] and [H, W, C <= 4] are images, and single numbers are
 * int or float, unless "=type" says otherwise where it can. A number outside of int64 is a bad sample,
 * except with "=array".
 */

/* [Fields]
 *
 * `fields` of stoker_dataset_options names the fields of a sample, separated by commas, by the names
 * they have in this kind of dataset: "jpg,cls"; with a type where the data does not tell:
 * "image/encoded=image,image/class/label=int". NULL: the kind decides. A sample has up to 64 fields; an
 * array has up to 16 dimensions, that of the rows included.
 *
 * A batch has one column for each field but the image that goes through the pipeline. Arrays of one
 * shape are stacked. Text, JSON and bytes, and arrays of different shapes, are stored one after the
 * other. Further images are arrays too: encoded ones as RGB, uint8 [H, W, 3], without the ops of the
 * pipeline.
 *
 * Those that `masks` of stoker_loader_options names, separated by commas, are masks: a number for each
 * pixel of the image, which all ops that move its pixels move with the same random draws (resizes take
 * the nearest pixel, borders have the number mask_fill), and ops that change values leave alone. They
 * become uint8 [H, W]. A mask is a PNG with grey levels or a palette, whose indices count, another
 * file that is grey, or an array uint8 [H, W]. "mask=floored" is resized as torch resizes tensors: pixel
 * x comes from x * in / out, rounded down, in the place of Pillow's nearest. "mask=wide" has the numbers of
 * PNGs with 16 bits, too, and becomes int32 [H, W]. One of another size than the image, in colours, or with
 * numbers above 255 is a bad sample.
 *
 * `boxes` names fields of boxes, separated by commas, each followed by the fields that have a value for
 * each box: "boxes+labels+area". Boxes are arrays float32 [N, 4]: left, top, right and bottom, in
 * pixels of the image as it is read (upright, with exif_rotate). They are moved with it, by
 * torchvision's arithmetic, and what crops cut off is cut off them. The op sanitize_bounding_boxes
 * removes those that are then too small, with their values. "boxes=FORMAT+labels" says how they are
 * stored: xyxy, xywh (left, top, width, height) or cxcywh (centre, width, height), and after "relative_"
 * as fractions of the image's size: "boxes=relative_cxcywh". After "whole_" they are whole numbers, and a
 * resize leaves fractions out. They become xyxy in pixels, or what the op convert_bounding_box_format
 * says. Where a map turns boxes, each becomes the one around its four
 * corners. "joints=points" are key points, float32 [..., 2] or [..., 3]: x, y and visibility. They may
 * also belong to boxes: "boxes+labels+joints=points".
 */

/* [Boxes]
 *
 * Images in the layouts STOKER_PAIRS_COCO and STOKER_PAIRS_VOC_BOXES have, beside the image, arrays with
 * a row for each object, in the order of the annotations; no rows where there are no objects:
 *
 *   - boxes, float32 [n, 4]: left, top, right and bottom in pixels of the stored image. Pascal VOC
 *     counts from 1, and its boxes are as written.
 *   - labels, int64 [n]: category ids, or with `contiguous` their places in ascending order; for VOC
 *     the places of the classes, from 1. The dataset's classes are the categories in that order (see
 *     stoker_dataset_class_label), and for VOC the background and the 20 classes.
 *   - COCO: area, float32 [n]; iscrowd, int64 [n]; image_id, an int, which is also the label. Images are
 *     in ascending order of their ids. With `keypoints` also these, float32 [n, k, 3]: x, y and
 *     visibility, zeros for objects that have none; name them to a loader as "keypoints=points".
 *   - COCO and YOLO, with STOKER_SHAPES_OBJECTS: masks, uint8 [n, h, w], 1 for pixels of the object, as
 *     pycocotools draws its polygons or run lengths; to be named to a loader after the boxes:
 *     "boxes+labels+masks". What ops add to an image belongs to no object.
 *   - COCO and YOLO, with STOKER_SHAPES_CLASSES: mask, uint8 [h, w], with the label of the object at each
 *     pixel (with `contiguous`, and for YOLO, one more than that) and 0 elsewhere; to be named to a loader in `masks`. Crowds
 *     are below all other objects, of which the later ones in the file cover the earlier ones.
 *   - VOC: difficult, int64 [n].
 *
 * STOKER_PAIRS_YOLO has boxes and labels: int64 [n], and float32 [n, 4] as in the files, centre, width and
 * height as fractions of the image's. Name them to a loader as "boxes=relative_cxcywh+labels", which
 * makes them corners in pixels. A line is "class x y width height", or "class x y x y x y ...", the
 * corners of a polygon, whose box counts. The file of images/train/1.jpg is labels/train/1.txt, where the
 * last folder named images counts; without one it is beside the image. An image without a file has no
 * objects. In a list of images, paths are relative to the folder of the list. Objects of which a line has
 * only the box have masks without pixels. With `points`, a line is "class x y width height" and as many
 * key points, "x y" or "x y visibility", which become float32 [n, k, 3] (visibility 2 where it is not
 * written); name them to a loader as "keypoints=relative_points". There are no masks then.
 */

/* [Files and URLs]
 *
 * Except for folder and flat, the path may be a list ("a.h5::b.h5"), contain braces ("a-{000..127}.tar")
 * or be a pattern ("*.tar"): several files of one kind, one after the other, with the same fields and
 * classes. It may also be a folder: one that `stoker pack` wrote, with the classes of the packed data,
 * or one that contains archives of one kind and neither folders nor images, in the order of their names.
 * "kind:DIR" opens all archives of that kind in DIR.
 *
 * Each of these may be an http://, https:// or s3://BUCKET/KEY URL and is then read by ranges: tar,
 * tfrecord and zip sample by sample, the files of tables one by one; npy and npz are loaded into memory;
 * hdf5 and lmdb are copied to a file first.
 *
 *   - cache_dir keeps what is read by URL; several processes may share it.
 *   - remote_ms is the time limit of one request, retries included.
 *   - Connections to servers are opened as needed, up to `connections` and never more than a quarter of
 *     RLIMIT_NOFILE.
 *
 * An archive that is compressed as a whole (.tar.gz, .tar.zst) has no random access: it is unpacked into
 * memory if it is small enough, and refused otherwise. max_memory of stoker_dataset_options limits what
 * all such archives take together: by default a quarter of what this process may use.
 */

/* [Index]
 *
 * With an index_dir, the index of a dataset is kept there and reused while the data is unchanged.
 * Without one, folders are scanned each time, and the index of an archive is kept beside it
 * (PATH.stoker-index) if that can be written. What STOKER_JPEG_HARDWARE_KNOWN knows is kept in the same
 * place (*.stoker-known).
 *
 * `threads` scan the data: by default as many as there are CPUs that this process may use; for archives,
 * which are mostly waited for, at least 8 (16 by URL).
 */

/* [Own sources]
 *
 * The callbacks of stoker_dataset_from_callbacks: several reader threads call `read` at the same time.
 * It may block. It writes the sample's bytes to `buffer` and their number to *size; if `capacity` is too
 * small it writes only the required number to *size, and is called again. It returns a status:
 * STOKER_ETRANSIENT or STOKER_ETIMEOUT if retrying may help; STOKER_ENOMEM or STOKER_EINTERNAL to fail
 * the batch in any case; another negative status for a bad sample (see [Bad samples]). The library
 * cannot interrupt a `read`: stopping or closing a loader waits until it returns.
 */

/* [Mixtures]
 *
 * In a dataset made by stoker_dataset_mix, every run of samples contains the parts in proportion to
 * their weights. A part repeats a sample only after all of its samples have appeared, in an order that
 * depends on the seed. `samples` 0: as many as it takes until every sample of every part has appeared.
 */

/* [Pipelines]
 *
 * An op is a name, followed by name=value pairs in parentheses; a value is a number, a word (bilinear,
 * true) or a list [a, b]. random_apply(p=0.5){ ... } contains further ops. Names, defaults and semantics
 * are those of torchvision.transforms, in lower case with underscores; stoker_op_at lists them.
 */

/* [Order]
 *
 * A loader has the options of stoker_order_options under the same names, except that `kind` is called
 * `order`. With a world above 1 each rank has its own part of the samples, all of the same length: some
 * samples are repeated to make it so or, with drop_uneven, dropped, as by DistributedSampler.
 *
 * ORDER_GIVEN: a sample that appears again in an epoch is augmented differently each time, as a function
 * of its position. If the `indices` of stoker_epoch are only a part of the epoch, `repeated`,
 * `first_position` and `first_batch` say what came before.
 */

/* [Threads]
 *
 *   - workers -1: the CPUs that this process may use (affinity, cgroup quota) divided by
 *     LOCAL_WORLD_SIZE, or 0 for a dataset too small for threads to pay off. Workers that are not needed
 *     to keep batches ready pause during the run. An explicit number is never changed.
 *   - prefetch 0: starts at 2, and becomes more (up to 8, and to a quarter of max_memory) if that keeps
 *     the consumer from waiting; 2 with a device or pin_memory.
 *   - read_ahead 0: at least 64 (320 by URL), and up to four times that if it helps.
 *
 * The loader adjusts what is left to it in this way at run time, one setting at a time, and keeps a
 * change only if it helps. The bytes of batches do not depend on it.
 */

/* [Memory]
 *
 * max_memory is the number of bytes that the loader may hold: batches (up to half of it, whether ready,
 * in progress or lent out), samples read ahead, the workers' scratch memory, and what speeds up later
 * epochs (up to 1/32). 0: a quarter of what the cgroup allows or the machine has available, divided by
 * LOCAL_WORLD_SIZE, and at most a quarter of what the limits of the process (ulimit -v, -d) leave.
 *
 *   - If it is short, fewer workers decode at a time and fewer batches are kept ready; the batches are
 *     the same.
 *   - A sample that does not fit beside others is made alone, while they wait; one that does not fit
 *     alone is a bad sample (before it is read if its size says so), whatever the number of workers.
 *   - A batch of samples of different sizes that takes more than a quarter of it is an error whatever
 *     on_error is.
 *   - What is counted exceeds it only if the caller keeps more batches than prefetch + 3 when a sample
 *     needs all that is left, by those batches; and with batches of samples of different sizes, by rows
 *     that are being made.
 *   - Not counted are the threads' stacks, the codecs' tables, and the list of bad samples.
 *
 * pin_memory, without a device, puts batches into pinned memory, which a GPU can copy from by itself, if
 * it is available. pinned_limit limits it, here and for a device; pageable memory is used beyond it.
 */

/* [Bad samples]
 *
 * A sample that cannot be read or decoded is handled by on_error. A failure of the machine or the
 * network (STOKER_ETRANSIENT, STOKER_ETIMEOUT: no connection, a response with status 5xx or 429, EIO
 * from a disk, too many open files) is not a bad sample: it is retried for about two seconds, by URL
 * after the time limit of the request (remote_ms). If that does not help, next fails with
 * STOKER_ETRANSIENT whatever on_error is, once the batches before are delivered, and again each time
 * until an epoch is started or restored. In an epoch with more bad samples than error_limit, next fails
 * whatever on_error is.
 *
 * Before a sample that could not be read or decoded (EIO, ENOTFOUND, ECORRUPT, EUNSUPPORTED, or ELIMIT
 * by pixel_limit) counts as bad, the callback of stoker_loader_on_failure may give an image in its
 * place: an encoded one (such as a PPM file), which stays valid until the callback is called again or
 * next returns; pixel_limit does not apply to one given for ELIMIT. What it returns must depend on the
 * sample only. It is called by the thread in next, from within next, while workers wait for it; of the
 * loader's functions it may call stoker_loader_interrupt only. It is not called for sounds, nor for
 * samples with several fields.
 */

/* [Device]
 *
 * `device` says where batches are returned. With a device all images must have the same size; only the
 * speed and the location of the bytes differ.
 *
 * A batch on a device may still be in transit when next returns it. For a batch in host memory, join and
 * sync do nothing and return STOKER_OK.
 *
 *   - Work put into a stream after stoker_batch_join waits for the batch. The stream must live until the
 *     batch is released. stoker_batch_sync makes the CPU wait instead.
 *   - stoker_batch_release_on is like stoker_batch_release, but work that is already in `stream`, such
 *     as an unfinished copy, may still read the batch: its memory is not reused before that work is
 *     done.
 *   - stoker_batch_mark is for a batch that is used in several streams and released later: work that is
 *     already in `stream` may still read it then. Call it when that stream needs the batch no more;
 *     afterwards, the stream may be destroyed.
 */

/* [JPEG hardware]
 *
 * The hardware decoders of a device decode JPEGs together with the workers: whichever is free takes the
 * next file. Their pixels are those of the workers bit for bit, but they do not report damaged data. The
 * option `jpeg_hardware` has no effect without a device that has some. Opening them takes about a second.
 *
 *   - STOKER_JPEG_HARDWARE_KNOWN: files that a worker has decoded completely before, without any
 *     irregularity: in an earlier epoch, or in an earlier run of a dataset that keeps an index. A file
 *     that has changed counts as a new one.
 *   - STOKER_JPEG_HARDWARE_ALL: every baseline JPEG from the first batch on; damage in one goes
 *     unnoticed, and its pixels may differ from what the workers would give.
 *
 * jpeg_hardware_known of stoker_stats counts the samples whose files are known to decode, and which go to
 * the hardware unless they have changed; in a dataset made of others, those of its parts. What it reads
 * and writes takes up to 118 MB of pinned memory beside the batches.
 */

/* [Waiting]
 *
 * stoker_loader_interrupt ends a next that waits in another thread. With workers 0, next does the work
 * instead of waiting: it returns when the current sample is finished (stoker_thread_on_wait ends its
 * waits).
 *
 * The callback of stoker_thread_on_wait may end a call of its thread that waits for a server (opening a
 * dataset or a loader; next, with workers 0). It is called 40 times per second by this thread from
 * within that call. Once it has returned true, the call returns STOKER_ECANCELED within a tenth of a
 * second; next also ends the epoch then, and a state saved afterwards resumes at the batch that was due.
 * It holds for this thread until it is set again.
 *
 * stoker_loader_close abandons requests by URL, retries and substitutions at once. It waits for what
 * cannot be interrupted: the decoding of a sample, the read of a local file, a callback's `read`. With a
 * device, it also waits for work that is queued there and uses the loader's memory (batches in transit,
 * work of other streams that may still read a released batch), and for the files that JPEG hardware is
 * decoding (64 at most per thread). While the hardware is being started, it waits for the current call
 * of nvJPEG, which can take about a second.
 */

/* [Arrays]
 *
 * stoker_cv_run gives the bytes of a function of OpenCV 5 for uint8 arrays. OpenCV has other code for
 * other CPUs: whoever needs its bytes on a machine compares a few arrays first, as the Python package
 * does.
 *
 *   resize_nearest, resize_linear, resize_area
 *     cv2.resize with INTER_NEAREST, INTER_LINEAR or INTER_AREA, to the size of `out`.
 *
 *   warp_affine, warp_perspective, warp_affine_nearest, warp_perspective_nearest
 *     cv2.warpAffine and cv2.warpPerspective with INTER_LINEAR, or with INTER_NEAREST. The numbers are those of the map (6 or 9),
 *     row by row; whether it is the inverse already (WARP_INVERSE_MAP: 1); then those of remap.
 *
 *   remap
 *     cv2.remap with INTER_LINEAR and float32 maps: two tables, or one of pairs. The numbers are OpenCV's
 *     number of the border (0 to 4) and the values of the border's four channels. STOKER_EUNSUPPORTED
 *     for points that are no numbers, for points far outside unless the border is constant, and for two
 *     channels.
 */

/* [Resume]
 *
 * If a state is saved right after stoker_loader_next failed because of a batch, it points at that batch:
 * restoring it retries the batch, which helps if the cause has been fixed, while calling next again
 * continues with the batch after it. If one rank has failed and others have not, their states point at
 * the batch after: use the state of the rank that failed.
 */
