/* partners.c - the files of a folder, found by name, and those that are missing
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/partners.h"
#include "source/pairs/pairs.h"
#include "source/text/names.h"
#include "source/tree/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

size_t st_partners_stem(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    return dot && dot > name ? (size_t)(dot - path) : strlen(path);
}

static int fill(struct st_partners *out, const struct st_tree *tree, bool stems,
                struct stoker_error *err)
{
    const struct st_index *index = &tree->index;
    uint64_t room = 0, used = 0;
    for (uint64_t i = 0; i < index->sample_count; i++)
        room += 2 * (strlen(index->text + index->dirs[index->sample_dirs[i] & ~ST_INDEX_SPECIAL].path) +
                     strlen(index->text + index->names[i]) + 1);
    out->text = st_calloc(room, 1);
    out->keys = st_calloc(index->sample_count, sizeof *out->keys);
    uint64_t *scratch = st_calloc(index->sample_count, 2 * sizeof *scratch);
    if (!out->text || !out->keys || !scratch) {
        free(scratch);
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory while listing the files", out->folder);
    }
    for (uint64_t i = 0; i < index->sample_count; i++) {
        const char *folder = index->text + index->dirs[index->sample_dirs[i] & ~ST_INDEX_SPECIAL].path;
        char *key = out->text + used, *end = stpcpy(stpcpy(key, folder), index->text + index->names[i]);
        const size_t size = (size_t)(end - key), stem = stems ? st_partners_stem(key) : size;
        memmove(key + stem + 1, key, size + 1);
        key[stem] = '\0';
        out->keys[out->count++] = used;
        used += stem + size + 2;
    }
    st_names_sort(out->text, out->keys, out->count, true, scratch); /* in the order of bytes */
    free(scratch);
    return 0;
}

int st_partners_open(struct st_partners *out, const char *folder, const char *const *extensions,
                     bool stems, const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    static const char *const any[] = {"", NULL};
    struct stoker_dataset_options all = {.size = sizeof all};
    struct st_tree tree = {0};
    if (opt)
        all.threads = opt->threads;
    all.extensions = extensions ? extensions : any;
    *out = (struct st_partners){.folder = st_pairs_folder(folder, NULL)};
    if (!out->folder)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", folder);
    int rc = st_tree_open(&tree, folder, false, &all, err);
    if (!rc)
        rc = fill(out, &tree, stems, err);
    st_tree_close(&tree);
    return rc;
}

const char *st_partners_find(const struct st_partners *partners, const char *key, bool *more)
{
    uint64_t low = 0, high = partners->count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (strcmp(partners->text + partners->keys[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const char *found = low < partners->count ? partners->text + partners->keys[low] : NULL;
    if (!found || strcmp(found, key))
        return NULL;
    *more = low + 1 < partners->count && !strcmp(partners->text + partners->keys[low + 1], key);
    return found + strlen(found) + 1;
}

bool st_partners_has(struct st_partners *partners, const char *path)
{
    const size_t size = strlen(partners->folder);
    struct stat info;
    bool more;
    if (!strncmp(path, partners->folder, size) && st_partners_find(partners, path + size, &more))
        return true;
    if (!stat(path, &info) && !S_ISDIR(info.st_mode))
        return true;
    st_partners_miss(partners, path);
    return false;
}

void st_partners_miss(struct st_partners *partners, const char *name)
{
    enum { SHOWN = 3 };
    const size_t used = strlen(partners->examples);
    if (partners->missing < SHOWN)
        snprintf(partners->examples + used, sizeof partners->examples - used, "%s%s", used ? ", " : "",
                 name);
    partners->missing++;
}

int st_partners_check(const struct st_partners *partners, const char *one, const char *what,
                      const char *hint, struct stoker_error *err)
{
    enum { SHOWN = 3 };
    char more[40] = "";
    if (!partners->missing)
        return 0;
    if (partners->missing > SHOWN)
        snprintf(more, sizeof more, " and %llu more", (unsigned long long)(partners->missing - SHOWN));
    return st_fail(err, STOKER_ENOTFOUND, "%.300s: %llu %s: %s%s%s%s", partners->folder,
                   (unsigned long long)partners->missing, partners->missing == 1 ? one : what,
                   partners->examples, more, *hint ? ". " : "", hint);
}

void st_partners_close(struct st_partners *partners)
{
    free(partners->folder);
    free(partners->text);
    free(partners->keys);
    *partners = (struct st_partners){0};
}
