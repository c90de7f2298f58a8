/* loader_options.c - the options of Loader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

enum { SLICE_MS = 100 };

static const char *const dtype_words[] = {"uint8", "float32", "float16", "bfloat16", NULL};
static const char *const ragged_words[] = {"list", "pad", NULL};
static const char *const on_error_words[] = {"raise", "skip", "replace", NULL};
static const char *const fidelity_words[] = {"exact", "fast", NULL};
static const char *const jpeg_hardware_words[] = {"known", "all", "off", NULL};
static const char *const augment_on_words[] = {"auto", "cpu", "cuda", NULL}; /* of enum stoker_place */

/* clang-format off */
#define OPTION(name, kind) {#name, kind, offsetof(struct ext_loader_request, options.name), NULL}
#define WORDS(name) {#name, EXT_WORD, offsetof(struct ext_loader_request, options.name), name##_words}
/* clang-format on */
static const struct ext_option loader_options[] = {
    OPTION(batch_size, EXT_U32),
    OPTION(workers, EXT_I32),
    OPTION(prefetch, EXT_U32),
    OPTION(read_ahead, EXT_U32),
    OPTION(drop_last, EXT_BOOL),
    {"order", EXT_WORD, offsetof(struct ext_loader_request, options.order), ext_order_words},
    OPTION(seed, EXT_U64),
    OPTION(rank, EXT_U32),
    OPTION(world, EXT_U32),
    OPTION(drop_uneven, EXT_BOOL),
    OPTION(epoch_fixed, EXT_BOOL),
    OPTION(draws, EXT_U64),
    WORDS(dtype),
    {"layout", EXT_WORD, offsetof(struct ext_loader_request, options.layout), ext_layout_words},
    WORDS(ragged),
    WORDS(on_error),
    OPTION(error_limit, EXT_U64),
    WORDS(fidelity),
    {"jpeg_hardware", EXT_WORD, offsetof(struct ext_loader_request, options.jpeg_hardware),
     jpeg_hardware_words},
    OPTION(pillow, EXT_U32),
    OPTION(exif_rotate, EXT_BOOL),
    OPTION(pixel_limit, EXT_U64),
    OPTION(max_memory, EXT_U64),
    OPTION(device, EXT_TEXT),
    WORDS(augment_on),
    OPTION(pin_memory, EXT_BOOL),
    OPTION(pinned_limit, EXT_U64),
    OPTION(masks, EXT_TEXT),
    OPTION(boxes, EXT_TEXT),
    {"timeout_ms", EXT_U32, offsetof(struct ext_loader_request, timeout_ms), NULL},
    {0},
};

int ext_loader_request(struct ext_loader_request *request, PyObject *options, PyObject *weights,
                       uint64_t samples, Py_buffer *view)
{
    PyObject *dtype = PyDict_GetItemString(options, "dtype");

    request->options = stoker_loader_defaults();
    request->timeout_ms = 0;
    if (ext_options_read(loader_options, options, "Loader", request) < 0 ||
        ext_array(weights, "weights", 8, "d", view) < 0)
        return -1;
    if (view->obj && (uint64_t)view->len / 8 != samples) {
        PyErr_Format(PyExc_ValueError, "weights must have a value for each sample: %llu, not %zd",
                     (unsigned long long)samples, view->len / 8);
        return -1;
    }
    request->options.weights = view->buf;
    request->options.dtype_given = dtype && dtype != Py_None;
    request->options.timeout_ms =
        request->timeout_ms && request->timeout_ms < SLICE_MS ? request->timeout_ms : SLICE_MS;
    return 0;
}
