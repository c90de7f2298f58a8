/* names.h - file names in the order and under the rules of Python's str
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_NAMES_H
#define ST_SOURCE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compares as Python compares os.fsdecode(a) and os.fsdecode(b): by code point, where a byte that is not
 * UTF-8 stands as U+DC80 to U+DCFF. Differs from the order of bytes only where such bytes are. */
int st_name_compare(const char *a, size_t a_size, const char *b, size_t b_size);

/* Whether the name in lower case (A to Z; other letters as they are) ends with one of the extensions. */
bool st_name_has_extension(const char *name, size_t size, const char *const *extensions);

/* Only bytes below 128: then the order of bytes is the order of names. */
bool st_name_is_ascii(const char *name, size_t size);

/* Sorts `count` names by st_name_compare. `offsets` say where each begins in `text` (terminated), with
 * bits of the caller's own above ST_NAME_OFFSET that move along; `scratch` has room for 2 * count. */
#define ST_NAME_OFFSET (UINT64_MAX >> 1)
void st_names_sort(const char *text, uint64_t *offsets, uint64_t count, bool ascii, uint64_t *scratch);

/* The extensions that torchvision's ImageFolder takes for images; NULL at the end. */
extern const char *const st_image_extensions[];

#endif
