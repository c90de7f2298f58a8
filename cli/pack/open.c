/* open.c - opens data sets as a whole: all images of tar files, and the folders that pack wrote
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include <stdio.h>
#include <string.h>

/* The suffixes of one field, of which each sample has one. */
#define IMAGES "jpg;jpeg;png;webp;bmp;tif;ppm;pgm"

static bool is_plain_image(const struct st_field *field)
{
    const char *at = strstr(";" IMAGES ";", field->name);
    return field->kind == ST_FIELD_IMAGE && at && at[-1] == ';' && at[strlen(field->name)] == ';';
}

/* A tar file's own choice of fields is that of its first sample; the next may hold another kind of
 * image. */
static bool widen(const struct stoker_dataset *data, char *out, size_t size)
{
    uint32_t count;
    size_t used = 0;
    bool wider = false;
    const struct st_field *fields = data->source->fields(data->self, &count);
    for (uint32_t i = 0; i < count; i++) {
        const bool image = !wider && is_plain_image(&fields[i]);
        wider |= image;
        const int more =
            snprintf(out + used, size - used, "%s%s", i ? "," : "", image ? IMAGES : fields[i].name);
        if (more < 0 || (size_t)more >= size - used)
            return false;
        used += (size_t)more;
    }
    return wider;
}

int pack_open(struct stoker_dataset **out, const char *uri, const char *fields, struct stoker_error *err)
{
    struct stoker_dataset_options opt = stoker_dataset_defaults();
    char wider[2048];
    opt.fields = fields;
    const int rc = stoker_dataset_open(out, uri, &opt, err);
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
        used = snprintf(uri, size, "%s:%s/%s", extension && !strcmp(extension, ".h5") ? "hdf5" : "npy",
                        folder, manifest->shards[0].name);
    return used > 0 && (size_t)used < size
               ? STOKER_OK
               : st_fail(err, STOKER_EINVAL, "%.500s: the path is too long", folder);
}

int pack_data_open(struct stoker_dataset **out, const char *data, const char *fields, char *uri,
                   size_t size, struct stoker_error *err)
{
    struct pack_manifest manifest;
    int rc = pack_manifest_read(&manifest, data, err);
    if (!rc)
        rc = name_pack(&manifest, data, uri, size, err);
    else if (rc == STOKER_END)
        rc = snprintf(uri, size, "%s", data) < (int)size
                 ? STOKER_OK
                 : st_fail(err, STOKER_EINVAL, "the path is too long");
    pack_manifest_free(&manifest);
    return rc ? rc : pack_open(out, uri, fields, err);
}
