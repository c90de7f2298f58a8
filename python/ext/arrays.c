/* arrays.c - copies of arrays of pixels: to another order in memory, and through a table
 *
 * NumPy and torch copy element by element where the order changes. The arrays here are pixels of three
 * bytes, or of three floats, and are copied pixel by pixel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 3, LEVELS = 256, TILE = 16 };
enum { LITTLE_ENDIAN_MACHINE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

/* A view of an array with three axes. */
struct view {
    const uint8_t *data;
    Py_ssize_t shape[3], stride[3];
};

static bool has_format(const Py_buffer *buffer, const char *format)
{
    return strcmp(buffer->format ? buffer->format : "B", format) == 0;
}

/* ---- floats: from interleaved channels to planes ---- */

static bool holds_floats(const void *memory) { return (uintptr_t)memory % _Alignof(float) == 0; }

static bool is_interleaved(const struct view *in)
{
    const Py_ssize_t size = sizeof(float);
    return in->shape[0] == CHANNELS && in->stride[0] == size && in->stride[2] == CHANNELS * size &&
           in->stride[1] % size == 0 && holds_floats(in->data);
}

static void to_planes(float *restrict out, const struct view *in)
{
    const Py_ssize_t height = in->shape[1], width = in->shape[2], plane = height * width;
    for (Py_ssize_t y = 0; y < height; y++) {
        const float *restrict from = (const float *)(const void *)(in->data + y * in->stride[1]);
        float *restrict red = out + y * width;
        float *restrict green = red + plane, *restrict blue = green + plane;
        for (Py_ssize_t x = 0; x < width; x++) {
            red[x] = from[CHANNELS * x];
            green[x] = from[CHANNELS * x + 1];
            blue[x] = from[CHANNELS * x + 2];
        }
    }
}

/* ---- bytes: pixels in another order, or with their channels reversed ---- */

static bool has_pixels(const struct view *in)
{
    return in->shape[2] == CHANNELS && (in->stride[2] == 1 || in->stride[2] == -1);
}

/* One row of pixels that lie one behind the other, with their channels reversed. Each pixel but the last
 * is written with a byte too many, which the next one replaces. */
static void reverse_row(uint8_t *to, const uint8_t *from, Py_ssize_t count)
{
    for (; LITTLE_ENDIAN_MACHINE && count > 1; count--, to += CHANNELS, from += CHANNELS) {
        uint32_t pixel;
        memcpy(&pixel, from, sizeof pixel);
        pixel = __builtin_bswap32(pixel) >> 8;
        memcpy(to, &pixel, sizeof pixel);
    }
    for (; count > 0; count--, to += CHANNELS, from += CHANNELS) {
        const uint8_t pixel[CHANNELS] = {from[2], from[1], from[0]};
        memcpy(to, pixel, CHANNELS);
    }
}

static void copy_tile(uint8_t *out, const struct view *in, Py_ssize_t top, Py_ssize_t left)
{
    const Py_ssize_t bottom = top + TILE < in->shape[0] ? top + TILE : in->shape[0];
    const Py_ssize_t right = left + TILE < in->shape[1] ? left + TILE : in->shape[1];
    for (Py_ssize_t y = top; y < bottom; y++) {
        uint8_t *to = out + (y * in->shape[1] + left) * CHANNELS;
        const uint8_t *from = in->data + y * in->stride[0] + left * in->stride[1];
        for (Py_ssize_t x = left; x < right; x++, to += CHANNELS, from += in->stride[1]) {
            to[0] = from[0];
            to[1] = from[in->stride[2]];
            to[2] = from[2 * in->stride[2]];
        }
    }
}

static void copy_pixels(uint8_t *out, const struct view *in)
{
    const bool in_rows = in->stride[1] == CHANNELS;
    for (Py_ssize_t y = 0; in_rows && y < in->shape[0]; y++) {
        uint8_t *to = out + y * in->shape[1] * CHANNELS;
        const uint8_t *from = in->data + y * in->stride[0];
        if (in->stride[2] == 1)
            memcpy(to, from, (size_t)in->shape[1] * CHANNELS);
        else
            reverse_row(to, from - 2, in->shape[1]);
    }
    for (Py_ssize_t y = 0; !in_rows && y < in->shape[0]; y += TILE)
        for (Py_ssize_t x = 0; x < in->shape[1]; x += TILE)
            copy_tile(out, in, y, x);
}

/* ---- the functions ---- */

/* Fills in the view, and returns whether the arrays have three axes and the same shape and type. */
static bool match(const Py_buffer *out, const Py_buffer *in, struct view *view)
{
    const char *format = out->format ? out->format : "B";
    if (out->ndim != 3 || in->ndim != 3 || out->itemsize != in->itemsize || !has_format(in, format))
        return false;
    view->data = in->buf;
    for (int axis = 0; axis < 3; axis++) {
        if (out->shape[axis] != in->shape[axis] || in->shape[axis] < 1)
            return false;
        view->shape[axis] = in->shape[axis];
        view->stride[axis] = in->strides[axis];
    }
    return true;
}

PyObject *ext_copy_packed(PyObject *module, PyObject *args)
{
    enum { NONE, PLANES, PIXELS } kind = NONE;
    PyObject *to, *from;
    struct view view;
    Py_buffer out, in;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:copy_packed", &to, &from) ||
        PyObject_GetBuffer(to, &out, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(from, &in, PyBUF_RECORDS_RO) < 0) {
        PyBuffer_Release(&out);
        return NULL;
    }
    if (match(&out, &in, &view))
        kind = has_format(&out, "f") && holds_floats(out.buf) && is_interleaved(&view) ? PLANES
               : has_format(&out, "B") && has_pixels(&view)                            ? PIXELS
                                                                                       : NONE;
    Py_BEGIN_ALLOW_THREADS
    if (kind == PLANES)
        to_planes(out.buf, &view);
    else if (kind == PIXELS)
        copy_pixels(out.buf, &view);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&out);
    PyBuffer_Release(&in);
    return PyBool_FromLong(kind != NONE);
}

static void through_three(float *restrict out, const uint8_t *restrict in, const float *restrict table,
                          Py_ssize_t count)
{
    float own[CHANNELS][LEVELS];
    for (int level = 0; level < LEVELS; level++)
        for (int c = 0; c < CHANNELS; c++)
            own[c][level] = table[level * CHANNELS + c];
    for (; count > 0; count -= CHANNELS, in += CHANNELS, out += CHANNELS) {
        out[0] = own[0][in[0]];
        out[1] = own[1][in[1]];
        out[2] = own[2][in[2]];
    }
}

static void through_one(float *restrict out, const uint8_t *restrict in, const float *restrict table,
                        Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        out[i] = table[in[i]];
}

static bool fit(const Py_buffer *out, const Py_buffer *in, const Py_buffer *table, Py_ssize_t channels)
{
    const Py_ssize_t size = sizeof(float);
    return (channels == 1 || channels == CHANNELS) && table->len == channels * LEVELS * size &&
           in->len % channels == 0 && in->len <= PY_SSIZE_T_MAX / size && out->len == in->len * size &&
           holds_floats(out->buf) && holds_floats(table->buf);
}

PyObject *ext_through_table(PyObject *module, PyObject *args)
{
    Py_buffer out, in, table;
    PyObject *to;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*y*:through_table", &to, &in, &table))
        return NULL;
    const bool got = PyObject_GetBuffer(to, &out, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) == 0;
    const Py_ssize_t channels = table.len / (LEVELS * (Py_ssize_t)sizeof(float));
    const bool fits = got && fit(&out, &in, &table, channels);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS(channels == 1 ? through_one : through_three)
        (out.buf, in.buf, table.buf, in.len);
        Py_END_ALLOW_THREADS
    } else if (got) {
        PyErr_Format(PyExc_ValueError, "%zd bytes and a table of %zd do not make an array of %zd",
                     in.len, table.len, out.len);
    }
    if (got)
        PyBuffer_Release(&out);
    PyBuffer_Release(&in);
    PyBuffer_Release(&table);
    if (!fits)
        return NULL;
    Py_RETURN_NONE;
}
