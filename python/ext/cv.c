/* cv.c - operations with OpenCV's arithmetic on Python buffers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <string.h>

enum { IMAGES = 2, TABLES = 2, BUFFERS = IMAGES + TABLES, NUMBERS = 32 };

/* Height x width, optionally x channels. */
static int describe_image(const Py_buffer *buffer, struct stoker_tensor *out)
{
    const char *format = buffer->format ? buffer->format : "B";

    if (buffer->ndim < 2 || buffer->ndim > 3 || strcmp(format, "B") != 0) {
        PyErr_Format(
            PyExc_TypeError,
            "cv_run: images are uint8 arrays of shape height x width, optionally x channels, not "
            "with %d dimensions and format '%s'",
            buffer->ndim, format);
        return -1;
    }
    *out = (struct stoker_tensor){.data = buffer->buf, .dtype = STOKER_DTYPE_U8, .ndim = 3};
    out->shape[2] = out->stride[2] = 1;
    for (int k = 0; k < buffer->ndim; k++) {
        out->shape[k] = buffer->shape[k];
        out->stride[k] = buffer->strides[k];
    }
    return 0;
}

static int describe_table(const Py_buffer *buffer, struct stoker_tensor *out)
{
    const char *format = buffer->format ? buffer->format : "B";

    if (buffer->ndim < 1 || buffer->ndim > STOKER_TENSOR_DIMS ||
        (strcmp(format, "B") != 0 && strcmp(format, "f") != 0)) {
        PyErr_Format(PyExc_TypeError,
                     "cv_run: tables are arrays of uint8 or float32, not of format '%s'", format);
        return -1;
    }
    *out = (struct stoker_tensor){.data = buffer->buf,
                                  .dtype = *format == 'f' ? STOKER_DTYPE_F32 : STOKER_DTYPE_U8,
                                  .ndim = buffer->ndim};
    for (int k = 0; k < buffer->ndim; k++)
        out->shape[k] = buffer->shape[k];
    return 0;
}

static int read_numbers(PyObject *tuple, double numbers[NUMBERS])
{
    const Py_ssize_t count = PyTuple_Size(tuple);

    if (count > NUMBERS) {
        PyErr_Format(PyExc_ValueError, "cv_run: %zd numbers are too many", count);
        return -1;
    }
    for (Py_ssize_t k = 0; k < count; k++)
        numbers[k] = PyFloat_AsDouble(PyTuple_GetItem(tuple, k));
    return PyErr_Occurred() ? -1 : (int)count;
}

/* Acquires the buffers: the image, the result, then the tables. Returns how many there are, those that
 * were acquired before a failure included. */
static int acquire(PyObject *image, PyObject *out, PyObject *tables, Py_buffer buffers[BUFFERS],
                   struct stoker_tensor arrays[BUFFERS])
{
    const Py_ssize_t count = PyTuple_Size(tables);

    if (count > TABLES) {
        PyErr_Format(PyExc_ValueError, "cv_run: %zd tables are too many", count);
        return 0;
    }
    if (PyObject_GetBuffer(image, &buffers[0], PyBUF_RECORDS_RO) < 0)
        return 0;
    if (describe_image(&buffers[0], &arrays[0]) < 0 ||
        PyObject_GetBuffer(out, &buffers[1], PyBUF_RECORDS) < 0)
        return 1;
    if (describe_image(&buffers[1], &arrays[1]) < 0)
        return IMAGES;
    for (int k = 0; k < (int)count; k++) {
        const int at = IMAGES + k;
        if (PyObject_GetBuffer(PyTuple_GetItem(tables, k), &buffers[at],
                               PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
            return at;
        if (describe_table(&buffers[at], &arrays[at]) < 0)
            return at + 1;
    }
    return IMAGES + (int)count;
}

PyObject *ext_cv_level(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return PyUnicode_FromString(stoker_cv_level());
}

PyObject *ext_cv_run(PyObject *module, PyObject *args)
{
    const struct ext_state *state = PyModule_GetState(module);
    struct stoker_tensor arrays[BUFFERS];
    struct stoker_error err;
    PyObject *image, *out, *tuple, *tables;
    Py_buffer buffers[BUFFERS];
    double numbers[NUMBERS];
    const char *op;

    if (!PyArg_ParseTuple(args, "sO!O!OO:cv_run", &op, &PyTuple_Type, &tuple, &PyTuple_Type, &tables,
                          &image, &out))
        return NULL;
    const int count = read_numbers(tuple, numbers);
    if (count < 0)
        return NULL;
    const int acquired = acquire(image, out, tables, buffers, arrays);
    int rc = STOKER_OK;
    if (!PyErr_Occurred()) {
        Py_BEGIN_ALLOW_THREADS
        rc = stoker_cv_run(op, numbers, (uint32_t)count, arrays + IMAGES, (uint32_t)(acquired - IMAGES),
                           &arrays[0], &arrays[1], &err);
        Py_END_ALLOW_THREADS
    }
    for (int k = 0; k < acquired; k++)
        PyBuffer_Release(&buffers[k]);
    if (PyErr_Occurred())
        return NULL;
    if (rc < 0)
        return ext_raise(state, &err);
    Py_RETURN_NONE;
}
