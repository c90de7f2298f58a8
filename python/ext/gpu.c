/* gpu.c - GpuWatch: the load of a GPU
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

/* Sets a number, or None if the GPU does not report it. */
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
            PyErr_SetString(PyExc_ValueError, "the GpuWatch is closed");
        else
            ext_raise(ext_state_of(object), &err);
        return NULL;
    }
    dict = Py_BuildValue("{sKsKssss}", "memory_used", (unsigned long long)sample.memory_used,
                         "memory_total", (unsigned long long)sample.memory_total, "name", sample.name,
                         "driver", sample.driver);
    if (!dict)
        return NULL;
#define SET(name) set_number(dict, #name, sample.name) < 0
    if (SET(busy) || SET(sm_active) || SET(sm_occupancy) || SET(tensor_active) || SET(dram_active) ||
        SET(jpeg_hardware) || SET(pcie_in) || SET(pcie_out) || SET(seconds) || SET(watts) ||
        SET(clock) || SET(limited) || SET(link_generation) || SET(link_width) ||
        SET(link_generation_most) || SET(link_width_most) || SET(node))
        Py_CLEAR(dict);
#undef SET
    return dict;
}

static PyMethodDef watch_methods[] = {
    {"sample", watch_sample, METH_NOARGS,
     "Return the current values.\n\n"
     "Returns:\n"
     "    A dict. name and driver are strings, memory_used and memory_total bytes. busy is the share\n"
     "    of the time since the last sample in which any kernel ran. sm_active, sm_occupancy,\n"
     "    tensor_active and dram_active are shares from 0 to 1, jpeg_hardware the mean number of\n"
     "    active JPEG decoders, and pcie_in and pcie_out bytes per second, over an interval of\n"
     "    `seconds`. clock is relative to the highest clock, and limited is 1 while power or\n"
     "    temperature lowers it. watts, link_generation and link_width (with link_generation_most and\n"
     "    link_width_most) and node, the NUMA node, are current values. A number that this GPU does\n"
     "    not report is None.\n\n"
     "Raises:\n"
     "    ValueError: The GpuWatch is closed.\n"
     "    StokerError: The driver reports an error.\n"},
    {"close", watch_close, METH_NOARGS, "Stop watching. It may be called more than once."},
    {0},
};

static PyType_Slot watch_slots[] = {
    {Py_tp_new, watch_new},
    {Py_tp_dealloc, watch_dealloc},
    {Py_tp_methods, watch_methods},
    {Py_tp_doc, "GpuWatch(which=None)\n--\n\n"
                "Watch the load of a GPU through the driver's management library (NVML).\n\n"
                "An object must be used by one thread at a time.\n\n"
                "Args:\n"
                "    which: A PCI address, an identifier (\"GPU-...\"), or a number as a string, in\n"
                "        the driver's order, which is not CUDA's. By default the first GPU.\n\n"
                "Raises:\n"
                "    Unsupported: There is no such GPU, or no driver.\n"},
    {0, NULL},
};

PyType_Spec ext_gpu_watch_spec = {
    .name = "stoker._ext.GpuWatch",
    .basicsize = sizeof(struct gpu_watch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = watch_slots,
};
