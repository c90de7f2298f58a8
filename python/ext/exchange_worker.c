/* exchange_worker.c - a worker's side of an exchange: it takes tasks and posts results
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exchange.h"

/* The next task of the lane; -1: none arrived in time, -2: the worker must stop. */
static long next_task(const struct exchange *self, struct lane *lane, uint64_t deadline)
{
    for (;;) {
        const uint32_t tail = atomic_load(&lane->tail), head = lane->head;
        if (atomic_load(&lane->stop))
            return -2;
        if (head != tail) {
            lane->head = head + 1;
            const uint32_t k = lane->entry[head % self->slots];
            atomic_store_explicit(&lane->place, 0, memory_order_relaxed);
            atomic_store_explicit(&lane->doing, k + 1, memory_order_relaxed);
            return k < self->slots ? (long)k : -2;
        }
        atomic_store(&lane->sleeping, 1);
        const bool again = atomic_load(&lane->tail) != tail || atomic_load(&lane->stop) ||
                           ext_sleep_on(&lane->tail, tail, deadline);
        atomic_store(&lane->sleeping, 0);
        if (!again)
            return -1;
    }
}

/* take(worker, seconds) -> (slot, kind, task, message); None if there is no task, False to stop */
PyObject *ext_exchange_take(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker, k;
    double seconds;
    if (!PyArg_ParseTuple(args, "ld:take", &worker, &seconds) || !ext_is_worker(self, worker))
        return NULL;
    self->worker = (uint32_t)worker;
    Py_BEGIN_ALLOW_THREADS
    k = next_task(self, lane_of(self, (uint32_t)worker), ext_deadline_in(seconds));
    Py_END_ALLOW_THREADS
    if (k < 0 && PyErr_CheckSignals() < 0)
        return NULL;
    if (k == -1)
        Py_RETURN_NONE;
    if (k == -2)
        Py_RETURN_FALSE;
    const struct slot *slot = slot_of(self, (uint32_t)k);
    const uint64_t length = slot->length < message_most(self) ? slot->length : message_most(self);
    return Py_BuildValue("liKy#", k, (int)slot->kind, (unsigned long long)slot->task,
                         (const char *)message_of(self, (uint32_t)k), (Py_ssize_t)length);
}

/* progress(worker, place): notes the sample in progress, to be reported if it kills the worker; returns
 * whether the worker must stop instead of beginning it */
PyObject *ext_exchange_progress(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker;
    unsigned place;
    if (!PyArg_ParseTuple(args, "lI:progress", &worker, &place) || !ext_is_worker(self, worker))
        return NULL;
    struct lane *lane = lane_of(self, (uint32_t)worker);
    atomic_store_explicit(&lane->place, place, memory_order_relaxed);
    return PyBool_FromLong((long)atomic_load(&lane->stop));
}

/* room(slot) -> writable memory for the slot's batch */
PyObject *ext_exchange_room(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long k;
    if (!PyArg_ParseTuple(args, "l:room", &k) || !ext_is_slot(self, k))
        return NULL;
    const long b = ext_block_take(self, (uint32_t)k, self->worker);
    if (b < 0) {
        PyErr_Format(PyExc_RuntimeError, "no block of the exchange is free for slot %ld", k);
        return NULL;
    }
    return PyMemoryView_FromMemory((char *)data_of(self, (uint32_t)b), (Py_ssize_t)self->stride,
                                   PyBUF_WRITE);
}

/* address(slot) -> the address of its batch */
PyObject *ext_exchange_address(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long k;
    if (!PyArg_ParseTuple(args, "l:address", &k) || !ext_is_slot(self, k))
        return NULL;
    const long b = ext_block_of(self, (uint32_t)k);
    if (b < 0) {
        PyErr_Format(PyExc_RuntimeError, "slot %ld of the exchange has no memory", k);
        return NULL;
    }
    return PyLong_FromVoidPtr(data_of(self, (uint32_t)b));
}

/* post(slot, kind, offset, length): posts the result of a task, whose description is at the offset */
PyObject *ext_exchange_post(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long k;
    int kind;
    unsigned long long offset, length;
    if (!PyArg_ParseTuple(args, "liKK:post", &k, &kind, &offset, &length) || !ext_is_slot(self, k))
        return NULL;
    struct slot *slot = slot_of(self, (uint32_t)k);
    slot->kind = (uint32_t)kind;
    slot->offset = offset;
    slot->length = length;
    atomic_store_explicit(&lane_of(self, self->worker)->doing, 0, memory_order_relaxed);
    atomic_store(&slot->state, SLOT_DONE);
    atomic_fetch_add(&self->header->posted, 1);
    if (atomic_load(&self->header->sleeping))
        ext_wake(&self->header->posted);
    Py_RETURN_NONE;
}
