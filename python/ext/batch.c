/* batch.c - Batch: what Loader.next returns
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "dlpack.h"
#include "ext.h"

#include <stdlib.h>

struct batch {
    PyObject_HEAD
    const struct stoker_batch *batch;
    struct ext_hold *hold;
};

/* The driver's numbers up to this one are default streams. */
enum { DEFAULT_STREAMS = 2 };

/* A batch in use, and the function that returns the streams that may still be reading it. */
struct lent {
    const struct stoker_batch *batch;
    PyObject *stream_of;
};

static bool is_pinned(const struct stoker_batch *batch)
{
    return batch->device_type == DLPACK_CUDA_HOST;
}

/* Default streams are marked when a pinned batch is released: nothing in them is lost until then. */
static int mark(const struct stoker_batch *batch, PyObject *number)
{
    const uintptr_t stream = (uintptr_t)PyLong_AsUnsignedLongLong(number);

    if (PyErr_Occurred())
        return -1;
    if (!is_pinned(batch) || stream > DEFAULT_STREAMS)
        stoker_batch_mark(batch, stream);
    return 0;
}

/* Marks the stream or streams of this thread. 0, or -1 with an exception. */
static int mark_streams(const struct lent *lent)
{
    PyObject *answer = PyObject_CallNoArgs(lent->stream_of);
    const bool several = answer && PyTuple_Check(answer);
    const Py_ssize_t count = several ? PyTuple_Size(answer) : 1;
    int rc = answer ? 0 : -1;

    for (Py_ssize_t k = 0; rc == 0 && k < count; k++)
        rc = mark(lent->batch, several ? PyTuple_GetItem(answer, k) : answer);
    Py_XDECREF(answer);
    return rc;
}

/* A tensor of the batch is gone: in any thread, also while an exception is set. While Python shuts down,
 * the function is not called: the default stream is assumed, when the batch is released. With the
 * interpreter's lock held, marks do not overlap. */
static void leave_lent(void *what)
{
    const struct lent *lent = what;
    PyObject *type, *value, *trace;
    PyGILState_STATE lock;

    if (!Py_IsInitialized())
        return;
    lock = PyGILState_Ensure();
    PyErr_Fetch(&type, &value, &trace);
    if (mark_streams(lent) < 0) {
        PyErr_Clear();
        stoker_batch_mark(lent->batch, 0);
    }
    PyErr_Restore(type, value, trace);
    PyGILState_Release(lock);
}

static void release_batch(void *batch) { stoker_batch_release(batch); }

static void release_lent(void *what)
{
    struct lent *lent = what;
    const bool shut = !Py_IsInitialized();

    leave_lent(what);
    if (shut || is_pinned(lent->batch))
        stoker_batch_release_on(lent->batch, 0);
    else
        stoker_batch_release(lent->batch);
    if (!shut) {
        const PyGILState_STATE lock = PyGILState_Ensure();

        Py_DECREF(lent->stream_of);
        PyGILState_Release(lock);
    }
    free(lent);
}

/* NULL if out of memory; the batch is then released. */
static struct ext_hold *hold_batch(const struct stoker_batch *batch, PyObject *stream_of)
{
    struct lent *lent = stream_of ? malloc(sizeof(*lent)) : NULL;
    struct ext_hold *hold = NULL;

    if (lent) {
        *lent = (struct lent){batch, Py_NewRef(stream_of)};
        hold = ext_hold_new(release_lent, leave_lent, lent);
    } else if (!stream_of) {
        hold = ext_hold_new(release_batch, NULL, (void *)batch);
    }
    if (hold)
        return hold;
    if (lent)
        Py_DECREF(stream_of);
    free(lent);
    stoker_batch_release(batch);
    return NULL;
}

PyObject *ext_batch_new(const struct ext_state *state, const struct stoker_batch *batch,
                        PyObject *stream_of)
{
    struct ext_hold *hold = hold_batch(batch, stream_of);
    struct batch *self;

    if (!hold)
        return PyErr_NoMemory();
    self = (struct batch *)PyType_GenericAlloc(state->batch, 0);
    if (!self) {
        ext_hold_drop(hold);
        return NULL;
    }
    self->batch = batch;
    self->hold = hold;
    return (PyObject *)self;
}

/* ---- a pair ---- */

static bool is_pair(const struct stoker_batch *batch)
{
    return !batch->ragged && batch->images.ndim && !batch->lengths.ndim;
}

/* 0, or -1 with an exception. */
static int ask_stream(PyObject *stream_of, uintptr_t *stream)
{
    PyObject *answer = PyObject_CallNoArgs(stream_of);

    *stream = answer ? (uintptr_t)PyLong_AsUnsignedLongLong(answer) : 0;
    Py_XDECREF(answer);
    return PyErr_Occurred() ? -1 : 0;
}

/* [take(images), take(labels)] */
static PyObject *take_pair(const struct ext_state *state, const struct stoker_batch *batch,
                           struct ext_hold *hold, PyObject *stream_of, PyObject *take)
{
    PyObject *capsule[2] = {NULL, NULL}, *list = NULL;
    uintptr_t stream = 0;

    /* Host memory is not made for a stream. */
    const bool joins = stream_of && batch->device_type == DLPACK_CUDA;

    if ((!joins || ask_stream(stream_of, &stream) == 0) &&
        ext_tensor_pair(state, batch, hold, stream, capsule) == 0)
        list = PyList_New(2);
    for (int k = 0; list && k < 2; k++) {
        PyObject *taken = PyObject_CallFunctionObjArgs(take, capsule[k], NULL);

        if (!taken || PyList_SetItem(list, k, taken) < 0)
            Py_CLEAR(list);
    }
    Py_XDECREF(capsule[0]);
    Py_XDECREF(capsule[1]);
    return list;
}

PyObject *ext_batch_pair(const struct ext_state *state, const struct stoker_batch *batch,
                         PyObject *stream_of, PyObject *take)
{
    struct ext_hold *hold;
    PyObject *list;

    if (!is_pair(batch))
        return ext_batch_new(state, batch, stream_of);
    hold = hold_batch(batch, stream_of);
    if (!hold)
        return PyErr_NoMemory();
    list = take_pair(state, batch, hold, stream_of, take);
    ext_hold_drop(hold);
    return list;
}

/* ---- the type ---- */

static void batch_dealloc(PyObject *object)
{
    ext_hold_drop(((struct batch *)object)->hold);
    ext_free(object);
}

static PyObject *batch_images(PyObject *object, void *unused)
{
    struct batch *self = (struct batch *)object;
    const struct ext_state *state = ext_state_of(object);
    PyObject *list;

    (void)unused;
    if (!self->batch->ragged && !self->batch->images.ndim)
        Py_RETURN_NONE;
    if (!self->batch->ragged)
        return ext_tensor_new(state, &self->batch->images, self->batch, self->hold);
    list = PyList_New(self->batch->count);
    for (uint32_t i = 0; list && i < self->batch->count; i++) {
        PyObject *item = ext_tensor_new(state, &self->batch->items[i], self->batch, self->hold);

        if (!item || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *batch_labels(PyObject *object, void *unused)
{
    struct batch *self = (struct batch *)object;

    (void)unused;
    return ext_tensor_new(ext_state_of(object), &self->batch->labels, self->batch, self->hold);
}

static PyObject *batch_samples(PyObject *object, void *unused)
{
    struct batch *self = (struct batch *)object;
    struct stoker_tensor view = {
        .data = (void *)self->batch->samples, /* sample numbers are below 2^63: the types agree */
        .dtype = STOKER_DTYPE_I64,
        .ndim = 1,
        .shape = {self->batch->count},
        .stride = {1},
    };

    (void)unused;
    return ext_tensor_new(ext_state_of(object), &view, NULL, self->hold);
}

static PyObject *batch_lengths(PyObject *object, void *unused)
{
    struct batch *self = (struct batch *)object;

    (void)unused;
    if (!self->batch->lengths.ndim)
        Py_RETURN_NONE;
    return ext_tensor_new(ext_state_of(object), &self->batch->lengths, NULL, self->hold);
}

static PyObject *batch_ragged(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct batch *)object)->batch->ragged);
}

static PyObject *batch_device(PyObject *object, void *unused)
{
    const struct stoker_batch *batch = ((struct batch *)object)->batch;

    (void)unused;
    return Py_BuildValue("(ii)", (int)batch->device_type, (int)batch->device_id);
}

static PyObject *batch_sync(PyObject *object, PyObject *unused)
{
    const struct stoker_batch *batch = ((struct batch *)object)->batch;
    struct stoker_error err;
    int rc;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    rc = stoker_batch_sync(batch, &err);
    Py_END_ALLOW_THREADS
    return rc < 0 ? ext_raise(ext_state_of(object), &err) : Py_NewRef(Py_None);
}

static PyObject *batch_epoch(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct batch *)object)->batch->epoch);
}

static PyObject *batch_index(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct batch *)object)->batch->index);
}

static Py_ssize_t batch_length(PyObject *object) { return ((struct batch *)object)->batch->count; }

/* ---- columns ---- */

/* All values, consecutive, as a Tensor with one dimension: their shape is returned separately. */
static PyObject *column_values(PyObject *object, const struct stoker_column *column)
{
    static uint64_t nothing;
    struct batch *self = (struct batch *)object;
    struct stoker_tensor view = {.dtype = column->dtype, .ndim = 1, .shape = {1}, .stride = {1}};

    for (int32_t k = 0; k < column->ndim; k++)
        view.shape[0] *= column->shape[k];
    view.data = column->data ? (void *)(uintptr_t)column->data : &nothing;
    return ext_tensor_new(ext_state_of(object), &view, NULL, self->hold);
}

/* The shape of all arrays together, or a list of the shapes of the samples. */
static PyObject *column_shapes(const struct stoker_column *column, uint32_t count)
{
    PyObject *list;

    if (!column->shapes)
        return ext_tuple_of(column->shape, column->ndim);
    list = PyList_New(count);
    for (uint32_t row = 0; list && row < count; row++) {
        int32_t ndim = 0;
        PyObject *shape;

        while (ndim < STOKER_COLUMN_DIMS - 1 && column->shapes[row][ndim] >= 0)
            ndim++;
        shape = ext_tuple_of(column->shapes[row], ndim);
        if (!shape || PyList_SetItem(list, row, shape) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* Lone surrogates, which JSON may have, are what they are to Python's json. Other text that is not UTF-8
 * keeps its bytes with surrogateescape, as Python's file names do. */
static PyObject *decode_text(const char *at, Py_ssize_t size)
{
    PyObject *word = PyUnicode_DecodeUTF8(at, size, "surrogatepass");
    if (word || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        return word;
    PyErr_Clear();
    return PyUnicode_DecodeUTF8(at, size, "surrogateescape");
}

static PyObject *column_words(const struct stoker_column *column, uint32_t count)
{
    const bool text = column->kind == STOKER_COLUMN_TEXT;
    PyObject *list = PyList_New(count);

    for (uint32_t row = 0; list && row < count; row++) {
        const char *at = (const char *)column->data + column->offsets[row];
        const Py_ssize_t size = (Py_ssize_t)(column->offsets[row + 1] - column->offsets[row]);
        PyObject *word = text ? decode_text(size ? at : "", size)
                              : PyBytes_FromStringAndSize(size ? at : "", size);

        if (!word || PyList_SetItem(list, row, word) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *column_entry(PyObject *object, const struct stoker_column *column)
{
    static const char *const words[] = {"int",  "float", "array", "text",
                                        "json", "bytes", "audio"}; /* of enum stoker_column_kind */
    const uint32_t count = ((struct batch *)object)->batch->count;
    const bool numbers = column->kind <= STOKER_COLUMN_ARRAY;
    PyObject *values = numbers ? column_values(object, column) : column_words(column, count);
    PyObject *shapes = values && numbers ? column_shapes(column, count) : Py_NewRef(Py_None);

    if (!values || !shapes) {
        Py_XDECREF(values);
        Py_XDECREF(shapes);
        return NULL;
    }
    return Py_BuildValue("(sNN)", words[column->kind], values, shapes);
}

static PyObject *batch_columns(PyObject *object, void *unused)
{
    const struct stoker_batch *batch = ((struct batch *)object)->batch;
    PyObject *list = PyList_New(batch->column_count);

    (void)unused;
    for (uint32_t k = 0; list && k < batch->column_count; k++) {
        PyObject *entry = column_entry(object, batch->columns[k]);

        if (!entry || PyList_SetItem(list, k, entry) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyGetSetDef batch_getset[] = {
    {"images", batch_images, NULL,
     "A Tensor [N, C, H, W]; if ragged, a list of Tensors [C, H, W]; None if there are no images.",
     NULL},
    {"labels", batch_labels, NULL, "A Tensor [N] of int64.", NULL},
    {"samples", batch_samples, NULL, "A Tensor [N] of int64: which samples these are.", NULL},
    {"columns", batch_columns, NULL,
     "For samples with fields, all fields but the image: (type, values, shape). Numbers are a Tensor "
     "with one dimension and their actual shape, or a list of the shapes of the samples if these "
     "differ; other values are a list of str or bytes, with None as the shape.",
     NULL},
    {"lengths", batch_lengths, NULL,
     "A Tensor [N] of int64: the lengths of sounds in frames, if they differ; otherwise None.", NULL},
    {"ragged", batch_ragged, NULL, "Whether the images have different shapes.", NULL},
    {"device", batch_device, NULL,
     "The device of images and labels in DLPack's numbers: (1, 0) CPU, (2, n) GPU n, (3, n) pinned.",
     NULL},
    {"epoch", batch_epoch, NULL, "The epoch that this batch belongs to.", NULL},
    {"index", batch_index, NULL, "The index of the batch in its epoch.", NULL},
    {0},
};

static PyMethodDef batch_methods[] = {
    {"sync", batch_sync, METH_NOARGS, "Wait until a batch on a GPU is complete."},
    {0},
};

static PyType_Slot batch_slots[] = {
    {Py_tp_dealloc, batch_dealloc},
    {Py_tp_methods, batch_methods},
    {Py_tp_getset, batch_getset},
    {Py_sq_length, batch_length},
    {Py_tp_doc, "A batch. Its memory is kept as long as it or any of its tensors exists."},
    {0, NULL},
};

PyType_Spec ext_batch_spec = {
    .name = "stoker._ext.Batch",
    .basicsize = sizeof(struct batch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = batch_slots,
};
