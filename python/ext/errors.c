/* errors.c - the engine's statuses as Python exceptions
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <string.h>

static int add_exception(PyObject *module, PyObject **out, const char *name, const char *doc,
                         PyObject *bases)
{
    char full[64];

    PyOS_snprintf(full, sizeof(full), "stoker.%s", name);
    *out = PyErr_NewExceptionWithDoc(full, doc, bases, NULL);
    return *out ? PyModule_AddObjectRef(module, name, *out) : -1;
}

int ext_errors_add(PyObject *module, struct ext_state *state)
{
    PyObject *both;
    int rc;

    if (add_exception(module, &state->error, "StokerError", "Base class of the errors of the engine.",
                      PyExc_RuntimeError) < 0)
        return -1;
    if (add_exception(
            module, &state->corrupt, "CorruptSample",
            "A sample is damaged, or is not in the format that it claims to be. The message names it.",
            state->error) < 0)
        return -1;
    if (add_exception(
            module, &state->limit, "LimitReached",
            "A limit was reached: max_memory, pixel_limit or error_limit. The message names it.",
            state->error) < 0)
        return -1;
    if (add_exception(module, &state->internal, "InternalError",
                      "A bug in Stoker itself: please report it.", state->error) < 0)
        return -1;
    both = PyTuple_Pack(2, state->error, PyExc_NotImplementedError);
    if (!both)
        return -1;
    rc = add_exception(module, &state->unsupported, "Unsupported",
                       "This build does not support a format, a feature of it, or an option.", both);
    Py_DECREF(both);
    if (rc < 0)
        return rc;
    both = PyTuple_Pack(2, state->error, PyExc_OSError);
    if (!both)
        return -1;
    rc = add_exception(module, &state->transient, "TransientError",
                       "The machine or the network failed, not the data: trying again may succeed.",
                       both);
    Py_DECREF(both);
    return rc;
}

PyObject *ext_raise(const struct ext_state *state, const struct stoker_error *err)
{
    PyObject *type = state->error, *text;

    if (PyErr_Occurred())
        return NULL;
    switch (err->code) {
    case STOKER_EINVAL:
        type = PyExc_ValueError;
        break;
    case STOKER_ENOMEM:
        type = PyExc_MemoryError;
        break;
    case STOKER_EIO:
        type = PyExc_OSError;
        break;
    case STOKER_ENOTFOUND:
        type = PyExc_FileNotFoundError;
        break;
    case STOKER_ETRANSIENT:
        type = state->transient;
        break;
    case STOKER_EINTERNAL:
        type = state->internal;
        break;
    case STOKER_ECORRUPT:
        type = state->corrupt;
        break;
    case STOKER_ELIMIT:
        type = state->limit;
        break;
    case STOKER_EUNSUPPORTED:
        type = state->unsupported;
        break;
    }
    /* File names may contain any bytes. */
    text = PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message), "backslashreplace");
    if (text) {
        PyErr_SetObject(type, text);
        Py_DECREF(text);
    }
    return NULL;
}
