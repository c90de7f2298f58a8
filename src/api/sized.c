/* sized.c - structures of programs that were compiled against another version of the header
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/sized.h"

#include "st_config.h"

#include <string.h>

enum { LARGEST = 1 << 16 }; /* more than any version will have: the member was not set */

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static int read_size(const struct st_sized *of, const void *given, size_t *size,
                     struct stoker_error *err)
{
    memcpy(size, given, sizeof *size);
    if (*size >= of->first && *size <= LARGEST)
        return STOKER_OK;
    return st_fail(
        err, STOKER_EINVAL,
        "%s: size is %zu, but no version has less than %zu bytes; set it to sizeof, or fill the "
        "structure with its *_defaults() function",
        of->name, *size, of->first);
}

void st_sized_init(const struct st_sized *of, const void *defaults, void *out, size_t size)
{
    if (!out || size < sizeof size)
        return;
    const size_t common = smaller(size, of->size);
    memcpy(out, defaults, common);
    memset((uint8_t *)out + common, 0, size - common);
    memcpy(out, &size, sizeof size);
}

int st_sized_take(const struct st_sized *of, void *own, const void *given, struct stoker_error *err)
{
    const uint8_t *bytes = given;
    size_t size;
    const int rc = read_size(of, given, &size, err);
    if (rc)
        return rc;
    for (size_t k = of->size; k < size; k++)
        if (bytes[k])
            return st_fail(err, STOKER_EUNSUPPORTED,
                           "%s: the member at byte %zu is set, but libstoker " ST_VERSION
                           " does not have it; run the program with the version it was compiled against",
                           of->name, k);
    memcpy(own, given, smaller(size, of->size));
    memcpy(own, &of->size, sizeof of->size);
    return STOKER_OK;
}

int st_sized_give(const struct st_sized *of, const void *own, void *out, struct stoker_error *err)
{
    size_t size;
    const int rc = read_size(of, out, &size, err);
    if (!rc)
        st_sized_init(of, own, out, size);
    return rc;
}
