/* columns.c - the fields of samples other than their image, as columns of the batch
 *
 * A column whose samples all have the same size is written in place, row by row. Other columns collect
 * their values in cells, one per row, which keep their memory from batch to batch, and concatenate them
 * when the batch is complete.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/columns.h"

#include "base/budget.h"
#include "source/fields/field_list.h"
#include "source/table/json.h"

#include <stdlib.h>
#include <string.h>

struct cell {
    struct st_buffer bytes;
    enum stoker_dtype dtype;
    int32_t ndim;
    int64_t shape[ST_DIMS_MAX];
};

struct store {
    uint8_t *values;   /* rows of equal size */
    struct cell *cell; /* other rows */
    struct st_buffer stacked;
    uint64_t *offsets;
    int64_t (*shapes)[ST_DIMS_MAX];
};

struct st_columns {
    const struct st_columns_plan *plan;
    uint32_t rows;
    struct st_account *account;
    struct store store[ST_FIELDS_MAX];
    struct stoker_column column[ST_FIELDS_MAX];
    const struct stoker_column *listed[ST_FIELDS_MAX]; /* what the batch points at */
};

_Static_assert(ST_DIMS_MAX == STOKER_COLUMN_DIMS - 1, "a column has one axis more than its samples");

/* ---- the plan ------------------------------------------------------------------------------------ */

/* Bytes of an array; false if its shape is unknown or invalid. */
static bool array_bytes(enum stoker_dtype dtype, int32_t ndim, const int64_t *shape, uint64_t *out)
{
    uint64_t bytes = st_dtype_size(dtype);
    if (bytes == 0 || ndim < 0 || ndim > ST_DIMS_MAX)
        return false;
    for (int32_t k = 0; k < ndim; k++)
        if (shape[k] < 0 || !st_mul(bytes, (uint64_t)shape[k], &bytes))
            return false;
    *out = bytes;
    return true;
}

static enum stoker_column_kind column_kind(const struct st_field *field)
{
    switch (field->kind) {
    case ST_FIELD_INT:
        return STOKER_COLUMN_INT;
    case ST_FIELD_FLOAT:
        return STOKER_COLUMN_FLOAT;
    case ST_FIELD_ARRAY:
    case ST_FIELD_IMAGE:
        return STOKER_COLUMN_ARRAY;
    case ST_FIELD_TEXT:
        return STOKER_COLUMN_TEXT;
    case ST_FIELD_JSON:
        return STOKER_COLUMN_JSON;
    case ST_FIELD_AUDIO:
        return STOKER_COLUMN_AUDIO;
    default:
        return STOKER_COLUMN_BYTES;
    }
}

/* A copy of the fields, with their names. */
static int copy_fields(struct st_columns_plan *plan, const struct stoker_dataset *data,
                       struct stoker_error *err)
{
    const struct st_field *field = data->source->fields(data->self, &plan->fields);
    size_t size = 0;
    if (plan->fields > ST_FIELDS_MAX)
        return st_fail(err, STOKER_EUNSUPPORTED, "samples have %u fields; at most %d are supported",
                       plan->fields, ST_FIELDS_MAX);
    for (uint32_t k = 0; k < plan->fields; k++)
        size += strlen(field[k].name) + 1;
    char *name = plan->names = st_calloc(size, 1);
    if (!name)
        return st_fail(err, STOKER_ENOMEM, "no memory for the names of %u fields", plan->fields);
    for (uint32_t k = 0; k < plan->fields; k++) {
        plan->field[k] = field[k];
        plan->field[k].name = name;
        name = stpcpy(name, field[k].name) + 1;
    }
    return 0;
}

static void add_column(struct st_columns_plan *plan, uint32_t which)
{
    const struct st_field *field = &plan->field[which];
    const enum stoker_column_kind kind = column_kind(field);
    /* size known from its file only */
    const bool encoded = field->kind == ST_FIELD_IMAGE && field->ndim == 0;
    uint64_t each = 0;
    if (kind == STOKER_COLUMN_INT || kind == STOKER_COLUMN_FLOAT)
        each = 8;
    else if (kind == STOKER_COLUMN_ARRAY && !encoded &&
             !array_bytes(field->dtype, field->ndim, field->shape, &each))
        each = 0;
    plan->column[plan->count].field = which;
    plan->column[plan->count].kind = kind;
    plan->column[plan->count].dtype = field->kind == ST_FIELD_IMAGE ? STOKER_DTYPE_U8
                                      : field->kind == ST_FIELD_ARRAY && field->ndim < 0
                                          ? ST_TYPE_UNKNOWN
                                          : (int32_t)field->dtype;
    plan->column[plan->count++].each = each;
}

int st_columns_plan(struct st_columns_plan *plan, const struct stoker_dataset *data,
                    enum st_field_kind work_on, struct stoker_error *err)
{
    *plan = (struct st_columns_plan){.image = -1, .label = -1};
    const int rc = data->source->fields ? copy_fields(plan, data, err) : 0;
    for (uint32_t k = 0; !rc && k < plan->fields; k++) {
        if (plan->field[k].kind == work_on && plan->image < 0) {
            plan->image = (int32_t)k;
            continue;
        }
        if (plan->field[k].kind == ST_FIELD_INT && plan->label < 0)
            plan->label = (int32_t)k;
        add_column(plan, k);
    }
    return rc;
}

void st_columns_plan_free(struct st_columns_plan *plan) { free(plan->names); }

/* ---- memory -------------------------------------------------------------------------------------- */

struct st_columns *st_columns_new(const struct st_columns_plan *plan, uint32_t rows,
                                  struct st_account *account)
{
    struct st_columns *columns = st_calloc(1, sizeof *columns);
    bool whole = columns != NULL;
    if (!whole)
        return NULL;
    columns->plan = plan;
    columns->rows = rows;
    columns->account = account;
    for (uint32_t k = 0; whole && k < plan->count; k++) {
        struct store *store = &columns->store[k];
        if (plan->column[k].each) {
            store->values = st_calloc(rows, plan->column[k].each);
            whole = store->values != NULL;
            if (whole)
                st_account_add(account, plan->column[k].each * rows);
            continue;
        }
        store->cell = st_calloc(rows, sizeof *store->cell);
        store->offsets = st_calloc((uint64_t)rows + 1, sizeof *store->offsets);
        store->shapes = st_calloc(rows, sizeof *store->shapes);
        whole = store->cell && store->offsets && store->shapes;
        store->stacked.account = account;
        for (uint32_t row = 0; whole && row < rows; row++)
            store->cell[row].bytes.account = account;
    }
    if (whole)
        return columns;
    st_columns_free(columns);
    return NULL;
}

void st_columns_free(struct st_columns *columns)
{
    if (!columns)
        return;
    st_columns_shrink(columns);
    for (uint32_t k = 0; k < columns->plan->count; k++) {
        struct store *store = &columns->store[k];
        if (store->values)
            st_account_sub(columns->account, columns->plan->column[k].each * columns->rows);
        free(store->values);
        free(store->cell);
        free(store->offsets);
        free(store->shapes);
    }
    free(columns);
}

bool st_columns_grow(const struct st_columns *columns)
{
    for (uint32_t k = 0; k < columns->plan->count; k++)
        if (!columns->plan->column[k].each)
            return true;
    return false;
}

uint64_t st_columns_row_bytes(const struct st_columns *columns, uint32_t row)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < columns->plan->count; k++)
        bytes += columns->store[k].cell ? columns->store[k].cell[row].bytes.size : 0;
    return bytes;
}

void st_columns_shrink(struct st_columns *columns)
{
    for (uint32_t k = 0; k < columns->plan->count; k++) {
        struct store *store = &columns->store[k];
        for (uint32_t row = 0; store->cell && row < columns->rows; row++)
            st_buffer_free(&store->cell[row].bytes);
        st_buffer_free(&store->stacked);
    }
}

/* ---- one row ------------------------------------------------------------------------------------- */

static int put_array(uint8_t *to, uint64_t each, const struct st_field *field,
                     const struct st_piece *piece, struct stoker_error *err)
{
    const bool same = piece->dtype == field->dtype && piece->ndim == field->ndim &&
                      piece->bytes.size == each &&
                      !memcmp(piece->shape, field->shape, (size_t)field->ndim * sizeof *field->shape);
    if (!same)
        return st_fail(err, STOKER_ECORRUPT,
                       "field %s: the array's type or shape differs from that of the dataset",
                       field->name);
    memcpy(to, piece->bytes.data, each);
    return 0;
}

/* Python parses it when the batch is delivered, when it would be too late to skip the sample. */
static int check_json(const struct st_field *field, const struct st_piece *piece,
                      struct stoker_error *err)
{
    uint64_t at;
    bool deep;
    if (st_json_is_whole(piece->bytes, &at, &deep))
        return 0;
    if (deep)
        return st_fail(err, STOKER_ELIMIT,
                       "field %s: JSON nested more than %d levels deep at byte %llu, which is the most "
                       "that is read: read it as text",
                       field->name, ST_JSON_DEPTH, (unsigned long long)at);
    return st_fail(err, STOKER_ECORRUPT, "field %s: not JSON, or damaged at byte %llu of %llu",
                   field->name, (unsigned long long)at, (unsigned long long)piece->bytes.size);
}

/* All arrays of a batch have one type. It must not depend on which sample came first, so it is given by
 * the dataset or by its first readable sample (model.c). */
static int check_type(int32_t wanted, const struct st_field *field, const struct st_piece *piece,
                      struct stoker_error *err)
{
    if (wanted == ST_TYPE_ANY || wanted == (int32_t)piece->dtype)
        return 0;
    if (wanted == ST_TYPE_UNKNOWN)
        return st_fail(err, STOKER_ECORRUPT,
                       "field %s: the type of its arrays is unknown, because none of the dataset's "
                       "first samples could be read",
                       field->name);
    return st_fail(err, STOKER_ECORRUPT, "field %s: an array of %s, but the first sample has %s",
                   field->name, st_dtype_name(piece->dtype), st_dtype_name((enum stoker_dtype)wanted));
}

static int put_cell(struct cell *cell, enum stoker_column_kind kind, int32_t type,
                    const struct st_field *field, const struct st_piece *piece, struct stoker_error *err)
{
    const bool array = kind == STOKER_COLUMN_ARRAY;
    const uint64_t size = piece->bytes.size;
    uint64_t bytes;
    const int rc = kind == STOKER_COLUMN_JSON ? check_json(field, piece, err)
                   : array                    ? check_type(type, field, piece, err)
                                              : 0;
    if (rc)
        return rc;
    if (array && (!array_bytes(piece->dtype, piece->ndim, piece->shape, &bytes) || bytes != size))
        return st_fail(err, STOKER_ECORRUPT,
                       "field %s: its array has %llu bytes, which does not match its shape", field->name,
                       (unsigned long long)size);
    if (!st_buffer_reserve(&cell->bytes, size))
        return st_fail(err, STOKER_ENOMEM, "field %s: no memory for %llu bytes", field->name,
                       (unsigned long long)size);
    if (size)
        memcpy(cell->bytes.data, piece->bytes.data, size);
    cell->bytes.size = size;
    cell->dtype = array ? piece->dtype : STOKER_DTYPE_U8;
    cell->ndim = array ? piece->ndim : 1;
    memcpy(cell->shape, piece->shape, sizeof cell->shape);
    return 0;
}

int st_columns_put(struct st_columns *columns, uint32_t row, const struct st_piece *pieces,
                   struct stoker_error *err)
{
    const struct st_columns_plan *plan = columns->plan;
    int rc = 0;
    for (uint32_t k = 0; !rc && k < plan->count; k++) {
        const struct st_field *field = &plan->field[plan->column[k].field];
        const struct st_piece *piece = &pieces[plan->column[k].field];
        struct store *store = &columns->store[k];
        const uint64_t each = plan->column[k].each;
        uint8_t *to = store->values + row * each;
        if (plan->column[k].kind == STOKER_COLUMN_INT)
            memcpy(to, &piece->whole, each);
        else if (plan->column[k].kind == STOKER_COLUMN_FLOAT)
            memcpy(to, &piece->real, each);
        else if (each)
            rc = put_array(to, each, field, piece, err);
        else
            rc = put_cell(&store->cell[row], plan->column[k].kind, plan->column[k].dtype, field, piece,
                          err);
    }
    return rc;
}

void st_columns_blank(struct st_columns *columns, uint32_t row, int64_t label)
{
    const struct st_columns_plan *plan = columns->plan;
    for (uint32_t k = 0; k < plan->count; k++) {
        struct store *store = &columns->store[k];
        const uint64_t each = plan->column[k].each;
        if (each)
            memset(store->values + row * each, 0, each);
        if ((int32_t)plan->column[k].field == plan->label)
            memcpy(store->values + row * each, &label, each);
        if (!each) {
            store->cell[row].bytes.size = 0;
            store->cell[row].ndim = -1; /* matches any shape */
        }
    }
}

/* ---- all rows ------------------------------------------------------------------------------------ */

/* Whether all non-blank rows have the shape of `*model`, the first of them. Their types have been
 * checked. */
static bool cells_agree(const struct cell *cell, uint32_t count, const struct cell **model)
{
    bool shapes = true;
    *model = NULL;
    for (uint32_t row = 0; row < count; row++) {
        if (cell[row].ndim < 0)
            continue;
        *model = *model ? *model : &cell[row];
        shapes =
            shapes && cell[row].ndim == (*model)->ndim &&
            !memcmp(cell[row].shape, (*model)->shape, (size_t)cell[row].ndim * sizeof *cell[row].shape);
    }
    return shapes && *model;
}

/* Blank rows become zeros of the shape that the other rows have. */
static bool fill_blanks(struct cell *cell, uint32_t count, const struct cell *model)
{
    for (uint32_t row = 0; row < count; row++)
        if (cell[row].ndim < 0 && model->bytes.size) {
            if (!st_buffer_reserve(&cell[row].bytes, model->bytes.size))
                return false;
            memset(cell[row].bytes.data, 0, model->bytes.size);
            cell[row].bytes.size = model->bytes.size;
        }
    return true;
}

static bool stack(struct store *store, uint32_t count, uint32_t element)
{
    uint64_t at = 0;
    for (uint32_t row = 0; row < count; row++) {
        store->offsets[row] = at / element;
        at += store->cell[row].bytes.size;
    }
    store->offsets[count] = at / element;
    if (!st_buffer_reserve(&store->stacked, at))
        return false;
    for (uint32_t row = 0; row < count; row++)
        if (store->cell[row].bytes.size)
            memcpy(store->stacked.data + store->offsets[row] * element, store->cell[row].bytes.data,
                   store->cell[row].bytes.size);
    return true;
}

/* A blank row has no values, in the shape of the others: boxes are [0, 4]. */
static void note_shapes(struct store *store, uint32_t count, const struct cell *model)
{
    for (uint32_t row = 0; row < count; row++)
        for (int32_t k = 0; k < ST_DIMS_MAX; k++) {
            const struct cell *cell = &store->cell[row];
            const struct cell *like = cell->ndim < 0 && model ? model : cell;
            store->shapes[row][k] = cell->ndim < 0 && !k ? 0 : k < like->ndim ? like->shape[k] : -1;
        }
}

static void set_shape(struct stoker_column *column, uint32_t count, int32_t ndim, const int64_t *shape)
{
    column->ndim = ndim + 1;
    column->shape[0] = count;
    memcpy(column->shape + 1, shape, (size_t)ndim * sizeof *shape);
}

static int complete_cells(struct store *store, uint32_t count, int32_t type,
                          struct stoker_column *column, struct stoker_error *err)
{
    const bool array = column->kind == STOKER_COLUMN_ARRAY;
    const struct cell *model;
    const bool agree = cells_agree(store->cell, count, &model) && array;
    column->dtype = model                ? model->dtype
                    : array && type >= 0 ? (enum stoker_dtype)type
                                         : STOKER_DTYPE_U8;
    if ((agree && !fill_blanks(store->cell, count, model)) ||
        !stack(store, count, st_dtype_size(column->dtype)))
        return st_fail(err, STOKER_ENOMEM, "field %s: no memory for %u samples", column->name, count);
    column->data = store->stacked.data;
    if (agree) {
        set_shape(column, count, model->ndim, model->shape);
        return 0;
    }
    column->offsets = store->offsets;
    column->ndim = 1;
    column->shape[0] = (int64_t)store->offsets[count];
    if (array) {
        note_shapes(store, count, model);
        column->shapes = (const int64_t(*)[ST_DIMS_MAX])store->shapes;
    }
    return 0;
}

int st_columns_complete(struct st_columns *columns, uint32_t count, struct stoker_batch *batch,
                        struct stoker_error *err)
{
    const struct st_columns_plan *plan = columns->plan;
    int rc = 0;
    for (uint32_t k = 0; !rc && k < plan->count; k++) {
        const struct st_field *field = &plan->field[plan->column[k].field];
        struct stoker_column *column = &columns->column[k];
        *column = (struct stoker_column){
            .size = sizeof *column, .name = field->name, .kind = plan->column[k].kind};
        columns->listed[k] = column;
        if (!plan->column[k].each) {
            rc = complete_cells(&columns->store[k], count, plan->column[k].dtype, column, err);
            continue;
        }
        const bool array = column->kind == STOKER_COLUMN_ARRAY;
        column->data = columns->store[k].values;
        column->dtype = array                               ? field->dtype
                        : column->kind == STOKER_COLUMN_INT ? STOKER_DTYPE_I64
                                                            : STOKER_DTYPE_F64;
        set_shape(column, count, array ? field->ndim : 0, field->shape);
    }
    batch->columns = columns->listed;
    batch->column_count = plan->count;
    return rc;
}
