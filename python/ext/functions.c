/* functions.c - the module's functions: decode, order_indices, and the features of this build
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <stdlib.h>

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(stoker_version_string());
}

static PyObject *cpus(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLong(stoker_cpu_count());
}

static PyObject *features(PyObject *module, PyObject *unused)
{
    struct stoker_feature feature = {.size = sizeof(feature)};
    PyObject *list = PyList_New(0);

    (void)module, (void)unused;
    for (uint32_t i = 0; list && stoker_feature_at(i, &feature); i++) {
        PyObject *entry =
            Py_BuildValue("(sssO)", feature.kind, feature.name, feature.detail ? feature.detail : "",
                          feature.present ? Py_True : Py_False);

        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyObject *ops(PyObject *module, PyObject *unused)
{
    struct stoker_op info = {.size = sizeof(info)};
    PyObject *list = PyList_New(0);

    (void)module, (void)unused;
    for (uint32_t i = 0; list && stoker_op_at(i, &info); i++) {
        PyObject *entry = Py_BuildValue("(ss)", info.name, info.help);

        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static void free_image(void *image)
{
    stoker_image_close(image);
    free(image);
}

int ext_region(PyObject *region, uint32_t *x, uint32_t *y, uint32_t *width, uint32_t *height)
{
    uint32_t *fields[] = {x, y, width, height};

    if (region == Py_None)
        return 0;
    if (!PyTuple_Check(region) || PyTuple_Size(region) != 4) {
        PyErr_Format(PyExc_TypeError, "region=%R must be four numbers: (x, y, width, height)", region);
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        long long number = PyLong_AsLongLong(PyTuple_GetItem(region, i));

        if (number == -1 && PyErr_Occurred())
            return -1;
        if (number < (i >= 2) || number > UINT32_MAX) {
            PyErr_Format(PyExc_ValueError,
                         "region=%R: x and y must be 0 or more, width and height at least 1", region);
            return -1;
        }
        *fields[i] = (uint32_t)number;
    }
    return 0;
}

static PyObject *image_tensor(PyObject *module, struct stoker_image *image)
{
    struct stoker_tensor view = {
        .data = image->pixels,
        .dtype = STOKER_DTYPE_U8,
        .ndim = 3,
        .shape = {image->height, image->width, 3},
        .stride = {(int64_t)image->width * 3, 3, 1},
    };

    return ext_tensor_own(PyModule_GetState(module), &view, image, free_image);
}

static PyObject *decode(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data", "region", "name", "exif_rotate", "pixel_limit", NULL};
    struct stoker_image_options options = stoker_image_defaults();
    unsigned long long limit = options.pixel_limit;
    struct stoker_image *image = NULL;
    struct stoker_error err;
    PyObject *region = Py_None;
    const char *name = "the image";
    int rotate = 0, rc = -1;
    Py_buffer data;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*|OspK:decode", names, &data, &region, &name,
                                     &rotate, &limit))
        return NULL;
    if (ext_region(region, &options.x, &options.y, &options.width, &options.height) == 0 &&
        !(image = calloc(1, sizeof(*image))))
        PyErr_NoMemory();
    if (image) {
        options.exif_rotate = rotate;
        options.pixel_limit = limit;
        Py_BEGIN_ALLOW_THREADS
        rc = stoker_image_decode(image, data.buf, (size_t)data.len, name, &options, &err);
        Py_END_ALLOW_THREADS
        if (rc < 0)
            ext_raise(PyModule_GetState(module), &err);
    }
    PyBuffer_Release(&data);
    if (rc < 0) {
        free(image);
        return NULL;
    }
    return image_tensor(module, image);
}

static PyObject *jpeg_is_regular(PyObject *module, PyObject *object)
{
    uint32_t width = 0, height = 0, components = 0;
    Py_buffer data;
    bool regular;

    (void)module;
    if (PyObject_GetBuffer(object, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    regular = stoker_jpeg_is_regular(data.buf, (size_t)data.len, &width, &height, &components);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    return regular ? Py_BuildValue("(III)", width, height, components) : Py_NewRef(Py_None);
}

/* ---- orders ---- */

struct order_request {
    struct stoker_order_options options;
    uint64_t count, epoch;
};

#define ORDER_OPTION(name, kind)                                                                        \
    {                                                                                                   \
#name, kind, offsetof(struct order_request, options.name), NULL                                 \
    }
static const struct ext_option order_options[] = {
    {"kind", EXT_WORD, offsetof(struct order_request, options.kind), ext_order_words},
    ORDER_OPTION(seed, EXT_U64),
    ORDER_OPTION(rank, EXT_U32),
    ORDER_OPTION(world, EXT_U32),
    ORDER_OPTION(drop_uneven, EXT_BOOL),
    ORDER_OPTION(epoch_fixed, EXT_BOOL),
    ORDER_OPTION(draws, EXT_U64),
    {"epoch", EXT_U64, offsetof(struct order_request, epoch), NULL},
    {0},
};

/* All positions of one epoch, in memory from malloc; NULL with *err set. */
static int64_t *run_order(const struct order_request *request, const Py_buffer *indices,
                          uint64_t *length, struct stoker_error *err)
{
    struct stoker_order *order;
    int64_t *out = NULL;

    if (stoker_order_open(&order, request->count, &request->options, err) < 0)
        return NULL;
    if (stoker_order_start(order, request->epoch, indices->buf, (uint64_t)(indices->len / 8), err) ==
        0) {
        *length = stoker_order_count(order);
        out = calloc(*length + 1, sizeof(*out));
        if (!out)
            err->code = STOKER_ENOMEM;
        for (uint64_t i = 0; out && i < *length; i++)
            out[i] = (int64_t)stoker_order_at(order, i);
    }
    stoker_order_close(order);
    return out;
}

static PyObject *order_tensor(PyObject *module, struct order_request *request, const Py_buffer *indices,
                              const Py_buffer *weights)
{
    struct stoker_tensor view = {.dtype = STOKER_DTYPE_I64, .ndim = 1, .stride = {1}};
    struct stoker_error err = {.message = "out of memory"};
    uint64_t length = 0;

    if (weights->obj && (uint64_t)weights->len / 8 != request->count) {
        PyErr_Format(PyExc_ValueError, "weights must have a value for each sample: %llu, not %zd",
                     (unsigned long long)request->count, weights->len / 8);
        return NULL;
    }
    request->options.weights = weights->buf;
    Py_BEGIN_ALLOW_THREADS
    view.data = run_order(request, indices, &length, &err);
    Py_END_ALLOW_THREADS
    if (!view.data)
        return ext_raise(PyModule_GetState(module), &err);
    view.shape[0] = (int64_t)length;
    return ext_tensor_own(PyModule_GetState(module), &view, view.data, free);
}

static bool check_count(long long count)
{
    if (count < 0)
        PyErr_Format(PyExc_ValueError, "count=%lld is negative", count);
    return count >= 0;
}

static PyObject *order_indices(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct order_request request = {.options = stoker_order_defaults()};
    PyObject *rest = kwargs ? PyDict_Copy(kwargs) : PyDict_New(), *indices, *weights, *out = NULL;
    Py_buffer index_view = {0}, weight_view = {0};
    long long count;

    if (!rest)
        return NULL;
    request.options.kind = STOKER_ORDER_TORCH;
    indices = ext_options_take(rest, "indices");
    weights = ext_options_take(rest, "weights");
    if (PyArg_ParseTuple(args, "L:order_indices", &count) && check_count(count) &&
        ext_options_read(order_options, rest, "order_indices", &request) == 0 &&
        ext_array(indices, "indices", 8, "qlQL", &index_view) == 0 &&
        ext_array(weights, "weights", 8, "d", &weight_view) == 0) {
        request.count = (uint64_t)count;
        out = order_tensor(module, &request, &index_view, &weight_view);
    }
    ext_array_free(&index_view);
    ext_array_free(&weight_view);
    Py_XDECREF(indices);
    Py_XDECREF(weights);
    Py_DECREF(rest);
    return out;
}

static PyObject *mix_draw(PyObject *module, PyObject *args)
{
    unsigned long long seed, epoch, batch;
    struct stoker_mix mix;
    unsigned op;
    double alpha;

    (void)module;
    if (!PyArg_ParseTuple(args, "KKKId:mix_draw", &seed, &epoch, &batch, &op, &alpha))
        return NULL;
    if (!(alpha > 0 && alpha < 1e300) || op >= 252) {
        PyErr_Format(PyExc_ValueError, "mix_draw: op=%u must be below 252, and alpha above 0 and finite",
                     op);
        return NULL;
    }
    mix = stoker_mix_draw(seed, epoch, batch, op, alpha);
    return Py_BuildValue("(dddd)", mix.lambda, mix.choice, mix.x, mix.y);
}

PyMethodDef ext_functions[] = {
    {"version", version, METH_NOARGS, "Return the engine's version."},
    {"cpus", cpus, METH_NOARGS,
     "Return the number of CPUs that this process may use, by affinity and cgroup quota."},
    {"features", features, METH_NOARGS,
     "Return the features of this build: (kind, name, detail, present), ..."},
    {"ops", ops, METH_NOARGS, "Return the ops of pipelines: (name, help), ..."},
    {"cv_level", ext_cv_level, METH_NOARGS, "Return the name of the kernels that cv_run uses."},
    {"cv_run", ext_cv_run, METH_VARARGS,
     "cv_run(op, numbers, tables, array, out): makes `out` by an operation with OpenCV's arithmetic."},
    {"decode", (PyCFunction)(void (*)(void))decode, METH_VARARGS | METH_KEYWORDS,
     "decode(data, region=None, name=..., exif_rotate=False, pixel_limit=...) -> RGB pixels as a "
     "Tensor."},
    {"jpeg_is_regular", jpeg_is_regular, METH_O,
     "jpeg_is_regular(data) -> (width, height, components) of a JPEG that can be decoded without "
     "errors, or None."},
    {"pillow_read", ext_pillow_read, METH_O,
     "pillow_read(array) -> the pixels of an RGB image of Pillow as bytes; `array` is what its "
     "__arrow_c_array__ returned."},
    {"pillow_write", ext_pillow_write, METH_VARARGS,
     "pillow_write(array, data): replace the pixels of such an image by RGB bytes."},
    {"copy_packed", ext_copy_packed, METH_VARARGS,
     "copy_packed(out, array) -> whether it could: copy an array with three axes into a packed one of "
     "its shape. It can if these are bytes, height x width x 3 with pixels in any order, or floats, 3 x "
     "height x width whose channels are interleaved. The two share no memory."},
    {"through_table", ext_through_table, METH_VARARGS,
     "through_table(out, data, table): replace bytes by floats. `table` has one float for each of 256 "
     "values, or three, for data whose channels alternate."},
    {"order_indices", (PyCFunction)(void (*)(void))order_indices, METH_VARARGS | METH_KEYWORDS,
     "order_indices(count, *, kind='torch', seed=0, epoch=0, rank=0, world=1, drop_uneven=False, "
     "epoch_fixed=False, indices=None, weights=None, draws=0) -> a Tensor of sample numbers."},
    {"mix_draw", mix_draw, METH_VARARGS,
     "mix_draw(seed, epoch, batch, op, alpha) -> (lambda, choice, x, y) for an op on a whole batch."},
    {0},
};
