/* single.c - Single: runs a pipeline on one image at a time, without a loader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <stdlib.h>

struct single {
    PyObject_HEAD
    struct stoker_single *handle;
};

static const struct ext_option options_table[] = {
    {"layout", EXT_WORD, offsetof(struct stoker_single_options, layout), ext_layout_words},
    {"pillow", EXT_U32, offsetof(struct stoker_single_options, pillow), NULL},
    {"pixel_limit", EXT_U64, offsetof(struct stoker_single_options, pixel_limit), NULL},
    {0},
};

static PyObject *single_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const struct ext_state *state = PyType_GetModuleState(type);
    struct stoker_single_options options = stoker_single_defaults();
    struct stoker_error err;
    struct single *self;
    PyObject *pipeline;

    options.pixel_limit = 0;
    if (!PyArg_ParseTuple(args, "O!:Single", state->pipeline, &pipeline) ||
        ext_options_read(options_table, kwargs, "Single", &options) < 0)
        return NULL;
    self = (struct single *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    if (stoker_single_open(&self->handle, ext_pipeline_handle(pipeline), &options, &err) < 0) {
        Py_DECREF(self);
        return ext_raise(state, &err);
    }
    return (PyObject *)self;
}

static void single_dealloc(PyObject *object)
{
    stoker_single_close(((struct single *)object)->handle);
    ext_free(object);
}

static int read_pixels(PyObject *pixels, struct stoker_picture *picture)
{
    if (pixels == Py_None)
        return 0;
    if (!PyTuple_Check(pixels)) {
        PyErr_Format(PyExc_TypeError, "pixels=%R must be three numbers: (width, height, channels)",
                     pixels);
        return -1;
    }
    if (!PyArg_ParseTuple(pixels, "III:pixels", &picture->width, &picture->height, &picture->channels))
        return -1;
    if (!picture->channels)
        PyErr_SetString(PyExc_ValueError, "pixels: the number of channels must be at least 1");
    return picture->channels ? 0 : -1;
}

static PyObject *single_run(PyObject *object, PyObject *args)
{
    struct stoker_picture picture = {.size = sizeof(picture)};
    unsigned long long seed = 0, epoch = 0, sample = 0;
    PyObject *region = Py_None, *pixels = Py_None;
    struct stoker_tensor out;
    struct stoker_error err;
    Py_buffer data;
    int rc = -1;

    if (!PyArg_ParseTuple(args, "y*|KKKOO:run", &data, &seed, &epoch, &sample, &region, &pixels))
        return NULL;
    if (ext_region(region, &picture.x, &picture.y, &picture.crop_width, &picture.crop_height) == 0 &&
        read_pixels(pixels, &picture) == 0) {
        picture.data = data.buf;
        picture.bytes = (size_t)data.len;
        Py_BEGIN_ALLOW_THREADS
        rc = stoker_single_run(((struct single *)object)->handle, &picture, seed, epoch, sample, &out,
                               &err);
        Py_END_ALLOW_THREADS
        if (rc < 0)
            ext_raise(ext_state_of(object), &err);
    }
    PyBuffer_Release(&data);
    return rc < 0 ? NULL : ext_tensor_own(ext_state_of(object), &out, out.data, free);
}

static PyMethodDef single_methods[] = {
    {"run", single_run, METH_VARARGS,
     "run(data, seed=0, epoch=0, sample=0, region=None, pixels=None) -> a Tensor, channels x height x "
     "width, or with nhwc height x width x channels. `data` is an encoded image, or, with "
     "pixels=(width, height, channels), the bytes of a decoded one. Any thread may call it."},
    {0},
};

static PyType_Slot single_slots[] = {
    {Py_tp_new, single_new},
    {Py_tp_dealloc, single_dealloc},
    {Py_tp_methods, single_methods},
    {Py_tp_doc, "Single(pipeline, *, layout='nchw', pillow=13, pixel_limit=0): runs a pipeline on one "
                "image at a time."},
    {0, NULL},
};

PyType_Spec ext_single_spec = {
    .name = "stoker._ext.Single",
    .basicsize = sizeof(struct single),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = single_slots,
};
