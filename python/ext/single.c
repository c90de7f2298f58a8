/* single.c - Single: runs a pipeline on one image at a time, without a loader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <stdlib.h>

struct single {
    PyObject_HEAD struct stoker_single *handle;
};

static const struct ext_option options_table[] = {
    {"layout", EXT_WORD, offsetof(struct stoker_single_options, layout), ext_layout_words},
    {"pillow", EXT_U32, offsetof(struct stoker_single_options, pillow), NULL},
    {"pixel_limit", EXT_U64, offsetof(struct stoker_single_options, pixel_limit), NULL},
    {"fused", EXT_BOOL, offsetof(struct stoker_single_options, fused), NULL},
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

enum { EDITS_MAX = 64 };

static int read_sizes(PyObject *tuple, uint32_t **fields, Py_ssize_t count)
{
    for (Py_ssize_t k = 0; k < count; k++) {
        unsigned long number = PyLong_AsUnsignedLong(PyTuple_GetItem(tuple, k + 1));

        if (number == (unsigned long)-1 && PyErr_Occurred())
            return -1;
        if (number > UINT32_MAX) {
            PyErr_Format(PyExc_ValueError, "%lu pixels are too many", number);
            return -1;
        }
        *fields[k] = (uint32_t)number;
    }
    return 0;
}

/* How many numbers follow the kind of an edit. */
static Py_ssize_t numbers_of(enum stoker_edit_kind kind)
{
    switch (kind) {
    case STOKER_EDIT_CROP:
        return 4;
    case STOKER_EDIT_RESIZE:
    case STOKER_EDIT_PERMUTE:
        return 3;
    case STOKER_EDIT_BRIGHTNESS:
    case STOKER_EDIT_CONTRAST:
    case STOKER_EDIT_SATURATION:
    case STOKER_EDIT_HUE:
    case STOKER_EDIT_SHARPNESS:
    case STOKER_EDIT_SOLARIZE:
    case STOKER_EDIT_POSTERIZE:
    case STOKER_EDIT_POINT:
        return 1;
    case STOKER_EDIT_BOX_BLUR:
    case STOKER_EDIT_GAUSSIAN_BLUR:
        return 2;
    case STOKER_EDIT_AFFINE:
        return 12;
    case STOKER_EDIT_PERSPECTIVE:
        return 14;
    default:
        return 0;
    }
}

/* What follows the size and the filter of a map: red, green, blue, and the map's numbers. */
static int read_map(PyObject *tuple, Py_ssize_t count, struct stoker_edit *edit)
{
    const Py_ssize_t first = 4, map = first + 3;

    for (Py_ssize_t k = first; k < map; k++) {
        long value = PyLong_AsLong(PyTuple_GetItem(tuple, k));

        if (!PyErr_Occurred() && (value < 0 || value > 255))
            PyErr_Format(PyExc_ValueError, "%R: a fill must be from 0 to 255", tuple);
        if (PyErr_Occurred())
            return -1;
        edit->fill[k - first] = (uint8_t)value;
    }
    for (Py_ssize_t k = map; k <= count; k++)
        edit->map[k - map] = PyFloat_AsDouble(PyTuple_GetItem(tuple, k));
    return PyErr_Occurred() ? -1 : 0;
}

enum { TABLE_BYTES = 768 };

/* The table stays in its bytes object, which the edits hold. */
static int read_table(PyObject *tuple, struct stoker_edit *edit)
{
    PyObject *table = PyTuple_GetItem(tuple, 1);

    if (!PyBytes_Check(table) || PyBytes_Size(table) != TABLE_BYTES) {
        PyErr_Format(PyExc_ValueError, "%R: a table is %d bytes", tuple, TABLE_BYTES);
        return -1;
    }
    edit->table = (const uint8_t *)PyBytes_AsString(table);
    return 0;
}

static int read_edit(PyObject *tuple, struct stoker_edit *edit)
{
    uint32_t filter = 0, *box[] = {&edit->x, &edit->y, &edit->width, &edit->height};
    uint32_t *size[] = {&edit->width, &edit->height, &filter};
    uint32_t *channels[] = {&edit->x, &edit->y, &edit->width};
    long kind =
        PyTuple_Check(tuple) && PyTuple_Size(tuple) ? PyLong_AsLong(PyTuple_GetItem(tuple, 0)) : -1;
    Py_ssize_t count;

    *edit = (struct stoker_edit){0};
    if (kind < STOKER_EDIT_CROP || kind > STOKER_EDIT_POINT) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "%R is not an edit", tuple);
        return -1;
    }
    edit->kind = (enum stoker_edit_kind)kind;
    count = numbers_of(edit->kind);
    if (PyTuple_Size(tuple) != count + 1) {
        PyErr_Format(PyExc_ValueError, "%R: an edit of this kind has %zd numbers", tuple, count);
        return -1;
    }
    if (count == 4)
        return read_sizes(tuple, box, 4);
    if (edit->kind == STOKER_EDIT_PERMUTE)
        return read_sizes(tuple, channels, 3);
    if (edit->kind == STOKER_EDIT_POINT)
        return read_table(tuple, edit);
    for (Py_ssize_t k = 0; count == 2 && k < 2; k++)
        edit->map[k] = PyFloat_AsDouble(PyTuple_GetItem(tuple, k + 1));
    if (count == 1)
        edit->factor = PyFloat_AsDouble(PyTuple_GetItem(tuple, 1));
    if (count >= 3 && read_sizes(tuple, size, 3) == 0) {
        if (filter > STOKER_FILTER_LANCZOS)
            PyErr_Format(PyExc_ValueError, "%R: there is no filter %u", tuple, filter);
        edit->filter = (enum stoker_filter)filter;
        if (count > 3 && !PyErr_Occurred())
            return read_map(tuple, count, edit);
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Reads a tuple of edits. Returns how many, or -1 with an exception. */
static Py_ssize_t read_edits(PyObject *edits, struct stoker_edit *out)
{
    Py_ssize_t count = PyTuple_Check(edits) ? PyTuple_Size(edits) : -1;

    if (count < 0 || count > EDITS_MAX) {
        PyErr_Format(PyExc_ValueError, "edits must be a tuple of at most %d", EDITS_MAX);
        return -1;
    }
    for (Py_ssize_t k = 0; k < count; k++)
        if (read_edit(PyTuple_GetItem(edits, k), &out[k]) < 0)
            return -1;
    return count;
}

/* Makes the image of `data`: in memory of its own, or in `into`. -1 with an exception. */
static int make(PyObject *object, const Py_buffer *data, PyObject *edits, PyObject *pixels,
                const Py_buffer *into, struct stoker_tensor *out)
{
    struct stoker_single *single = ((struct single *)object)->handle;
    struct stoker_picture picture = {.size = sizeof(picture)};
    struct stoker_edit edit[EDITS_MAX];
    struct stoker_error err;
    Py_ssize_t count = edits ? read_edits(edits, edit) : 0;
    const size_t room = into ? (size_t)into->len : 0;
    int rc;

    if (count < 0 || read_pixels(pixels, &picture) < 0)
        return -1;
    picture.data = data->buf;
    picture.bytes = (size_t)data->len;
    picture.edits = edit;
    picture.edit_count = (size_t)count;
    Py_BEGIN_ALLOW_THREADS
    rc = into ? stoker_single_run_into(single, &picture, 0, 0, 0, into->buf, room, out, &err)
              : stoker_single_run(single, &picture, 0, 0, 0, out, &err);
    Py_END_ALLOW_THREADS
    if (rc < 0)
        ext_raise(ext_state_of(object), &err);
    return rc < 0 ? -1 : 0;
}

static PyObject *single_run(PyObject *object, PyObject *args)
{
    PyObject *edits = NULL, *pixels = Py_None;
    struct stoker_tensor out;
    Py_buffer data;
    int rc;

    if (!PyArg_ParseTuple(args, "y*|O!O:run", &data, &PyTuple_Type, &edits, &pixels))
        return NULL;
    rc = make(object, &data, edits, pixels, NULL, &out);
    PyBuffer_Release(&data);
    return rc < 0 ? NULL : ext_tensor_own(ext_state_of(object), &out, out.data, free);
}

static PyObject *single_run_into(PyObject *object, PyObject *args)
{
    struct stoker_tensor out;
    Py_buffer into, data;
    PyObject *edits;
    int rc;

    if (!PyArg_ParseTuple(args, "w*y*O!:run_into", &into, &data, &PyTuple_Type, &edits))
        return NULL;
    rc = make(object, &data, edits, Py_None, &into, &out);
    PyBuffer_Release(&data);
    PyBuffer_Release(&into);
    if (rc < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef single_methods[] = {
    {"run", single_run, METH_VARARGS,
     "run(data, edits=(), pixels=None) -> a Tensor, channels x height x width, or with nhwc height x "
     "width x channels. `data` is an encoded image, or, with pixels=(width, height, channels), the "
     "bytes "
     "of a decoded one. An edit is a tuple: its kind (EDIT_CROP, ...) and its numbers; they are made in "
     "order, before the pipeline. Any thread may call it."},
    {"run_into", single_run_into, METH_VARARGS,
     "run_into(memory, data, edits): the same into memory that has exactly the size of the result."},
    {0},
};

static PyType_Slot single_slots[] = {
    {Py_tp_new, single_new},
    {Py_tp_dealloc, single_dealloc},
    {Py_tp_methods, single_methods},
    {Py_tp_doc,
     "Single(pipeline, *, layout='nchw', pillow=13, pixel_limit=0, fused=False): runs a pipeline on one "
     "image at a time."},
    {0, NULL},
};

PyType_Spec ext_single_spec = {
    .name = "stoker._ext.Single",
    .basicsize = sizeof(struct single),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = single_slots,
};
