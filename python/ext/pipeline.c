/* pipeline.c - Pipeline: the ops that are applied to each image
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

struct pipeline {
    PyObject_HEAD
    struct stoker_pipeline *handle;
    PyObject *text;
};

struct stoker_pipeline *ext_pipeline_handle(PyObject *object)
{
    return ((struct pipeline *)object)->handle;
}

static PyObject *pipeline_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", NULL};
    struct stoker_error err;
    struct pipeline *self;
    PyObject *text;
    const char *utf8;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U:Pipeline", names, &text))
        return NULL;
    utf8 = PyUnicode_AsUTF8AndSize(text, NULL);
    self = utf8 ? (struct pipeline *)PyType_GenericAlloc(type, 0) : NULL;
    if (!self)
        return NULL;
    self->text = Py_NewRef(text);
    if (stoker_pipeline_open(&self->handle, utf8, &err) < 0) {
        self->handle = NULL;
        ext_raise(PyType_GetModuleState(type), &err);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void pipeline_dealloc(PyObject *object)
{
    struct pipeline *self = (struct pipeline *)object;

    stoker_pipeline_close(self->handle);
    Py_XDECREF(self->text);
    ext_free(object);
}

static PyObject *pipeline_text(PyObject *object, void *unused)
{
    (void)unused;
    return Py_NewRef(((struct pipeline *)object)->text);
}

static PyObject *pipeline_repr(PyObject *object)
{
    return PyUnicode_FromFormat("Pipeline(%R)", ((struct pipeline *)object)->text);
}

static PyGetSetDef pipeline_getset[] = {
    {"text", pipeline_text, NULL, "The text that it was made from.", NULL},
    {0},
};

static PyType_Slot pipeline_slots[] = {
    {Py_tp_new, pipeline_new},
    {Py_tp_dealloc, pipeline_dealloc},
    {Py_tp_getset, pipeline_getset},
    {Py_tp_repr, pipeline_repr},
    {Py_tp_doc, "Pipeline(text): ops separated by ';'. Raises ValueError if the text is not valid."},
    {0, NULL},
};

PyType_Spec ext_pipeline_spec = {
    .name = "stoker._ext.Pipeline",
    .basicsize = sizeof(struct pipeline),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = pipeline_slots,
};
