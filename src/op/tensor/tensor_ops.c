/* tensor_ops.c - to_tensor, pil_to_tensor, to_array, convert_image_dtype, normalize, normalize_bytes,
 * arithmetic: the final type, values and axes of images
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include "base/text.h"

struct convert {
    int32_t dtype; /* index of the word */
    bool product;
};

struct normalize {
    struct st_list mean, std;
};

struct normalize_bytes {
    struct st_list mean, factor;
};

struct arithmetic {
    int32_t what; /* index of the word */
    double by;
};

static const char *const dtype_words[] = {"uint8", "float32", "float16", "bfloat16", NULL};
static const enum stoker_dtype dtypes[] = {STOKER_DTYPE_U8, STOKER_DTYPE_F32, STOKER_DTYPE_F16,
                                           STOKER_DTYPE_BF16};

static const struct st_param no_params[] = {{0}};

static const struct st_param convert_params[] = {
    {.name = "dtype",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct convert, dtype),
     .def = 1,
     .words = dtype_words,
     .help = "uint8, float32, float16 or bfloat16"},
    {.name = "product",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct convert, product),
     .help = "from bytes: multiply by 1/255 instead of dividing, like torchvision's v2"},
    {0},
};

static const struct st_param normalize_params[] = {
    {.name = "mean",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct normalize, mean),
     .min = -1e30,
     .max = 1e30,
     .required = true,
     .help = "subtracted from each channel"},
    {.name = "std",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct normalize, std),
     .min = -1e30,
     .max = 1e30,
     .required = true,
     .help = "divisor of each channel"},
    {0},
};

static const struct st_param bytes_params[] = {
    {.name = "mean",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct normalize_bytes, mean),
     .min = -1e30,
     .max = 1e30,
     .required = true,
     .help = "subtracted from each channel, of 0 to 255"},
    {.name = "factor",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct normalize_bytes, factor),
     .min = -1e30,
     .max = 1e30,
     .required = true,
     .help = "by which each channel is then multiplied"},
    {0},
};

enum { SUBTRACT, MULTIPLY, DIVIDE };
static const char *const arithmetic_words[] = {"subtract", "multiply", "divide", NULL};

static const struct st_param arithmetic_params[] = {
    {.name = "what",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct arithmetic, what),
     .words = arithmetic_words,
     .required = true,
     .help = "subtract, multiply or divide"},
    {.name = "by",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct arithmetic, by),
     .min = -1e30,
     .max = 1e30,
     .required = true,
     .help = "the number that is subtracted, or by which values are multiplied or divided"},
    {0},
};

static int already_tensor(const char *op, struct stoker_error *err)
{
    return st_fail(err, STOKER_EINVAL,
                   "%s: the image is already a tensor; remove it (convert_image_dtype "
                   "converts bytes to floats)",
                   op);
}

static int plan_to_tensor(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                          struct stoker_error *err)
{
    (void)self;
    if (shape->tensor)
        return already_tensor("to_tensor", err);
    shape->tensor = finish->scaled = true;
    finish->dtype = STOKER_DTYPE_F32;
    return STOKER_OK;
}

static int plan_pil_to_tensor(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                              struct stoker_error *err)
{
    (void)self;
    (void)finish;
    if (shape->tensor)
        return already_tensor("pil_to_tensor", err);
    shape->tensor = true;
    return STOKER_OK;
}

/* As Albumentations and OpenCV have images. The values are what they are: bytes, or floats. */
static int plan_to_array(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                         struct stoker_error *err)
{
    (void)self;
    if (finish->array)
        return st_fail(err, STOKER_EINVAL, "to_array: the image is already an array; remove it");
    shape->tensor = finish->array = true;
    return STOKER_OK;
}

/* A byte as float32 becomes float16 with one rounding, in any order. All other chains of conversions
 * round more than once, whereas the values here are rounded only to the final type. */
static int plan_convert(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                        struct stoker_error *err)
{
    const enum stoker_dtype from = finish->dtype, to = dtypes[((struct convert *)self)->dtype];
    if (!shape->tensor)
        return st_fail(err, STOKER_EINVAL,
                       "convert_image_dtype: requires a tensor; move it after pil_to_tensor "
                       "or to_tensor");
    if (from == to)
        return STOKER_OK;
    if (finish->steps)
        return st_fail(err, STOKER_EINVAL,
                       "convert_image_dtype: move it before normalize, or set the loader's "
                       "dtype instead");
    if (from != STOKER_DTYPE_U8 && from != STOKER_DTYPE_F32)
        return st_fail(err, STOKER_EINVAL,
                       "convert_image_dtype: %s cannot be converted to %s; convert only once",
                       from == STOKER_DTYPE_F16 ? "float16" : "bfloat16",
                       dtype_words[((struct convert *)self)->dtype]);
    if (to == STOKER_DTYPE_U8 && shape->erased)
        return st_fail(err, STOKER_EINVAL,
                       "convert_image_dtype: floats written by random_erasing cannot be converted "
                       "to uint8; convert before it");
    if (from == STOKER_DTYPE_U8)
        finish->by_product = ((struct convert *)self)->product;
    finish->dtype = to;
    finish->scaled = to != STOKER_DTYPE_U8;
    return STOKER_OK;
}

static int check_channels(const struct st_list *list, const char *op, const char *name,
                          int32_t channels, struct stoker_error *err)
{
    if (list->count != 1 && list->count != (uint32_t)channels)
        return st_fail(err, STOKER_EINVAL, "%s: %s has %u values, but the image has %d channel%s", op,
                       name, list->count, channels, st_s((uint64_t)channels));
    return STOKER_OK;
}

static int check_count(const struct st_finish_spec *finish, const char *op, struct stoker_error *err)
{
    if (finish->steps < ST_NORMALIZE_MAX)
        return STOKER_OK;
    return st_fail(err, STOKER_EINVAL, "%s: at most %d steps of normalize and arithmetic are supported",
                   op, ST_NORMALIZE_MAX);
}

static int plan_normalize(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                          struct stoker_error *err)
{
    const struct normalize *n = self;
    if (finish->dtype == STOKER_DTYPE_U8)
        return st_fail(err, STOKER_EINVAL,
                       "normalize: requires floats; move it after to_tensor (or "
                       "convert_image_dtype)");
    int rc = check_count(finish, "normalize", err);
    if (rc >= 0)
        rc = check_channels(&n->mean, "normalize", "mean", shape->channels, err);
    if (rc >= 0)
        rc = check_channels(&n->std, "normalize", "std", shape->channels, err);
    if (rc < 0)
        return rc;
    for (int32_t c = 0; c < shape->channels; c++) {
        const float std = (float)n->std.value[n->std.count > 1 ? c : 0];
        if (std == 0)
            return st_fail(err, STOKER_EINVAL,
                           "normalize: std is 0, which would divide by zero");
        finish->step[finish->steps].std[c] = std;
        finish->step[finish->steps].mean[c] = (float)n->mean.value[n->mean.count > 1 ? c : 0];
    }
    finish->steps++;
    return STOKER_OK;
}

/* As Albumentations: a byte becomes float32 as it is. */
static int plan_bytes(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                      struct stoker_error *err)
{
    const struct normalize_bytes *n = self;
    if (shape->tensor || finish->dtype != STOKER_DTYPE_U8)
        return already_tensor("normalize_bytes", err);
    int rc = check_channels(&n->mean, "normalize_bytes", "mean", shape->channels, err);
    if (rc >= 0)
        rc = check_channels(&n->factor, "normalize_bytes", "factor", shape->channels, err);
    if (rc < 0)
        return rc;
    for (int32_t c = 0; c < shape->channels; c++) {
        finish->step[0].mean[c] = (float)n->mean.value[n->mean.count > 1 ? c : 0];
        finish->step[0].std[c] = (float)n->factor.value[n->factor.count > 1 ? c : 0];
    }
    finish->step[0].product = true;
    finish->steps = 1;
    finish->dtype = STOKER_DTYPE_F32;
    shape->tensor = true;
    return STOKER_OK;
}

/* torch calculates with a number in float32, whatever the tensor's type is: only in float32 is that what
 * a step of normalize does. */
static int plan_arithmetic(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                           struct stoker_error *err)
{
    const struct arithmetic *a = self;
    const float by = (float)a->by;
    if (finish->dtype != STOKER_DTYPE_F32)
        return st_fail(err, STOKER_EINVAL, "arithmetic: requires float32; move it after to_tensor");
    if (a->what == DIVIDE && by == 0)
        return st_fail(err, STOKER_EINVAL, "arithmetic: cannot divide by %g", a->by);
    const int rc = check_count(finish, "arithmetic", err);
    if (rc < 0)
        return rc;
    for (int32_t c = 0; c < shape->channels; c++) {
        finish->step[finish->steps].mean[c] = a->what == SUBTRACT ? by : 0;
        finish->step[finish->steps].std[c] = a->what == SUBTRACT ? 1 : by;
    }
    finish->step[finish->steps++].product = a->what == MULTIPLY;
    return STOKER_OK;
}

const struct st_op st_op_to_tensor = {
    .name = "to_tensor",
    .help = "converts bytes to floats from 0 to 1",
    .params = no_params,
    .plan = plan_to_tensor,
};

const struct st_op st_op_pil_to_tensor = {
    .name = "pil_to_tensor",
    .help = "converts to a tensor of bytes",
    .params = no_params,
    .plan = plan_pil_to_tensor,
};

const struct st_op st_op_to_array = {
    .name = "to_array",
    .help = "gives height x width x channels, not channels x height x width",
    .params = no_params,
    .plan = plan_to_array,
};

const struct st_op st_op_convert_image_dtype = {
    .name = "convert_image_dtype",
    .help = "converts a tensor to another type",
    .self_size = sizeof(struct convert),
    .params = convert_params,
    .plan = plan_convert,
};

const struct st_op st_op_normalize = {
    .name = "normalize",
    .help = "(value - mean) / std for each channel",
    .self_size = sizeof(struct normalize),
    .params = normalize_params,
    .plan = plan_normalize,
};

const struct st_op st_op_normalize_bytes = {
    .name = "normalize_bytes",
    .help = "(byte - mean) * factor for each channel, as float32",
    .self_size = sizeof(struct normalize_bytes),
    .params = bytes_params,
    .plan = plan_bytes,
};

const struct st_op st_op_arithmetic = {
    .name = "arithmetic",
    .help = "calculates with each value and a number",
    .self_size = sizeof(struct arithmetic),
    .params = arithmetic_params,
    .plan = plan_arithmetic,
};
