/* open.c - opens datasets for the commands: everything that Stoker opens, and folders of sounds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

const char *const pack_sounds[] = {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", NULL};

/* A folder without images may contain sounds. */
static int open_place(struct stoker_dataset **out, const struct st_location *place, const char *fields,
                      struct stoker_error *err)
{
    struct stoker_dataset_options opt = stoker_dataset_defaults();
    opt.fields = fields;
    const int rc = st_location_open(out, place, &opt, err);
    if (rc != STOKER_EINVAL || place->paths.count)
        return rc;
    opt.extensions = pack_sounds;
    return st_location_open(out, place, &opt, NULL) ? rc : STOKER_OK;
}

int pack_data_open(struct stoker_dataset **out, struct st_location *place, const char *data,
                   const char *fields, struct stoker_error *err)
{
    int rc = st_location_find(place, data, NULL, err);
    if (!rc)
        rc = open_place(out, place, fields, err);
    if (!rc && fields && !(*out)->source->fields) {
        stoker_dataset_close(*out);
        *out = NULL;
        rc = st_fail(err, STOKER_EINVAL,
                     "%s: the samples of a folder are a file and a label: there are no fields to choose "
                     "from",
                     data);
    }
    return rc;
}
