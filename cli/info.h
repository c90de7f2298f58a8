/* info.h - what `stoker info DATA` finds out about a data set
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_INFO_H
#define ST_CLI_INFO_H

#include "cli/pack/pack.h"

enum { INFO_SIZES = 8, INFO_THUMBNAILS = 12 };

struct info_thumbnail {
    char *base64, *caption; /* a JPEG file, and the sample's name */
    uint32_t width, height; /* of the image itself */
};

struct info {
    const char *data;
    struct stoker_dataset *set;
    uint64_t samples;
    struct st_field fields[ST_FIELDS_MAX];
    uint32_t field_count;
    /* of some samples, spread over the whole set */
    uint64_t looked_at, bytes, bad;
    struct stoker_error first_bad;
    uint64_t images, pixels, sizes[INFO_SIZES]; /* by their longer side, see info_size_name */
    uint32_t least_width, least_height, most_width, most_height;
    uint64_t types[8]; /* see info_types */
    uint64_t sounds, least_rate, most_rate;
    double sound_seconds;
    double decode_seconds; /* of `decoded` images, on one core */
    uint64_t decoded;
    struct info_thumbnail thumbnails[INFO_THUMBNAILS];
    uint32_t thumbnail_count;
};
extern const char *const info_types[8]; /* the last stands for all others */

/* Looks at some samples, and makes thumbnails if they are wanted. */
int info_gather(struct info *info, bool thumbnails, struct stoker_error *err);
void info_free(struct info *info);
/* Of sound in the whole set, about. */
double info_hours(const struct info *info);
/* "up to 256" and so on. */
void info_size_name(uint32_t bin, char out[32]);
/* A page that needs nothing but itself. */
int info_write_html(const struct info *info, const char *path, struct stoker_error *err);

#endif
