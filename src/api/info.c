/* info.c - statuses in words, pipelines and their ops
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/sized.h"
#include "base/cpu.h"
#include "pipe/spec.h"
#include "st_config.h"

ST_SIZED(ops, stoker_op, help);

uint32_t stoker_version(void) { return STOKER_VERSION; }

const char *stoker_version_string(void) { return ST_VERSION; }

uint32_t stoker_cpu_count(void) { return st_cpu_count(); }

const char *stoker_status_name(int status)
{
    switch (status) {
#define X(name, value, text)                                                                            \
    case value: return #name;
        STOKER_STATUS_MAP(X)
#undef X
    }
    return "unknown";
}

const char *stoker_status_text(int status)
{
    switch (status) {
#define X(name, value, text)                                                                            \
    case value: return text;
        STOKER_STATUS_MAP(X)
#undef X
    }
    return "a status that this version does not know";
}

int stoker_pipeline_open(struct stoker_pipeline **out, const char *text, struct stoker_error *err)
{
    if (!out || !text)
        return st_fail(err, STOKER_EINVAL, "stoker_pipeline_open: out and text must not be NULL");
    return st_pipeline_open(out, text, err);
}

void stoker_pipeline_close(struct stoker_pipeline *pipe) { st_pipeline_drop(pipe); }

bool stoker_op_at(uint32_t index, struct stoker_op *out)
{
    for (uint32_t k = 0; st_ops[k]; k++)
        if (k == index) {
            const struct stoker_op found = {sizeof found, st_ops[k]->name, st_ops[k]->help};
            return !st_sized_give(&ops, &found, out, NULL);
        }
    return false;
}
