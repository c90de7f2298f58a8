/* key.c - what a sample is called in an archive
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include <stdio.h>
#include <string.h>

/* What of a sample's name is its own: not the archive's, and not the folder that all lie in. */
static const char *own_part(const char *name, const char *source, bool archived)
{
    const char *colon = archived ? strstr(name, ": ") : NULL;
    if (colon)
        return colon + 2;
    const char *scheme = strchr(source, ':');
    const char *slash = strchr(source, '/');
    if (scheme && (!slash || scheme < slash))
        source = scheme + 1;
    const size_t size = strlen(source);
    return strncmp(name, source, size) ? name : name + size;
}

/* The bytes of the character that begins here; 0: it is no UTF-8. */
static size_t character(const unsigned char *at)
{
    const size_t size = at[0] < 0x80 ? 1 : at[0] >= 0xf0 && at[0] < 0xf5 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] >= 0x80 && (at[0] < 0xc2 || at[0] >= 0xf5))
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90))
        return 0;
    return size;
}

/* One part of a path: what is odd becomes '_', and it neither begins with a dot nor is empty. The last
 * part has no dot at all, because there the key would end. */
static size_t put_part(char *to, size_t room, const char *part, size_t size, bool last)
{
    size_t used = 0;
    for (size_t i = 0; i < size;) {
        const size_t bytes = character((const unsigned char *)part + i);
        const unsigned char c = (unsigned char)part[i];
        const bool odd = bytes == 0 || (bytes == 1 && (c < 32 || c == 127 || strchr("\\:*?\"<>|{}", c)));
        const bool dot = c == '.' && (last || used == 0);
        const size_t step = bytes ? bytes : 1;
        if (used + step > room)
            break;
        if (odd || dot)
            to[used++] = '_';
        else
            for (size_t k = 0; k < step; k++)
                to[used++] = part[i + k];
        i += step;
    }
    return used;
}

/* Of the last part all but its extension. */
static size_t stem(const char *part, size_t size, bool extended)
{
    const char *dot = extended ? memrchr(part, '.', size) : NULL;
    return dot && dot > part ? (size_t)(dot - part) : size;
}

void pack_key(char key[PACK_KEY_MAX + 1], const struct stoker_dataset *data, uint64_t number,
              const char *source)
{
    char name[PATH_MAX];
    size_t used = 0;
    st_dataset_name(data, number, name, sizeof name);
    const bool files = strcmp(data->kind, "tar") != 0; /* keys of tar files have lost theirs */
    const char *at = own_part(name, source, strcmp(data->kind, "folder") != 0);
    while (*at && used < PACK_KEY_MAX) {
        const size_t size = strcspn(at, "/");
        const bool last = at[size] == '\0';
        if (size && used && used + 1 < PACK_KEY_MAX)
            key[used++] = '/';
        used += put_part(key + used, PACK_KEY_MAX - used, at, last ? stem(at, size, files) : size, last);
        at += size + !last;
    }
    while (used && key[used - 1] == '/')
        used--;
    key[used] = '\0';
    /* "__x" at the front could make it one of the archive's own members. */
    if (used >= 2 && key[0] == '_' && key[1] == '_')
        key[0] = 'x';
    if (!used)
        snprintf(key, PACK_KEY_MAX + 1, "%09llu", (unsigned long long)number);
    for (char *c = key; *c && files; c++)
        if (*c == ' ')
            *c = '_';
}
