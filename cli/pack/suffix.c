/* suffix.c - the members of a sample in a tar file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/suffix.h"

#include "source/fields/field_list.h"
#include "source/tar/fields.h"
#include "st_config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#if ST_HAVE_ZSTD
#include <zstd.h>
#endif

enum { NPY_HEAD = 256, ZSTD_LEVEL = 9 };

static const char *type_of(const struct pack_field *field)
{
    const char *type = NULL;
    switch (field->kind) {
    case ST_FIELD_IMAGE:
        if (field->piece.ndim)
            return "npy";
        type = pack_image_type(field->piece.bytes);
        return type ? type : "img";
    case ST_FIELD_AUDIO:
        type = pack_audio_type(field->piece.bytes);
        return type ? type : "snd";
    case ST_FIELD_INT:
        return "cls";
    case ST_FIELD_FLOAT:
    case ST_FIELD_ARRAY:
        return "npy";
    case ST_FIELD_TEXT:
        return "txt";
    case ST_FIELD_JSON:
        return "json";
    case ST_FIELD_BYTES:
        break;
    }
    return "bin";
}

/* Whether an earlier field of the sample has this kind. */
static bool is_first(const struct pack_sample *sample, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (sample->fields[i].kind == sample->fields[index].kind)
            return false;
    return true;
}

/* The name is already a suffix, in a dataset that came from tar files. */
static bool take_suffix(const struct pack_field *field, const char *type, char *out, size_t room)
{
    enum st_field_kind kind;
    /* It was decompressed on reading. */
    const enum st_packing packing = st_tar_suffix_packing(field->name);
    const size_t tail = packing == ST_PACKED_GZIP ? 3 : packing == ST_PACKED_ZSTD ? 4 : 0;
    const size_t size = strlen(field->name) - tail;
    if (size == 0 || size >= room || strpbrk(field->name, ";/ ") || !strncmp(field->name, "__", 2) ||
        !st_tar_suffix_kind(field->name, size, &kind) || kind != field->kind)
        return false;
    memcpy(out, field->name, size);
    out[size] = '\0';
    if (field->kind == ST_FIELD_IMAGE) { /* it may have been re-encoded */
        const char *dot = strrchr(out, '.'), *last = dot ? dot + 1 : out;
        const bool jpeg = !strcmp(last, "jpeg") || !strcmp(last, "jpe") || !strcmp(last, "jfif");
        return !strcmp(last, type) || (jpeg && !strcmp(type, "jpg"));
    }
    return true;
}

static void make_suffix(char *out, size_t size, const struct pack_sample *sample, uint32_t index)
{
    const struct pack_field *field = &sample->fields[index];
    const char *type = type_of(field);
    if (take_suffix(field, type, out, size))
        return;
    if (is_first(sample, index) && (field->kind == ST_FIELD_IMAGE || field->kind == ST_FIELD_AUDIO ||
                                    field->kind == ST_FIELD_INT)) {
        snprintf(out, size, "%s", type);
        return;
    }
    char name[PACK_SUFFIX_MAX - 16];
    size_t used = 0;
    for (const char *c = field->name; *c && *c != ';' && used + 1 < sizeof name; c++)
        name[used++] = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '_';
    name[used] = '\0';
    snprintf(out, size, "%s.%s", used ? name : "field", type);
}

struct st_piece pack_as_array(const struct pack_field *field)
{
    struct st_piece piece = field->piece;
    if (field->kind == ST_FIELD_INT)
        piece = (struct st_piece){.bytes = {(const uint8_t *)&field->piece.whole, 8},
                                  .dtype = STOKER_DTYPE_I64};
    if (field->kind == ST_FIELD_FLOAT)
        piece = (struct st_piece){.bytes = {(const uint8_t *)&field->piece.real, 8},
                                  .dtype = STOKER_DTYPE_F64};
    return piece;
}

static int as_npy(struct pack_member *out, const struct pack_field *field, struct stoker_error *err)
{
    char head[NPY_HEAD];
    const struct st_piece piece = pack_as_array(field);
    pack_npy_header(head, sizeof head, &piece, UINT64_MAX);
    out->room.size = 0;
    if (!pack_append(&out->room, head, sizeof head) ||
        !pack_append(&out->room, piece.bytes.data, piece.bytes.size))
        return st_fail(err, STOKER_ENOMEM, "out of memory for an array");
    out->bytes = (struct st_bytes){out->room.data, out->room.size};
    return STOKER_OK;
}

static int compress(struct pack_member *out, struct stoker_error *err)
{
#if ST_HAVE_ZSTD
    struct st_buffer packed = {0};
    if (!st_buffer_reserve(&packed, ZSTD_compressBound(out->bytes.size)))
        return st_fail(err, STOKER_ENOMEM, "out of memory to compress");
    const size_t size =
        ZSTD_compress(packed.data, packed.capacity, out->bytes.data, out->bytes.size, ZSTD_LEVEL);
    if (ZSTD_isError(size)) {
        st_buffer_free(&packed);
        return st_fail(err, STOKER_EIO, "zstd: %s", ZSTD_getErrorName(size));
    }
    st_buffer_free(&out->room);
    packed.size = size;
    out->room = packed;
    out->bytes = (struct st_bytes){packed.data, size};
    strcat(out->suffix, ".zst"); /* there is room for it */
    return STOKER_OK;
#else
    (void)out;
    return st_fail(err, STOKER_EUNSUPPORTED, "this build was made without libzstd");
#endif
}

int pack_member_make(struct pack_member *out, const struct pack_sample *sample, uint32_t index,
                     const struct pack_options *opt, struct stoker_error *err)
{
    const struct pack_field *field = &sample->fields[index];
    int rc = STOKER_OK;
    out->room.size = 0;
    out->bytes = field->piece.bytes;
    make_suffix(out->suffix, PACK_SUFFIX_MAX, sample, index);
    if (field->kind == ST_FIELD_INT) {
        char text[32];
        const int size = snprintf(text, sizeof text, "%lld", (long long)field->piece.whole);
        if (!pack_append(&out->room, text, (uint64_t)size))
            return st_fail(err, STOKER_ENOMEM, "out of memory for a number");
        out->bytes = (struct st_bytes){out->room.data, out->room.size};
    } else if (field->kind == ST_FIELD_FLOAT || field->kind == ST_FIELD_ARRAY ||
               (field->kind == ST_FIELD_IMAGE && field->piece.ndim)) {
        rc = as_npy(out, field, err);
    }
    const bool dense = field->kind == ST_FIELD_IMAGE
                           ? field->piece.ndim == 0
                           : field->kind == ST_FIELD_AUDIO || field->kind == ST_FIELD_BYTES ||
                                 field->kind == ST_FIELD_INT;
    return rc || dense || !opt->compress ? rc : compress(out, err);
}
