/* names.c - file names, ordered and lower-cased as Python's str would be
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/text/names.h"

#include <stdlib.h>
#include <string.h>

const char *const st_image_extensions[] = {".jpg", ".jpeg", ".png",  ".ppm",  ".bmp",
                                           ".pgm", ".tif",  ".tiff", ".webp", NULL};

/* The code point at `at` and its length in bytes; an invalid byte is escaped on its own. */
static uint32_t code_point(const uint8_t *at, size_t left, size_t *taken)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t lead = at[0];
    const size_t bytes = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    *taken = 1;
    if (bytes == 1)
        return lead;
    if (bytes == 0 || lead > 0xf4 || bytes > left)
        return 0xdc00u + lead;
    uint32_t point = lead & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0xdc00u + lead;
        point = point << 6 | (at[i] & 0x3f);
    }
    if (point < least[bytes] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return 0xdc00u + lead;
    *taken = bytes;
    return point;
}

static int compare_points(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    size_t i = 0, j = 0;
    while (i < a_size && j < b_size) {
        size_t a_taken, b_taken;
        const uint32_t left = code_point(a + i, a_size - i, &a_taken);
        const uint32_t right = code_point(b + j, b_size - j, &b_taken);
        if (left != right)
            return left < right ? -1 : 1;
        i += a_taken;
        j += b_taken;
    }
    return (i < a_size) - (j < b_size);
}

int st_name_compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
    const uint8_t *left = (const uint8_t *)a, *right = (const uint8_t *)b;
    const size_t both = a_size < b_size ? a_size : b_size;
    size_t at = 0;
    while (at < both && left[at] == right[at])
        at++;
    /* The first difference may lie inside a character that began up to three bytes earlier. */
    size_t start = at;
    for (size_t back = 1; back <= 3 && back <= at; back++)
        if (left[at - back] >= 0xc0) {
            start = at - back;
            break;
        }
    return compare_points(left + start, a_size - start, right + start, b_size - start);
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

bool st_name_has_extension(const char *name, size_t size, const char *const *extensions)
{
    for (; *extensions; extensions++) {
        const size_t length = strlen(*extensions);
        if (length > size)
            continue;
        const char *end = name + size - length;
        size_t i = 0;
        while (i < length && lower(end[i]) == (*extensions)[i])
            i++;
        if (i == length)
            return true;
    }
    return false;
}

bool st_name_equals_lower(const char *name, size_t size, const char *lower_case)
{
    if (size != strlen(lower_case))
        return false;
    size_t i = 0;
    while (i < size && lower(name[i]) == lower_case[i])
        i++;
    return i == size;
}

bool st_name_is_ascii(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (name[i] & 0x80)
            return false;
    return true;
}

/* A name with the 8 bytes that follow the prefix common to all names: they decide most comparisons
 * without reading the name. */
struct keyed {
    uint64_t key, offset;
};

static uint64_t key_of(const char *text)
{
    uint64_t key = 0;
    size_t i = 0;
    for (; i < 8 && text[i]; i++)
        key = key << 8 | (uint8_t)text[i];
    return i ? key << (8 * (8 - i)) : 0;
}

static int compare_ascii(const void *a, const void *b, void *text)
{
    const struct keyed *left = a, *right = b;
    if (left->key != right->key)
        return left->key < right->key ? -1 : 1;
    return strcmp((const char *)text + (left->offset & ST_NAME_OFFSET),
                  (const char *)text + (right->offset & ST_NAME_OFFSET));
}

static int compare_any(const void *a, const void *b, void *text)
{
    const struct keyed *left = a, *right = b;
    const char *one = (const char *)text + (left->offset & ST_NAME_OFFSET);
    const char *other = (const char *)text + (right->offset & ST_NAME_OFFSET);
    return st_name_compare(one, strlen(one), other, strlen(other));
}

void st_names_sort(const char *text, uint64_t *offsets, uint64_t count, bool ascii, uint64_t *scratch)
{
    if (count < 2)
        return;
    struct keyed *list = (struct keyed *)scratch;
    const char *first = text + (offsets[0] & ST_NAME_OFFSET);
    size_t common = strlen(first);
    for (uint64_t i = 1; i < count; i++) {
        const char *name = text + (offsets[i] & ST_NAME_OFFSET);
        size_t same = 0;
        while (same < common && name[same] == first[same])
            same++;
        common = same;
    }
    for (uint64_t i = 0; i < count; i++)
        list[i] = (struct keyed){key_of(text + (offsets[i] & ST_NAME_OFFSET) + common), offsets[i]};
    qsort_r(list, count, sizeof *list, ascii ? compare_ascii : compare_any, (void *)(uintptr_t)text);
    for (uint64_t i = 0; i < count; i++)
        offsets[i] = list[i].offset;
}
