/* ext.h - what the files of the Python extension share
 *
 * One file for each Python type. Types live in the module's state, so that several interpreters may each
 * have their own. Memory that other libraries use is counted by a `hold`, without Python: the last owner
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
    PyTypeObject *dataset, *pipeline, *loader, *batch, *tensor, *gpu_watch, *exchange, *lease,
        *lease_part, *single;
    /* exceptions */
    PyObject *error, *corrupt, *limit, *unsupported, *transient, *internal;
    PyObject *argument, *memory, *read, *missing;
};

/* ---- errors.c ---- */

/* Creates StokerError and its subclasses, and adds them to the module. */
int ext_errors_add(PyObject *module, struct ext_state *state);
/* The exception for a negative status, with its message; NULL with another exception on failure. */
PyObject *ext_error_new(const struct ext_state *state, const struct stoker_error *err);
/* Raises it; returns NULL. */
PyObject *ext_raise(const struct ext_state *state, const struct stoker_error *err);

/* ---- wait.c ---- */

/* Around a call of the engine that may wait for a server: like Py_BEGIN_ALLOW_THREADS and
 * Py_END_ALLOW_THREADS, but signal handlers run in the meantime. ext_wait_end returns true if one raised
 * an exception: the result of the call must then be discarded. */
struct ext_wait {
    PyThreadState *thread;
    bool raised;
};
void ext_wait_begin(struct ext_wait *wait);
bool ext_wait_end(struct ext_wait *wait);

/* ---- tensor.c ---- */

/* Memory that tensors refer to. `release` runs once, when the last holder drops it, in any thread.
 * `leave` (may be NULL) runs when another holder through which the memory was read leaves it. */
struct ext_hold;
struct ext_hold *ext_hold_new(void (*release)(void *what), void (*leave)(void *what), void *what);
struct ext_hold *ext_hold_take(struct ext_hold *hold);
void ext_hold_drop(struct ext_hold *hold); /* NULL is fine */
void ext_hold_leave(struct ext_hold *hold);

/* A Tensor for `view`, which must stay valid as long as the hold; it takes a reference to the hold.
 * `batch` is the one whose images or labels these are; NULL for CPU memory that belongs to none. */
PyObject *ext_tensor_new(const struct ext_state *state, const struct stoker_tensor *view,
                         const struct stoker_batch *batch, struct ext_hold *hold);
/* As ext_tensor_new, for memory from malloc that the tensor takes over (freed also on failure). */
PyObject *ext_tensor_own(const struct ext_state *state, const struct stoker_tensor *view, void *memory,
                         void (*release)(void *memory));
/* The batch's images and labels as two DLPack capsules, for use in `stream` (0: the default stream;
 * ignored on the CPU). 0, or -1 with an exception. */
int ext_tensor_pair(const struct ext_state *state, const struct stoker_batch *batch,
                    struct ext_hold *hold, uintptr_t stream, PyObject *capsule[2]);
PyObject *ext_tuple_of(const int64_t *values, int32_t count);

/* ---- options.c ---- */

/* How a keyword argument is stored in a field of an options struct. */
enum ext_kind { EXT_U32, EXT_I32, EXT_U64, EXT_BOOL, EXT_WORD, EXT_TEXT };
struct ext_option {
    const char *name; /* NULL at the end of the table */
    enum ext_kind kind;
    size_t offset;
    const char *const *words; /* EXT_WORD: the field is the index of the word; NULL-terminated */
};
/* Writes every entry of `kwargs` (a dict, or NULL) to `into`; TypeError for one that is not in the
 * table. Strings are not copied: they are valid as long as the dict. */
int ext_options_read(const struct ext_option *table, PyObject *kwargs, const char *function, void *into);
extern const char *const ext_order_words[];  /* of enum stoker_order_kind */
extern const char *const ext_layout_words[]; /* of enum stoker_layout */
/* Removes `name` from the dict: a new reference, or NULL if it is absent or None. */
PyObject *ext_options_take(PyObject *kwargs, const char *name);
/* A contiguous buffer of numbers of `itemsize` bytes whose format is one of the letters in `formats`.
 * None gives an empty view and 0. The caller frees the view with ext_array_free. */
int ext_array(PyObject *object, const char *what, Py_ssize_t itemsize, const char *formats,
              Py_buffer *view);
void ext_array_free(Py_buffer *view);
/* Strings of a Python sequence as a NULL-terminated C array from malloc; `keep` (a list) owns their
 * bytes. */
const char **ext_strings(PyObject *sequence, PyObject *keep, Py_ssize_t *count);

/* ---- loader_options.c ---- */

struct ext_loader_request {
    struct stoker_loader_options options; /* with a short timeout: signals are handled in between */
    uint32_t timeout_ms;                  /* the caller's; 0: none */
};
/* Reads keyword arguments and `weights` (one for each sample, or None), which `view` keeps. 0, or -1
 * with an exception. */
int ext_loader_request(struct ext_loader_request *request, PyObject *options, PyObject *weights,
                       uint64_t samples, Py_buffer *view);

/* ---- rescue.c ---- */

/* The Python function that is asked about samples which the engine cannot read or decode. */
struct ext_rescue {
    const struct ext_state *state;
    struct stoker_loader *handle;
    PyObject *function; /* NULL: none */
    PyObject *image;    /* its latest result, which the engine may be reading */
    PyObject *raised[3]; /* what it raised, until next() raises it */
    struct ext_wait *wait; /* of the call of next() */
};
void ext_rescue_set(struct ext_rescue *self, const struct ext_state *state, struct stoker_loader *handle,
                    PyObject *function);
/* After each call of the engine's next: drops the image; true, with an exception, if the function
 * raised. */
bool ext_rescue_raises(struct ext_rescue *self);
void ext_rescue_free(struct ext_rescue *self);

/* ---- pixels.c ---- */

/* An array of images (uint8, images x height x width, optionally x channels, with any strides) and their
 * labels (int64, or None) for the engine. Returns the buffers that keep them, in memory from malloc,
 * which the caller releases and frees; NULL with an exception. */
Py_buffer *ext_pixels(PyObject *images, PyObject *labels, struct stoker_pixels *out, Py_ssize_t *count);

/* ---- arrays.c: functions of the module ---- */

PyObject *ext_copy_packed(PyObject *module, PyObject *args);
PyObject *ext_through_table(PyObject *module, PyObject *args);

/* ---- cv.c ---- */

PyObject *ext_cv_level(PyObject *module, PyObject *none);
PyObject *ext_cv_run(PyObject *module, PyObject *args);

/* ---- pillow.c ---- */

PyObject *ext_pillow_read(PyObject *module, PyObject *array);
PyObject *ext_pillow_write(PyObject *module, PyObject *args);

/* ---- functions.c ---- */

/* region=(x, y, width, height); None leaves the numbers unchanged. 0, or -1 with an exception. */
int ext_region(PyObject *region, uint32_t *x, uint32_t *y, uint32_t *width, uint32_t *height);

/* ---- report.c ---- */

/* New references, or NULL with an exception. */
PyObject *ext_report_stats(const struct ext_state *state, const struct stoker_loader *handle);
PyObject *ext_report_ledger(const struct stoker_loader *handle);

/* ---- the types ---- */

extern PyType_Spec ext_dataset_spec, ext_pipeline_spec, ext_loader_spec, ext_batch_spec, ext_tensor_spec,
    ext_gpu_watch_spec, ext_exchange_spec, ext_lease_spec, ext_lease_part_spec, ext_single_spec;
extern PyMethodDef ext_functions[]; /* functions.c */

struct stoker_dataset *ext_dataset_handle(PyObject *object);
/* Opens images with masks or boxes, from the arguments of Dataset.from_pairs; NULL with an exception. */
struct stoker_dataset *ext_pairs_open(struct ext_state *state, PyObject *args, PyObject *kwargs);
struct stoker_pipeline *ext_pipeline_handle(PyObject *object);
/* Takes the batch over, also on failure. `stream_of` (may be NULL) is called whenever one of its tensors
 * is gone, and returns the CUDA stream of the calling thread that may still be reading it, or a tuple of
 * several; 0 is the default one. */
PyObject *ext_batch_new(const struct ext_state *state, const struct stoker_batch *batch,
                        PyObject *stream_of);

/* The same for callers that need tensors only: [take(images), take(labels)] of DLPack capsules, for use
 * in the stream that `stream_of` returns now. A batch with anything else becomes a Batch. */
PyObject *ext_batch_pair(const struct ext_state *state, const struct stoker_batch *batch,
                         PyObject *stream_of, PyObject *take);

static inline struct ext_state *ext_state_of(PyObject *object)
{
    return PyType_GetModuleState(Py_TYPE(object));
}

/* Frees an instance of a heap type, and its reference to the type. */
static inline void ext_free(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);

    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* The ending of a noun after a number. */
static inline const char *ext_s(unsigned long long count) { return count == 1 ? "" : "s"; }

#endif
