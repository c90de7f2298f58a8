/* lease.c - Lease: a slot of an exchange while tensors refer to it; LeasePart: the same for one of them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lease.h"

#include "exchange_blocks.h"

#include <pthread.h>
#include <unistd.h>

/* ---- forks --------------------------------------------------------------------------------------- */

/* The number of forks of this process that may leave a child with lent tensors. */
static atomic_uint forks;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;
static _Thread_local bool fork_is_harmless;

static void count_fork(void)
{
    if (!fork_is_harmless)
        atomic_fetch_add(&forks, 1);
}
static void watch(void) { pthread_atfork(NULL, count_fork, NULL); }
void ext_watch_forks(void) { pthread_once(&forks_once, watch); }

/* harmless_forks(yes): whether this thread forks workers, which never use lent tensors */
PyObject *ext_exchange_harmless_forks(PyObject *object, PyObject *args)
{
    int yes;
    (void)object;
    if (!PyArg_ParseTuple(args, "p:harmless_forks", &yes))
        return NULL;
    fork_is_harmless = yes;
    Py_RETURN_NONE;
}

/* ---- the type ------------------------------------------------------------------------------------ */

struct lease {
    PyObject_HEAD
    PyObject *exchange;
    void *data;
    uint64_t size;
    uint32_t slot;
    unsigned forked; /* the number of forks when it was lent */
    bool unknown;    /* whether a part of it is still read: it is never reused */
};

struct part {
    PyObject_HEAD
    PyObject *lease;
};

PyObject *ext_lease_new(const struct ext_state *state, PyObject *exchange, uint32_t slot, void *data)
{
    const struct exchange *from = (struct exchange *)exchange;
    struct lease *self = (struct lease *)PyType_GenericAlloc(state->lease, 0);
    if (!self)
        return NULL;
    self->exchange = Py_NewRef(exchange);
    self->data = data;
    self->size = from->stride;
    self->slot = slot;
    self->forked = atomic_load(&forks);
    return (PyObject *)self;
}

/* Calls on_drop or on_release, which may happen while an exception is set. False: it failed. */
static bool tell(PyObject *function, uint32_t slot)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *done = PyObject_CallFunction(function, "I", (unsigned)slot);
    if (!done)
        PyErr_WriteUnraisable(function);
    Py_XDECREF(done);
    PyErr_Restore(type, value, trace);
    return done != NULL;
}

static void give_back(const struct lease *lease)
{
    struct exchange *self = (struct exchange *)lease->exchange;
    const uint32_t k = lease->slot;
    if (self->owner != getpid())
        return; /* a child's copy of the tensors: the parent releases them */
    /* A child that was forked in the meantime may still read these tensors: the slot is never reused. */
    if (lease->unknown || lease->forked != atomic_load(&forks))
        atomic_store(&slot_of(self, k)->state, SLOT_RETIRED);
    else if (!self->on_release)
        ext_slot_free(self, k);
    else if (!tell(self->on_release, k)) /* it is unknown whether it is still read */
        atomic_store(&slot_of(self, k)->state, SLOT_RETIRED);
}

static void lease_dealloc(PyObject *object)
{
    struct lease *self = (struct lease *)object;
    if (self->exchange) {
        give_back(self);
        Py_DECREF(self->exchange);
    }
    ext_free(object);
}

static int lease_buffer(PyObject *object, Py_buffer *view, int flags)
{
    struct lease *self = (struct lease *)object;
    return PyBuffer_FillInfo(view, object, self->data, (Py_ssize_t)self->size, 0, flags);
}

/* part() -> the same memory for one tensor, so that on_drop is called when that one is gone */
static PyObject *lease_part(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (!((struct exchange *)((struct lease *)object)->exchange)->on_drop)
        return Py_NewRef(object);
    struct part *part = (struct part *)PyType_GenericAlloc(ext_state_of(object)->lease_part, 0);
    if (part)
        part->lease = Py_NewRef(object);
    return (PyObject *)part;
}

static PyMethodDef lease_methods[] = {
    {"part", lease_part, METH_NOARGS, "part() -> the memory for one tensor, whose end is reported"},
    {0},
};

static PyType_Slot lease_slots[] = {
    {Py_tp_dealloc, lease_dealloc},
    {Py_bf_getbuffer, lease_buffer},
    {Py_tp_methods, lease_methods},
    {Py_tp_doc, "A batch's memory, which is reused when the last view of it is gone."},
    {0, NULL},
};

PyType_Spec ext_lease_spec = {
    .name = "stoker._ext.Lease",
    .basicsize = sizeof(struct lease),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = lease_slots,
};

/* ---- parts --------------------------------------------------------------------------------------- */

static void part_dealloc(PyObject *object)
{
    struct lease *lease = (struct lease *)((struct part *)object)->lease;
    if (lease) {
        const struct exchange *from = (struct exchange *)lease->exchange;
        if (from->on_drop && from->owner == getpid() && Py_IsInitialized() &&
            !tell(from->on_drop, lease->slot))
            lease->unknown = true;
        Py_DECREF(lease);
    }
    ext_free(object);
}

static int part_buffer(PyObject *object, Py_buffer *view, int flags)
{
    const struct lease *lease = (struct lease *)((struct part *)object)->lease;
    return PyBuffer_FillInfo(view, object, lease->data, (Py_ssize_t)lease->size, 0, flags);
}

static PyType_Slot part_slots[] = {
    {Py_tp_dealloc, part_dealloc},
    {Py_bf_getbuffer, part_buffer},
    {Py_tp_doc, "A batch's memory as one tensor or array refers to it."},
    {0, NULL},
};

PyType_Spec ext_lease_part_spec = {
    .name = "stoker._ext.LeasePart",
    .basicsize = sizeof(struct part),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = part_slots,
};
