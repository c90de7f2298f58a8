/* info.h - what `stoker info DATA` learns about a dataset
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
    /* Of the examined samples, which are spread over the whole set. */
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
extern const char *const info_types[8]; /* the last one is for all others */

/* Examines some samples, and makes thumbnails on request. */
int info_gather(struct info *info, bool thumbnails, struct stoker_error *err);
void info_free(struct info *info);
/* Estimated hours of sound in the whole set. */
double info_hours(const struct info *info);
/* The longest side that a bin of `sizes` counts; 0: there is no limit. */
uint32_t info_size_limit(uint32_t bin);
/* "up to 256" and so on. */
void info_size_name(uint32_t bin, char out[32]);
/* Writes a self-contained page. */
int info_write_html(const struct info *info, const char *path, struct stoker_error *err);

#endif
