/* info_gather.c - looks at some samples of a data set
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/info.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_AT = 1000, THUMBNAIL = 160, QUALITY = 80, SMALLEST = 64 };
#define DECODE_SECONDS 1.0

const char *const info_types[8] = {"jpg", "png", "webp", "bmp", "tif", "gif", "ppm", "other"};

void info_size_name(uint32_t bin, char out[32])
{
    if (bin + 1 < INFO_SIZES)
        snprintf(out, 32, "up to %u", (unsigned)SMALLEST << bin);
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

static void add_thumbnail(struct info *info, uint64_t number, const struct st_piece *piece,
                          struct st_work *work)
{
    const struct pack_options opt = {
        .writer = &pack_writer_tar, .max_size = THUMBNAIL, .quality = QUALITY};
    struct st_piece small = *piece;
    struct st_buffer made = {0};
    char name[PATH_MAX];
    if (!pack_picture(&small, &made, &opt, work, NULL)) {
        st_dataset_name(info->set, number, name, sizeof name);
        info->thumbnails[info->thumbnail_count] = base64(small.bytes);
        info->captions[info->thumbnail_count] = strdup(name);
        info->thumbnail_count += info->thumbnails[info->thumbnail_count] != NULL;
    }
    st_buffer_free(&made);
}

/* The header, and in the time that is allowed all pixels. */
static int look_at_image(struct info *info, const struct st_piece *piece, struct st_work *work,
                         struct stoker_error *err)
{
    struct st_image image;
    struct st_view view;
    if (piece->ndim) {
        note_size(info, (uint32_t)piece->shape[1], (uint32_t)piece->shape[0]);
        return STOKER_OK;
    }
    st_arena_reset(&work->arena);
    const uint64_t start = st_now_ns();
    int rc = st_image_open(&image, work, piece->bytes, false, err);
    if (rc)
        return rc;
    note_type(info, piece->bytes);
    note_size(info, image.header.width, image.header.height);
    if (info->decode_seconds < DECODE_SECONDS) {
        rc = st_image_pixels(&image, false, false, &view, err);
        info->decode_seconds += (double)(st_now_ns() - start) / 1e9;
        info->decoded += !rc;
    }
    return rc;
}

static void look_at(struct info *info, uint64_t number, struct pack_sample *s, struct st_work *work,
                    bool thumbnails)
{
    struct st_piece pieces[ST_FIELDS_MAX];
    struct stoker_error error;
    uint64_t bytes = 0;
    bool shown = false;
    int rc = pack_read(info->set, number, &s->raw, &s->scratch, pieces, &bytes, &error);
    info->bytes += bytes;
    for (uint32_t i = 0; i < info->field_count && !rc; i++) {
        if (info->fields[i].kind != ST_FIELD_IMAGE)
            continue;
        rc = look_at_image(info, &pieces[i], work, &error);
        if (!rc && thumbnails && !shown && info->thumbnail_count < INFO_THUMBNAILS) {
            add_thumbnail(info, number, &pieces[i], work);
            shown = true;
        }
    }
    if (rc && !info->bad++)
        info->first_bad = error;
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
        /* Thumbnails are of samples all over the set, too. */
        const bool thumbnail = thumbnails && i % (count / INFO_THUMBNAILS + 1) == 0;
        look_at(info, info->samples / count * i, sample, &work, thumbnail);
    }
    pack_sample_free(sample);
    free(sample);
    pack_work_free(&work);
    return STOKER_OK;
}

void info_free(struct info *info)
{
    for (uint32_t i = 0; i < INFO_THUMBNAILS; i++) {
        free(info->thumbnails[i]);
        free(info->captions[i]);
    }
    stoker_dataset_close(info->set);
}
