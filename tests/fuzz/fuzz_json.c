/* fuzz_json.c - a field of JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/table/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t at;
    bool deep;
    const bool whole = st_json_is_whole((struct st_bytes){data, size}, &at, &deep);
    if (at > size || (whole && (at != size || deep)))
        abort(); /* beyond its end, or not all of it */
    return 0;
}
