/* open.c - opens data sets as a whole: all images of tar files, and the folders that pack wrote
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include <stdio.h>
#include <string.h>

/* The suffixes of one field, of which each sample has one. */
static const char *const images[] = {"jpg", "jpeg", "png", "webp", "bmp", "tif", "ppm", "pgm", NULL};

static bool is_plain_image(const struct st_field *field)
{
    bool known = false;
    for (size_t i = 0; images[i] && !known; i++)
        known = !strcmp(field->name, images[i]);
    return known && field->kind == ST_FIELD_IMAGE;
}

/* Adds a word to a list; false when there is no room. */
static bool add_word(char *out, size_t size, const char *separator, const char *word)
{
    const size_t used = strlen(out);
    const int more = snprintf(out + used, size - used, "%s%s", separator, word);
    return more >= 0 && (size_t)more < size - used;
}

/* A tar file's own choice of fields is that of its first sample; the next may hold another kind of
 * image. */
static bool widen(const struct stoker_dataset *data, char *out, size_t size)
{
    uint32_t count;
    bool wider = false, room = true;
    const struct st_field *fields = data->source->fields(data->self, &count);
    out[0] = '\0';
    for (uint32_t i = 0; i < count && room; i++) {
        const bool image = !wider && is_plain_image(&fields[i]);
        wider |= image;
        room = add_word(out, size, i ? "," : "", fields[i].name);
        for (size_t k = 0; image && images[k] && room; k++)
            if (strcmp(images[k], fields[i].name))
                room = add_word(out, size, ";", images[k]);
    }
    return wider && room;
}

const char *const pack_sounds[] = {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", NULL};

int pack_open(struct stoker_dataset **out, const char *uri, const char *fields, struct stoker_error *err)
{
    struct stoker_dataset_options opt = stoker_dataset_defaults();
    char wider[2048];
    opt.fields = fields;
    const int rc = stoker_dataset_open(out, uri, &opt, err);
    if (rc == STOKER_EINVAL) {
        opt.extensions = pack_sounds;
        return stoker_dataset_open(out, uri, &opt, NULL) ? rc : STOKER_OK;
    }
    if (rc || fields || strcmp((*out)->source->scheme, "tar") || !widen(*out, wider, sizeof wider))
        return rc;
    stoker_dataset_close(*out);
    *out = NULL;
    opt.fields = wider;
    return stoker_dataset_open(out, uri, &opt, err);
}

/* The files that a manifest lists, as one data set. */
static int name_pack(const struct pack_manifest *manifest, const char *folder, char *uri, size_t size,
                     struct stoker_error *err)
{
    static const char *const sharded[] = {"tar", "tfrecord"};
    int used = -1;
    if (!manifest->shard_count)
        return st_fail(err, STOKER_EINVAL, "%.500s: a pack of which no shard is finished", folder);
    const char *extension = strrchr(manifest->shards[0].name, '.');
    for (size_t i = 0; i < 2; i++)
        if (extension && !strcmp(extension + 1, sharded[i]))
            used = snprintf(uri, size, "%s:%s/shard-{000000..%06llu}%s", sharded[i], folder,
                            (unsigned long long)manifest->shard_count - 1, extension);
    if (used < 0 && !strcmp(manifest->shards[0].name, "data.mdb"))
        used = snprintf(uri, size, "lmdb:%s", folder);
    else if (used < 0)
        used = snprintf(uri, size, "hdf5:%s/%s", folder, manifest->shards[0].name);
    return used > 0 && (size_t)used < size
               ? STOKER_OK
               : st_fail(err, STOKER_EINVAL, "%.500s: the path is too long", folder);
}

static bool is_array_set(const struct pack_manifest *manifest)
{
    const char *dot = manifest->shard_count ? strrchr(manifest->shards[0].name, '.') : NULL;
    return dot && !strcmp(dot, ".npy");
}

int pack_data_open(struct stoker_dataset **out, const char *data, const char *fields, char *uri,
                   size_t size, struct stoker_error *err)
{
    struct pack_manifest manifest;
    int rc = pack_manifest_read(&manifest, data, err);
    const bool ours = rc == STOKER_OK, arrays = ours && is_array_set(&manifest);
    if (ours && !arrays)
        rc = name_pack(&manifest, data, uri, size, err);
    else if (ours || rc == STOKER_END)
        rc = snprintf(uri, size, "%s", data) < (int)size
                 ? STOKER_OK
                 : st_fail(err, STOKER_EINVAL, "the path is too long");
    if (!rc)
        rc = arrays ? pack_arrays_open(out, data, &manifest, fields, err)
                    : pack_open(out, uri, fields, err);
    pack_manifest_free(&manifest);
    return rc;
}
