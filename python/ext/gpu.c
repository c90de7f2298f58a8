/* gpu.c - GpuWatch: how busy a GPU is
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

struct gpu_watch {
    PyObject_HEAD struct stoker_gpu_watch *handle; /* NULL: closed */
};

static PyObject *watch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"which", NULL};
    struct stoker_error err;
    struct gpu_watch *self;
    const char *which = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z:GpuWatch", names, &which))
        return NULL;
    self = (struct gpu_watch *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    if (stoker_gpu_watch_open(&self->handle, which, &err) < 0) {
        ext_raise(PyType_GetModuleState(type), &err);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyObject *watch_close(PyObject *object, PyObject *unused)
{
    struct gpu_watch *self = (struct gpu_watch *)object;

    (void)unused;
    stoker_gpu_watch_close(self->handle);
    self->handle = NULL;
    Py_RETURN_NONE;
}

static void watch_dealloc(PyObject *object)
{
    stoker_gpu_watch_close(((struct gpu_watch *)object)->handle);
    ext_free(object);
}

/* A number, or None where the GPU does not say. Takes over nothing. */
static int set_number(PyObject *dict, const char *name, double value)
{
    PyObject *number = value < 0 ? Py_NewRef(Py_None) : PyFloat_FromDouble(value);
    int rc = number ? PyDict_SetItemString(dict, name, number) : -1;

    Py_XDECREF(number);
    return rc;
}

static PyObject *watch_sample(PyObject *object, PyObject *unused)
{
    struct gpu_watch *self = (struct gpu_watch *)object;
    struct stoker_gpu_sample sample = {.size = sizeof(sample)};
    struct stoker_error err;
    PyObject *dict;
    int rc;

    (void)unused;
    rc = stoker_gpu_watch_sample(self->handle, &sample, &err);
    if (rc < 0) {
        if (!self->handle)
            PyErr_SetString(PyExc_ValueError, "sample() of a GpuWatch that is closed");
        else
            ext_raise(ext_state_of(object), &err);
        return NULL;
    }
    dict = Py_BuildValue("{sKsKssss}", "memory_used", (unsigned long long)sample.memory_used, "memory_total",
                         (unsigned long long)sample.memory_total, "name", sample.name, "driver",
                         sample.driver);
    if (!dict)
        return NULL;
#define SET(name) set_number(dict, #name, sample.name) < 0
    if (SET(busy) || SET(sm_active) || SET(sm_occupancy) || SET(tensor_active) || SET(dram_active) ||
        SET(jpeg_engines) || SET(pcie_in) || SET(pcie_out) || SET(seconds) || SET(watts) || SET(clock) ||
        SET(limited) || SET(link_generation) || SET(link_width) || SET(link_generation_most) ||
        SET(link_width_most) || SET(node))
        Py_CLEAR(dict);
#undef SET
    return dict;
}

static PyMethodDef watch_methods[] = {
    {"sample", watch_sample, METH_NOARGS,
     "What is known now, as a dict; None for what this GPU does not say. Shares are 0 to 1."},
    {"close", watch_close, METH_NOARGS, "Stops watching. May be called twice."},
    {0},
};

static PyType_Slot watch_slots[] = {
    {Py_tp_new, watch_new},
    {Py_tp_dealloc, watch_dealloc},
    {Py_tp_methods, watch_methods},
    {Py_tp_doc,
     "GpuWatch(which=None): watches a GPU through the driver's management library.\n\n"
     "which: a PCI address, an identifier (\"GPU-...\"), or a number in the driver's order; None: the "
     "first. One thread at a time."},
    {0, NULL},
};

PyType_Spec ext_gpu_watch_spec = {
    .name = "stoker._ext.GpuWatch",
    .basicsize = sizeof(struct gpu_watch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = watch_slots,
};
