/* options.c - converts keyword arguments and arrays to the engine's structs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

const char *const ext_order_words[] = {"sequential", "shuffle", "torch", "weighted", "given", NULL};
const char *const ext_layout_words[] = {"nchw", "nhwc", NULL};

static int set_number(const struct ext_option *option, PyObject *value, void *field)
{
    unsigned long long number;

    if (option->kind == EXT_I32) {
        long small = PyLong_AsLong(value);

        if (small == -1 && PyErr_Occurred())
            goto type;
        if (small < INT32_MIN || small > INT32_MAX)
            goto range;
        *(int32_t *)field = (int32_t)small;
        return 0;
    }
    number = PyLong_AsUnsignedLongLong(value);
    if (number == (unsigned long long)-1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            goto range;
        goto type;
    }
    if (option->kind == EXT_U64)
        *(uint64_t *)field = number;
    else if (number <= UINT32_MAX)
        *(uint32_t *)field = (uint32_t)number;
    else
        goto range;
    return 0;
type:
    if (PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s=%R is not an integer", option->name, value);
    return -1;
range:
    PyErr_Format(PyExc_ValueError, "%s=%R is out of range: it must be from %s", option->name, value,
                 option->kind == EXT_I32   ? "-2^31 to 2^31 - 1"
                 : option->kind == EXT_U32 ? "0 to 2^32 - 1"
                                           : "0 to 2^64 - 1");
    return -1;
}

static int set_word(const struct ext_option *option, PyObject *value, void *field)
{
    const char *word = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    char choices[256] = "";

    for (int i = 0; option->words[i]; i++) {
        if (word && !strcmp(word, option->words[i])) {
            *(int *)field = i;
            return 0;
        }
        PyOS_snprintf(choices + strlen(choices), sizeof(choices) - strlen(choices), "%s'%s'",
                      i ? ", " : "", option->words[i]);
    }
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%s=%R is not one of %s", option->name, value, choices);
    return -1;
}

static int set_text(const struct ext_option *option, PyObject *value, const char **field)
{
    *field = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    if (!*field && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s=%R is not a string", option->name, value);
    return *field ? 0 : -1;
}

static int set_option(const struct ext_option *option, PyObject *value, void *into)
{
    void *field = (char *)into + option->offset;
    int truth;

    switch (option->kind) {
    case EXT_BOOL:
        truth = PyObject_IsTrue(value);
        *(bool *)field = truth > 0;
        return truth < 0 ? -1 : 0;
    case EXT_WORD:
        return set_word(option, value, field);
    case EXT_TEXT:
        return set_text(option, value, field);
    default:
        return set_number(option, value, field);
    }
}

int ext_options_read(const struct ext_option *table, PyObject *kwargs, const char *function, void *into)
{
    PyObject *key, *value;
    Py_ssize_t place = 0;

    while (kwargs && PyDict_Next(kwargs, &place, &key, &value)) {
        const struct ext_option *option = table;
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);

        if (!name)
            return -1;
        while (option->name && strcmp(option->name, name))
            option++;
        if (!option->name) {
            PyErr_Format(PyExc_TypeError, "%s has no option '%s'", function, name);
            return -1;
        }
        if (value != Py_None && set_option(option, value, into) < 0)
            return -1;
    }
    return 0;
}

PyObject *ext_options_take(PyObject *kwargs, const char *name)
{
    PyObject *value = PyDict_GetItemString(kwargs, name);

    if (!value)
        return NULL;
    Py_INCREF(value);
    if (PyDict_DelItemString(kwargs, name) < 0 || value == Py_None)
        Py_CLEAR(value);
    return value;
}

int ext_array(PyObject *object, const char *what, Py_ssize_t itemsize, const char *formats,
              Py_buffer *view)
{
    const char *format;

    memset(view, 0, sizeof(*view));
    if (!object || object == Py_None)
        return 0;
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return -1;
    format = view->format ? view->format : "B";
    if (view->ndim == 1 && view->itemsize == itemsize && strlen(format) == 1 && strchr(formats, *format))
        return 0;
    PyErr_Format(
        PyExc_TypeError,
        "%s must be an array with one dimension and %zd-byte values of format '%s', not one with %d "
        "dimensions and format '%s'",
        what, itemsize, formats, view->ndim, format);
    PyBuffer_Release(view);
    return -1;
}

void ext_array_free(Py_buffer *view)
{
    if (view->obj)
        PyBuffer_Release(view);
}

const char **ext_strings(PyObject *sequence, PyObject *keep, Py_ssize_t *count)
{
    PyObject *list = PySequence_List(sequence);
    const char **out = NULL;

    if (!list)
        return NULL;
    *count = PyList_Size(list);
    out = calloc((size_t)*count + 1, sizeof(*out));
    if (!out)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; out && i < *count; i++) {
        PyObject *bytes = NULL;

        if (PyUnicode_FSConverter(PyList_GetItem(list, i), &bytes) && PyList_Append(keep, bytes) == 0) {
            out[i] = PyBytes_AsString(bytes);
        } else {
            free(out);
            out = NULL;
        }
        Py_XDECREF(bytes);
    }
    Py_DECREF(list);
    return out;
}
