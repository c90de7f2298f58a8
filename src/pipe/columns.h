/* columns.h - the fields of samples other than their image, as columns of the batch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_COLUMNS_H
#define ST_PIPE_COLUMNS_H

#include "base/shapes.h"
#include "source/source.h"

enum st_columns_type {
    ST_TYPE_ANY = -1,     /* batches have one sample: nothing to agree with */
    ST_TYPE_UNKNOWN = -2, /* not declared by the dataset, and no sample has been examined (model.c) */
};

/* Columns that are moved like the image: see targets.h. */
enum st_target { ST_TARGET_NONE, ST_TARGET_IMAGE, ST_TARGET_MASK, ST_TARGET_BOXES, ST_TARGET_OF_BOXES };

/* How the fields of a dataset become columns; the same for all slots. */
struct st_columns_plan {
    struct st_field field[ST_FIELDS_MAX];
    char *names;          /* of the fields; copied, because batches outlive the dataset */
    uint32_t fields;      /* 0: samples are an image and a label */
    int32_t image, label; /* their field indices; -1: none. `image` may be a sound */
    uint32_t count;       /* columns */
    bool targets;         /* some of them are targets */
    enum stoker_dtype image_dtype; /* of finished images */
    uint32_t guide;       /* 1 + the column by which steps choose: it is made first; 0: none */
    struct {
        uint32_t field;
        enum stoker_column_kind kind;
        uint64_t each; /* bytes per sample; 0: varies by sample */
        int32_t dtype; /* arrays: the enum stoker_dtype of all samples, or an enum st_columns_type */
        enum st_target target;
        bool floored;              /* MASK: resized as torch resizes masks; */
        bool wide;                 /* of numbers up to 65535, int32 */
        uint32_t boxes;            /* OF_BOXES: the column of these */
        enum st_box_format format; /* BOXES: as they are stored, */
        bool relative;             /* as fractions of the image's width and height; */
        bool whole;                /* they are whole numbers, and stay such; */
        bool points;               /* or key points, also OF_BOXES */
    } column[ST_FIELDS_MAX];
};

struct st_columns; /* the columns of one slot */
struct st_work;    /* op/image.h */

/* `work_on`: whether the pipeline works on images or sounds; the first field of that kind gets no
 * column. */
int st_columns_plan(struct st_columns_plan *plan, const struct stoker_dataset *data,
                    enum st_field_kind work_on, struct stoker_error *err);
void st_columns_plan_free(struct st_columns_plan *plan);
/* NULL when out of memory. `account` is charged; NULL: none. */
struct st_columns *st_columns_new(const struct st_columns_plan *plan, uint32_t rows,
                                  struct st_account *account);
bool st_columns_grow(const struct st_columns *columns); /* whether their size depends on samples */
void st_columns_shrink(struct st_columns *columns);     /* frees the memory that depends on samples */
uint64_t st_columns_row_bytes(const struct st_columns *columns, uint32_t row); /* of that memory */
void st_columns_free(struct st_columns *columns);                              /* NULL is fine */
/* Stores the row's pieces, in field order. */
int st_columns_put(struct st_columns *columns, uint32_t row, const struct st_piece *pieces,
                   struct stoker_error *err);
/* Fills the row with zeros or empty values; the label field gets `label`. */
void st_columns_blank(struct st_columns *columns, uint32_t row, int64_t label);
/* All rows are done: sets up the batch's columns. */
int st_columns_complete(struct st_columns *columns, uint32_t count, struct stoker_batch *batch,
                        struct stoker_error *err);

/* Replaces column pieces that are encoded images by their pixels, uint8 [H, W, 3], allocated from the
 * arena. (pictures.c) */
int st_pictures_decode(struct st_work *work, const struct st_columns_plan *plan, bool exif_rotate,
                       struct st_piece *pieces, struct stoker_error *err);

#endif
