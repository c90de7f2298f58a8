/* sized.c - structures of callers that were compiled with another version of the header
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/sized.h"

#include <string.h>

enum { SIZE_MAX_SANE = 1 << 16 };

int st_sized_take(void *own, size_t own_size, const void *given, const char *what, struct stoker_error *err)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size || size > SIZE_MAX_SANE)
        return st_fail(err, STOKER_EINVAL,
                       "%s: its size field is %zu; fill the structure with its *_defaults() function first", what,
                       size);
    memcpy(own, given, size < own_size ? size : own_size);
    return STOKER_OK;
}
