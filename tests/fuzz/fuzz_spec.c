/* fuzz_spec.c - any text as a pipeline
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/spec.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096];
    struct stoker_pipeline *pipe;
    struct stoker_error err;
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    st_pipeline_open(&pipe, text, &err);
    st_pipeline_drop(pipe);
    return 0;
}
