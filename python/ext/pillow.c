/* pillow.c - reads and writes the pixels of Pillow's RGB images in place
 *
 * Pillow exports its memory through Arrow's C data interface: an array of pixels whose child is an array
 * of bytes, four for each pixel, of which the last is padding. Pillow's own tobytes() and frombytes()
 * would copy them several times.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <string.h>

/* struct ArrowArray of the interface's specification. */
struct arrow_array {
    int64_t length, null_count, offset, buffer_count, child_count;
    const void **buffers;
    struct arrow_array **children, *dictionary;
    void (*release)(struct arrow_array *array);
    void *private_data;
};

enum { RGB = 3, STORED = 4 }; /* bytes of a pixel: packed, and in Pillow's memory */

/* The memory of the image's pixels, and their number; NULL with an exception. */
static uint8_t *pixels_of(PyObject *capsule, int64_t *count)
{
    const struct arrow_array *array = PyCapsule_GetPointer(capsule, "arrow_array"), *bytes;
    if (!array)
        return NULL;
    bytes = array->release && array->child_count == 1 ? array->children[0] : NULL;
    if (!bytes || array->offset || bytes->offset || bytes->buffer_count != 2 || !bytes->buffers[1] ||
        array->length < 1 || array->length > INT64_MAX / STORED ||
        bytes->length != STORED * array->length) {
        PyErr_SetString(PyExc_ValueError, "this is not the memory of an RGB image of Pillow");
        return NULL;
    }
    *count = array->length;
    return (uint8_t *)(uintptr_t)bytes->buffers[1];
}

/* Four pixels at a time, in registers, which assumes this byte order; one at a time with the other. */
enum { AT_ONCE = 4, LITTLE_ENDIAN_MACHINE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

static void pack(uint8_t *to, const uint8_t *from, int64_t count)
{
    for (; LITTLE_ENDIAN_MACHINE && count >= AT_ONCE;
         count -= AT_ONCE, from += AT_ONCE * STORED, to += AT_ONCE * RGB) {
        uint64_t a, b;
        memcpy(&a, from, 8);
        memcpy(&b, from + 8, 8);
        a = (a & 0xffffff) | (a >> 8 & 0xffffff000000) | b << 48;
        const uint32_t rest = (uint32_t)((b >> 16 & 0xff) | (b >> 24 & 0xffffff00));
        memcpy(to, &a, 8);
        memcpy(to + 8, &rest, 4);
    }
    for (; count > 0; count--, from += STORED, to += RGB)
        memcpy(to, from, RGB);
}

static void spread(uint8_t *to, const uint8_t *from, int64_t count)
{
    const uint64_t padding = 0xff000000ff000000;
    for (; LITTLE_ENDIAN_MACHINE && count >= AT_ONCE;
         count -= AT_ONCE, from += AT_ONCE * RGB, to += AT_ONCE * STORED) {
        uint64_t a, b;
        uint32_t rest;
        memcpy(&a, from, 8);
        memcpy(&rest, from + 8, 4);
        b = a >> 48 | (uint64_t)(rest & 0xff) << 16 | (uint64_t)(rest >> 8) << 32 | padding;
        a = (a & 0xffffff) | (a & 0xffffff000000) << 8 | padding;
        memcpy(to, &a, 8);
        memcpy(to + 8, &b, 8);
    }
    for (; count > 0; count--, from += RGB, to += STORED) {
        memcpy(to, from, RGB);
        to[RGB] = 255;
    }
}

PyObject *ext_pillow_read(PyObject *module, PyObject *array)
{
    int64_t count;
    const uint8_t *pixels = pixels_of(array, &count);
    PyObject *out = pixels ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(RGB * count)) : NULL;
    (void)module;
    if (out)
        pack((uint8_t *)PyBytes_AsString(out), pixels, count);
    return out;
}

PyObject *ext_pillow_write(PyObject *module, PyObject *args)
{
    PyObject *array;
    Py_buffer data;
    int64_t count;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*:pillow_write", &array, &data))
        return NULL;
    uint8_t *pixels = pixels_of(array, &count);
    const bool fits = pixels && data.len == RGB * count;
    if (fits)
        spread(pixels, data.buf, count);
    else if (pixels)
        PyErr_Format(PyExc_ValueError, "%zd bytes are not the pixels of an image of %lld pixels",
                     data.len, (long long)count);
    PyBuffer_Release(&data);
    if (!fits)
        return NULL;
    Py_RETURN_NONE;
}
