/* info_gather.c - examines some samples of a dataset
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/info.h"

#include "base/clock.h"
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_AT = 1000, THUMBNAIL = 160, QUALITY = 80, SMALLEST = 64 };
#define DECODE_SECONDS 1.0

const char *const info_types[8] = {"jpg", "png", "webp", "bmp", "tif", "gif", "ppm", "other"};

double info_hours(const struct info *info)
{
    const double each = info->sounds ? info->sound_seconds / (double)info->sounds : 0;
    return each * (double)info->samples / 3600;
}

uint32_t info_size_limit(uint32_t bin) { return bin + 1 < INFO_SIZES ? (uint32_t)SMALLEST << bin : 0; }

void info_size_name(uint32_t bin, char out[32])
{
    if (info_size_limit(bin))
        snprintf(out, 32, "up to %u", info_size_limit(bin));
    else
        snprintf(out, 32, "more than %u", (unsigned)SMALLEST << (INFO_SIZES - 2));
}

static void note_size(struct info *info, uint32_t width, uint32_t height)
{
    const uint32_t longer = width > height ? width : height;
    uint32_t bin = 0;
    while (bin + 1 < INFO_SIZES && longer > (uint32_t)SMALLEST << bin)
        bin++;
    info->sizes[bin]++;
    if (!info->images || width < info->least_width)
        info->least_width = width;
    if (!info->images || height < info->least_height)
        info->least_height = height;
    info->most_width = width > info->most_width ? width : info->most_width;
    info->most_height = height > info->most_height ? height : info->most_height;
    info->images++;
    info->pixels += (uint64_t)width * height;
}

static void note_type(struct info *info, struct st_bytes bytes)
{
    const char *type = pack_image_type(bytes);
    uint32_t i = 0;
    while (i < 7 && !(type && !strcmp(type, info_types[i])))
        i++;
    info->types[i]++;
}

static char *base64(struct st_bytes in)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = st_calloc(in.size / 3 + 2, 4), *to = out;
    for (size_t i = 0; out && i < in.size; i += 3) {
        const uint32_t left = (uint32_t)(in.size - i);
        const uint32_t word = (uint32_t)in.data[i] << 16 |
                              (left > 1 ? (uint32_t)in.data[i + 1] << 8 : 0) |
                              (left > 2 ? in.data[i + 2] : 0);
        for (uint32_t k = 0; k < 4; k++)
            *to++ = k <= left ? digits[word >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

/* The name of a sample without that of the dataset. */
static const char *caption(const struct info *info, const char *name)
{
    const size_t size = strlen(info->data);
    if (strncmp(name, info->data, size))
        return name;
    name += size;
    return name + strspn(name, "/: ");
}

static void add_thumbnail(struct info *info, uint64_t number, const struct st_piece *piece,
                          uint32_t width, uint32_t height, struct st_work *work)
{
    const struct pack_options opt = {
        .writer = &pack_writer_tar, .max_size = THUMBNAIL, .quality = QUALITY};
    struct info_thumbnail *shot = &info->thumbnails[info->thumbnail_count];
    struct st_piece small = *piece;
    struct st_buffer made = {0};
    char name[PATH_MAX];
    if (!pack_picture(&small, &made, &opt, work, NULL)) {
        st_dataset_name(info->set, number, name, sizeof name);
        *shot = (struct info_thumbnail){base64(small.bytes), strdup(caption(info, name)), width, height};
        info->thumbnail_count += shot->base64 != NULL;
    }
    st_buffer_free(&made);
}

/* Reads the header, and decodes the pixels until the time for decoding is used up. */
static int look_at_image(struct info *info, const struct st_piece *piece, uint32_t *width,
                         uint32_t *height, struct st_work *work, struct stoker_error *err)
{
    struct st_image image;
    struct st_view view;
    if (piece->ndim) {
        *width = (uint32_t)piece->shape[1];
        *height = (uint32_t)piece->shape[0];
        note_size(info, *width, *height);
        return STOKER_OK;
    }
    st_arena_reset(&work->arena);
    const uint64_t start = st_now_ns();
    int rc = st_image_open(&image, work, piece->bytes, false, err);
    if (rc)
        return rc;
    note_type(info, piece->bytes);
    *width = image.header.width;
    *height = image.header.height;
    note_size(info, *width, *height);
    if (info->decode_seconds < DECODE_SECONDS) {
        rc = st_image_pixels(&image, false, false, &view, err);
        info->decode_seconds += (double)(st_now_ns() - start) / 1e9;
        info->decoded += !rc;
    }
    return rc;
}

static int look_at_sound(struct info *info, struct st_bytes bytes, struct stoker_error *err)
{
    struct pack_sound sound;
    const int rc = pack_sound_look(&sound, bytes, false, err);
    if (rc || !sound.rate)
        return rc;
    if (!info->sounds++ || sound.rate < info->least_rate)
        info->least_rate = sound.rate;
    info->most_rate = sound.rate > info->most_rate ? sound.rate : info->most_rate;
    info->sound_seconds += (double)sound.frames / sound.rate;
    return STOKER_OK;
}

/* Keeps the first error, with the name of the sample where the message lacks it. */
static void note_bad(struct info *info, uint64_t number, const struct stoker_error *error)
{
    char name[512];
    st_dataset_name(info->set, number, name, sizeof name);
    info->first_bad = *error;
    if (!mentions(error->message, name))
        st_fail_in(&info->first_bad, error->code, name);
}

static void look_at(struct info *info, uint64_t number, struct pack_sample *s, struct st_work *work,
                    bool thumbnail)
{
    struct st_piece pieces[ST_FIELDS_MAX];
    struct stoker_error error;
    uint64_t bytes = 0;
    bool shown = false;
    int rc = pack_read(info->set, number, &s->raw, &s->scratch, pieces, &bytes, &error);
    info->bytes += bytes;
    for (uint32_t i = 0; i < info->field_count && !rc; i++) {
        if (info->fields[i].kind == ST_FIELD_AUDIO)
            rc = look_at_sound(info, pieces[i].bytes, &error);
        if (info->fields[i].kind != ST_FIELD_IMAGE)
            continue;
        uint32_t width = 0, height = 0;
        rc = look_at_image(info, &pieces[i], &width, &height, work, &error);
        if (!rc && thumbnail && !shown) {
            add_thumbnail(info, number, &pieces[i], width, height, work);
            shown = true;
        }
    }
    if (rc && !info->bad++)
        note_bad(info, number, &error);
    info->looked_at++;
}

int info_gather(struct info *info, bool thumbnails, struct stoker_error *err)
{
    struct pack_sample *sample = st_calloc(1, sizeof *sample);
    if (!sample)
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    struct st_work work = pack_work();
    info->samples = st_dataset_count(info->set);
    info->field_count = pack_fields(info->set, info->fields);
    const uint64_t count = info->samples < LOOK_AT ? info->samples : LOOK_AT;
    for (uint64_t i = 0; i < count; i++) {
        /* Samples are spread evenly over the set. So are thumbnails; a bad sample is replaced by the
         * next good one. */
        const uint64_t number = (uint64_t)((unsigned __int128)info->samples * i / count);
        const bool thumbnail = thumbnails && info->thumbnail_count < INFO_THUMBNAILS &&
                               info->thumbnail_count <= i * INFO_THUMBNAILS / count;
        look_at(info, number, sample, &work, thumbnail);
    }
    pack_sample_free(sample);
    free(sample);
    pack_work_free(&work);
    return STOKER_OK;
}

void info_free(struct info *info)
{
    for (uint32_t i = 0; i < INFO_THUMBNAILS; i++) {
        free(info->thumbnails[i].base64);
        free(info->thumbnails[i].caption);
    }
    stoker_dataset_close(info->set);
}
