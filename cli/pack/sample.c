/* sample.c - reads a sample of any dataset and prepares it for writing
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "base/cpu.h"
#include "op/kernels/kernels.h"
#include "source/text/names.h"
#include "source/reader/reader.h"

#include <string.h>

enum { PIXEL_LIMIT = 178956970, PILLOW = 13 }; /* the limit of Pillow, as everywhere in Stoker */

struct st_work pack_work(void)
{
    return (struct st_work){
        .kernels = st_kernels_for(st_cpu_level()), .decoder.pixel_limit = PIXEL_LIMIT, .pillow = PILLOW};
}

void pack_work_free(struct st_work *work)
{
    st_decoder_close(&work->decoder);
    st_arena_free(&work->arena);
}

void pack_sample_free(struct pack_sample *sample)
{
    st_buffer_free(&sample->raw);
    st_buffer_free(&sample->scratch);
    for (uint32_t i = 0; i < ST_FIELDS_MAX; i++)
        st_buffer_free(&sample->made[i]);
}

/* Files are either all images or all sounds. */
static bool is_of_sounds(const struct stoker_dataset *data)
{
    char name[PATH_MAX];
    st_dataset_name(data, 0, name, sizeof name);
    return st_name_has_extension(name, strlen(name), pack_sounds);
}

uint32_t pack_fields(const struct stoker_dataset *data, struct st_field fields[ST_FIELDS_MAX])
{
    uint32_t count = 2;
    if (!data->source->fields) {
        fields[0] = is_of_sounds(data) ? (struct st_field){.name = "audio", .kind = ST_FIELD_AUDIO}
                                       : (struct st_field){.name = "image", .kind = ST_FIELD_IMAGE};
        fields[1] = (struct st_field){.name = "label", .kind = ST_FIELD_INT};
        return count;
    }
    const struct st_field *own = data->source->fields(data->self, &count);
    memcpy(fields, own, count * sizeof *fields);
    return count;
}

int pack_read(struct stoker_dataset *data, uint64_t number, struct st_buffer *raw,
              struct st_buffer *scratch, struct st_piece pieces[ST_FIELDS_MAX], uint64_t *bytes,
              struct stoker_error *err)
{
    struct st_bytes in;
    const int rc = st_read_sample(data, number, raw, &in, err);
    if (rc)
        return rc;
    *bytes = in.size;
    memset(pieces, 0, ST_FIELDS_MAX * sizeof *pieces);
    if (data->source->fields) {
        scratch->size = 0;
        return data->source->split(data->self, number, in, scratch, pieces, err);
    }
    pieces[0].bytes = in;
    pieces[1].whole = st_dataset_label(data, number);
    return STOKER_OK;
}

const char *pack_image_type(struct st_bytes b)
{
    static const struct {
        const char *type, *magic;
        size_t size;
    } known[] = {{"jpg", "\xff\xd8\xff", 3}, {"png", "\x89PNG\r\n\x1a\n", 8},
                 {"bmp", "BM", 2},           {"tif", "II*\0", 4},
                 {"tif", "MM\0*", 4},        {"gif", "GIF8", 4},
                 {"pbm", "P4", 2},           {"pgm", "P5", 2},
                 {"ppm", "P6", 2},           {"pbm", "P1", 2},
                 {"pgm", "P2", 2},           {"ppm", "P3", 2}};
    if (b.size >= 12 && !memcmp(b.data, "RIFF", 4) && !memcmp(b.data + 8, "WEBP", 4))
        return "webp";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (b.size >= known[i].size && !memcmp(b.data, known[i].magic, known[i].size))
            return known[i].type;
    return NULL;
}

const char *pack_audio_type(struct st_bytes b)
{
    if (b.size >= 12 && !memcmp(b.data, "RIFF", 4) && !memcmp(b.data + 8, "WAVE", 4))
        return "wav";
    if (b.size >= 4 && !memcmp(b.data, "fLaC", 4))
        return "flac";
    if (b.size >= 4 && !memcmp(b.data, "OggS", 4))
        return "ogg";
    if (b.size >= 3 && (!memcmp(b.data, "ID3", 3) || (b.data[0] == 0xff && (b.data[1] & 0xe0) == 0xe0)))
        return "mp3";
    return NULL;
}

/* Resizes and encodes one image, and prepares it for crops. Always reads its header, so that a file that
 * is not an image is found now and not in the middle of an epoch. */
static int make_image(struct pack_sample *sample, uint32_t index, const struct pack_options *opt,
                      struct st_work *work, struct stoker_error *err)
{
    struct st_piece *piece = &sample->fields[index].piece;
    const int rc = pack_picture(piece, &sample->made[index], opt, work, err);
    if (rc || !opt->crop_ready || piece->ndim)
        return rc;
    const char *type = pack_image_type(piece->bytes);
    struct st_buffer ready = {0};
    if (!type || strcmp(type, "jpg"))
        return STOKER_OK;
    if (!pack_crop_ready(piece->bytes, &ready)) {
        st_buffer_free(&ready);
        sample->kept_as_it_was = true;
        return STOKER_OK;
    }
    sample->ready_in += piece->bytes.size;
    sample->ready_out += ready.size;
    st_buffer_free(&sample->made[index]);
    sample->made[index] = ready;
    piece->bytes = (struct st_bytes){ready.data, ready.size};
    return STOKER_OK;
}

void pack_sample_make(struct pack_sample *sample, struct stoker_dataset *data,
                      const struct pack_options *opt, struct st_work *work)
{
    struct st_field fields[ST_FIELDS_MAX];
    struct st_piece pieces[ST_FIELDS_MAX];
    sample->bytes_in = sample->ready_in = sample->ready_out = 0;
    sample->kept_as_it_was = false;
    sample->count = pack_fields(data, fields);
    sample->status = pack_read(data, sample->number, &sample->raw, &sample->scratch, pieces,
                               &sample->bytes_in, &sample->error);
    for (uint32_t i = 0; i < sample->count && !sample->status; i++) {
        sample->fields[i] = (struct pack_field){fields[i].name, fields[i].kind, pieces[i]};
        struct pack_sound sound;
        if (fields[i].kind == ST_FIELD_IMAGE)
            sample->status = make_image(sample, i, opt, work, &sample->error);
        if (fields[i].kind == ST_FIELD_AUDIO)
            sample->status = pack_sound_look(&sound, pieces[i].bytes, false, &sample->error);
    }
    if (!sample->status)
        pack_key(sample->key, data, sample->number, opt->source);
}
