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
    const int rc = st_location_find(place, data, NULL, err);
    return rc ? rc : open_place(out, place, fields, err);
}
