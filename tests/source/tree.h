/* tree.h - a tree of files for a test, gone when it ends
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_SOURCE_TREE_H
#define ST_TESTS_SOURCE_TREE_H

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char tree_root[256];

static void tree_make(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(tree_root, sizeof tree_root, "%s/stoker-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(tree_root) || chmod(tree_root, 0755))
        abort();
}

static int tree_remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    (void)info, (void)kind, (void)ftw;
    return remove(path);
}

static void tree_remove(void) { nftw(tree_root, tree_remove_one, 32, FTW_DEPTH | FTW_PHYS); }

/* The path below the tree's root; eight at a time. */
__attribute__((format(printf, 1, 2))) static const char *at(const char *format, ...)
{
    static char paths[8][4096];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    const int used = snprintf(path, sizeof paths[0], "%s/", tree_root);
    va_list args;
    va_start(args, format);
    vsnprintf(path + used, sizeof paths[0] - (size_t)used, format, args);
    va_end(args);
    return path;
}

/* Writes a file of `size` bytes that depend on `seed`, and the folders above it. */
static inline void tree_file(const char *path, size_t size, uint32_t seed)
{
    char *parent = strdup(path);
    if (!parent)
        abort();
    for (char *slash = parent + strlen(tree_root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(parent, 0777);
        *slash = '/';
    }
    free(parent);
    FILE *file = fopen(path, "wb");
    if (!file)
        abort();
    for (size_t i = 0; i < size; i++)
        putc((int)((i * 131 + seed * 31 + (i >> 9)) & 255), file);
    if (fclose(file))
        abort();
}

static inline bool tree_file_is(const uint8_t *bytes, size_t got, size_t size, uint32_t seed)
{
    if (got != size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != ((i * 131 + seed * 31 + (i >> 9)) & 255))
            return false;
    return true;
}

#endif
