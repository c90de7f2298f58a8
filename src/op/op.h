/* op.h - one step of a pipeline
 *
 * One op is one file that ends in its `const struct st_op`, named in registry.c. To add one: copy the
 * smallest, rename, add a line to registry.c and one to meson.build, write its test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_OP_H
#define ST_OP_OP_H

#include "op/tensor/erase.h"
#include "op/image.h"
#include "order/rng.h"

#include <stddef.h>

/* The parameters of an op, read from a pipeline's text into its zeroed state. */
enum st_param_type {
    ST_PARAM_INT,   /* int32_t */
    ST_PARAM_FLOAT, /* double */
    ST_PARAM_BOOL,  /* bool */
    ST_PARAM_WORD,  /* int32_t: index of the word in `words` */
    ST_PARAM_LIST,  /* struct st_list: 1 to 16 numbers, one without brackets, or one of `words` */
};

struct st_list {
    uint32_t count; /* 0: not given, or a word */
    uint32_t word;  /* 1 + index of the word given instead of numbers; 0: none */
    double value[16];
};

struct st_param {
    const char *name; /* NULL at the end of the table */
    enum st_param_type type;
    size_t offset;
    double def, min, max;     /* of each number; `def` may be out of range to mean "not given" */
    const char *const *words; /* NULL-terminated */
    bool required;
    const char *help;
};

/* How an op runs those inside of it: in their order, one of them, in any order, or several times on
 * copies of the image. */
enum st_holds { ST_HOLDS_NONE, ST_HOLDS_ROW, ST_HOLDS_ONE, ST_HOLDS_SHUFFLED, ST_HOLDS_MIXED };
enum { ST_HELD_MAX = 256 }; /* ops inside one that holds others */
enum { ST_VIEWS_MAX = 64 }; /* of a sample */
enum { ST_REPEATS_MAX = 250 }; /* of the ops inside one, on one image */

/* Sizes that are not known in advance: that of the images as read, or another. */
enum { ST_SIZE_DIFFERS = -1, ST_SIZE_AS_READ = -2 };

/* What is known about every image at some point of the pipeline. */
struct st_shape {
    int32_t width, height; /* below 0: not known */
    int32_t more_width, more_height; /* with ST_SIZE_AS_READ: what is added to it */
    int32_t channels;
    bool tensor;           /* after to_tensor or pil_to_tensor */
    bool erased;           /* after random_erasing: pixels must not be moved any more */
    bool mixed;            /* inside an op that runs others several times */
    uint32_t views;        /* of each sample; 0: one, without the op `views` */
};

/* The ops inside one that runs them itself, ST_HOLDS_MIXED. */
struct st_held_ops {
    uint32_t count;
    /* Runs one of them; runs with another `repeat`, below ST_REPEATS_MAX, draw anew. */
    int (*run)(const struct st_held_ops *held, uint32_t which, uint32_t repeat, struct st_image *image,
               struct stoker_error *err);
};

struct st_audio;
struct st_audio_shape;

enum st_guide { ST_GUIDE_NONE, ST_GUIDE_BOXES, ST_GUIDE_MASK };

struct st_op {
    const char *name, *help;
    size_t self_size;
    const struct st_param *params;
    /* Checks the parameters against each other and the shape, and updates the shape. Ops at the end of
     * the pipeline (to_tensor, normalize, ...) write to `finish`. */
    int (*plan)(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err);
    /* Applies the op to one image; NULL if `plan` does everything. May be called by many threads at
     * once. */
    int (*run)(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err);
    /* NULL except for random_erasing: draws a box of the finished image to be overwritten; width 0:
     * none. */
    int (*erase)(const void *self, struct st_rng *rng, const struct st_erase_into *into,
                 struct st_erase *out, struct stoker_error *err);
    /* The maximum size of its values in bytes. */
    uint64_t (*erase_most)(const void *self, const struct st_erase_into *into);
    bool moves;   /* crops, resizes or adds a border */
    bool pending; /* may record pending ops that see more than a pixel */
    /* The target by which it chooses a crop: `run` on that one writes it to image->chosen; those on the
     * image and on all else that follows it come later, and read it there. */
    enum st_guide guide;
    enum st_holds holds; /* whether it contains other ops, which the pipeline runs */
    /* holds: checks the number of inner ops; NULL: any number */
    int (*held)(const void *self, uint32_t count, struct stoker_error *err);
    /* holds: writes which of the `count` inner ops run for this sample, in order; returns how many */
    uint32_t (*choose)(const void *self, struct st_rng *rng, uint32_t count,
                       uint8_t order[ST_HELD_MAX]);
    bool by_view; /* holds: the view's number says which runs, in place of `choose` */
    /* ST_HOLDS_MIXED: in place of `run` and `choose` */
    int (*mix)(const void *self, struct st_rng *rng, const struct st_held_ops *held,
               struct st_image *image, struct stoker_error *err);
    /* Ops on sounds have these instead of `plan` and `run`; plan_audio may be NULL. (sound/audio.h) */
    int (*plan_audio)(void *self, struct st_audio_shape *shape, struct stoker_error *err);
    int (*run_audio)(const void *self, struct st_rng *rng, struct st_audio *audio,
                     struct stoker_error *err);
    void (*drop)(void *self); /* frees what `plan` allocated; safe without it. NULL: nothing to free */
};

extern const struct st_op *const st_ops[]; /* NULL at the end */
const struct st_op *st_op_find(const char *name);

/* nearest, box, bilinear, hamming, bicubic, lanczos; cv_nearest, cv_linear, cv_area, cv_linear_area */
extern const char *const st_filter_words[];

/* Checks used by several ops; params.c. `op` is the op's name, for the message. */

/* One or two positive integers: height and width, or one number for both. */
int st_param_size(const struct st_list *list, const char *op, const char *name, int32_t *height,
                  int32_t *width, struct stoker_error *err);
/* Two numbers in ascending order; the default is `low` and `high`. */
int st_param_range(struct st_list *list, const char *op, const char *name, double low, double high,
                   struct stoker_error *err);
/* Pixels may still be moved. */
int st_plan_movable(const struct st_shape *shape, const char *op, struct stoker_error *err);
/* The image still consists of bytes, so that new ones can be computed from them. */
int st_plan_bytes(const struct st_shape *shape, const struct st_finish_spec *finish, const char *op,
                  struct stoker_error *err);
/* The image is not a tensor yet. */
int st_plan_picture(const struct st_shape *shape, const char *op, struct stoker_error *err);
/* Draws a box like torchvision: its area is a fraction of `area` drawn from `scale`; the aspect ratio *a
 * / *b is drawn from `ratio`, uniformly in its logarithm. The sides are integers. */
void st_draw_box(struct st_rng *rng, double area, const double scale[2], const double ratio[2],
                 double *a, double *b);

#endif
