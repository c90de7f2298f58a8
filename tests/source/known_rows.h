/* known_rows.h - datasets whose tables of known files are tested
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_SOURCE_KNOWN_ROWS_H
#define ST_TESTS_SOURCE_KNOWN_ROWS_H

#include "source/known/known.h"
#include "tar_file.h"
#include "tar_read.h"
#include "tree.h"

#include <dirent.h>

enum { ROWS = 200000 }; /* several stretches of pages, the last page not full */

/* An npy file of rows of one byte. */
static inline void write_rows(const char *path, unsigned rows)
{
    char head[128];
    FILE *file = fopen(path, "wb");
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\1\0\x76\0", 10);
    const int size =
        snprintf(head + 10, 118, "{'descr': '|u1', 'fortran_order': False, 'shape': (%u, 1), }", rows);
    head[10 + size] = ' ';
    head[127] = '\n';
    if (!file || fwrite(head, 1, sizeof head, file) != sizeof head ||
        fseek(file, (long)rows - 1, SEEK_CUR) || putc(0, file) < 0 || fclose(file))
        abort();
}

static inline struct stoker_dataset *open_rows(void)
{
    struct stoker_dataset *data = open_tar(at("rows.npy"), NULL, at("kept"));
    if (!data) {
        note("%s", err.message);
        abort();
    }
    return data;
}

static inline struct st_known *known_of(struct stoker_dataset *data)
{
    struct st_known *known = st_known_of(data, NULL);
    if (!known)
        abort();
    return known;
}

/* A number for a sample, never 0. */
static inline uint32_t number(uint64_t sample, uint32_t seed)
{
    return ((uint32_t)sample * 2654435761u + seed * 2) | 1;
}

static inline uint64_t count_known(const struct st_known *known, uint64_t count, uint32_t seed)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++)
        found += st_known_has(known, i, number(i, seed));
    return found;
}

static inline void learn(struct st_known *known, uint64_t from, uint64_t end, uint64_t step, uint32_t seed)
{
    for (uint64_t i = from; i < end; i += step)
        st_known_learn(known, i, number(i, seed));
}

/* The path of the one file with this ending in a folder; "" if there is none, "2" if there are several.
 */
static inline const char *found_in(const char *folder, const char *ending)
{
    static char path[4096];
    int count = 0;
    DIR *dir = opendir(folder);
    path[0] = '\0';
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const size_t size = strlen(entry->d_name), tail = strlen(ending);
        if (size >= tail && !strcmp(entry->d_name + size - tail, ending) && count++ < 1)
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    }
    if (dir)
        closedir(dir);
    return count > 1 ? "2" : path;
}

static inline void share_all(struct st_known *known)
{
    for (int i = 0; i < 3; i++)
        st_known_share(known);
}

#endif
