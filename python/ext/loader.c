/* loader.c - Loader: delivers batches
 *
 * The engine's loader is for one thread at a time: `busy` means that a call is in progress without the
 * interpreter's lock. Waiting is done in slices, so that Ctrl-C and other signals are handled.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <string.h>
#include <structmember.h>
#include <time.h>

struct loader {
    PyObject_HEAD
    struct stoker_loader *handle; /* NULL: closed */
    PyObject *dataset;            /* owns the images that the engine reads in place */
    PyObject *stream_of;          /* called when a batch is released; NULL: no GPU reads batches */
    struct ext_rescue rescue;
    uint32_t timeout_ms;          /* 0: none */
    bool busy;
    bool closing; /* close was called while busy */
    PyObject *weak;
};

/* `calls`: stream_of and rescue; either may be NULL. */
static struct loader *loader_open(PyTypeObject *type, PyObject *dataset, PyObject *pipeline,
                                  PyObject *const calls[2], const struct ext_loader_request *request)
{
    struct loader *self = (struct loader *)PyType_GenericAlloc(type, 0);
    struct stoker_loader *handle;
    struct stoker_error err;
    struct ext_wait wait;
    int rc;

    if (!self)
        return NULL;
    ext_wait_begin(&wait);
    rc = stoker_loader_open(&handle, ext_dataset_handle(dataset), ext_pipeline_handle(pipeline),
                            &request->options, &err);
    if (ext_wait_end(&wait) && rc == STOKER_OK) {
        stoker_loader_close(handle);
        rc = STOKER_ECANCELED;
    }
    if (rc < 0) {
        ext_raise(PyType_GetModuleState(type), &err);
        Py_DECREF(self);
        return NULL;
    }
    self->handle = handle;
    self->dataset = Py_NewRef(dataset);
    self->stream_of = Py_XNewRef(calls[0]);
    ext_rescue_set(&self->rescue, PyType_GetModuleState(type), handle, calls[1]);
    self->timeout_ms = request->timeout_ms;
    return self;
}

static PyObject *loader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const struct ext_state *state = PyType_GetModuleState(type);
    PyObject *dataset, *pipeline, *rest, *weights, *calls[2];
    struct loader *self = NULL;
    struct ext_loader_request request;
    Py_buffer view = {0};

    if (!PyArg_ParseTuple(args, "O!O!:Loader", state->dataset, &dataset, state->pipeline, &pipeline))
        return NULL;
    rest = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
    if (!rest)
        return NULL;
    weights = ext_options_take(rest, "weights");
    calls[0] = ext_options_take(rest, "stream_of");
    calls[1] = ext_options_take(rest, "rescue");
    if (ext_loader_request(&request, rest, weights, stoker_dataset_count(ext_dataset_handle(dataset)),
                     &view) == 0)
        self = loader_open(type, dataset, pipeline, calls, &request);
    ext_array_free(&view);
    Py_XDECREF(weights);
    Py_XDECREF(calls[0]);
    Py_XDECREF(calls[1]);
    Py_DECREF(rest);
    return (PyObject *)self;
}

/* ---- one call at a time ---- */

static bool begin(struct loader *self)
{
    if (!self->handle || self->closing)
        PyErr_SetString(PyExc_ValueError, "the loader is closed");
    else if (self->busy)
        PyErr_SetString(PyExc_RuntimeError, "the loader is in use by another thread: "
                                            "use one iterator per thread");
    else
        self->busy = true;
    return self->busy && !PyErr_Occurred();
}

static void shut(struct loader *self)
{
    struct stoker_loader *handle = self->handle;

    self->handle = NULL; /* first, because another thread may read it while the lock is released */
    if (!handle)
        return;
    Py_BEGIN_ALLOW_THREADS
    stoker_loader_close(handle);
    Py_END_ALLOW_THREADS
}

static void end(struct loader *self)
{
    self->busy = false;
    if (self->closing)
        shut(self);
}

static PyObject *loader_close(PyObject *object, PyObject *unused)
{
    struct loader *self = (struct loader *)object;

    (void)unused;
    if (self->busy) {
        self->closing = true;
        stoker_loader_interrupt(self->handle);
    } else {
        shut(self);
    }
    Py_RETURN_NONE;
}

static void loader_dealloc(PyObject *object)
{
    struct loader *self = (struct loader *)object;

    if (self->weak)
        PyObject_ClearWeakRefs(object);
    shut(self);
    Py_XDECREF(self->dataset);
    Py_XDECREF(self->stream_of);
    ext_rescue_free(&self->rescue);
    ext_free(object);
}

static PyObject *loader_interrupt(PyObject *object, PyObject *unused)
{
    (void)unused;
    if (((struct loader *)object)->handle)
        stoker_loader_interrupt(((struct loader *)object)->handle);
    Py_RETURN_NONE;
}

/* ---- epochs and batches ---- */

/* An epoch, and the arrays that it points to. */
struct epoch_args {
    struct stoker_epoch epoch;
    Py_buffer indices, batch_sizes, repeated;
};

/* Reads the arguments that start and restore share: indices, batch_sizes, repeated. */
static int epoch_read(struct epoch_args *args, PyObject *const arrays[3])
{
    struct stoker_epoch *epoch = &args->epoch;

    if (ext_array(arrays[0], "indices", 8, "qlQL", &args->indices) < 0 ||
        ext_array(arrays[1], "batch_sizes", 4, "I", &args->batch_sizes) < 0 ||
        ext_array(arrays[2], "repeated", 1, "B?", &args->repeated) < 0)
        return -1;
    if (args->repeated.obj && args->repeated.len != args->indices.len / 8) {
        PyErr_Format(PyExc_ValueError, "repeated has %zd values for %zd indices: give one for each",
                     args->repeated.len, args->indices.len / 8);
        return -1;
    }
    epoch->indices = args->indices.buf;
    epoch->index_count = (uint64_t)(args->indices.len / 8);
    epoch->batch_sizes = args->batch_sizes.buf;
    epoch->batch_count = (uint64_t)(args->batch_sizes.len / 4);
    epoch->repeated = args->repeated.buf;
    return 0;
}

/* Starts an epoch, at its beginning or, with `state`, at the saved position. */
static PyObject *start_at(struct loader *self, const struct stoker_state *state, struct epoch_args *args,
                          PyObject *const arrays[3])
{
    struct stoker_error err;
    int rc = epoch_read(args, arrays) < 0 || !begin(self) ? -1 : 0;

    if (rc == 0) {
        Py_BEGIN_ALLOW_THREADS
        rc = state ? stoker_loader_restore(self->handle, state, &args->epoch, &err)
                   : stoker_loader_start(self->handle, &args->epoch, &err);
        Py_END_ALLOW_THREADS
        end(self);
        if (rc < 0)
            ext_raise(ext_state_of((PyObject *)self), &err);
    }
    ext_array_free(&args->indices);
    ext_array_free(&args->batch_sizes);
    ext_array_free(&args->repeated);
    return rc < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *loader_start(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"epoch",          "indices",     "batch_sizes", "repeated",
                            "first_position", "first_batch", NULL};
    struct epoch_args own = {.epoch = stoker_epoch_defaults()};
    unsigned long long number = 0, position = 0, batch = 0;
    PyObject *arrays[3] = {NULL};

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|KOOOKK:start", names, &number, &arrays[0],
                                     &arrays[1], &arrays[2], &position, &batch))
        return NULL;
    own.epoch.epoch = number;
    own.epoch.first_position = position;
    own.epoch.first_batch = batch;
    return start_at((struct loader *)object, NULL, &own, arrays);
}

static PyObject *loader_restore(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"state",          "indices",     "batch_sizes", "repeated",
                            "first_position", "first_batch", NULL};
    struct epoch_args own = {.epoch = stoker_epoch_defaults()};
    unsigned long long position = 0, batch = 0;
    PyObject *arrays[3] = {NULL};
    struct stoker_state state;
    const char *bytes;
    Py_ssize_t size;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y#|OOOKK:restore", names, &bytes, &size, &arrays[0],
                                     &arrays[1], &arrays[2], &position, &batch))
        return NULL;
    if (size != sizeof(state.bytes)) {
        PyErr_Format(PyExc_ValueError, "state must have %zu bytes, not %zd", sizeof(state.bytes), size);
        return NULL;
    }
    memcpy(state.bytes, bytes, sizeof(state.bytes));
    own.epoch.first_position = position;
    own.epoch.first_batch = batch;
    return start_at((struct loader *)object, &state, &own, arrays);
}

static PyObject *loader_save(PyObject *object, PyObject *unused)
{
    struct loader *self = (struct loader *)object;
    struct stoker_state state;
    struct stoker_error err;

    (void)unused;
    if (!begin(self))
        return NULL;
    self->busy = false;
    if (stoker_loader_save(self->handle, &state, &err) < 0)
        return ext_raise(ext_state_of(object), &err);
    return PyBytes_FromStringAndSize((const char *)state.bytes, sizeof(state.bytes));
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits for the next batch in slices; *raised if a signal handler or the timeout raised an exception. */
static int wait_for_batch(struct loader *self, const struct stoker_batch **batch,
                          struct stoker_error *err, bool *raised)
{
    uint64_t start = now_ms();
    struct ext_wait wait;
    int rc;

    for (;;) {
        ext_wait_begin(&wait);
        self->rescue.wait = &wait;
        rc = stoker_loader_next(self->handle, batch, err);
        *raised = ext_wait_end(&wait);
        *raised = ext_rescue_raises(&self->rescue) || *raised;
        if (*raised || rc != STOKER_ETIMEOUT || self->closing)
            return rc;
        *raised = PyErr_CheckSignals() < 0;
        if (!*raised && self->timeout_ms && now_ms() - start >= self->timeout_ms) {
            char text[64];

            PyOS_snprintf(text, sizeof(text), "DataLoader timed out after %g seconds",
                          self->timeout_ms / 1000.0);
            PyErr_SetString(ext_state_of((PyObject *)self)->error, text);
            *raised = true;
        }
        if (*raised)
            return rc;
    }
}

/* The next batch; NULL with *ended at the end of the epoch, otherwise NULL with an exception. */
static const struct stoker_batch *next_batch(PyObject *object, bool *ended)
{
    struct loader *self = (struct loader *)object;
    const struct stoker_batch *batch = NULL;
    struct stoker_error err;
    bool raised = false;
    int rc;

    if (!begin(self))
        return NULL;
    rc = wait_for_batch(self, &batch, &err, &raised);
    end(self);
    if (!raised && rc < 0)
        ext_raise(ext_state_of(object), &err);
    if (raised && batch) {
        stoker_batch_release(batch);
        batch = NULL;
    }
    *ended = rc == STOKER_END;
    return batch;
}

static PyObject *loader_next(PyObject *object, PyObject *unused)
{
    bool ended = false;
    const struct stoker_batch *batch = next_batch(object, &ended);

    (void)unused;
    if (!batch)
        return ended ? Py_NewRef(Py_None) : NULL;
    return ext_batch_new(ext_state_of(object), batch, ((struct loader *)object)->stream_of);
}

static PyObject *loader_next_pair(PyObject *object, PyObject *take)
{
    bool ended = false;
    const struct stoker_batch *batch = next_batch(object, &ended);

    if (!batch)
        return ended ? Py_NewRef(Py_None) : NULL;
    return ext_batch_pair(ext_state_of(object), batch, ((struct loader *)object)->stream_of, take);
}

/* ---- reports ---- */

static bool is_open(struct loader *self)
{
    if (!self->handle)
        PyErr_SetString(PyExc_ValueError, "the loader is closed");
    return self->handle;
}

static PyObject *loader_stats(PyObject *object, PyObject *unused)
{
    struct loader *self = (struct loader *)object;

    (void)unused;
    return is_open(self) ? ext_report_stats(ext_state_of(object), self->handle) : NULL;
}

static PyObject *loader_ledger(PyObject *object, PyObject *unused)
{
    struct loader *self = (struct loader *)object;

    (void)unused;
    return is_open(self) ? ext_report_ledger(self->handle) : NULL;
}

static PyObject *loader_batches(PyObject *object, void *unused)
{
    struct loader *self = (struct loader *)object;

    (void)unused;
    return is_open(self) ? PyLong_FromUnsignedLongLong(stoker_loader_batch_count(self->handle)) : NULL;
}

static PyObject *loader_workers(PyObject *object, void *unused)
{
    struct loader *self = (struct loader *)object;

    (void)unused;
    return is_open(self) ? PyLong_FromUnsignedLong(stoker_loader_worker_count(self->handle)) : NULL;
}

static PyObject *loader_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(!((struct loader *)object)->handle);
}

static PyMethodDef loader_methods[] = {
    {"start", (PyCFunction)(void (*)(void))loader_start, METH_VARARGS | METH_KEYWORDS,
     "start(epoch=0, indices=None, batch_sizes=None, ...): begin an epoch, abandoning the current one."},
    {"restore", (PyCFunction)(void (*)(void))loader_restore, METH_VARARGS | METH_KEYWORDS,
     "restore(state, indices=None, batch_sizes=None, ...): begin an epoch at the saved position."},
    {"save", loader_save, METH_NOARGS, "Return the position in the epoch, as bytes for restore."},
    {"next", loader_next, METH_NOARGS, "Return the next Batch, or None at the end of the epoch."},
    {"next_pair", loader_next_pair, METH_O,
     "next_pair(take): like next, but returns [take(images), take(labels)] of DLPack capsules for a "
     "batch of images and labels, which is several times faster than a Batch with its Tensors."},
    {"interrupt", loader_interrupt, METH_NOARGS, "Wake a next that waits in another thread."},
    {"close", loader_close, METH_NOARGS, "Stop the threads. Batches stay valid."},
    {"stats", loader_stats, METH_NOARGS, "Return the counters since the loader was opened."},
    {"ledger", loader_ledger, METH_NOARGS, "Return the latest 1,024 bad samples."},
    {0},
};

static PyGetSetDef loader_getset[] = {
    {"batches", loader_batches, NULL, "The number of batches in the current epoch, on this rank.", NULL},
    {"workers", loader_workers, NULL, "The number of threads that decode.", NULL},
    {"closed", loader_closed, NULL, "Whether it is closed.", NULL},
    {0},
};

static PyMemberDef loader_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct loader, weak), READONLY, NULL},
    {0},
};

static PyType_Slot loader_slots[] = {
    {Py_tp_new, loader_new},
    {Py_tp_dealloc, loader_dealloc},
    {Py_tp_methods, loader_methods},
    {Py_tp_getset, loader_getset},
    {Py_tp_members, loader_members},
    {Py_tp_doc, "Loader(dataset, pipeline, **options), with the options of stoker_loader_options."},
    {0, NULL},
};

PyType_Spec ext_loader_spec = {
    .name = "stoker._ext.Loader",
    .basicsize = sizeof(struct loader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = loader_slots,
};
