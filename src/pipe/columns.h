/* columns.h - what samples hold besides their image, as columns of the batch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_COLUMNS_H
#define ST_PIPE_COLUMNS_H

#include "source/source.h"

enum st_columns_type {
    ST_TYPE_ANY = -1,     /* batches are of one sample: it agrees with itself */
    ST_TYPE_UNKNOWN = -2, /* the data set does not say, and has not been asked (model.c) or could not answer */
};

/* What becomes of the fields of a data set; the same for all slots. */
struct st_columns_plan {
    struct st_field field[ST_FIELDS_MAX];
    char *names;          /* of the fields: batches outlive the data set */
    uint32_t fields;      /* 0: samples are an image and a label */
    int32_t image, label; /* which of the fields; -1: none. `image` may be a sound */
    uint32_t count;       /* columns */
    struct {
        uint32_t field;
        enum stoker_column_kind kind;
        uint64_t each; /* bytes of one sample; 0: differs from sample to sample */
        int32_t dtype; /* of arrays: an enum stoker_dtype that all must have, or one of st_columns_type */
    } column[ST_FIELDS_MAX];
};

struct st_columns; /* those of one slot */

/* `work_on`: what the pipeline works on, images or sounds; the first field of that kind is not made a column. */
int st_columns_plan(struct st_columns_plan *plan, const struct stoker_dataset *data, enum st_field_kind work_on,
                    struct stoker_error *err);
void st_columns_plan_free(struct st_columns_plan *plan);
/* NULL when out of memory. `account`: who is charged; NULL: nobody. */
struct st_columns *st_columns_new(const struct st_columns_plan *plan, uint32_t rows, struct st_account *account);
bool st_columns_grow(const struct st_columns *columns); /* whether their memory depends on the samples */
void st_columns_shrink(struct st_columns *columns);     /* gives back what has grown */
void st_columns_free(struct st_columns *columns); /* NULL is fine */
/* The row's pieces, in the order of the fields. */
int st_columns_put(struct st_columns *columns, uint32_t row, const struct st_piece *pieces,
                   struct stoker_error *err);
/* Zeros, or nothing; `label` for the field that is one. */
void st_columns_blank(struct st_columns *columns, uint32_t row, int64_t label);
/* All rows are there: sets up the batch's columns. */
int st_columns_complete(struct st_columns *columns, uint32_t count, struct stoker_batch *batch,
                        struct stoker_error *err);

#endif
