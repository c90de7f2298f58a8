/* module.c - the extension module stoker._ext
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

static int add_type(PyObject *module, PyTypeObject **out, PyType_Spec *spec)
{
    *out = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *out ? PyModule_AddType(module, *out) : -1;
}

static int add_edits(PyObject *module)
{
    static const char *const names[] = {
        [STOKER_EDIT_CROP] = "EDIT_CROP",           [STOKER_EDIT_RESIZE] = "EDIT_RESIZE",
        [STOKER_EDIT_MIRROR] = "EDIT_MIRROR",       [STOKER_EDIT_FLIP] = "EDIT_FLIP",
        [STOKER_EDIT_BRIGHTNESS] = "EDIT_BRIGHTNESS", [STOKER_EDIT_CONTRAST] = "EDIT_CONTRAST",
        [STOKER_EDIT_SATURATION] = "EDIT_SATURATION", [STOKER_EDIT_HUE] = "EDIT_HUE",
        [STOKER_EDIT_GREY] = "EDIT_GREY",           [STOKER_EDIT_AFFINE] = "EDIT_AFFINE",
        [STOKER_EDIT_PERSPECTIVE] = "EDIT_PERSPECTIVE", [STOKER_EDIT_SHARPNESS] = "EDIT_SHARPNESS",
        [STOKER_EDIT_SOLARIZE] = "EDIT_SOLARIZE",   [STOKER_EDIT_POSTERIZE] = "EDIT_POSTERIZE",
        [STOKER_EDIT_AUTOCONTRAST] = "EDIT_AUTOCONTRAST", [STOKER_EDIT_EQUALIZE] = "EDIT_EQUALIZE",
        [STOKER_EDIT_PERMUTE] = "EDIT_PERMUTE",     [STOKER_EDIT_BOX_BLUR] = "EDIT_BOX_BLUR",
        [STOKER_EDIT_GAUSSIAN_BLUR] = "EDIT_GAUSSIAN_BLUR", [STOKER_EDIT_POINT] = "EDIT_POINT",
    };

    for (int k = STOKER_EDIT_CROP; k <= STOKER_EDIT_POINT; k++)
        if (PyModule_AddIntConstant(module, names[k], k) < 0)
            return -1;
    return 0;
}

static int module_exec(PyObject *module)
{
    struct ext_state *state = PyModule_GetState(module);

    if (ext_errors_add(module, state) < 0 || add_type(module, &state->dataset, &ext_dataset_spec) < 0 ||
        add_type(module, &state->pipeline, &ext_pipeline_spec) < 0 ||
        add_type(module, &state->loader, &ext_loader_spec) < 0 ||
        add_type(module, &state->batch, &ext_batch_spec) < 0 ||
        add_type(module, &state->tensor, &ext_tensor_spec) < 0 ||
        add_type(module, &state->gpu_watch, &ext_gpu_watch_spec) < 0 ||
        add_type(module, &state->exchange, &ext_exchange_spec) < 0 ||
        add_type(module, &state->lease, &ext_lease_spec) < 0 ||
        add_type(module, &state->lease_part, &ext_lease_part_spec) < 0 ||
        add_type(module, &state->single, &ext_single_spec) < 0 || add_edits(module) < 0)
        return -1;
    return 0;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct ext_state *state = PyModule_GetState(module);

    Py_VISIT(state->dataset);
    Py_VISIT(state->pipeline);
    Py_VISIT(state->loader);
    Py_VISIT(state->batch);
    Py_VISIT(state->tensor);
    Py_VISIT(state->gpu_watch);
    Py_VISIT(state->exchange);
    Py_VISIT(state->lease);
    Py_VISIT(state->lease_part);
    Py_VISIT(state->single);
    Py_VISIT(state->error);
    Py_VISIT(state->corrupt);
    Py_VISIT(state->limit);
    Py_VISIT(state->unsupported);
    Py_VISIT(state->transient);
    Py_VISIT(state->internal);
    Py_VISIT(state->argument);
    Py_VISIT(state->memory);
    Py_VISIT(state->read);
    Py_VISIT(state->missing);
    return 0;
}

static int module_clear(PyObject *module)
{
    struct ext_state *state = PyModule_GetState(module);

    Py_CLEAR(state->dataset);
    Py_CLEAR(state->pipeline);
    Py_CLEAR(state->loader);
    Py_CLEAR(state->batch);
    Py_CLEAR(state->tensor);
    Py_CLEAR(state->gpu_watch);
    Py_CLEAR(state->exchange);
    Py_CLEAR(state->lease);
    Py_CLEAR(state->lease_part);
    Py_CLEAR(state->single);
    Py_CLEAR(state->error);
    Py_CLEAR(state->corrupt);
    Py_CLEAR(state->limit);
    Py_CLEAR(state->unsupported);
    Py_CLEAR(state->transient);
    Py_CLEAR(state->internal);
    Py_CLEAR(state->argument);
    Py_CLEAR(state->memory);
    Py_CLEAR(state->read);
    Py_CLEAR(state->missing);
    return 0;
}

static void module_free(void *module) { module_clear(module); }

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stoker._ext",
    .m_doc = "The engine, for the Python files of the package. Not a public interface.",
    .m_size = sizeof(struct ext_state),
    .m_methods = ext_functions,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__ext(void);
PyMODINIT_FUNC PyInit__ext(void) { return PyModuleDef_Init(&definition); }
