/* batch.c - Batch: what Loader.next hands out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

struct batch {
    PyObject_HEAD
    const struct stoker_batch *batch;
    struct ext_hold *hold;
};

static void release_batch(void *batch) { stoker_batch_release(batch); }

PyObject *ext_batch_new(const struct ext_state *state, const struct stoker_batch *batch)
{
    struct ext_hold *hold = ext_hold_new(release_batch, (void *)batch);
    struct batch *self;

    if (!hold) {
        stoker_batch_release(batch);
        return PyErr_NoMemory();
    }
    self = (struct batch *)PyType_GenericAlloc(state->batch, 0);
    if (!self) {
        ext_hold_drop(hold);
        return NULL;
    }
    self->batch = batch;
    self->hold = hold;
    return (PyObject *)self;
}

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
    if (!self->batch->ragged)
        return ext_tensor_new(state, &self->batch->images, self->hold);
    list = PyList_New(self->batch->count);
    for (uint32_t i = 0; list && i < self->batch->count; i++) {
        PyObject *item = ext_tensor_new(state, &self->batch->items[i], self->hold);

        if (!item || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *batch_labels(PyObject *object, void *unused)
{
    struct batch *self = (struct batch *)object;

    (void)unused;
    return ext_tensor_new(ext_state_of(object), &self->batch->labels, self->hold);
}

static PyObject *batch_samples(PyObject *object, void *unused)
{
    struct batch *self = (struct batch *)object;
    struct stoker_tensor view = {
        .data = (void *)self->batch->samples, /* sample numbers are below 2^63: the types agree */
        .dtype = STOKER_I64,
        .ndim = 1,
        .shape = {self->batch->count},
        .stride = {1},
    };

    (void)unused;
    return ext_tensor_new(ext_state_of(object), &view, self->hold);
}

static PyObject *batch_ragged(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct batch *)object)->batch->ragged);
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

static PyGetSetDef batch_getset[] = {
    {"images", batch_images, NULL, "A Tensor [N, C, H, W]; when ragged, a list of Tensors [C, H, W].",
     NULL},
    {"labels", batch_labels, NULL, "A Tensor [N] of int64.", NULL},
    {"samples", batch_samples, NULL, "A Tensor [N] of int64: which samples these are.", NULL},
    {"ragged", batch_ragged, NULL, "Whether the images' shapes differ.", NULL},
    {"epoch", batch_epoch, NULL, "The epoch this batch belongs to.", NULL},
    {"index", batch_index, NULL, "The how manyth batch of its epoch it is.", NULL},
    {0},
};

static PyType_Slot batch_slots[] = {
    {Py_tp_dealloc, batch_dealloc},
    {Py_tp_getset, batch_getset},
    {Py_sq_length, batch_length},
    {Py_tp_doc, "One batch; its memory lives as long as it or any of its tensors."},
    {0, NULL},
};

PyType_Spec ext_batch_spec = {
    .name = "stoker._ext.Batch",
    .basicsize = sizeof(struct batch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = batch_slots,
};
