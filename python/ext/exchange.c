/* exchange.c - Exchange: memory that a loader shares with its worker processes
 *
 * One memfd, mapped by all of them: a header, a lane of tasks for each worker, an array of slots, the
 * blocks in which batches are made, and the messages of tasks. A slot carries a task to a worker and
 * comes back with the block in which the worker made the batch, so that only slot numbers are passed
 * around, and nothing is copied twice. Blocks are far apart in a sparse file: each can grow to the size
 * of its batch without a new mapping or descriptor, and only pages that were written to take memory.
 *
 * A slot's state determines its owner: FREE (the loader) > TASK (the worker) > DONE (the loader) > LENT
 * (the tensors) > FREE. Processes sleep on futexes in the same mapping.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exchange.h"
#include "lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LANES_MOST = 4096, SLOTS_MOST = 16384 };
#define MAGIC        0x73746f6b65726579ull
#define STRIDE_MOST  (64ull << 30)
#define STRIDE_LEAST (1ull << 20)

/* ---- the mapping --------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

static uint64_t control_bytes(uint32_t workers, uint32_t slots)
{
    const uint64_t each = sizeof(struct slot) + sizeof(struct block);
    return round_up(sizeof(struct header) + workers * lane_bytes(slots) + slots * each, 65536);
}

static uint64_t all_bytes(const struct exchange *self)
{
    return self->control + self->slots * (self->stride + message_most(self));
}

static int map_all(struct exchange *self)
{
    const uint64_t bytes = all_bytes(self);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, self->fd, 0);
    if (memory == MAP_FAILED)
        return -1;
    self->header = memory;
    self->mapped = bytes;
    /* A core dump would write all of it, holes included, and give them memory. */
    (void)madvise(memory, bytes, MADV_DONTDUMP);
    (void)madvise(data_of(self, 0), self->slots * self->stride, MADV_HUGEPAGE); /* may fail */
    return 0;
}

/* How much may be mapped: half of what a limit of the address space (ulimit -v) leaves, since the
 * training and other loaders need the rest. */
static uint64_t mapping_most(void)
{
    struct rlimit limit;
    unsigned long long pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%llu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    const uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return used < limit.rlim_cur ? (limit.rlim_cur - used) / 2 : 0;
}

static int refuse_limits(struct exchange *self, int why)
{
    char text[400];
    self->stride = STRIDE_LEAST;
    snprintf(
        text, sizeof text,
        "cannot map the memory that is shared with the workers (%s): %u workers and %u batches need "
        "at least %llu MiB, and twice that under a limit of the address space. Raise the limits "
        "(ulimit -v and ulimit -f), or use a smaller prefetch_factor, fewer workers, or num_workers=0",
        strerror(why), self->workers, self->slots, (unsigned long long)(all_bytes(self) >> 20) + 1);
    PyObject *error = PyObject_CallFunction(PyExc_OSError, "is", why, text);
    if (error)
        PyErr_SetObject(PyExc_OSError, error);
    Py_XDECREF(error);
    return -1;
}

/* Places the blocks as far apart as the address space and its limit allow. */
static int create(struct exchange *self)
{
    const uint64_t most = mapping_most();
    int why = ENOMEM;
    self->control = control_bytes(self->workers, self->slots);
    self->fd = memfd_create("stoker-exchange", MFD_CLOEXEC);
    if (self->fd < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    for (self->stride = STRIDE_MOST; self->stride >= STRIDE_LEAST; self->stride /= 2) {
        if (all_bytes(self) > most)
            continue;
        if (!ftruncate(self->fd, (off_t)all_bytes(self)) && !map_all(self)) {
            *self->header = (struct header){.magic = MAGIC,
                                            .workers = self->workers,
                                            .slots = self->slots,
                                            .stride = self->stride,
                                            .control = self->control};
            return 0;
        }
        why = errno;
    }
    return refuse_limits(self, why);
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
        (uint64_t)info.st_size < all_bytes(self)) {
        PyErr_Format(PyExc_ValueError, "fd=%d is not the descriptor of an exchange", self->fd);
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
        PyErr_Format(PyExc_ValueError,
                     "workers=%d, slots=%d: from 1 to %d workers and from 1 to %d slots are allowed",
                     workers, slots, LANES_MOST, SLOTS_MOST);
        return NULL;
    }
    ext_watch_forks();
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

static void call_before_unmap(struct exchange *self)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *done = PyObject_CallNoArgs(self->before_unmap);
    if (done)
        Py_DECREF(done);
    else
        PyErr_WriteUnraisable(self->before_unmap);
    PyErr_Restore(type, value, trace);
}

static void exchange_dealloc(PyObject *object)
{
    struct exchange *self = (struct exchange *)object;

    if (self->before_unmap && self->owner == getpid())
        call_before_unmap(self);
    if (self->header)
        munmap(self->header, self->mapped);
    if (self->fd >= 0)
        close(self->fd);
    Py_XDECREF(self->before_unmap);
    Py_XDECREF(self->on_drop);
    Py_XDECREF(self->on_release);
    ext_free(object);
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
    return PyLong_FromLong(name[0] == 'w'   ? (long)self->workers
                           : name[0] == 's' ? (long)self->slots
                                            : (long)self->owner);
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

/* A callable, or None, as an attribute; `which` is its offset in the struct. */
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
    {"free", ext_exchange_free, METH_NOARGS, "free() -> the lowest free slot, or -1"},
    {"lent", ext_exchange_lent, METH_NOARGS, "lent() -> how many slots tensors refer to"},
    {"send", ext_exchange_send, METH_VARARGS, "send(worker, slot, kind, task, message): send a task"},
    {"wait", ext_exchange_wait, METH_VARARGS, "wait(slots, seconds) -> one that is done, or -1"},
    {"release", ext_exchange_release, METH_VARARGS, "release(slot): free a slot without reading it"},
    {"collect", ext_exchange_collect, METH_VARARGS,
     "collect(slot) -> (kind, task, offset, length, lease) of a slot that is done"},
    {"stop", ext_exchange_stop, METH_VARARGS, "stop(worker): stop a worker; -1 stops all"},
    {"reset", ext_exchange_reset, METH_NOARGS, "reset(): prepare for new workers when all are gone"},
    {"harmless_forks", ext_exchange_harmless_forks, METH_VARARGS,
     "harmless_forks(yes): whether forks of this thread are workers"},
    {"doing", ext_exchange_doing, METH_VARARGS,
     "doing(worker) -> (slot, place) of the task in progress; the slot is -1 if there is none"},
    {"empty", ext_exchange_empty, METH_VARARGS,
     "empty(worker): forget the tasks of a worker that is gone"},
    {"progress", ext_exchange_progress, METH_VARARGS,
     "progress(worker, place) -> whether to stop before this sample, which is noted"},
    {"take", ext_exchange_take, METH_VARARGS,
     "take(worker, seconds) -> (slot, kind, task, message), None if there is none, False to stop"},
    {"room", ext_exchange_room, METH_VARARGS, "room(slot) -> memoryview of the memory for its batch"},
    {"address", ext_exchange_address, METH_VARARGS, "address(slot) -> the address of its batch"},
    {"post", ext_exchange_post, METH_VARARGS, "post(slot, kind, offset, length): post a result"},
    {"fileno", exchange_fileno, METH_NOARGS, "fileno() -> int"},
    {0},
};

static PyGetSetDef exchange_getset[] = {
    {"stride", exchange_stride, NULL, "The largest size of a batch in bytes.", NULL},
    {"workers", exchange_number, NULL, "The number of workers.", "workers"},
    {"slots", exchange_number, NULL, "The number of slots.", "slots"},
    {"owner", exchange_number, NULL, "The process that created or attached it.", "owner"},
    {"regular", exchange_get_regular, exchange_set_regular,
     "Blocks in regular use: the memory of others is returned to the system when they become free.",
     NULL},
    {"on_drop", exchange_get_callable, exchange_set_callable,
     "Called with the slot whenever a part of its lease is gone; or None.",
     (void *)offsetof(struct exchange, on_drop)},
    {"on_release", exchange_get_callable, exchange_set_callable,
     "Called with each slot that is no longer used, and must release it; or None.",
     (void *)offsetof(struct exchange, on_release)},
    {"before_unmap", exchange_get_callable, exchange_set_callable,
     "Called before the memory is unmapped; or None.", (void *)offsetof(struct exchange, before_unmap)},
    {0},
};

static PyType_Slot exchange_slots[] = {
    {Py_tp_new, exchange_new},
    {Py_tp_dealloc, exchange_dealloc},
    {Py_tp_methods, exchange_methods},
    {Py_tp_getset, exchange_getset},
    {Py_tp_doc,
     "Exchange(workers, slots), or Exchange(fd=...) in a worker: memory shared by a loader and its "
     "worker processes."},
    {0, NULL},
};

PyType_Spec ext_exchange_spec = {
    .name = "stoker._ext.Exchange",
    .basicsize = sizeof(struct exchange),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = exchange_slots,
};
