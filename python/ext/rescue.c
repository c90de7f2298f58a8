/* rescue.c - asks a Python function about a sample that the engine cannot read or decode
 *
 * The engine calls it in the thread that waits in next(), which holds no lock then but has released the
 * interpreter's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

static PyObject *call(const struct ext_rescue *self, const struct stoker_failed_sample *failed)
{
    PyObject *error = ext_error_new(self->state, failed->error), *bytes, *out;

    if (!error)
        return NULL;
    bytes = failed->bytes ? PyBytes_FromStringAndSize(failed->bytes, (Py_ssize_t)failed->byte_count)
                          : Py_NewRef(Py_None);
    out = bytes ? PyObject_CallFunction(self->function, "KOO", (unsigned long long)failed->sample, bytes,
                                        error)
                : NULL;
    Py_XDECREF(bytes);
    Py_DECREF(error);
    if (out && out != Py_None && !PyBytes_Check(out)) {
        PyErr_Format(PyExc_TypeError, "rescue must return bytes or None, not %R", out);
        Py_CLEAR(out);
    }
    return out;
}

static bool rescue(void *context, const struct stoker_failed_sample *failed, const void **image,
                   size_t *size)
{
    struct ext_rescue *self = context;
    PyObject *out = NULL, *before;
    Py_ssize_t length = 0;
    char *data = NULL;

    PyEval_RestoreThread(self->wait->thread);
    if (!self->raised[0] && !(out = call(self, failed))) {
        PyErr_Fetch(&self->raised[0], &self->raised[1], &self->raised[2]);
        stoker_loader_interrupt(self->handle); /* next() returns, and raises it */
    }
    if (out && out != Py_None && PyBytes_AsStringAndSize(out, &data, &length) < 0)
        PyErr_Clear();
    before = self->image;
    self->image = out;
    Py_XDECREF(before);
    self->wait->thread = PyEval_SaveThread();
    *image = data;
    *size = (size_t)length;
    return data != NULL;
}

void ext_rescue_set(struct ext_rescue *self, const struct ext_state *state, struct stoker_loader *handle,
                    PyObject *function)
{
    self->state = state;
    self->handle = handle;
    self->function = Py_XNewRef(function);
    if (function)
        stoker_loader_on_failure(handle, rescue, self);
}

bool ext_rescue_raises(struct ext_rescue *self)
{
    Py_CLEAR(self->image);
    if (!self->raised[0])
        return false;
    PyErr_Restore(self->raised[0], self->raised[1], self->raised[2]);
    self->raised[0] = self->raised[1] = self->raised[2] = NULL;
    return true;
}

void ext_rescue_free(struct ext_rescue *self)
{
    Py_CLEAR(self->function);
    Py_CLEAR(self->image);
    for (int k = 0; k < 3; k++)
        Py_CLEAR(self->raised[k]);
}
