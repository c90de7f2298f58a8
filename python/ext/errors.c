/* errors.c - the engine's statuses as Python exceptions
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <errno.h>
#include <string.h>

/* `dict` may be NULL. */
static int add_exception(PyObject *module, PyObject **out, const char *name, const char *doc,
                         PyObject *bases, PyObject *dict)
{
    char full[64];

    PyOS_snprintf(full, sizeof(full), "stoker.%s", name);
    *out = PyErr_NewExceptionWithDoc(full, doc, bases, dict);
    return *out ? PyModule_AddObjectRef(module, name, *out) : -1;
}

/* A class that is derived from two, so that code which expects the second one works as well. It is made
 * like the second one: RuntimeError, a base of the first, would ignore the errno and filename of
 * OSError. */
static int add_both(PyObject *module, PyObject **out, const char *name, const char *doc, PyObject *first,
                    PyObject *second)
{
    PyObject *bases = PyTuple_Pack(2, first, second), *init = PyObject_GetAttrString(second, "__init__"),
             *dict = init ? Py_BuildValue("{sO}", "__init__", init) : NULL;
    const int rc = bases && dict ? add_exception(module, out, name, doc, bases, dict) : -1;

    Py_XDECREF(bases);
    Py_XDECREF(init);
    Py_XDECREF(dict);
    return rc;
}

int ext_errors_add(PyObject *module, struct ext_state *state)
{
    if (add_exception(module, &state->error, "StokerError", "Base class of all errors of the engine.",
                      PyExc_RuntimeError, NULL) < 0 ||
        add_exception(
            module, &state->corrupt, "CorruptSample",
            "A sample is damaged, or is not in the format that it claims to be. The message names it.",
            state->error, NULL) < 0 ||
        add_exception(
            module, &state->limit, "LimitReached",
            "A limit was reached: max_memory, pixel_limit or error_limit. The message names it.",
            state->error, NULL) < 0 ||
        add_exception(module, &state->internal, "InternalError",
                      "A bug in Stoker itself: please report it.", state->error, NULL) < 0)
        return -1;
    if (add_both(module, &state->unsupported, "Unsupported",
                 "This build does not support a format, a feature of it, or an option.", state->error,
                 PyExc_NotImplementedError) < 0 ||
        add_both(module, &state->transient, "TransientError",
                 "The machine or the network failed, not the data: trying again may succeed.",
                 state->error, PyExc_OSError) < 0 ||
        add_both(module, &state->read, "ReadError", "A file cannot be read. The message names it.",
                 state->error, PyExc_OSError) < 0 ||
        add_both(module, &state->missing, "NotFound", "There is no such file, folder or object.",
                 state->read, PyExc_FileNotFoundError) < 0 ||
        add_both(module, &state->argument, "InvalidArgument",
                 "The engine does not accept a value. The message names it and what is allowed.",
                 state->error, PyExc_ValueError) < 0)
        return -1;
    return add_both(module, &state->memory, "OutOfMemory",
                    "The engine cannot get the memory that it needs.", state->error, PyExc_MemoryError);
}

static PyObject *class_of(const struct ext_state *state, int code)
{
    switch (code) {
    case STOKER_EINVAL:
        return state->argument;
    case STOKER_ENOMEM:
        return state->memory;
    case STOKER_EIO:
        return state->read;
    case STOKER_ENOTFOUND:
        return state->missing;
    case STOKER_ETRANSIENT:
        return state->transient;
    case STOKER_EINTERNAL:
        return state->internal;
    case STOKER_ECORRUPT:
        return state->corrupt;
    case STOKER_ELIMIT:
        return state->limit;
    case STOKER_EUNSUPPORTED:
        return state->unsupported;
    default:
        return state->error;
    }
}

/* As Python's own FileNotFoundError has it. The message stays the engine's. */
static int set_errno(PyObject *error, int number)
{
    PyObject *value = PyLong_FromLong(number);
    const int rc = value ? PyObject_SetAttrString(error, "errno", value) : -1;

    Py_XDECREF(value);
    return rc;
}

PyObject *ext_error_new(const struct ext_state *state, const struct stoker_error *err)
{
    /* File names may contain any bytes. */
    PyObject *text =
        PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message), "backslashreplace");
    PyObject *error = text ? PyObject_CallFunctionObjArgs(class_of(state, err->code), text, NULL) : NULL;

    Py_XDECREF(text);
    if (error && err->code == STOKER_ENOTFOUND && set_errno(error, ENOENT) < 0)
        Py_CLEAR(error);
    return error;
}

PyObject *ext_raise(const struct ext_state *state, const struct stoker_error *err)
{
    PyObject *error;

    if (PyErr_Occurred())
        return NULL;
    error = ext_error_new(state, err);
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}
