/* names.h - file names, ordered and lower-cased as Python's str would be
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TEXT_NAMES_H
#define ST_SOURCE_TEXT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compares as Python compares os.fsdecode(a) and os.fsdecode(b): by code point, where a byte that is not
 * valid UTF-8 stands for U+DC80 to U+DCFF. The result differs from byte order only if there are such
 * bytes. */
int st_name_compare(const char *a, size_t a_size, const char *b, size_t b_size);

/* Whether the name ends with one of the extensions, after lower-casing A to Z only. */
bool st_name_has_extension(const char *name, size_t size, const char *const *extensions);

/* Whether the name, with A to Z lower-cased, equals `lower_case`. */
bool st_name_equals_lower(const char *name, size_t size, const char *lower_case);

/* Only bytes below 128: then byte order is the order of names. */
bool st_name_is_ascii(const char *name, size_t size);

/* Sorts `count` names by st_name_compare. `offsets` says where each NUL-terminated name begins in
 * `text`; the bits above ST_NAME_OFFSET are the caller's and move along. `scratch` has room for 2 *
 * count. */
#define ST_NAME_OFFSET (UINT64_MAX >> 1)
void st_names_sort(const char *text, uint64_t *offsets, uint64_t count, bool ascii, uint64_t *scratch);

/* The extensions that torchvision's ImageFolder accepts, ending with NULL. */
extern const char *const st_image_extensions[];

#endif
