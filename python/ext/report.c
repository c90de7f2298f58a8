/* report.c - statistics and bad samples of a loader, as dicts and lists
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "ext.h"

#include <string.h>

static PyObject *stage_dict(const uint64_t stage_ns[STOKER_STAGE_MAX])
{
    return Py_BuildValue("{sKsKsKsK}", "read", (unsigned long long)stage_ns[STOKER_STAGE_READ], "decode",
                         (unsigned long long)stage_ns[STOKER_STAGE_DECODE], "augment",
                         (unsigned long long)stage_ns[STOKER_STAGE_AUGMENT], "slot",
                         (unsigned long long)stage_ns[STOKER_STAGE_SLOT]);
}

static PyObject *worker_list(const struct stoker_loader *handle)
{
    struct stoker_worker_stats stats = {.size = sizeof(stats)};
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list && stoker_loader_worker_stats_at(handle, i, &stats); i++) {
        PyObject *entry = stage_dict(stats.stage_ns),
                 *count = PyLong_FromUnsignedLongLong(stats.samples);

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
    struct stoker_decode_path path = {.size = sizeof(path)};
    PyObject *list = PyList_New(0);

    for (uint32_t k = 0; list && stoker_loader_decode_path_at(handle, k, &path); k++) {
        PyObject *entry = Py_BuildValue("(ssK)", path.codec, path.path, (unsigned long long)path.files);

        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

/* File names in sentences may not be UTF-8, or may be cut in the middle of a character. NULL becomes
 * None. */
static PyObject *sentence(const char *text)
{
    return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace")
                : Py_NewRef(Py_None);
}

/* Takes the value over, also on failure. A NULL value is a failure. */
static bool put(PyObject *dict, const char *name, PyObject *value)
{
    bool done = value && PyDict_SetItemString(dict, name, value) == 0;

    Py_XDECREF(value);
    return done;
}

/* The counters, by the names they have in struct stoker_stats. */
static bool put_numbers(PyObject *dict, const struct stoker_stats *stats)
{
#define NUMBER(name)                                                                                    \
    {                                                                                                   \
#name, stats->name                                                                              \
    }
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        NUMBER(batches),      NUMBER(samples),        NUMBER(bytes),       NUMBER(bad),
        NUMBER(wait_ns),      NUMBER(first_batch_ns), NUMBER(slot_bytes),  NUMBER(scratch_bytes),
        NUMBER(slots),        NUMBER(slots_lent),     NUMBER(workers),     NUMBER(reads_in_flight_max),
        NUMBER(copied_bytes), NUMBER(raw_rows),       NUMBER(resized_rows), NUMBER(pinned_bytes),
        NUMBER(jpeg_hardware_rows),    NUMBER(jpeg_hardware_failures),
        NUMBER(jpeg_hardware_open),    NUMBER(jpeg_hardware_known),
        NUMBER(memory_allowed), NUMBER(memory_held),
        NUMBER(memory_peak),  NUMBER(read_bytes),     NUMBER(data_bytes),  NUMBER(memory_wait_ns),
        NUMBER(tuned_workers), NUMBER(tuned_prefetch), NUMBER(tuned_read_ahead), NUMBER(tuning_moves),
        NUMBER(tuning_reverted),
    };
#undef NUMBER

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (!put(dict, numbers[i].name, PyLong_FromUnsignedLongLong(numbers[i].value)))
            return false;
    return true;
}

PyObject *ext_report_stats(const struct ext_state *state, const struct stoker_loader *handle)
{
    struct stoker_stats stats = {.size = sizeof(stats)};
    PyObject *dict;

    if (stoker_loader_stats(handle, &stats) < 0) {
        PyErr_SetString(state->error, "internal error: the engine returned no statistics");
        return NULL;
    }
    dict = PyDict_New();
    if (dict && put_numbers(dict, &stats) && put(dict, "stage_ns", stage_dict(stats.stage_ns)) &&
        put(dict, "reader", PyUnicode_FromString(stats.reader ? stats.reader : "")) &&
        put(dict, "augment_on",
            PyUnicode_FromString(stats.augment_on == STOKER_PLACE_DEVICE ? "cuda" : "cpu")) &&
        put(dict, "pinned_note", sentence(stats.pinned_note)) &&
        put(dict, "source_note", sentence(stats.source_note)) &&
        put(dict, "jpeg_hardware_note", sentence(stats.jpeg_hardware_note)) &&
        put(dict, "reader_note", sentence(stats.reader_note)) &&
        put(dict, "tuning_limit", sentence(stats.tuning_limit)) &&
        put(dict, "tuning_last", sentence(stats.tuning_last)) &&
        put(dict, "per_worker", worker_list(handle)) && put(dict, "paths", path_list(handle)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

PyObject *ext_report_ledger(const struct stoker_loader *handle)
{
    struct stoker_bad_sample bad = {.size = sizeof(bad)};
    PyObject *list = PyList_New(0);

    for (uint64_t k = 0; list && stoker_loader_bad_sample_at(handle, k, &bad); k++) {
        PyObject *entry = Py_BuildValue("{sKsKsssN}", "sample", (unsigned long long)bad.sample, "epoch",
                                        (unsigned long long)bad.epoch, "status",
                                        stoker_status_name(bad.code), "reason", sentence(bad.reason));

        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}
