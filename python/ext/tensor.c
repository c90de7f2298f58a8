/* tensor.c - Tensor: memory of the engine as a Python object, without a copy
 *
 * NumPy uses it through the buffer protocol, torch and others through DLPack. A user of the memory keeps
 * it alive through a hold, which is counted without Python.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "dlpack.h"
#include "ext.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LEGACY_STREAM = 1 }; /* the driver's number for its default stream */

struct ext_hold {
    atomic_uint holders;
    void (*release)(void *what), (*leave)(void *what);
    void *what;
};

struct ext_hold *ext_hold_new(void (*release)(void *what), void (*leave)(void *what), void *what)
{
    struct ext_hold *hold = malloc(sizeof(*hold));

    if (!hold)
        return NULL;
    atomic_init(&hold->holders, 1);
    hold->release = release;
    hold->leave = leave;
    hold->what = what;
    return hold;
}

struct ext_hold *ext_hold_take(struct ext_hold *hold)
{
    atomic_fetch_add_explicit(&hold->holders, 1, memory_order_relaxed);
    return hold;
}

void ext_hold_drop(struct ext_hold *hold)
{
    if (!hold || atomic_fetch_sub_explicit(&hold->holders, 1, memory_order_acq_rel) != 1)
        return;
    hold->release(hold->what);
    free(hold);
}

void ext_hold_leave(struct ext_hold *hold)
{
    /* The last holder only releases it: nobody else can become one. */
    if (hold && hold->leave && atomic_load_explicit(&hold->holders, memory_order_relaxed) > 1)
        hold->leave(hold->what);
    ext_hold_drop(hold);
}

/* The name of each type in NumPy, the buffer protocol and DLPack. */
static const struct {
    const char *name, *format; /* format NULL: none in the buffer protocol */
    uint8_t size, code;
} kinds[] = {
    [STOKER_DTYPE_U8] = {"uint8", "B", 1, DLPACK_UINT},
    [STOKER_DTYPE_F32] = {"float32", "f", 4, DLPACK_FLOAT},
    [STOKER_DTYPE_F16] = {"float16", "e", 2, DLPACK_FLOAT},
    [STOKER_DTYPE_BF16] = {"bfloat16", NULL, 2, DLPACK_BFLOAT},
    [STOKER_DTYPE_I64] = {"int64", "q", 8, DLPACK_INT},
    [STOKER_DTYPE_I8] = {"int8", "b", 1, DLPACK_INT},
    [STOKER_DTYPE_I16] = {"int16", "h", 2, DLPACK_INT},
    [STOKER_DTYPE_I32] = {"int32", "i", 4, DLPACK_INT},
    [STOKER_DTYPE_U16] = {"uint16", "H", 2, DLPACK_UINT},
    [STOKER_DTYPE_U32] = {"uint32", "I", 4, DLPACK_UINT},
    [STOKER_DTYPE_U64] = {"uint64", "Q", 8, DLPACK_UINT},
    [STOKER_DTYPE_F64] = {"float64", "d", 8, DLPACK_FLOAT},
    [STOKER_DTYPE_BOOL] = {"bool", "?", 1, DLPACK_BOOL},
};

struct tensor {
    PyObject_HEAD
    struct stoker_tensor view;
    const struct stoker_batch *batch; /* whose images or labels these are; NULL: none */
    struct ext_hold *hold;
    Py_ssize_t shape[STOKER_TENSOR_DIMS];
    Py_ssize_t strides[STOKER_TENSOR_DIMS]; /* in bytes, for the buffer protocol */
    bool bits;                              /* expose the bits of each value as uint16 */
    bool shared;                            /* others have had the memory, by the buffer protocol */
};

/* Pinned memory counts as CPU memory, as in torch. */
static struct dlpack_device device_of(const struct stoker_batch *batch)
{
    if (!batch || batch->device_type != DLPACK_CUDA)
        return (struct dlpack_device){DLPACK_CPU, 0};
    return (struct dlpack_device){DLPACK_CUDA, batch->device_id};
}

static bool is_on_cpu(const struct tensor *self) { return device_of(self->batch).type == DLPACK_CPU; }

PyObject *ext_tensor_new(const struct ext_state *state, const struct stoker_tensor *view,
                         const struct stoker_batch *batch, struct ext_hold *hold)
{
    struct tensor *self = (struct tensor *)PyType_GenericAlloc(state->tensor, 0);

    if (!self)
        return NULL;
    self->view = *view;
    self->batch = batch;
    self->hold = ext_hold_take(hold);
    for (int32_t i = 0; i < view->ndim; i++) {
        self->shape[i] = (Py_ssize_t)view->shape[i];
        self->strides[i] = (Py_ssize_t)view->stride[i] * kinds[view->dtype].size;
    }
    return (PyObject *)self;
}

PyObject *ext_tensor_own(const struct ext_state *state, const struct stoker_tensor *view, void *memory,
                         void (*release)(void *memory))
{
    struct ext_hold *hold = ext_hold_new(release, NULL, memory);
    PyObject *tensor;

    if (!hold) {
        release(memory);
        return PyErr_NoMemory();
    }
    tensor = ext_tensor_new(state, view, NULL, hold);
    ext_hold_drop(hold);
    return tensor;
}

static void tensor_dealloc(PyObject *object)
{
    struct tensor *self = (struct tensor *)object;

    (self->batch && self->shared ? ext_hold_leave : ext_hold_drop)(self->hold);
    ext_free(object);
}

static Py_ssize_t tensor_bytes(const struct tensor *self)
{
    Py_ssize_t count = 1;

    for (int32_t i = 0; i < self->view.ndim; i++)
        count *= self->shape[i];
    return count * kinds[self->view.dtype].size;
}

static bool tensor_is_contiguous(const struct tensor *self)
{
    Py_ssize_t expected = kinds[self->view.dtype].size;

    for (int32_t i = self->view.ndim - 1; i >= 0; i--) {
        if (self->shape[i] != 1 && self->strides[i] != expected)
            return false;
        expected *= self->shape[i];
    }
    return true;
}

static int tensor_getbuffer(PyObject *object, Py_buffer *out, int flags)
{
    struct tensor *self = (struct tensor *)object;
    const char *format = self->bits ? "H" : kinds[self->view.dtype].format;
    bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    bool order_wanted = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS ||
                        (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS ||
                        (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;

    out->obj = NULL;
    if (!is_on_cpu(self)) {
        PyErr_SetString(PyExc_BufferError, "the tensor is in a GPU's memory, which NumPy cannot access: "
                                           "use torch.from_dlpack, or open the loader without device=");
        return -1;
    }
    if (!format) {
        PyErr_SetString(PyExc_BufferError, "NumPy has no bfloat16: use torch.from_dlpack, or choose "
                                           "dtype='float32'");
        return -1;
    }
    if ((!strided || order_wanted) && !tensor_is_contiguous(self)) {
        PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous: request a strided buffer");
        return -1;
    }
    self->shared = true;
    *out = (Py_buffer){
        .buf = self->view.data,
        .obj = Py_NewRef(object),
        .len = tensor_bytes(self),
        .itemsize = kinds[self->view.dtype].size,
        .ndim = self->view.ndim,
        .format = (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? (char *)format : NULL,
        .shape = (flags & PyBUF_ND) == PyBUF_ND ? self->shape : NULL,
        .strides = strided ? self->strides : NULL,
    };
    return 0;
}

/* ---- DLPack ---- */

/* The managed tensor, in one of its two forms, with its shape. */
struct packed {
    union {
        struct dlpack_managed managed;
        struct dlpack_versioned versioned;
    };
    struct ext_hold *hold;
    bool of_batch; /* its images or labels */
    int64_t shape[STOKER_TENSOR_DIMS], strides[STOKER_TENSOR_DIMS];
};

static void packed_left(struct packed *packed)
{
    (packed->of_batch ? ext_hold_leave : ext_hold_drop)(packed->hold);
    free(packed);
}

static void managed_deleter(struct dlpack_managed *self) { packed_left(self->context); }
static void versioned_deleter(struct dlpack_versioned *self) { packed_left(self->context); }

static void packed_free(struct packed *packed)
{
    ext_hold_drop(packed->hold);
    free(packed);
}

/* A capsule that nobody took over still has its original name: nobody has read the memory. */
static void capsule_free(PyObject *capsule)
{
    static const char *const names[] = {"dltensor", "dltensor_versioned"};

    for (int i = 0; i < 2; i++)
        if (PyCapsule_IsValid(capsule, names[i]))
            packed_free(PyCapsule_GetContext(capsule));
}

static PyObject *pack(const struct stoker_tensor *view, const struct stoker_batch *batch,
                      struct ext_hold *hold, bool versioned)
{
    struct packed *packed = calloc(1, sizeof(*packed));
    struct dlpack_tensor *tensor;
    PyObject *capsule;

    if (!packed)
        return PyErr_NoMemory();
    tensor = versioned ? &packed->versioned.tensor : &packed->managed.tensor;
    memcpy(packed->shape, view->shape, sizeof(packed->shape));
    memcpy(packed->strides, view->stride, sizeof(packed->strides));
    *tensor = (struct dlpack_tensor){
        .data = view->data,
        .device = device_of(batch),
        .ndim = view->ndim,
        .dtype = {kinds[view->dtype].code, (uint8_t)(kinds[view->dtype].size * 8), 1},
        .shape = packed->shape,
        .strides = packed->strides,
    };
    if (versioned) {
        packed->versioned.version.major = DLPACK_MAJOR;
        packed->versioned.version.minor = DLPACK_MINOR;
        packed->versioned.context = packed;
        packed->versioned.deleter = versioned_deleter;
    } else {
        packed->managed.context = packed;
        packed->managed.deleter = managed_deleter;
    }
    capsule = PyCapsule_New(packed, versioned ? "dltensor_versioned" : "dltensor", capsule_free);
    if (!capsule) {
        free(packed);
        return NULL;
    }
    packed->hold = ext_hold_take(hold);
    packed->of_batch = batch;
    PyCapsule_SetContext(capsule, packed);
    return capsule;
}

static int join(const struct ext_state *state, const struct stoker_batch *batch, uintptr_t stream)
{
    struct stoker_error err;

    if (stoker_batch_join(batch, stream, &err) == STOKER_OK)
        return 0;
    ext_raise(state, &err);
    return -1;
}

/* Makes the consumer's stream wait for the batch. The array API numbers streams as the driver does: 1 is
 * the legacy default stream, 2 the default stream of each thread, others are handles. None means 1, -1
 * requests no synchronization, and 0 is ambiguous and therefore not allowed. */
static int join_stream(const struct ext_state *state, const struct stoker_batch *batch, PyObject *stream)
{
    long long number = stream == Py_None ? LEGACY_STREAM : PyLong_AsLongLong(stream);

    if (number == -1 && PyErr_Occurred())
        return -1;
    if (number == 0 || number < -1) {
        PyErr_Format(PyExc_ValueError,
                     "stream=%R is not a CUDA stream: 1 is the legacy default stream, 2 the default "
                     "stream of each thread, larger numbers are handles, and -1 does not wait",
                     stream);
        return -1;
    }
    return number == -1 ? 0 : join(state, batch, (uintptr_t)number);
}

static PyObject *tensor_dlpack(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
    struct tensor *self = (struct tensor *)object;
    struct dlpack_device here = device_of(self->batch), wanted = here;
    unsigned major = 0, minor = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &max_version,
                                     &device, &copy))
        return NULL;
    if ((max_version != Py_None && !PyTuple_Check(max_version)) ||
        (device != Py_None && !PyTuple_Check(device))) {
        PyErr_SetString(PyExc_TypeError, "max_version and dl_device must be tuples of two numbers");
        return NULL;
    }
    if (max_version != Py_None && !PyArg_ParseTuple(max_version, "II:max_version", &major, &minor))
        return NULL;
    if (device != Py_None && !PyArg_ParseTuple(device, "ii:dl_device", &wanted.type, &wanted.id))
        return NULL;
    if (wanted.type != here.type || wanted.id != here.id || copy == Py_True ||
        (stream != Py_None && here.type == DLPACK_CPU)) {
        PyErr_Format(
            PyExc_BufferError,
            "the tensor is in %s memory and can only be shared in place: %sno other device, no copy",
            here.type == DLPACK_CPU ? "CPU" : "CUDA", here.type == DLPACK_CPU ? "no stream, " : "");
        return NULL;
    }
    if (here.type == DLPACK_CUDA && join_stream(ext_state_of(object), self->batch, stream) < 0)
        return NULL;
    return pack(&self->view, self->batch, self->hold, major >= 1);
}

int ext_tensor_pair(const struct ext_state *state, const struct stoker_batch *batch,
                    struct ext_hold *hold, uintptr_t stream, PyObject *capsule[2])
{
    if (device_of(batch).type == DLPACK_CUDA && join(state, batch, stream ? stream : LEGACY_STREAM) < 0)
        return -1;
    capsule[0] = pack(&batch->images, batch, hold, false);
    capsule[1] = capsule[0] ? pack(&batch->labels, batch, hold, false) : NULL;
    return capsule[1] ? 0 : -1;
}

static PyObject *tensor_dlpack_device(PyObject *object, PyObject *unused)
{
    struct dlpack_device device = device_of(((struct tensor *)object)->batch);

    (void)unused;
    return Py_BuildValue("(ii)", device.type, device.id);
}

static PyObject *tensor_bits(PyObject *object, PyObject *unused)
{
    struct tensor *self = (struct tensor *)object, *out;

    (void)unused;
    if (self->view.dtype != STOKER_DTYPE_BF16)
        return Py_NewRef(object);
    out = (struct tensor *)ext_tensor_new(ext_state_of(object), &self->view, self->batch, self->hold);
    if (out)
        out->bits = true;
    return (PyObject *)out;
}

PyObject *ext_tuple_of(const int64_t *values, int32_t count)
{
    PyObject *tuple = PyTuple_New(count);

    for (int32_t i = 0; tuple && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(values[i]);

        if (!number || PyTuple_SetItem(tuple, i, number) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *tensor_shape(PyObject *object, void *unused)
{
    (void)unused;
    return ext_tuple_of(((struct tensor *)object)->view.shape, ((struct tensor *)object)->view.ndim);
}

static PyObject *tensor_stride(PyObject *object, void *unused)
{
    (void)unused;
    return ext_tuple_of(((struct tensor *)object)->view.stride, ((struct tensor *)object)->view.ndim);
}

static PyObject *tensor_dtype(PyObject *object, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(kinds[((struct tensor *)object)->view.dtype].name);
}

static PyObject *tensor_repr(PyObject *object)
{
    struct tensor *self = (struct tensor *)object;
    PyObject *shape = tensor_shape(object, NULL), *text = NULL;
    const char *type = kinds[self->view.dtype].name;

    if (shape && is_on_cpu(self))
        text = PyUnicode_FromFormat("<stoker Tensor %s %R>", type, shape);
    else if (shape)
        text = PyUnicode_FromFormat("<stoker Tensor %s %R on cuda:%d>", type, shape,
                                    device_of(self->batch).id);
    Py_XDECREF(shape);
    return text;
}

static PyMethodDef tensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "Return the memory as a DLPack capsule, without a copy. On a GPU, the given stream is made to wait "
     "until the batch is complete, and work that is in this stream when the batch is released may still "
     "read it."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
     "Return (1, 0) for CPU memory, pinned or not; (2, n) for the memory of GPU n."},
    {"bits", tensor_bits, METH_NOARGS,
     "Return a tensor for the buffer protocol: for bfloat16 the same memory as uint16, else the tensor "
     "itself."},
    {0},
};

static PyGetSetDef tensor_getset[] = {
    {"shape", tensor_shape, NULL, "The size of each dimension.", NULL},
    {"stride", tensor_stride, NULL, "The stride of each dimension, in elements.", NULL},
    {"dtype", tensor_dtype, NULL, "The name of the type: float32, int64, ...", NULL},
    {0},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_repr, tensor_repr},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_getset},
    {Py_bf_getbuffer, tensor_getbuffer},
    {Py_tp_doc, "Memory of the engine, for NumPy through the buffer protocol, for torch and others "
                "through DLPack."},
    {0, NULL},
};

PyType_Spec ext_tensor_spec = {
    .name = "stoker._ext.Tensor",
    .basicsize = sizeof(struct tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = tensor_slots,
};
