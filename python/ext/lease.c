/* lease.c - Lease: a slot of an exchange while tensors refer to it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exchange.h"

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

static void give_back(PyObject *object, uint32_t k, unsigned forked)
{
    struct exchange *self = (struct exchange *)object;
    if (self->owner != getpid())
        return; /* a child's copy of the tensors: the parent releases them */
    /* A child that was forked in the meantime may still read these tensors: the slot is never reused. */
    if (forked != atomic_load(&forks)) {
        atomic_store(&slot_of(self, k)->state, SLOT_RETIRED);
        return;
    }
    if (self->on_release) {
        PyObject *done = PyObject_CallFunction(self->on_release, "I", (unsigned)k);
        if (done)
            Py_DECREF(done);
        else { /* it is unknown whether it is still read: it is never reused */
            PyErr_WriteUnraisable(self->on_release);
            atomic_store(&slot_of(self, k)->state, SLOT_RETIRED);
        }
        return;
    }
    ext_slot_free(self, k);
}

static void lease_dealloc(PyObject *object)
{
    struct lease *self = (struct lease *)object;
    if (self->exchange) {
        give_back(self->exchange, self->slot, self->forked);
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
