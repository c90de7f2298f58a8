/* exchange.c - Exchange: memory that a loader shares with its worker processes
 *
 * One memfd, mapped by all of them: a header, a lane of tasks for each worker, a row of slot headers, and
 * the slots. A slot carries a task to a worker and comes back with the batch that the worker made of it,
 * in the same memory; so what is passed around are numbers of slots, and nothing is ever copied twice.
 * Slots lie far apart in a sparse file: each can grow as large as a batch turns out, without a new mapping
 * and without a descriptor of its own, and only pages that were written to take memory.
 *
 * A slot's state names its owner: FREE (the loader) > TASK (the worker) > DONE (the loader) > LENT (the
 * tensors) > FREE. Sleepers wait on futexes in the same mapping.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"
#include "exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LANES_MOST = 4096, SLOTS_MOST = 16384 };
#define MAGIC 0x73746f6b65726578ull
#define STRIDE_MOST (64ull << 30)
#define STRIDE_LEAST (64ull << 20)

/* ---- waiting ------------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Sleeps while *word is `seen`; false when it is time to stop waiting, or a signal came. */
static bool sleep_on(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline)
{
    const uint64_t now = now_ns();
    if (now >= deadline)
        return false;
    const uint64_t left = deadline - now;
    const struct timespec t = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    return syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0) == 0 || errno == EAGAIN;
}

/* Deadline of a wait of so many seconds, at most a day. */
static uint64_t deadline_in(double seconds)
{
    return now_ns() + (uint64_t)((seconds < 0 ? 0 : seconds > 86400 ? 86400 : seconds) * 1e9);
}

/* ---- the mapping --------------------------------------------------------------------------------- */

/* Forks of this process that may leave a child with lent tensors. */
static atomic_uint forks;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;
static _Thread_local bool fork_is_harmless;

static void count_fork(void)
{
    if (!fork_is_harmless)
        atomic_fetch_add(&forks, 1);
}
static void watch_forks(void) { pthread_atfork(NULL, count_fork, NULL); }

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

static uint64_t lane_bytes(uint32_t slots)
{
    return round_up(sizeof(struct lane) + slots * sizeof(uint32_t), 64);
}

static uint64_t control_bytes(uint32_t workers, uint32_t slots)
{
    return round_up(sizeof(struct header) + workers * lane_bytes(slots) + slots * sizeof(struct slot), 65536);
}

static struct lane *lane_of(const struct exchange *self, uint32_t worker)
{
    return (struct lane *)(void *)((uint8_t *)(self->header + 1) + worker * lane_bytes(self->slots));
}

static struct slot *slot_of(const struct exchange *self, uint32_t k)
{
    struct slot *first =
        (struct slot *)(void *)((uint8_t *)(self->header + 1) + self->workers * lane_bytes(self->slots));
    return first + k;
}

static uint8_t *data_of(const struct exchange *self, uint32_t k)
{
    return (uint8_t *)self->header + self->control + k * self->stride;
}

static int map_all(struct exchange *self)
{
    const uint64_t bytes = self->control + self->slots * self->stride;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, self->fd, 0);
    if (memory == MAP_FAILED)
        return -1;
    self->header = memory;
    self->mapped = bytes;
    (void)madvise(data_of(self, 0), self->slots * self->stride, MADV_HUGEPAGE); /* it may be refused */
    return 0;
}

/* As far apart as the address space allows. */
static int create(struct exchange *self)
{
    self->control = control_bytes(self->workers, self->slots);
    self->fd = memfd_create("stoker-exchange", MFD_CLOEXEC);
    for (self->stride = STRIDE_MOST; self->fd >= 0 && self->stride >= STRIDE_LEAST; self->stride /= 2)
        if (!ftruncate(self->fd, (off_t)(self->control + self->slots * self->stride)) && !map_all(self)) {
            *self->header = (struct header){.magic = MAGIC,
                                            .workers = self->workers,
                                            .slots = self->slots,
                                            .stride = self->stride,
                                            .control = self->control};
            return 0;
        }
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

static int attach(struct exchange *self)
{
    struct header header;
    struct stat info;
    if (fstat(self->fd, &info) || pread(self->fd, &header, sizeof header, 0) != sizeof header) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    self->workers = header.workers;
    self->slots = header.slots;
    self->stride = header.stride;
    self->control = header.control;
    if (header.magic != MAGIC || !header.workers || header.workers > LANES_MOST || !header.slots ||
        header.slots > SLOTS_MOST || header.stride > STRIDE_MOST ||
        header.control != control_bytes(header.workers, header.slots) ||
        (uint64_t)info.st_size < header.control + header.slots * header.stride) {
        PyErr_SetString(PyExc_ValueError, "the descriptor is not that of an exchange");
        return -1;
    }
    if (map_all(self)) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    return 0;
}

static PyObject *exchange_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"workers", "slots", "fd", NULL};
    int workers = 0, slots = 0, fd = -1;
    struct exchange *self;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|iii:Exchange", names, &workers, &slots, &fd))
        return NULL;
    if (fd < 0 && (workers < 1 || workers > LANES_MOST || slots < 1 || slots > SLOTS_MOST)) {
        PyErr_Format(PyExc_ValueError, "an exchange for %d workers with %d slots: at most %d and %d", workers,
                     slots, LANES_MOST, SLOTS_MOST);
        return NULL;
    }
    pthread_once(&forks_once, watch_forks);
    self = (struct exchange *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->fd = fd;
    self->workers = (uint32_t)workers;
    self->slots = (uint32_t)slots;
    self->owner = getpid();
    if (fd < 0 ? create(self) : attach(self)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void call_farewell(struct exchange *self)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *done = PyObject_CallNoArgs(self->farewell);
    if (done)
        Py_DECREF(done);
    else
        PyErr_WriteUnraisable(self->farewell);
    PyErr_Restore(type, value, trace);
}

static void exchange_dealloc(PyObject *object)
{
    struct exchange *self = (struct exchange *)object;

    if (self->farewell && self->owner == getpid())
        call_farewell(self);
    if (self->header)
        munmap(self->header, self->mapped);
    if (self->fd >= 0)
        close(self->fd);
    Py_XDECREF(self->farewell);
    Py_XDECREF(self->keeper);
    ext_free(object);
}

/* ---- arguments ----------------------------------------------------------------------------------- */

static bool is_slot(const struct exchange *self, long k)
{
    if (k >= 0 && k < (long)self->slots)
        return true;
    PyErr_Format(PyExc_IndexError, "slot %ld of %u", k, self->slots);
    return false;
}

static bool is_worker(const struct exchange *self, long k)
{
    if (k >= 0 && k < (long)self->workers)
        return true;
    PyErr_Format(PyExc_IndexError, "worker %ld of %u", k, self->workers);
    return false;
}

/* ---- the loader's side --------------------------------------------------------------------------- */

/* free() -> the lowest slot that is free, or -1 */
static PyObject *exchange_free(PyObject *object, PyObject *unused)
{
    const struct exchange *self = (struct exchange *)object;
    (void)unused;
    for (uint32_t k = 0; k < self->slots; k++)
        if (atomic_load_explicit(&slot_of(self, k)->state, memory_order_acquire) == SLOT_FREE)
            return PyLong_FromLong((long)k);
    return PyLong_FromLong(-1);
}

/* lent() -> slots that tensors look at, or that a forked child may */
static PyObject *exchange_lent(PyObject *object, PyObject *unused)
{
    const struct exchange *self = (struct exchange *)object;
    unsigned long lent = 0;
    (void)unused;
    for (uint32_t k = 0; k < self->slots; k++)
        lent += atomic_load_explicit(&slot_of(self, k)->state, memory_order_relaxed) >= SLOT_LENT;
    return PyLong_FromUnsignedLong(lent);
}

/* is_lent(slot) */
static PyObject *exchange_is_lent(PyObject *object, PyObject *args)
{
    const struct exchange *self = (struct exchange *)object;
    long k;
    if (!PyArg_ParseTuple(args, "l:is_lent", &k) || !is_slot(self, k))
        return NULL;
    return PyBool_FromLong(atomic_load(&slot_of(self, (uint32_t)k)->state) >= SLOT_LENT);
}

/* send(worker, slot, kind, task, message): a task for the worker, in a free slot */
static PyObject *exchange_send(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker, k;
    int kind;
    unsigned long long task;
    Py_buffer message;

    if (!PyArg_ParseTuple(args, "lliKy*:send", &worker, &k, &kind, &task, &message))
        return NULL;
    const bool fits = is_worker(self, worker) && is_slot(self, k) && (uint64_t)message.len <= self->stride;
    if (fits) {
        struct slot *slot = slot_of(self, (uint32_t)k);
        struct lane *lane = lane_of(self, (uint32_t)worker);
        memcpy(data_of(self, (uint32_t)k), message.buf, (size_t)message.len);
        slot->kind = (uint32_t)kind;
        slot->task = task;
        slot->offset = 0;
        slot->length = (uint64_t)message.len;
        atomic_store_explicit(&slot->state, SLOT_TASK, memory_order_relaxed);
        /* A lane has room for every slot, so it is never full. */
        const uint32_t tail = atomic_load_explicit(&lane->tail, memory_order_relaxed);
        lane->entry[tail % self->slots] = (uint32_t)k;
        atomic_store(&lane->tail, tail + 1);
        if (atomic_load(&lane->sleeping))
            wake(&lane->tail);
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "a task of %zd bytes is larger than a slot", message.len);
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

static long wait_done(const struct exchange *self, const uint32_t *list, Py_ssize_t count, uint64_t deadline)
{
    struct header *header = self->header;
    for (;;) {
        const uint32_t seen = atomic_load(&header->posted);
        atomic_store(&header->sleeping, 1);
        const long found = find_done(self, list, count);
        const bool again = found < 0 && sleep_on(&header->posted, seen, deadline);
        atomic_store(&header->sleeping, 0);
        if (!again)
            return found;
    }
}

/* wait(slots, seconds) -> one of them that is done, or -1; earlier when a signal came */
static PyObject *exchange_wait(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    PyObject *slots;
    double seconds;
    uint32_t list[256];
    long found;

    if (!PyArg_ParseTuple(args, "O!d:wait", &PyTuple_Type, &slots, &seconds))
        return NULL;
    Py_ssize_t count = PyTuple_Size(slots);
    count = count < 256 ? count : 256;
    for (Py_ssize_t i = 0; i < count; i++) {
        const long k = PyLong_AsLong(PyTuple_GetItem(slots, i));
        if ((k == -1 && PyErr_Occurred()) || !is_slot(self, k))
            return NULL;
        list[i] = (uint32_t)k;
    }
    found = find_done(self, list, count);
    if (found < 0 && seconds > 0) {
        Py_BEGIN_ALLOW_THREADS
        found = wait_done(self, list, count, deadline_in(seconds));
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals() < 0)
            return NULL;
    }
    return PyLong_FromLong(found);
}

/* release(slot): a slot that is done, unread */
static PyObject *exchange_release(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long k;
    if (!PyArg_ParseTuple(args, "l:release", &k) || !is_slot(self, k))
        return NULL;
    atomic_store(&slot_of(self, (uint32_t)k)->state, SLOT_FREE);
    Py_RETURN_NONE;
}

/* collect(slot) -> (kind, task, offset, length, lease) of a slot that is done; it is lent from here on */
static PyObject *exchange_collect(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long k;
    if (!PyArg_ParseTuple(args, "l:collect", &k) || !is_slot(self, k))
        return NULL;
    struct slot *slot = slot_of(self, (uint32_t)k);
    if (atomic_load(&slot->state) != SLOT_DONE || slot->offset > self->stride ||
        slot->length > self->stride - slot->offset) {
        PyErr_Format(PyExc_RuntimeError, "slot %ld of the exchange is not done", k);
        return NULL;
    }
    PyObject *lease = ext_lease_new(ext_state_of(object), object, (uint32_t)k, atomic_load(&forks));
    if (!lease)
        return NULL;
    atomic_store(&slot->state, SLOT_LENT);
    return Py_BuildValue("iKKKN", (int)slot->kind, (unsigned long long)slot->task,
                         (unsigned long long)slot->offset, (unsigned long long)slot->length, lease);
}

void ext_exchange_give_back(PyObject *object, uint32_t k, unsigned forked)
{
    struct exchange *self = (struct exchange *)object;
    if (self->owner != getpid())
        return; /* a child's copy of the tensors: they are the parent's to give back */
    /* A child that was forked meanwhile may still read these tensors: the slot is never used again. */
    if (forked != atomic_load(&forks)) {
        atomic_store(&slot_of(self, k)->state, SLOT_RETIRED);
        return;
    }
    if (self->keeper) {
        PyObject *done = PyObject_CallFunction(self->keeper, "I", (unsigned)k);
        if (done)
            Py_DECREF(done);
        else { /* who may still read it is unknown: it is never used again */
            PyErr_WriteUnraisable(self->keeper);
            atomic_store(&slot_of(self, k)->state, SLOT_RETIRED);
        }
        return;
    }
    if (k >= self->regular) /* made for a consumer that kept many batches: the memory goes back */
        (void)fallocate(self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        (off_t)(self->control + k * self->stride), (off_t)self->stride);
    atomic_store(&slot_of(self, k)->state, SLOT_FREE);
}

/* stop(worker): it ends after the task it has; worker -1: all of them */
static PyObject *exchange_stop(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker;
    if (!PyArg_ParseTuple(args, "l:stop", &worker) || (worker != -1 && !is_worker(self, worker)))
        return NULL;
    for (uint32_t k = 0; k < self->workers; k++) {
        struct lane *lane = lane_of(self, k);
        if (worker == -1 || worker == (long)k) {
            atomic_store(&lane->stop, 1);
            wake(&lane->tail);
        }
    }
    Py_RETURN_NONE;
}

/* doing(worker) -> (slot, place): the task it took last, and how far it had come when it last said so */
static PyObject *exchange_doing(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker;
    if (!PyArg_ParseTuple(args, "l:doing", &worker) || !is_worker(self, worker))
        return NULL;
    struct lane *lane = lane_of(self, (uint32_t)worker);
    return Py_BuildValue("II", (unsigned)atomic_load(&lane->doing), (unsigned)atomic_load(&lane->place));
}

/* empty(worker): the lane of a worker that is gone, for the one that takes its place */
static PyObject *exchange_empty(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker;
    if (!PyArg_ParseTuple(args, "l:empty", &worker) || !is_worker(self, worker))
        return NULL;
    struct lane *lane = lane_of(self, (uint32_t)worker);
    lane->head = atomic_load(&lane->tail);
    atomic_store(&lane->sleeping, 0);
    Py_RETURN_NONE;
}

/* reset(): for other workers, when those that were are all gone; what is lent stays lent */
static PyObject *exchange_reset(PyObject *object, PyObject *unused)
{
    struct exchange *self = (struct exchange *)object;
    (void)unused;
    for (uint32_t k = 0; k < self->workers; k++) {
        struct lane *lane = lane_of(self, k);
        lane->head = 0;
        atomic_store(&lane->tail, 0);
        atomic_store(&lane->sleeping, 0);
        atomic_store(&lane->stop, 0);
    }
    for (uint32_t k = 0; k < self->slots; k++)
        if (atomic_load(&slot_of(self, k)->state) < SLOT_LENT)
            atomic_store(&slot_of(self, k)->state, SLOT_FREE);
    Py_RETURN_NONE;
}

/* harmless_forks(yes): whether this thread's forks are of workers, which never look at lent tensors */
static PyObject *exchange_harmless_forks(PyObject *object, PyObject *args)
{
    int yes;
    (void)object;
    if (!PyArg_ParseTuple(args, "p:harmless_forks", &yes))
        return NULL;
    fork_is_harmless = yes;
    Py_RETURN_NONE;
}

/* ---- a worker's side ----------------------------------------------------------------------------- */

/* The next task of the lane; -1: none came in time, -2: the worker is to stop. */
static long next_task(const struct exchange *self, struct lane *lane, uint64_t deadline)
{
    for (;;) {
        const uint32_t tail = atomic_load(&lane->tail), head = lane->head;
        if (atomic_load(&lane->stop))
            return -2;
        if (head != tail) {
            lane->head = head + 1;
            const uint32_t k = lane->entry[head % self->slots];
            atomic_store_explicit(&lane->doing, k, memory_order_relaxed);
            atomic_store_explicit(&lane->place, 0, memory_order_relaxed);
            return k < self->slots ? (long)k : -2;
        }
        atomic_store(&lane->sleeping, 1);
        const bool again = atomic_load(&lane->tail) != tail || atomic_load(&lane->stop) ||
                           sleep_on(&lane->tail, tail, deadline);
        atomic_store(&lane->sleeping, 0);
        if (!again)
            return -1;
    }
}

/* take(worker, seconds) -> (slot, kind, task, message), None when nothing came, False when it is to stop */
static PyObject *exchange_take(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker, k;
    double seconds;
    if (!PyArg_ParseTuple(args, "ld:take", &worker, &seconds) || !is_worker(self, worker))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    k = next_task(self, lane_of(self, (uint32_t)worker), deadline_in(seconds));
    Py_END_ALLOW_THREADS
    if (k < 0 && PyErr_CheckSignals() < 0)
        return NULL;
    if (k == -1)
        Py_RETURN_NONE;
    if (k == -2)
        Py_RETURN_FALSE;
    const struct slot *slot = slot_of(self, (uint32_t)k);
    const uint64_t length = slot->length < self->stride ? slot->length : self->stride;
    return Py_BuildValue("liKy#", k, (int)slot->kind, (unsigned long long)slot->task,
                         (const char *)data_of(self, (uint32_t)k), (Py_ssize_t)length);
}

/* progress(worker, place): how far it has come with its task, should it die of it */
static PyObject *exchange_progress(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long worker;
    unsigned place;
    if (!PyArg_ParseTuple(args, "lI:progress", &worker, &place) || !is_worker(self, worker))
        return NULL;
    atomic_store_explicit(&lane_of(self, (uint32_t)worker)->place, place, memory_order_relaxed);
    Py_RETURN_NONE;
}

/* room(slot) -> the slot's memory, to write to */
static PyObject *exchange_room(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long k;
    if (!PyArg_ParseTuple(args, "l:room", &k) || !is_slot(self, k))
        return NULL;
    return PyMemoryView_FromMemory((char *)data_of(self, (uint32_t)k), (Py_ssize_t)self->stride, PyBUF_WRITE);
}

/* address(slot) -> where it lies */
static PyObject *exchange_address(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long k;
    if (!PyArg_ParseTuple(args, "l:address", &k) || !is_slot(self, k))
        return NULL;
    return PyLong_FromVoidPtr(data_of(self, (uint32_t)k));
}

/* post(slot, kind, offset, length): the task is done, and what became of it is described there */
static PyObject *exchange_post(PyObject *object, PyObject *args)
{
    struct exchange *self = (struct exchange *)object;
    long k;
    int kind;
    unsigned long long offset, length;
    if (!PyArg_ParseTuple(args, "liKK:post", &k, &kind, &offset, &length) || !is_slot(self, k))
        return NULL;
    struct slot *slot = slot_of(self, (uint32_t)k);
    slot->kind = (uint32_t)kind;
    slot->offset = offset;
    slot->length = length;
    atomic_store(&slot->state, SLOT_DONE);
    atomic_fetch_add(&self->header->posted, 1);
    if (atomic_load(&self->header->sleeping))
        wake(&self->header->posted);
    Py_RETURN_NONE;
}

/* ---- the type ------------------------------------------------------------------------------------ */

static PyObject *exchange_fileno(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(((struct exchange *)object)->fd);
}

static PyObject *exchange_stride(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((struct exchange *)object)->stride);
}

static PyObject *exchange_number(PyObject *object, void *which)
{
    const struct exchange *self = (struct exchange *)object;
    const char *name = which;
    return PyLong_FromLong(name[0] == 'w' ? (long)self->workers : name[0] == 's' ? (long)self->slots : (long)self->owner);
}

static PyObject *exchange_get_regular(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((struct exchange *)object)->regular);
}

static int exchange_set_regular(PyObject *object, PyObject *value, void *unused)
{
    const unsigned long number = value ? PyLong_AsUnsignedLong(value) : 0;
    (void)unused;
    if (PyErr_Occurred())
        return -1;
    ((struct exchange *)object)->regular = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    return 0;
}

/* A callable, or None, as an attribute; `which` is where it lies in the struct. */
static PyObject *exchange_get_callable(PyObject *object, void *which)
{
    PyObject *value = *(PyObject **)(void *)((uint8_t *)object + (uintptr_t)which);
    return Py_NewRef(value ? value : Py_None);
}

static int exchange_set_callable(PyObject *object, PyObject *value, void *which)
{
    PyObject **place = (PyObject **)(void *)((uint8_t *)object + (uintptr_t)which), *before = *place;
    *place = value && value != Py_None ? Py_NewRef(value) : NULL;
    Py_XDECREF(before);
    return 0;
}

static PyMethodDef exchange_methods[] = {
    {"free", exchange_free, METH_NOARGS, "free() -> the lowest free slot, or -1"},
    {"lent", exchange_lent, METH_NOARGS, "lent() -> how many slots tensors look at"},
    {"is_lent", exchange_is_lent, METH_VARARGS, "is_lent(slot) -> bool"},
    {"send", exchange_send, METH_VARARGS, "send(worker, slot, kind, task, message)"},
    {"wait", exchange_wait, METH_VARARGS, "wait(slots, seconds) -> one that is done, or -1"},
    {"release", exchange_release, METH_VARARGS, "release(slot): one that is done and stays unread"},
    {"collect", exchange_collect, METH_VARARGS, "collect(slot) -> (kind, task, offset, length, lease)"},
    {"stop", exchange_stop, METH_VARARGS, "stop(worker), or stop(-1) for all"},
    {"reset", exchange_reset, METH_NOARGS, "reset(): for other workers, when all are gone"},
    {"harmless_forks", exchange_harmless_forks, METH_VARARGS, "harmless_forks(yes)"},
    {"doing", exchange_doing, METH_VARARGS, "doing(worker) -> (slot, place) of the task it took last"},
    {"empty", exchange_empty, METH_VARARGS, "empty(worker): forget what a worker that is gone had to do"},
    {"progress", exchange_progress, METH_VARARGS, "progress(worker, place)"},
    {"take", exchange_take, METH_VARARGS, "take(worker, seconds) -> (slot, kind, task, message), None or False"},
    {"room", exchange_room, METH_VARARGS, "room(slot) -> memoryview"},
    {"address", exchange_address, METH_VARARGS, "address(slot) -> int"},
    {"post", exchange_post, METH_VARARGS, "post(slot, kind, offset, length)"},
    {"fileno", exchange_fileno, METH_NOARGS, "fileno() -> int"},
    {0},
};

static PyGetSetDef exchange_getset[] = {
    {"stride", exchange_stride, NULL, "The most bytes that a slot holds.", NULL},
    {"workers", exchange_number, NULL, "How many workers it is for.", "workers"},
    {"slots", exchange_number, NULL, "How many slots it has.", "slots"},
    {"owner", exchange_number, NULL, "The process that made or attached it.", "owner"},
    {"regular", exchange_get_regular, exchange_set_regular,
     "Slots in regular use: the memory of others goes back to the system when they become free.", NULL},
    {"keeper", exchange_get_callable, exchange_set_callable,
     "Called with each slot that is let go, which it then releases itself; or None.",
     (void *)offsetof(struct exchange, keeper)},
    {"farewell", exchange_get_callable, exchange_set_callable,
     "Called before the memory is unmapped; or None.", (void *)offsetof(struct exchange, farewell)},
    {0},
};

static PyType_Slot exchange_slots[] = {
    {Py_tp_new, exchange_new},
    {Py_tp_dealloc, exchange_dealloc},
    {Py_tp_methods, exchange_methods},
    {Py_tp_getset, exchange_getset},
    {Py_tp_doc, "Exchange(workers, slots), or Exchange(fd=...) in a worker: memory shared by a loader and its "
                "worker processes."},
    {0, NULL},
};

PyType_Spec ext_exchange_spec = {
    .name = "stoker._ext.Exchange",
    .basicsize = sizeof(struct exchange),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = exchange_slots,
};
