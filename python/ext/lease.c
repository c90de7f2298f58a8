/* lease.c - Lease: a slot of an exchange while tensors refer to it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exchange.h"

struct lease {
    PyObject_HEAD
    PyObject *exchange;
    void *data;
    uint64_t size;
    uint32_t slot;
    unsigned forked;
};

PyObject *ext_lease_new(const struct ext_state *state, PyObject *exchange, uint32_t slot, void *data,
                        unsigned forked)
{
    const struct exchange *from = (struct exchange *)exchange;
    struct lease *self = (struct lease *)PyType_GenericAlloc(state->lease, 0);
    if (!self)
        return NULL;
    self->exchange = Py_NewRef(exchange);
    self->data = data;
    self->size = from->stride;
    self->slot = slot;
    self->forked = forked;
    return (PyObject *)self;
}

static void lease_dealloc(PyObject *object)
{
    struct lease *self = (struct lease *)object;
    if (self->exchange) {
        ext_exchange_give_back(self->exchange, self->slot, self->forked);
        Py_DECREF(self->exchange);
    }
    ext_free(object);
}

static int lease_buffer(PyObject *object, Py_buffer *view, int flags)
{
    struct lease *self = (struct lease *)object;
    return PyBuffer_FillInfo(view, object, self->data, (Py_ssize_t)self->size, 0, flags);
}

static PyType_Slot lease_slots[] = {
    {Py_tp_dealloc, lease_dealloc},
    {Py_bf_getbuffer, lease_buffer},
    {Py_tp_doc, "A batch's memory, which is reused when the last view of it is gone."},
    {0, NULL},
};

PyType_Spec ext_lease_spec = {
    .name = "stoker._ext.Lease",
    .basicsize = sizeof(struct lease),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = lease_slots,
};
