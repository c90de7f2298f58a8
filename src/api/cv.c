/* cv.c - one operation on one array of pixels, outside of any pipeline
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/cv.h"

#include <stdatomic.h>
#include <string.h>

enum { KEEP = 1 << 20, LEVEL_UNKNOWN = -1 };

/* Detected once per process. */
static enum st_cpu_level level_of_cpu(void)
{
    static _Atomic int known = LEVEL_UNKNOWN;
    int level = atomic_load_explicit(&known, memory_order_relaxed);
    if (level == LEVEL_UNKNOWN) {
        level = (int)st_cpu_level();
        atomic_store_explicit(&known, level, memory_order_relaxed);
    }
    return (enum st_cpu_level)level;
}

const char *stoker_cv_level(void) { return st_cpu_level_name(level_of_cpu()); }

static bool view_of(const struct stoker_tensor *array, struct st_view *out)
{
    const int64_t *shape = array->shape, *stride = array->stride;
    if (!array->data || array->dtype != STOKER_DTYPE_U8 || array->ndim != 3)
        return false;
    for (int k = 0; k < 3; k++)
        if (shape[k] < 1 || shape[k] > ST_CV_SIDE)
            return false;
    if (stride[2] != 1 || (shape[1] > 1 && stride[1] != shape[2]) ||
        (shape[0] > 1 && (stride[0] > INT32_MAX || stride[0] < -INT32_MAX)))
        return false;
    *out = (struct st_view){array->data, shape[0] > 1 ? (ptrdiff_t)stride[0] : 0, (int32_t)shape[1],
                            (int32_t)shape[0], (int32_t)shape[2]};
    return true;
}

struct extent {
    uintptr_t begin, end;
};

static struct extent extent_of(const struct st_view *view)
{
    const uintptr_t first = (uintptr_t)view->data, last = (uintptr_t)st_row(view, view->height - 1);
    const uintptr_t row = (uintptr_t)view->width * (uintptr_t)view->channels;
    return (struct extent){first < last ? first : last, (first < last ? last : first) + row};
}

static bool overlap(const struct st_view *a, const struct st_view *b)
{
    const struct extent one = extent_of(a), other = extent_of(b);
    return one.begin < other.end && other.begin < one.end;
}

static bool table_of(const struct stoker_tensor *array, struct st_bytes *out)
{
    uint64_t count = array->dtype == STOKER_DTYPE_F32 ? sizeof(float) : 1;
    if (!array->data || (array->dtype != STOKER_DTYPE_F32 && array->dtype != STOKER_DTYPE_U8) ||
        array->ndim < 1 || array->ndim > STOKER_TENSOR_DIMS)
        return false;
    for (int32_t k = array->ndim; k-- > 0;)
        if (array->shape[k] < 1 || !st_mul(count, (uint64_t)array->shape[k], &count))
            return false;
    *out = (struct st_bytes){array->data, count};
    return true;
}

int stoker_cv_run(const char *op, const double *numbers, uint32_t number_count,
                  const struct stoker_tensor *tables, uint32_t table_count,
                  const struct stoker_tensor *in, const struct stoker_tensor *out,
                  struct stoker_error *err)
{
    const struct st_cv_op *known = op ? st_cv_find(op) : NULL;
    struct st_arena arena = {.keep = KEEP};
    struct st_cv_call call = {.numbers = numbers,
                              .count = number_count,
                              .tables = table_count,
                              .arena = &arena,
                              .level = level_of_cpu()};
    if (!known)
        return st_fail(err, STOKER_EINVAL, "stoker_cv_run: there is no operation '%s'",
                       op ? op : "NULL");
    if (!in || !out || (number_count && !numbers) || (table_count && !tables))
        return st_fail(err, STOKER_EINVAL, "%s: numbers, tables and arrays must not be NULL", op);
    if (!view_of(in, &call.in) || !view_of(out, &call.out))
        return st_fail(
            err, STOKER_EINVAL,
            "%s: arrays must be uint8 [height, width, channels] without gaps inside of a row, "
            "and have 1 to %d pixels on each side",
            op, ST_CV_SIDE);
    if (overlap(&call.in, &call.out))
        return st_fail(err, STOKER_EINVAL, "%s: the arrays overlap", op);
    for (uint32_t k = 0; k < table_count; k++)
        if (k >= ST_CV_TABLES || !table_of(&tables[k], &call.table[k]))
            return st_fail(err, STOKER_EINVAL,
                           "%s: table %u is not one of at most %d arrays of uint8 or float32", op, k,
                           ST_CV_TABLES);
    const int rc = st_cv_run(known, &call, err);
    st_arena_free(&arena);
    return rc;
}
