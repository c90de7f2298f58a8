/* op_tensor.c - to_tensor, pil_to_tensor, convert_image_dtype and normalize: what the image ends as
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct convert {
    int32_t dtype; /* the number of the word */
    bool product;
};

struct normalize {
    struct st_list mean, std;
};

static const char *const dtype_words[] = {"uint8", "float32", "float16", "bfloat16", NULL};
static const enum stoker_dtype dtypes[] = {STOKER_DTYPE_U8, STOKER_DTYPE_F32, STOKER_DTYPE_F16, STOKER_DTYPE_BF16};

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
     .help = "from bytes: multiply by 1/255 instead of dividing, as torchvision's v2 does"},
    {0},
};

static const struct st_param normalize_params[] = {
    {.name = "mean",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct normalize, mean),
     .min = -1e30,
     .max = 1e30,
     .required = true,
     .help = "what is taken off each channel"},
    {.name = "std",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct normalize, std),
     .min = -1e30,
     .max = 1e30,
     .required = true,
     .help = "by what each channel is then divided"},
    {0},
};

static int already_tensor(const char *op, struct stoker_error *err)
{
    return st_fail(err, STOKER_EINVAL,
                   "%s: the image is a tensor already; leave it out (convert_image_dtype "
                   "makes floats of bytes)",
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

/* A byte as float32 becomes float16 by one rounding, whichever way; all other ways of going to and fro
 * round more than once, and the values here are only rounded to the last type. */
static int plan_convert(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                        struct stoker_error *err)
{
    const enum stoker_dtype from = finish->dtype, to = dtypes[((struct convert *)self)->dtype];
    if (!shape->tensor)
        return st_fail(err, STOKER_EINVAL,
                       "convert_image_dtype: wants a tensor; move it behind pil_to_tensor "
                       "or to_tensor");
    if (from == to)
        return STOKER_OK;
    if (finish->steps)
        return st_fail(err, STOKER_EINVAL,
                       "convert_image_dtype: move it before normalize, or give the loader "
                       "the dtype instead");
    if (from != STOKER_DTYPE_U8 && from != STOKER_DTYPE_F32)
        return st_fail(
            err, STOKER_EINVAL, "convert_image_dtype: %s cannot become %s afterwards; convert once",
            from == STOKER_DTYPE_F16 ? "float16" : "bfloat16", dtype_words[((struct convert *)self)->dtype]);
    if (to == STOKER_DTYPE_U8 && shape->erased)
        return st_fail(err, STOKER_EINVAL,
                       "convert_image_dtype: floats that random_erasing has written cannot "
                       "become uint8; convert before it");
    if (from == STOKER_DTYPE_U8)
        finish->by_product = ((struct convert *)self)->product;
    finish->dtype = to;
    finish->scaled = to != STOKER_DTYPE_U8;
    return STOKER_OK;
}

static int check_channels(const struct st_list *list, const char *name, int32_t channels,
                          struct stoker_error *err)
{
    if (list->count != 1 && list->count != (uint32_t)channels)
        return st_fail(err, STOKER_EINVAL, "normalize: %s has %u values, but the image %d channel%s",
                       name, list->count, channels, channels == 1 ? "" : "s");
    return STOKER_OK;
}

static int plan_normalize(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                          struct stoker_error *err)
{
    const struct normalize *n = self;
    if (finish->dtype == STOKER_DTYPE_U8)
        return st_fail(err, STOKER_EINVAL,
                       "normalize: wants floats; move it behind to_tensor (or "
                       "convert_image_dtype)");
    if (finish->steps == ST_NORMALIZE_MAX)
        return st_fail(err, STOKER_EINVAL, "normalize: no more than %d of them fit", ST_NORMALIZE_MAX);
    int rc = check_channels(&n->mean, "mean", shape->channels, err);
    if (rc >= 0)
        rc = check_channels(&n->std, "std", shape->channels, err);
    if (rc < 0)
        return rc;
    for (int32_t c = 0; c < shape->channels; c++) {
        const float std = (float)n->std.value[n->std.count > 1 ? c : 0];
        if (std == 0)
            return st_fail(err, STOKER_EINVAL,
                           "normalize: std is zero, which leads to division by zero");
        finish->step[finish->steps].std[c] = std;
        finish->step[finish->steps].mean[c] = (float)n->mean.value[n->mean.count > 1 ? c : 0];
    }
    finish->steps++;
    return STOKER_OK;
}

const struct st_op st_op_to_tensor = {
    .name = "to_tensor",
    .help = "bytes become floats from 0 to 1",
    .params = no_params,
    .plan = plan_to_tensor,
};

const struct st_op st_op_pil_to_tensor = {
    .name = "pil_to_tensor",
    .help = "bytes stay bytes",
    .params = no_params,
    .plan = plan_pil_to_tensor,
};

const struct st_op st_op_convert_image_dtype = {
    .name = "convert_image_dtype",
    .help = "another type for a tensor's values",
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
