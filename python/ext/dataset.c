/* dataset.c - Dataset: opened by a path, from a list of files or images in memory, or made of others
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

struct dataset {
    PyObject_HEAD
    struct stoker_dataset *handle;
    Py_buffer *buffers; /* of images in memory, which the engine reads in place */
    struct stoker_item *items;
    Py_ssize_t buffer_count;
    PyObject *parts; /* the datasets that it is made of: they own the memory */
};

struct stoker_dataset *ext_dataset_handle(PyObject *object)
{
    return ((struct dataset *)object)->handle;
}

static void dataset_dealloc(PyObject *object)
{
    struct dataset *self = (struct dataset *)object;

    stoker_dataset_close(self->handle);
    for (Py_ssize_t i = 0; i < self->buffer_count; i++)
        PyBuffer_Release(&self->buffers[i]);
    free(self->buffers);
    free(self->items);
    Py_XDECREF(self->parts);
    ext_free(object);
}

/* ---- opened by a path ---- */

static const struct ext_option open_options[] = {
    {"threads", EXT_U32, offsetof(struct stoker_dataset_options, threads), NULL},
    {"allow_empty", EXT_BOOL, offsetof(struct stoker_dataset_options, allow_empty), NULL},
    {"fields", EXT_TEXT, offsetof(struct stoker_dataset_options, fields), NULL},
    {"cache_dir", EXT_TEXT, offsetof(struct stoker_dataset_options, cache_dir), NULL},
    {"cache_bytes", EXT_U64, offsetof(struct stoker_dataset_options, cache_bytes), NULL},
    {"remote_ms", EXT_U32, offsetof(struct stoker_dataset_options, remote_ms), NULL},
    {"connections", EXT_U32, offsetof(struct stoker_dataset_options, connections), NULL},
    {"max_memory", EXT_U64, offsetof(struct stoker_dataset_options, max_memory), NULL},
    {"db", EXT_TEXT, offsetof(struct stoker_dataset_options, db), NULL},
    {0},
};

static PyObject *adopt(PyTypeObject *type, struct stoker_dataset *handle)
{
    struct dataset *self = (struct dataset *)PyType_GenericAlloc(type, 0);

    if (!self) {
        stoker_dataset_close(handle);
        return NULL;
    }
    self->handle = handle;
    return (PyObject *)self;
}

static PyObject *open_with(PyTypeObject *type, const char *uri, PyObject *index_dir,
                           PyObject *extensions, struct stoker_dataset_options *options)
{
    PyObject *keep = PyList_New(0), *folder = NULL, *out = NULL;
    const char **words = NULL;
    struct stoker_dataset *handle;
    struct stoker_error err;
    struct ext_wait wait;
    Py_ssize_t count;
    int rc;

    if (!keep || (index_dir && !PyUnicode_FSConverter(index_dir, &folder)))
        goto done;
    if (extensions && !(words = ext_strings(extensions, keep, &count)))
        goto done;
    options->index_dir = folder ? PyBytes_AsString(folder) : NULL;
    options->extensions = words;
    ext_wait_begin(&wait);
    rc = stoker_dataset_open(&handle, uri, options, &err);
    if (ext_wait_end(&wait) && rc == STOKER_OK)
        stoker_dataset_close(handle);
    else
        out = rc < 0 ? ext_raise(PyType_GetModuleState(type), &err) : adopt(type, handle);
done:
    free(words);
    Py_XDECREF(folder);
    Py_XDECREF(keep);
    return out;
}

static PyObject *dataset_open(PyObject *type, PyObject *args, PyObject *kwargs)
{
    struct stoker_dataset_options options = stoker_dataset_defaults();
    PyObject *rest = kwargs ? PyDict_Copy(kwargs) : PyDict_New(), *uri = NULL, *out = NULL;
    PyObject *index_dir, *extensions;

    if (!rest)
        return NULL;
    index_dir = ext_options_take(rest, "index_dir");
    extensions = ext_options_take(rest, "extensions");
    if (PyArg_ParseTuple(args, "O&:open", PyUnicode_FSConverter, &uri) &&
        ext_options_read(open_options, rest, "Dataset.open", &options) == 0)
        out = open_with((PyTypeObject *)type, PyBytes_AsString(uri), index_dir, extensions, &options);
    Py_XDECREF(uri);
    Py_XDECREF(index_dir);
    Py_XDECREF(extensions);
    Py_DECREF(rest);
    return out;
}

/* ---- files and memory ---- */

static PyObject *dataset_from_pairs(PyObject *type, PyObject *args, PyObject *kwargs)
{
    struct ext_state *state = PyType_GetModuleState((PyTypeObject *)type);
    struct stoker_dataset *handle = ext_pairs_open(state, args, kwargs);

    return handle ? adopt((PyTypeObject *)type, handle) : NULL;
}

static int check_labels(const Py_buffer *labels, Py_ssize_t count)
{
    if (!labels->obj || labels->len / 8 == count)
        return 0;
    PyErr_Format(PyExc_ValueError, "%zd label%s for %zd sample%s", labels->len / 8,
                 ext_s((unsigned long long)labels->len / 8), count, ext_s((unsigned long long)count));
    return -1;
}

static PyObject *dataset_from_files(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"paths", "labels", NULL};
    PyObject *paths, *labels = Py_None, *keep = NULL, *out = NULL;
    Py_buffer numbers = {0};
    const char **strings = NULL;
    struct stoker_dataset *handle;
    struct stoker_error err;
    Py_ssize_t count = 0;
    int rc;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:from_files", names, &paths, &labels) ||
        ext_array(labels, "labels", 8, "ql", &numbers) < 0)
        return NULL;
    keep = PyList_New(0);
    strings = keep ? ext_strings(paths, keep, &count) : NULL;
    if (strings && check_labels(&numbers, count) == 0) {
        Py_BEGIN_ALLOW_THREADS
        rc = stoker_dataset_from_files(&handle, strings, numbers.buf, (uint64_t)count, &err);
        Py_END_ALLOW_THREADS
        out = rc < 0 ? ext_raise(PyType_GetModuleState((PyTypeObject *)type), &err)
                     : adopt((PyTypeObject *)type, handle);
    }
    free(strings);
    Py_XDECREF(keep);
    ext_array_free(&numbers);
    return out;
}

static int fill_items(struct dataset *self, PyObject *list, const Py_buffer *labels)
{
    Py_ssize_t count = PyList_Size(list);

    self->buffers = calloc((size_t)count + 1, sizeof(*self->buffers));
    self->items = calloc((size_t)count + 1, sizeof(*self->items));
    if (!self->buffers || !self->items) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_buffer *buffer = &self->buffers[i];

        if (PyObject_GetBuffer(PyList_GetItem(list, i), buffer, PyBUF_C_CONTIGUOUS) < 0)
            return -1;
        self->buffer_count = i + 1;
        self->items[i].data = buffer->buf;
        self->items[i].size = (size_t)buffer->len;
        self->items[i].label = labels->obj ? ((const int64_t *)labels->buf)[i] : 0;
    }
    return 0;
}

static PyObject *dataset_from_memory(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"images", "labels", NULL};
    PyObject *images, *labels = Py_None, *list;
    Py_buffer numbers = {0};
    struct dataset *self = NULL;
    struct stoker_error err;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:from_memory", names, &images, &labels) ||
        ext_array(labels, "labels", 8, "ql", &numbers) < 0)
        return NULL;
    list = PySequence_List(images);
    if (list && check_labels(&numbers, PyList_Size(list)) == 0)
        self = (struct dataset *)adopt((PyTypeObject *)type, NULL);
    if (self && fill_items(self, list, &numbers) < 0)
        Py_CLEAR(self);
    if (self &&
        stoker_dataset_from_memory(&self->handle, self->items, (uint64_t)self->buffer_count, &err) < 0) {
        self->handle = NULL;
        ext_raise(PyType_GetModuleState((PyTypeObject *)type), &err);
        Py_CLEAR(self);
    }
    Py_XDECREF(list);
    ext_array_free(&numbers);
    return (PyObject *)self;
}

static PyObject *dataset_from_array(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"images", "labels", NULL};
    struct dataset *self = (struct dataset *)adopt((PyTypeObject *)type, NULL);
    PyObject *images, *labels = Py_None;
    struct stoker_pixels pixels;
    struct stoker_error err;
    int rc = -1;

    if (self && PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:from_array", names, &images, &labels) &&
        (self->buffers = ext_pixels(images, labels, &pixels, &self->buffer_count))) {
        rc = stoker_dataset_from_pixels(&self->handle, &pixels, &err);
        if (rc < 0)
            ext_raise(PyType_GetModuleState((PyTypeObject *)type), &err);
    }
    if (rc < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* ---- made of others ---- */

/* The handles of a tuple of datasets, in memory from malloc; NULL with an exception. */
static struct stoker_dataset **handles_of(const struct ext_state *state, PyObject *parts)
{
    const Py_ssize_t count = PyTuple_Size(parts);
    struct stoker_dataset **handles = calloc((size_t)count + 1, sizeof(*handles));

    if (!handles)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; handles && i < count; i++) {
        PyObject *part = PyTuple_GetItem(parts, i);

        if (Py_IS_TYPE(part, state->dataset)) {
            handles[i] = ext_dataset_handle(part);
        } else {
            PyErr_SetString(PyExc_TypeError, "parts must be a tuple of _ext.Dataset objects");
            free(handles);
            handles = NULL;
        }
    }
    return handles;
}

/* A dataset that keeps its parts alive (one, or a tuple); raises the engine's error if rc < 0. */
static PyObject *adopt_compound(PyTypeObject *type, struct stoker_dataset *handle, PyObject *parts,
                                int rc, const struct stoker_error *err)
{
    PyObject *out = rc < 0 ? ext_raise(PyType_GetModuleState(type), err) : adopt(type, handle);

    if (out)
        ((struct dataset *)out)->parts = Py_NewRef(parts);
    return out;
}

static PyObject *dataset_concat(PyObject *type, PyObject *args)
{
    struct stoker_dataset **handles, *handle = NULL;
    struct stoker_error err;
    PyObject *parts;
    int rc, pair = 0;

    if (!PyArg_ParseTuple(args, "O!|p:concat", &PyTuple_Type, &parts, &pair) ||
        !(handles = handles_of(PyType_GetModuleState((PyTypeObject *)type), parts)))
        return NULL;
    rc = pair && PyTuple_Size(parts) == 2
             ? stoker_dataset_paired(&handle, handles[0], handles[1], &err)
             : stoker_dataset_concat(&handle, handles, (uint32_t)PyTuple_Size(parts), &err);
    free(handles);
    return adopt_compound((PyTypeObject *)type, handle, parts, rc, &err);
}

static PyObject *dataset_mix(PyObject *type, PyObject *args)
{
    struct stoker_dataset **handles = NULL, *handle = NULL;
    unsigned long long samples, seed;
    PyObject *parts, *weights, *out = NULL;
    struct stoker_error err;
    Py_buffer numbers = {0};
    int rc;

    if (!PyArg_ParseTuple(args, "O!OKK:mix", &PyTuple_Type, &parts, &weights, &samples, &seed) ||
        ext_array(weights, "weights", 8, "d", &numbers) < 0)
        return NULL;
    if (numbers.len / 8 != PyTuple_Size(parts))
        PyErr_Format(PyExc_ValueError, "%zd weight%s for %zd dataset%s", numbers.len / 8,
                     ext_s((unsigned long long)numbers.len / 8), PyTuple_Size(parts),
                     ext_s((unsigned long long)PyTuple_Size(parts)));
    else
        handles = handles_of(PyType_GetModuleState((PyTypeObject *)type), parts);
    if (handles) {
        rc = stoker_dataset_mix(&handle, handles, numbers.buf, (uint32_t)PyTuple_Size(parts), samples,
                                seed, &err);
        out = adopt_compound((PyTypeObject *)type, handle, parts, rc, &err);
    }
    free(handles);
    ext_array_free(&numbers);
    return out;
}

static PyObject *dataset_subset(PyObject *object, PyObject *indices)
{
    struct stoker_dataset *handle = NULL;
    struct stoker_error err;
    Py_buffer numbers = {0};
    int rc;

    if (ext_array(indices, "indices", 8, "qlQL", &numbers) < 0)
        return NULL;
    rc = stoker_dataset_subset(&handle, ext_dataset_handle(object), numbers.buf,
                               (uint64_t)(numbers.len / 8), &err);
    ext_array_free(&numbers);
    return adopt_compound(Py_TYPE(object), handle, object, rc, &err);
}

static PyObject *dataset_encoded(PyObject *object, PyObject *unused)
{
    struct stoker_dataset *handle = NULL;
    struct stoker_error err;
    const int rc = stoker_dataset_encoded(&handle, ext_dataset_handle(object), &err);

    (void)unused;
    return adopt_compound(Py_TYPE(object), handle, object, rc, &err);
}

/* ---- contents ---- */

static Py_ssize_t dataset_length(PyObject *object)
{
    return (Py_ssize_t)stoker_dataset_count(ext_dataset_handle(object));
}

static bool read_index(PyObject *object, PyObject *number, uint64_t *out)
{
    Py_ssize_t index = PyLong_AsSsize_t(number), count = dataset_length(object);

    if (index == -1 && PyErr_Occurred())
        return false;
    if (index < 0 || index >= count) {
        PyErr_Format(PyExc_IndexError, "sample %zd is out of range: there are %zd", index, count);
        return false;
    }
    *out = (uint64_t)index;
    return true;
}

static PyObject *dataset_label(PyObject *object, PyObject *number)
{
    uint64_t index;

    if (!read_index(object, number, &index))
        return NULL;
    return PyLong_FromLongLong(stoker_dataset_label(ext_dataset_handle(object), index));
}

static PyObject *dataset_name(PyObject *object, PyObject *number)
{
    char fixed[1024], *buffer = fixed;
    uint64_t index;
    size_t length;
    PyObject *out;

    if (!read_index(object, number, &index))
        return NULL;
    length = stoker_dataset_name(ext_dataset_handle(object), index, fixed, sizeof(fixed));
    if (length >= sizeof(fixed)) {
        buffer = malloc(length + 1);
        if (!buffer)
            return PyErr_NoMemory();
        stoker_dataset_name(ext_dataset_handle(object), index, buffer, length + 1);
    }
    out = PyUnicode_DecodeFSDefaultAndSize(buffer, (Py_ssize_t)length);
    if (buffer != fixed)
        free(buffer);
    return out;
}

static PyObject *dataset_labels(PyObject *object, PyObject *unused)
{
    struct stoker_dataset *handle = ext_dataset_handle(object);
    uint64_t count = stoker_dataset_count(handle);
    struct stoker_tensor view = {
        .dtype = STOKER_DTYPE_I64, .ndim = 1, .shape = {(int64_t)count}, .stride = {1}};
    int64_t *labels = calloc(count + 1, sizeof(*labels));

    (void)unused;
    if (!labels)
        return PyErr_NoMemory();
    for (uint64_t i = 0; i < count; i++)
        labels[i] = stoker_dataset_label(handle, i);
    view.data = labels;
    return ext_tensor_own(ext_state_of(object), &view, labels, free);
}

/* The names of the classes, or, if `labels` is not NULL, the labels. */
static PyObject *dataset_classes(PyObject *object, void *labels)
{
    struct stoker_dataset *handle = ext_dataset_handle(object);
    uint32_t count = stoker_dataset_class_count(handle);
    PyObject *list = PyList_New(count);

    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *item = labels ? PyLong_FromLongLong(stoker_dataset_class_label(handle, i))
                                : PyUnicode_DecodeFSDefault(stoker_dataset_class_name(handle, i));

        if (!item || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *dataset_kind(PyObject *object, void *unused)
{
    const char *kind = stoker_dataset_kind(ext_dataset_handle(object));

    (void)unused;
    return kind ? PyUnicode_FromString(kind) : Py_NewRef(Py_None);
}

static PyObject *dataset_fields(PyObject *object, void *unused)
{
    PyObject *list = PyList_New(0);
    struct stoker_field field = {.size = sizeof(field)};

    (void)unused;
    for (uint32_t i = 0; list && stoker_dataset_field_at(ext_dataset_handle(object), i, &field); i++) {
        PyObject *name = PyUnicode_DecodeFSDefault(field.name);
        PyObject *entry = name ? Py_BuildValue("(Ns)", name, field.type) : NULL;

        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyMethodDef dataset_methods[] = {
    {"open", (PyCFunction)(void (*)(void))dataset_open, METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "open(uri, *, index_dir=None, extensions=None, threads=0, allow_empty=False, fields=None, ...): "
     "open a dataset by its path."},
    {"from_files", (PyCFunction)(void (*)(void))dataset_from_files,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "from_files(paths, labels=None): a dataset of these files."},
    {"from_pairs", (PyCFunction)(void (*)(void))dataset_from_pairs,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "from_pairs(images, targets=None, *, layout, contiguous=False, keypoints=False, masks=None, "
     "points=0, point_numbers=0, set=None, suffix=None, mode=None, names=None): masks or boxes."},
    {"from_memory", (PyCFunction)(void (*)(void))dataset_from_memory,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "from_memory(images, labels=None): a dataset of encoded images, which are not copied."},
    {"from_array", (PyCFunction)(void (*)(void))dataset_from_array,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "from_array(images, labels=None): a dataset of an array of pixels, which is not copied."},
    {"concat", dataset_concat, METH_VARARGS | METH_CLASS,
     "concat(parts, pair=False): concatenate datasets, or pair one of images with one of masks."},
    {"mix", dataset_mix, METH_VARARGS | METH_CLASS,
     "mix(parts, weights, samples, seed): mix datasets by weight."},
    {"subset", dataset_subset, METH_O, "subset(indices): a dataset of these samples."},
    {"encoded", dataset_encoded, METH_NOARGS, "The same samples, with their first image as bytes."},
    {"label", dataset_label, METH_O, "Return the label of a sample."},
    {"labels", dataset_labels, METH_NOARGS, "Return all labels as a Tensor of int64."},
    {"name", dataset_name, METH_O, "Return the name of a sample in messages: its path, or 'sample 17'."},
    {0},
};

static PyGetSetDef dataset_getset[] = {
    {"kind", dataset_kind, NULL, "Its kind, as in kind:path; None if it was not opened by a path.",
     NULL},
    {"fields", dataset_fields, NULL, "The name and type of each field of a sample, in order.", NULL},
    {"classes", dataset_classes, NULL, "The names of the classes, in order.", NULL},
    {"class_labels", dataset_classes, NULL, "The label of each of the classes.", "labels"},
    {0},
};

static PyType_Slot dataset_slots[] = {
    {Py_tp_dealloc, dataset_dealloc},
    {Py_tp_methods, dataset_methods},
    {Py_tp_getset, dataset_getset},
    {Py_sq_length, dataset_length},
    {Py_tp_doc, "Encoded images and their labels."},
    {0, NULL},
};

PyType_Spec ext_dataset_spec = {
    .name = "stoker._ext.Dataset",
    .basicsize = sizeof(struct dataset),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = dataset_slots,
};
