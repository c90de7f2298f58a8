/* known_place.c - where a dataset keeps which of its files are known to decode
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/index/keep.h"
#include "source/kinds.h"
#include "source/known/known.h"
#include "source/location.h"
#include "source/remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Later calls must not depend on the current folder. */
static bool make_absolute(char out[PATH_MAX], const char *path)
{
    char here[PATH_MAX];
    if (path[0] == '/')
        return snprintf(out, PATH_MAX, "%s", path) < PATH_MAX;
    return getcwd(here, sizeof here) && snprintf(out, PATH_MAX, "%s/%s", here, path) < PATH_MAX;
}

static uint64_t hash_word(uint64_t hash, const char *word)
{
    return st_keep_hash(hash, word, strlen(word) + 1);
}

/* What the dataset is: its kind and paths. Only names count for a file next to its archives, because
 * they are moved together and mounted elsewhere. The choice of fields does not count: the image is
 * mostly the same. */
static bool make_key(uint64_t *key, const struct st_location *place,
                     const struct stoker_dataset_options *opt, bool beside)
{
    char real[PATH_MAX];
    uint64_t hash = hash_word(ST_KEEP_HASH, place->kind->scheme);
    for (uint64_t i = 0; i < place->paths.count || i == 0; i++) {
        const char *path = place->paths.count ? place->paths.items[i] : place->path;
        if (beside)
            path = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        else if (i == 0 && !st_remote_is_url(path) && !(path = realpath(path, real)))
            return false;
        hash = hash_word(hash, path);
    }
    for (const char *const *extension = opt->extensions; extension && *extension; extension++)
        hash = hash_word(hash, *extension);
    *key = hash_word(hash, opt->db ? opt->db : "");
    return true;
}

void st_known_place(struct stoker_dataset *data, const struct st_location *place,
                    const struct stoker_dataset_options *opt)
{
    char folder[PATH_MAX], file[PATH_MAX];
    const char *first = place->paths.count ? place->paths.items[0] : place->path;
    const bool remote = st_remote_is_url(first);
    const bool archives = place->kind == &st_source_tar || place->kind == &st_source_tfrecord;
    const char *directory = opt->index_dir ? opt->index_dir : archives && remote ? opt->cache_dir : NULL;
    const bool beside = !directory && archives && !remote;
    int size = -1;
    if ((!directory && !beside) || !make_key(&data->known_key, place, opt, beside) ||
        !make_absolute(folder, directory ? directory : first))
        return;
    if (directory)
        size = st_keep_file(file, folder, data->known_key, "stoker-known", NULL);
    else if (place->paths.count == 1)
        size = snprintf(file, sizeof file, "%s.stoker-known", folder);
    else
        size = snprintf(file, sizeof file, "%s.%016llx.stoker-known", folder,
                        (unsigned long long)data->known_key);
    if (size >= 0 && size < (int)sizeof file)
        data->known_file = strdup(file); /* NULL: it is not kept */
}
