/* pixels.c - describes an array of images in a Python buffer to the engine
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

enum { IMAGES, LABELS, BUFFERS };

/* Shape and strides: images x height x width, optionally x channels. */
static int describe(const Py_buffer *images, struct stoker_pixels *out)
{
    const char *format = images->format ? images->format : "B";

    if (images->itemsize != 1 || strcmp(format, "B") != 0 || images->ndim < 3 || images->ndim > 4) {
        PyErr_Format(PyExc_TypeError,
                     "images must be a uint8 array of shape images x height x width, optionally x "
                     "channels, not one with %d dimensions and format '%s'",
                     images->ndim, format);
        return -1;
    }
    if (images->ndim == 4 && (images->shape[3] < 1 || images->shape[3] > 4)) {
        PyErr_Format(PyExc_ValueError, "images has %zd channels: 1 to 4 are allowed", images->shape[3]);
        return -1;
    }
    *out = (struct stoker_pixels){.size = sizeof(*out),
                                  .data = images->buf,
                                  .count = (uint64_t)images->shape[0],
                                  .height = images->shape[1],
                                  .width = images->shape[2],
                                  .channels = images->ndim == 4 ? (int32_t)images->shape[3] : 0};
    for (int i = 0; i < images->ndim; i++)
        out->stride[i] = images->strides[i];
    return 0;
}

Py_buffer *ext_pixels(PyObject *images, PyObject *labels, struct stoker_pixels *out, Py_ssize_t *count)
{
    Py_buffer *buffers = calloc(BUFFERS, sizeof(*buffers));

    *count = 0;
    if (!buffers)
        return (Py_buffer *)PyErr_NoMemory();
    if (PyObject_GetBuffer(images, &buffers[IMAGES], PyBUF_RECORDS_RO) < 0)
        goto failed;
    *count = 1;
    if (describe(&buffers[IMAGES], out) < 0 ||
        ext_array(labels, "labels", 8, "ql", &buffers[LABELS]) < 0)
        goto failed;
    if (buffers[LABELS].obj) {
        *count = 2;
        out->labels = buffers[LABELS].buf;
        if ((uint64_t)buffers[LABELS].len / 8 == out->count)
            return buffers;
        PyErr_Format(PyExc_ValueError, "%zd label%s for %llu image%s", buffers[LABELS].len / 8,
                     ext_s((unsigned long long)buffers[LABELS].len / 8), (unsigned long long)out->count,
                     ext_s(out->count));
        goto failed;
    }
    return buffers;
failed:
    for (Py_ssize_t i = 0; i < *count; i++)
        PyBuffer_Release(&buffers[i]);
    free(buffers);
    *count = 0;
    return NULL;
}
