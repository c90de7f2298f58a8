/* key.c - the key of a sample in an archive
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"
#include "cli/pack/pack.h"

#include <stdio.h>
#include <string.h>

/* A key under construction; "~NUMBER" is appended if the name had to be changed, so that keys stay
 * unique. */
enum { ROOM = PACK_KEY_MAX - 21 };

struct key {
    char *text;
    size_t used;
    bool lossy; /* another name could have the same result */
};

/* The path without a leading "kind:". */
static const char *without_kind(const char *source)
{
    const char *colon = strchr(source, ':'), *slash = strchr(source, '/');
    return colon && (!slash || colon < slash) ? colon + 1 : source;
}

/* For a path outside the source: its last two components. */
static const char *last_parts(const char *name, bool *lossy)
{
    const char *at = name + strlen(name);
    for (int slashes = 0; at > name && slashes < 2; at--)
        slashes += at[-1] == '/';
    *lossy |= at > name;
    return at + (*at == '/');
}

/* The part of a sample name that is its own, without the archive and the common folder. */
static const char *own_part(const char *name, const struct stoker_dataset *data, const char *source,
                            bool *lossy)
{
    const bool table = !strcmp(data->kind, "csv") || !strcmp(data->kind, "jsonl");
    const bool tree = !strcmp(data->kind, "folder") || !strcmp(data->kind, "flat");
    const char *colon = tree || table ? NULL : strstr(name, ": ");
    if (colon)
        return colon + 2;
    source = without_kind(source);
    const char *slash = strrchr(source, '/');
    const size_t size = !table ? strlen(source) : slash ? (size_t)(slash - source) + 1 : 0;
    if (!strncmp(name, source, size) && (!table || size || name[0] != '/'))
        return name + size + strspn(name + size, "/");
    return table ? last_parts(name, lossy) : name;
}

/* One component of a path: unusual characters become '_', and it neither begins with a dot nor is empty.
 * The last component has no dot at all, because the key would end there. */
static void put_part(struct key *key, const char *part, size_t size, bool last)
{
    const size_t began = key->used;
    for (size_t i = 0; i < size;) {
        const size_t bytes = st_utf8_size(part + i), step = bytes ? bytes : 1;
        const unsigned char c = (unsigned char)part[i];
        const bool odd = bytes == 0 || (bytes == 1 && (c < 32 || c == 127 || strchr("\\:*?\"<>|{}", c)));
        const bool dot = c == '.' && (last || key->used == began);
        if (key->used + step > ROOM) {
            key->lossy = true;
            return;
        }
        if (odd || dot)
            key->text[key->used++] = '_';
        else
            for (size_t k = 0; k < step; k++)
                key->text[key->used++] = part[i + k];
        key->lossy |= odd || dot;
        i += step;
    }
}

/* The last component without its extension. */
static size_t stem(const char *part, size_t size, bool extended)
{
    const char *dot = extended ? memrchr(part, '.', size) : NULL;
    return dot && dot > part ? (size_t)(dot - part) : size;
}

/* Whether an earlier neighbour in sort order has the same name except for the extension. */
static bool has_twin(const struct stoker_dataset *data, uint64_t number, const char *name)
{
    enum { NEIGHBOURS = 64 };
    char other[PATH_MAX];
    const char *slash = strrchr(name, '/'), *own = slash ? slash + 1 : name;
    const size_t size = (size_t)(own - name) + stem(own, strlen(own), true);
    for (uint64_t i = 1; i <= NEIGHBOURS && i <= number; i++) {
        st_dataset_name(data, number - i, other, sizeof other);
        if (strncmp(other, name, size) || other[size] != '.')
            return false;
        if (!strchr(other + size + 1, '.') && !strchr(other + size + 1, '/'))
            return true;
    }
    return false;
}

void pack_key(char text[PACK_KEY_MAX + 1], const struct stoker_dataset *data, uint64_t number,
              const char *source)
{
    char name[PATH_MAX];
    struct key key = {.text = text};
    st_dataset_name(data, number, name, sizeof name);
    const bool files = strcmp(data->kind, "tar") != 0; /* keys of tar files have no extension */
    /* Several archives may use the same keys. */
    const bool parts = !strcmp(data->source->scheme, "compound");
    const char *at = own_part(name, data, source, &key.lossy);
    key.lossy |= parts || at[0] == '/' || (files && (strchr(at, '~') || has_twin(data, number, name)));
    while (*at && key.used < ROOM) {
        const size_t size = strcspn(at, "/");
        const bool last = at[size] == '\0';
        if (size && key.used)
            text[key.used++] = '/';
        put_part(&key, at, last ? stem(at, size, files) : size, last);
        at += size + !last;
    }
    key.lossy |= *at != '\0';
    while (key.used && text[key.used - 1] == '/')
        key.used--;
    /* A leading "__" could clash with internal members of the archive. */
    if (key.used >= 2 && text[0] == '_' && text[1] == '_') {
        text[0] = 'x';
        key.lossy = true;
    }
    if (!key.used)
        snprintf(text, PACK_KEY_MAX + 1, "%09llu", (unsigned long long)number);
    else if (key.lossy)
        snprintf(text + key.used, (size_t)PACK_KEY_MAX + 1 - key.used, "~%llu",
                 (unsigned long long)number);
    else
        text[key.used] = '\0';
}
