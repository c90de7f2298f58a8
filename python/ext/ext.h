/* ext.h - what the files of the Python extension share
 *
 * One file for each Python type. Types live in the module's state, so that several interpreters may each
 * have their own. Memory handed to other libraries is counted by a `hold`, without Python: the last owner
 * may be any thread, with or without the interpreter's lock, even after the interpreter has ended.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXT_EXT_H
#define EXT_EXT_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

#include <stoker/stoker.h>

struct ext_state {
    PyTypeObject *dataset, *pipeline, *loader, *batch, *tensor, *gpu_watch, *exchange, *lease, *single;
    PyObject *error, *corrupt, *limit, *unsupported, *transient, *internal; /* exceptions */
};

/* ---- errors.c ---- */

/* Makes StokerError and its kin, and adds them to the module. */
int ext_errors_add(PyObject *module, struct ext_state *state);
/* Raises what a negative status and its sentence stand for; returns NULL. */
PyObject *ext_raise(const struct ext_state *state, const struct stoker_error *err);

/* ---- wait.c ---- */

/* Around a call of the engine that may wait for a server: as Py_BEGIN_ALLOW_THREADS and Py_END_ALLOW_THREADS, but
 * signal handlers run meanwhile. ext_wait_end answers true where one raised an exception: what the call returned is
 * then of no use. */
struct ext_wait {
    PyThreadState *thread;
    bool raised;
};
void ext_wait_begin(struct ext_wait *wait);
bool ext_wait_end(struct ext_wait *wait);

/* ---- tensor.c ---- */

/* Memory that tensors look at. `release` runs once, when the last holder drops it, in any thread. */
struct ext_hold;
struct ext_hold *ext_hold_new(void (*release)(void *what), void *what);
struct ext_hold *ext_hold_take(struct ext_hold *hold);
void ext_hold_drop(struct ext_hold *hold); /* NULL is fine */

/* A Tensor over `view`, which must stay valid as long as the hold; takes a share of the hold. `batch` is
 * the one whose images or labels these are; NULL for memory of the CPU that belongs to none. */
PyObject *ext_tensor_new(const struct ext_state *state, const struct stoker_tensor *view,
                         const struct stoker_batch *batch, struct ext_hold *hold);
/* As ext_tensor_new, for memory from malloc that becomes the tensor's (freed also on failure). */
PyObject *ext_tensor_own(const struct ext_state *state, const struct stoker_tensor *view, void *memory,
                         void (*release)(void *memory));
/* The batch's images and labels as two DLPack capsules, for work that is put into `stream` (0: the default
 * one; not looked at on the CPU). 0, or -1 with an exception. */
int ext_tensor_pair(const struct ext_state *state, const struct stoker_batch *batch, struct ext_hold *hold,
                    uintptr_t stream, PyObject *capsule[2]);
PyObject *ext_tuple_of(const int64_t *values, int32_t count);

/* ---- options.c ---- */

/* How a keyword argument becomes a field of an options struct. */
enum ext_kind { EXT_U32, EXT_I32, EXT_U64, EXT_BOOL, EXT_WORD, EXT_TEXT };
struct ext_option {
    const char *name; /* NULL at the end of the table */
    enum ext_kind kind;
    size_t offset;
    const char *const *words; /* EXT_WORD: the field is the number of the word; NULL-terminated */
};
/* Writes every entry of `kwargs` (a dict, or NULL) to `into`; TypeError for one that no table names.
 * Texts are not copied: they last as long as the dict. */
int ext_options_read(const struct ext_option *table, PyObject *kwargs, const char *function, void *into);
extern const char *const ext_order_words[];  /* of enum stoker_order_kind */
extern const char *const ext_layout_words[]; /* of enum stoker_layout */
/* Takes `name` out of the dict: a new reference, or NULL when it is absent or None. */
PyObject *ext_options_take(PyObject *kwargs, const char *name);
/* A contiguous buffer of 8- or 4-byte whole numbers or doubles (by `itemsize` and `formats`, one of
 * whose letters its format must be). None gives an empty view and 0. The caller releases view->obj. */
int ext_array(PyObject *object, const char *what, Py_ssize_t itemsize, const char *formats,
              Py_buffer *view);
void ext_array_free(Py_buffer *view);
/* Strings of a Python sequence as a NULL-terminated C array from malloc; `keep` (a list) owns their bytes. */
const char **ext_strings(PyObject *sequence, PyObject *keep, Py_ssize_t *count);

/* ---- pixels.c ---- */

/* An array of images (uint8, images x height x width or with channels behind them, in any layout) and their
 * labels (int64, or None) for the engine. The buffers that keep them, in memory from malloc, are the caller's to
 * release and free; NULL with an exception. */
Py_buffer *ext_pixels(PyObject *images, PyObject *labels, struct stoker_pixels *out, Py_ssize_t *count);

/* ---- functions.c ---- */

/* region=(x, y, width, height); None leaves the numbers as they are. 0, or -1 with an exception. */
int ext_region(PyObject *region, uint32_t *x, uint32_t *y, uint32_t *width, uint32_t *height);

/* ---- report.c ---- */

/* New references, or NULL with an exception. */
PyObject *ext_report_stats(const struct ext_state *state, const struct stoker_loader *handle);
PyObject *ext_report_ledger(const struct stoker_loader *handle);

/* ---- the types ---- */

extern PyType_Spec ext_dataset_spec, ext_pipeline_spec, ext_loader_spec, ext_batch_spec, ext_tensor_spec,
    ext_gpu_watch_spec, ext_exchange_spec, ext_lease_spec, ext_single_spec;
extern PyMethodDef ext_functions[]; /* functions.c */

struct stoker_dataset *ext_dataset_handle(PyObject *object);
struct stoker_pipeline *ext_pipeline_handle(PyObject *object);
/* Takes the batch over, also on failure. `stream_of` (may be NULL) is called when the batch is let go,
 * and answers which CUDA stream of the calling thread may still be reading it; 0 is the default one. */
PyObject *ext_batch_new(const struct ext_state *state, const struct stoker_batch *batch,
                        PyObject *stream_of);

/* The same for those who want nothing but tensors: [take(images), take(labels)] of DLPack capsules, for work
 * that is put into the stream that `stream_of` answers now. A batch of anything else becomes a Batch. */
PyObject *ext_batch_pair(const struct ext_state *state, const struct stoker_batch *batch,
                         PyObject *stream_of, PyObject *take);

static inline struct ext_state *ext_state_of(PyObject *object)
{
    return PyType_GetModuleState(Py_TYPE(object));
}

/* Frees an instance of a heap type: the type is counted by its instances. */
static inline void ext_free(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

#endif
