/* names.c - which members of a tar file make one sample, as the Python package webdataset decides it
 *
 * The rule there is the expression ^((?:.*\/|)[^.]+)[.]([^/]*)$ and what it does with odd names: where
 * the last part begins with a dot, the key ends with the slash before it, if the part before has no dot
 * ("d/.x.jpg" is "d/" and "x.jpg").
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tar/names.h"

#include <string.h>

/* "__x__" alone or as the first folder. */
static bool of_the_archive(struct st_bytes name)
{
    const char *text = (const char *)name.data;
    const char *slash = memchr(text, '/', name.size);
    size_t first = slash ? (size_t)(slash - text) : name.size;
    if (first < 2 || memcmp(text, "__", 2))
        return false;
    if (!slash && first > 2 && text[first - 1] == '\n')
        first--; /* '$' also matches before a newline at the end */
    return !memcmp(text + first - 2, "__", 2) && (first >= 4 || (!slash && first == name.size));
}

/* Where the key begins to be free of dots, by the last slash before `end`; '.*' does not pass a newline.
 */
static size_t behind_slash(const char *text, size_t end)
{
    const char *line = memchr(text, '\n', end);
    const char *slash = memrchr(text, '/', line ? (size_t)(line - text) : end);
    return slash ? (size_t)(slash - text) + 1 : 0;
}

bool st_tar_split_name(struct st_bytes name, struct st_bytes *key, struct st_bytes *suffix)
{
    const char *text = (const char *)name.data;
    if (name.size == 0 || of_the_archive(name))
        return false;
    const char *last = memrchr(text, '/', name.size);
    const size_t base = last ? (size_t)(last - text) + 1 : 0;
    for (size_t begin = behind_slash(text, name.size);; begin = behind_slash(text, begin - 1)) {
        const char *dot = memchr(text + begin, '.', name.size - begin);
        const size_t at = dot ? (size_t)(dot - text) : 0;
        if (!dot || at < base)
            return false; /* further to the left it can only be earlier still */
        if (at > begin) {
            *key = (struct st_bytes){name.data, at};
            *suffix = (struct st_bytes){name.data + at + 1, name.size - at - 1};
            return true;
        }
        if (begin == 0)
            return false;
    }
}

bool st_tar_suffix_is(struct st_bytes suffix, const char *wanted, size_t size)
{
    if (suffix.size != size)
        return false;
    for (size_t i = 0; i < size; i++) {
        const char c = (char)suffix.data[i];
        if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != wanted[i])
            return false;
    }
    return true;
}

bool st_tar_name_is(struct st_bytes name, const char *key, const char *suffix)
{
    struct st_bytes own_key, own_suffix;
    return st_tar_split_name(name, &own_key, &own_suffix) && own_key.size == strlen(key) &&
           !memcmp(own_key.data, key, own_key.size) &&
           st_tar_suffix_is(own_suffix, suffix, strlen(suffix));
}
