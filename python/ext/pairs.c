/* pairs.c - datasets of images with masks or boxes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

static const char *const layout_words[] = {"stems", "voc",       "pets", "cityscapes",
                                           "coco",  "voc boxes", "yolo", NULL};

static const char *const shape_words[] = {"none", "objects", "classes", NULL};

static const struct ext_option pair_options[] = {
    {"layout", EXT_WORD, offsetof(struct stoker_pairs, layout), layout_words},
    {"contiguous", EXT_BOOL, offsetof(struct stoker_pairs, contiguous), NULL},
    {"keypoints", EXT_BOOL, offsetof(struct stoker_pairs, keypoints), NULL},
    {"masks", EXT_WORD, offsetof(struct stoker_pairs, masks), shape_words},
    {"points", EXT_U32, offsetof(struct stoker_pairs, points), NULL},
    {"point_numbers", EXT_U32, offsetof(struct stoker_pairs, point_numbers), NULL},
    {"set", EXT_TEXT, offsetof(struct stoker_pairs, set), NULL},
    {"suffix", EXT_TEXT, offsetof(struct stoker_pairs, suffix), NULL},
    {"mode", EXT_TEXT, offsetof(struct stoker_pairs, mode), NULL},
    {"names", EXT_TEXT, offsetof(struct stoker_pairs, names), NULL},
    {0},
};

struct stoker_dataset *ext_pairs_open(struct ext_state *state, PyObject *args, PyObject *kwargs)
{
    struct stoker_pairs pairs = {.size = sizeof pairs};
    PyObject *images = NULL, *targets = NULL, *given = Py_None;
    struct stoker_dataset *out = NULL;
    struct stoker_error err;
    struct ext_wait wait;
    int rc;

    if (!PyArg_ParseTuple(args, "O&|O:from_pairs", PyUnicode_FSConverter, &images, &given) ||
        (given != Py_None && !PyUnicode_FSConverter(given, &targets)) ||
        ext_options_read(pair_options, kwargs, "Dataset.from_pairs", &pairs) < 0)
        goto done;
    pairs.images = PyBytes_AsString(images);
    pairs.targets = targets ? PyBytes_AsString(targets) : NULL;
    ext_wait_begin(&wait);
    rc = stoker_dataset_from_pairs(&out, &pairs, NULL, &err);
    if (ext_wait_end(&wait)) { /* by a signal's exception */
        stoker_dataset_close(out);
        out = NULL;
    } else if (rc < 0) {
        ext_raise(state, &err);
    }
done:
    Py_XDECREF(images);
    Py_XDECREF(targets);
    return out;
}
