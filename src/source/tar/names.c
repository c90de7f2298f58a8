/* names.c - groups tar members into samples by name, as the Python package webdataset does
 *
 * webdataset uses the expression ^((?:.*\/|)[^.]+)[.]([^/]*)$, and this code reproduces what it does
 * with unusual names: if the last component begins with a dot, the key ends with the slash before it,
 * provided the component before has no dot ("d/.x.jpg" is "d/" and "x.jpg").
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tar/names.h"
#include "source/text/names.h"

#include <string.h>

/* "__x__" as the whole name or as the first folder. */
static bool is_reserved(struct st_bytes name)
{
    const char *text = (const char *)name.data;
    const char *slash = memchr(text, '/', name.size);
    size_t first = slash ? (size_t)(slash - text) : name.size;
    if (first < 2 || memcmp(text, "__", 2))
        return false;
    if (!slash && first > 2 && text[first - 1] == '\n')
        first--; /* '$' also matches before a trailing newline */
    return !memcmp(text + first - 2, "__", 2) && (first >= 4 || (!slash && first == name.size));
}

/* Where the dot-free end of the key begins: after the last slash before `end`; '.*' does not match a
 * newline. */
static size_t after_slash(const char *text, size_t end)
{
    const char *line = memchr(text, '\n', end);
    const char *slash = memrchr(text, '/', line ? (size_t)(line - text) : end);
    return slash ? (size_t)(slash - text) + 1 : 0;
}

bool st_tar_split_name(struct st_bytes name, struct st_bytes *key, struct st_bytes *suffix)
{
    const char *text = (const char *)name.data;
    if (name.size == 0 || is_reserved(name))
        return false;
    const char *last = memrchr(text, '/', name.size);
    const size_t base = last ? (size_t)(last - text) + 1 : 0;
    for (size_t begin = after_slash(text, name.size);; begin = after_slash(text, begin - 1)) {
        const char *dot = memchr(text + begin, '.', name.size - begin);
        const size_t at = dot ? (size_t)(dot - text) : 0;
        if (!dot || at < base)
            return false; /* starting further left only finds an earlier dot */
        if (at > begin) {
            *key = (struct st_bytes){name.data, at};
            *suffix = (struct st_bytes){name.data + at + 1, name.size - at - 1};
            return true;
        }
        if (begin == 0)
            return false;
    }
}

bool st_tar_name_is(struct st_bytes name, const char *key, const char *suffix)
{
    struct st_bytes own_key, own_suffix;
    return st_tar_split_name(name, &own_key, &own_suffix) && own_key.size == strlen(key) &&
           !memcmp(own_key.data, key, own_key.size) &&
           st_name_equals_lower((const char *)own_suffix.data, own_suffix.size, suffix);
}
