/* exchange_loader.c - the loader's side of an exchange: it sends tasks, waits for batches and lends them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exchange.h"
#include "lease.h"

#include <string.h>

/* free() -> the lowest slot that is free, or -1 */
PyObject *ext_exchange_free(PyObject *object, PyObject *unused)
{
    const struct exchange *self = (struct exchange *)object;
    (void)unused;
    for (uint32_t k = 0; k < self->slots; k++)
        if (atomic_load_explicit(&slot_of(self, k)->state, memory_order_acquire) == SLOT_FREE)
            return PyLong_FromLong((long)k);
    return PyLong_FromLong(-1);
}

/* lent() -> the number of slots that tensors refer to, or that a forked child may */
PyObject *ext_exchange_lent(PyObject *object, PyObject *unused)
{
    const struct exchange *self = (struct exchange *)object;
    unsigned long lent = 0;
    (void)unused;
    for (uint32_t k = 0; k < self->slots; k++)
        lent += atomic_load_explicit(&slot_of(self, k)->state, memory_order_relaxed) >= SLOT_LENT;
    return PyLong_FromUnsignedLong(lent);
}

/* send(worker, slot, kind, task, message): sends a task in a free slot */
PyObject *ext_exchange_send(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker, k;
    int kind;
    unsigned long long task;
    Py_buffer message;

    if (!PyArg_ParseTuple(args, "lliKy*:send", &worker, &k, &kind, &task, &message))
        return NULL;
    const bool fits = ext_is_worker(self, worker) && ext_is_slot(self, k) &&
                      (uint64_t)message.len <= message_most(self);
    if (fits) {
        struct slot *slot = slot_of(self, (uint32_t)k);
        struct lane *lane = lane_of(self, (uint32_t)worker);
        memcpy(message_of(self, (uint32_t)k), message.buf, (size_t)message.len);
        slot->kind = (uint32_t)kind;
        slot->task = task;
        slot->offset = 0;
        slot->length = (uint64_t)message.len;
        atomic_store_explicit(&slot->state, SLOT_TASK, memory_order_relaxed);
        /* A lane has an entry for every slot, so it is never full. */
        const uint32_t tail = atomic_load_explicit(&lane->tail, memory_order_relaxed);
        lane->entry[tail % self->slots] = (uint32_t)k;
        atomic_store(&lane->tail, tail + 1);
        if (atomic_load(&lane->sleeping))
            ext_wake(&lane->tail);
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "a task of %zd bytes is too large: %llu bytes are allowed",
                     message.len, (unsigned long long)message_most(self));
    }
    PyBuffer_Release(&message);
    if (!fits)
        return NULL;
    Py_RETURN_NONE;
}

static long find_done(const struct exchange *self, const uint32_t *list, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (atomic_load(&slot_of(self, list[i])->state) == SLOT_DONE)
            return (long)list[i];
    return -1;
}

static long wait_done(const struct exchange *self, const uint32_t *list, Py_ssize_t count,
                      uint64_t deadline)
{
    struct header *header = self->header;
    for (;;) {
        const uint32_t seen = atomic_load(&header->posted);
        atomic_store(&header->sleeping, 1);
        const long found = find_done(self, list, count);
        const bool again = found < 0 && ext_sleep_on(&header->posted, seen, deadline);
        atomic_store(&header->sleeping, 0);
        if (!again)
            return found;
    }
}

/* The numbers of slots in a tuple; false with an error. */
static bool read_slots(const struct exchange *self, PyObject *slots, uint32_t *list, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        const long k = PyLong_AsLong(PyTuple_GetItem(slots, i));
        if ((k == -1 && PyErr_Occurred()) || !ext_is_slot(self, k))
            return false;
        list[i] = (uint32_t)k;
    }
    return true;
}

/* wait(slots, seconds) -> one of them that is done, or -1; it returns early if a signal arrives */
PyObject *ext_exchange_wait(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    PyObject *slots;
    double seconds;
    long found = -1;

    if (!PyArg_ParseTuple(args, "O!d:wait", &PyTuple_Type, &slots, &seconds))
        return NULL;
    const Py_ssize_t count = PyTuple_Size(slots);
    uint32_t *list = PyMem_Calloc((size_t)count + 1, sizeof *list);
    if (!list)
        return PyErr_NoMemory();
    bool fine = read_slots(self, slots, list, count);
    if (fine)
        found = find_done(self, list, count);
    if (fine && found < 0 && seconds > 0) {
        Py_BEGIN_ALLOW_THREADS
        found = wait_done(self, list, count, ext_deadline_in(seconds));
        Py_END_ALLOW_THREADS
        fine = PyErr_CheckSignals() >= 0;
    }
    PyMem_Free(list);
    return fine ? PyLong_FromLong(found) : NULL;
}

/* release(slot): frees a slot without reading it */
PyObject *ext_exchange_release(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long k;
    if (!PyArg_ParseTuple(args, "l:release", &k) || !ext_is_slot(self, k))
        return NULL;
    ext_slot_free(self, (uint32_t)k);
    Py_RETURN_NONE;
}

/* collect(slot) -> (kind, task, offset, length, lease) of a slot that is done; it is lent from here on
 */
PyObject *ext_exchange_collect(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long k;
    if (!PyArg_ParseTuple(args, "l:collect", &k) || !ext_is_slot(self, k))
        return NULL;
    struct slot *slot = slot_of(self, (uint32_t)k);
    const long b = ext_block_of(self, (uint32_t)k);
    if (atomic_load(&slot->state) != SLOT_DONE || b < 0 || slot->offset > self->stride ||
        slot->length > self->stride - slot->offset) {
        PyErr_Format(PyExc_RuntimeError, "slot %ld of the exchange is not done", k);
        return NULL;
    }
    PyObject *lease =
        ext_lease_new(ext_state_of(object), object, (uint32_t)k, data_of(self, (uint32_t)b));
    if (!lease)
        return NULL;
    atomic_store(&slot->state, SLOT_LENT);
    return Py_BuildValue("iKKKN", (int)slot->kind, (unsigned long long)slot->task,
                         (unsigned long long)slot->offset, (unsigned long long)slot->length, lease);
}

/* stop(worker): the worker stops after its current sample; -1 stops all */
PyObject *ext_exchange_stop(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker;
    if (!PyArg_ParseTuple(args, "l:stop", &worker) || (worker != -1 && !ext_is_worker(self, worker)))
        return NULL;
    for (uint32_t k = 0; k < self->workers; k++) {
        struct lane *lane = lane_of(self, k);
        if (worker == -1 || worker == (long)k) {
            atomic_store(&lane->stop, 1);
            ext_wake(&lane->tail);
        }
    }
    Py_RETURN_NONE;
}

/* doing(worker) -> (slot, place): the task in progress, or -1, and the latest progress that it reported
 */
PyObject *ext_exchange_doing(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker;
    if (!PyArg_ParseTuple(args, "l:doing", &worker) || !ext_is_worker(self, worker))
        return NULL;
    struct lane *lane = lane_of(self, (uint32_t)worker);
    return Py_BuildValue("lI", (long)atomic_load(&lane->doing) - 1, (unsigned)atomic_load(&lane->place));
}

/* empty(worker): empties the lane of a worker that is gone, for its replacement */
PyObject *ext_exchange_empty(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker;
    if (!PyArg_ParseTuple(args, "l:empty", &worker) || !ext_is_worker(self, worker))
        return NULL;
    struct lane *lane = lane_of(self, (uint32_t)worker);
    lane->head = atomic_load(&lane->tail);
    atomic_store(&lane->sleeping, 0);
    atomic_store(&lane->doing, 0);
    Py_RETURN_NONE;
}

/* reset(): prepares for new workers when all old ones are gone; lent slots stay lent */
PyObject *ext_exchange_reset(PyObject *object, PyObject *unused)
{
    struct exchange *self = (struct exchange *)object;
    (void)unused;
    for (uint32_t k = 0; k < self->workers; k++) {
        struct lane *lane = lane_of(self, k);
        lane->head = 0;
        atomic_store(&lane->tail, 0);
        atomic_store(&lane->sleeping, 0);
        atomic_store(&lane->stop, 0);
        atomic_store(&lane->doing, 0);
    }
    for (uint32_t k = 0; k < self->slots; k++)
        if (atomic_load(&slot_of(self, k)->state) < SLOT_LENT)
            ext_slot_free(self, k);
    Py_RETURN_NONE;
}
