/* report.c - what a loader says of itself, as dicts and lists
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <string.h>

static PyObject *stage_dict(const uint64_t stage_ns[STOKER_STAGES])
{
    return Py_BuildValue("{sKsKsKsK}", "read", (unsigned long long)stage_ns[STOKER_STAGE_READ], "decode",
                         (unsigned long long)stage_ns[STOKER_STAGE_DECODE], "augment",
                         (unsigned long long)stage_ns[STOKER_STAGE_AUGMENT], "slot",
                         (unsigned long long)stage_ns[STOKER_STAGE_SLOT]);
}

static PyObject *worker_list(const struct stoker_loader *handle)
{
    uint64_t stage_ns[STOKER_STAGES], samples;
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list && stoker_loader_worker_stats(handle, i, stage_ns, &samples); i++) {
        PyObject *entry = stage_dict(stage_ns), *count = PyLong_FromUnsignedLongLong(samples);

        if (!entry || !count || PyDict_SetItemString(entry, "samples", count) < 0 ||
            PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
        Py_XDECREF(count);
    }
    return list;
}

static PyObject *path_list(const struct stoker_loader *handle)
{
    struct stoker_path path;
    PyObject *list = PyList_New(0);

    for (uint32_t k = 0; list && stoker_loader_path(handle, k, &path); k++) {
        PyObject *entry = Py_BuildValue("(ssK)", path.codec, path.path, (unsigned long long)path.files);

        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

PyObject *ext_report_stats(const struct ext_state *state, const struct stoker_loader *handle)
{
    struct stoker_stats stats = {.size = sizeof(stats)};

    if (stoker_loader_stats(handle, &stats) < 0) {
        PyErr_SetString(state->error, "the engine gives no statistics");
        return NULL;
    }
#define NUMBER(name) #name, (unsigned long long)stats.name
    return Py_BuildValue("{sKsKsKsKsNsKsKsKsKsKsKsKsKsssNsN}", NUMBER(batches), NUMBER(samples),
                         NUMBER(bytes), NUMBER(bad), "stage_ns", stage_dict(stats.stage_ns),
                         NUMBER(wait_ns), NUMBER(first_batch_ns), NUMBER(slot_bytes),
                         NUMBER(scratch_bytes), NUMBER(slots), NUMBER(slots_lent), NUMBER(workers),
                         NUMBER(reads_in_flight_max), "reader", stats.reader ? stats.reader : "",
                         "per_worker", worker_list(handle), "paths", path_list(handle));
#undef NUMBER
}

PyObject *ext_report_ledger(const struct stoker_loader *handle)
{
    struct stoker_bad_sample bad;
    PyObject *list = PyList_New(0);

    for (uint64_t k = 0; list && stoker_loader_bad(handle, k, &bad); k++) {
        PyObject *reason =
            PyUnicode_DecodeUTF8(bad.reason, (Py_ssize_t)strlen(bad.reason), "backslashreplace");
        PyObject *entry = Py_BuildValue("{sKsKsssN}", "sample", (unsigned long long)bad.sample, "epoch",
                                        (unsigned long long)bad.epoch, "status",
                                        stoker_status_name(bad.code), "reason", reason);

        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}
