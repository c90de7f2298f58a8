/* tar_write.c - writes samples into tar files, as the Python package webdataset reads them
 *
 * Large payloads begin at multiples of 4 KiB, so that they can be read directly from the disk; the gap
 * is filled by a comment in an extended header, which every tar program skips. The last member,
 * "__index__", holds the offsets and checksums of the samples; webdataset skips it because of its name.
 * The class names are a comment in a global header before the first sample.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/suffix.h"

#include "source/checksum/crc32c.h"
#include "source/index/index.h"
#include "source/packs/classes.h"
#include "source/shards/keep.h"
#include "source/tar/classes.h"
#include "source/tar/members.h"
#include "source/tar/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 4096, ALIGN_FROM = 32 * 1024, NAME_ROOM = 100 };

struct tar_writer {
    const char *folder;
    struct pack_file file;
    struct st_shard_builder index;
    uint32_t *crcs;
    uint64_t crc_room;
    char last_key[PACK_KEY_MAX + 32];
    const struct st_cells *classes;
    struct pack_member members[ST_FIELDS_MAX];
};

static int tar_begin(void *self, const struct pack_options *opt, const struct pack_start *start,
                     struct stoker_error *err)
{
    struct tar_writer *tar = self;
    tar->index = (struct st_shard_builder){.named = true};
    tar->last_key[0] = '\0';
    tar->folder = opt->folder;
    tar->classes = start->classes;
    return pack_file_open(&tar->file, opt->folder, start->name, err);
}

/* ---- headers ----------------------------------------------------------------------------------- */

static void put_octal(char *field, size_t size, uint64_t value)
{
    snprintf(field, size, "%0*llo", (int)size - 1, (unsigned long long)value);
}

static int put_header(struct tar_writer *tar, const char *name, char type, uint64_t size,
                      struct stoker_error *err)
{
    char block[ST_TAR_BLOCK] = {0};
    uint32_t sum = 0;
    strncpy(block, name, NAME_ROOM);
    put_octal(block + 100, 8, 0644);
    put_octal(block + 108, 8, 0);
    put_octal(block + 116, 8, 0);
    put_octal(block + 124, 12, size); /* a sample is smaller than 4 GiB: eleven digits are enough */
    put_octal(block + 136, 12, 0);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 7, "%06o", sum);
    return pack_file_write(&tar->file, block, sizeof block, err);
}

/* "LENGTH key=value\n", where LENGTH includes itself. */
static uint64_t record_size(const char *key, uint64_t value)
{
    const uint64_t rest = strlen(key) + value + 3;
    uint64_t size = rest + 1;
    for (uint64_t digits = 1, most = 10; size = rest + digits, size >= most; digits++)
        most *= 10;
    return size;
}

/* The extended header before a member: its name if that is long, and a comment that pads it to `total`
 * bytes including the header. */
static int put_extended(struct tar_writer *tar, const char *path, uint64_t total,
                        struct stoker_error *err)
{
    char *body = st_calloc(1, total);
    const uint64_t room = total - ST_TAR_BLOCK;
    uint64_t used = 0;
    if (!body)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a header");
    if (strlen(path) > NAME_ROOM)
        used = (uint64_t)sprintf(body, "%llu path=%s\n",
                                 (unsigned long long)record_size("path", strlen(path)), path);
    const uint64_t least = record_size("comment", 1);
    uint64_t left = room - used;
    if (left >= least) {
        const int head = sprintf(body + used, "%llu comment=", (unsigned long long)left);
        memset(body + used + head, ' ', left - (uint64_t)head - 1);
        body[room - 1] = '\n';
        used = room;
    }
    int rc = put_header(tar, "././@PaxHeader", 'x', used, err);
    if (!rc)
        rc = pack_file_write(&tar->file, body, room, err);
    free(body);
    return rc;
}

/* The size of the extended header in whole blocks; 0: none is needed. */
static uint64_t extended_size(const struct tar_writer *tar, const char *path, uint64_t payload)
{
    const uint64_t at = tar->file.size + ST_TAR_BLOCK;
    const bool aligned = payload >= ALIGN_FROM;
    uint64_t least = 0;
    if (strlen(path) > NAME_ROOM)
        least = ST_TAR_BLOCK + st_align(record_size("path", strlen(path)), ST_TAR_BLOCK);
    if (!aligned || (at + least) % ALIGN == 0)
        return least;
    if (!least)
        least = 2 * ST_TAR_BLOCK;
    return st_align(at + least, ALIGN) - at;
}

static int put_member(struct tar_writer *tar, const char *path, struct st_bytes bytes,
                      struct stoker_error *err)
{
    const uint64_t extended = extended_size(tar, path, bytes.size);
    int rc = extended ? put_extended(tar, path, extended, err) : STOKER_OK;
    if (!rc)
        rc = put_header(tar, path, '0', bytes.size, err);
    if (!rc)
        rc = pack_file_write(&tar->file, bytes.data, bytes.size, err);
    if (!rc)
        rc = pack_file_zeros(&tar->file, st_align(bytes.size, ST_TAR_BLOCK) - bytes.size, err);
    return rc;
}

/* ---- samples ----------------------------------------------------------------------------------- */

static bool note(struct tar_writer *tar, uint64_t start, uint64_t end, const struct pack_member *member)
{
    const uint64_t part = tar->index.part_count;
    if (part == tar->crc_room) {
        const uint64_t room = part ? 2 * part : 256;
        uint32_t *grown = st_grow(tar->crcs, room, sizeof *grown);
        if (!grown)
            return false;
        tar->crcs = grown;
        tar->crc_room = room;
    }
    tar->crcs[part] = st_crc32c(member->bytes.data, member->bytes.size);
    return st_shard_add(&tar->index, start, end,
                        (struct st_bytes){(const uint8_t *)member->suffix, strlen(member->suffix)});
}

/* Two neighbouring samples with the same key would be read as one. */
static void choose_key(struct tar_writer *tar, const struct pack_sample *sample)
{
    const bool twin = !strcmp(tar->last_key, sample->key);
    if (twin)
        snprintf(tar->last_key, sizeof tar->last_key, "%s-%llu", sample->key,
                 (unsigned long long)sample->number);
    else
        snprintf(tar->last_key, sizeof tar->last_key, "%s", sample->key);
}

static int check_suffixes(const struct tar_writer *tar, const struct pack_sample *sample, uint32_t count,
                          struct stoker_error *err)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(tar->members[i].suffix, tar->members[k].suffix))
                return st_fail(err, STOKER_EINVAL,
                               "the fields %.200s and %.200s would both become members .%s: choose one "
                               "with --fields",
                               sample->fields[k].name, sample->fields[i].name, tar->members[i].suffix);
    return STOKER_OK;
}

/* The classes as a comment, if they fit into a header; the manifest always has them. */
static int put_classes(struct tar_writer *tar, struct stoker_error *err)
{
    struct st_buffer text = {0};
    char head[64];
    bool good = pack_append(&text, ST_TAR_CLASSES, strlen(ST_TAR_CLASSES));
    for (uint64_t i = 0; i < tar->classes->count && good; i++)
        good = pack_append(&text, "\n", 1) && st_class_write(&text, st_cells_word(tar->classes, i));
    int rc = good ? STOKER_OK : st_fail(err, STOKER_ENOMEM, "out of memory for the classes");
    const uint64_t size = record_size("comment", text.size);
    if (!rc && size <= ST_TAR_EXTENSION_MAX) {
        const int used = snprintf(head, sizeof head, "%llu comment=", (unsigned long long)size);
        rc = put_header(tar, "././@PaxHeader", 'g', size, err);
        if (!rc)
            rc = pack_file_write(&tar->file, head, (uint64_t)used, err);
        if (!rc)
            rc = pack_file_write(&tar->file, text.data, text.size, err);
        if (!rc)
            rc = pack_file_write(&tar->file, "\n", 1, err);
        if (!rc)
            rc = pack_file_zeros(&tar->file, st_align(size, ST_TAR_BLOCK) - size, err);
    }
    st_buffer_free(&text);
    return rc;
}

static int tar_add(void *self, const struct pack_options *opt, struct pack_sample *sample,
                   struct stoker_error *err)
{
    struct tar_writer *tar = self;
    char path[sizeof tar->last_key + sizeof tar->members[0].suffix + 2];
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < sample->count && !rc; i++)
        rc = pack_member_make(&tar->members[i], sample, i, opt, err);
    if (!rc)
        rc = check_suffixes(tar, sample, sample->count, err);
    if (rc)
        return rc;
    choose_key(tar, sample);
    if (!st_shard_begin(&tar->index, (struct st_bytes){(uint8_t *)tar->last_key, strlen(tar->last_key)}))
        return st_fail(err, STOKER_ENOMEM, "out of memory for the index");
    for (uint32_t i = 0; i < sample->count && !rc; i++) {
        const struct pack_member *member = &tar->members[i];
        const uint64_t start = tar->file.size, tail = member->bytes.size % ST_TAR_BLOCK;
        snprintf(path, sizeof path, "%s.%s", tar->last_key, member->suffix);
        if (!start && tar->classes->count) /* it belongs to the first member, like all headers */
            rc = put_classes(tar, err);
        if (!rc)
            rc = put_member(tar, path, member->bytes, err);
        const uint64_t end = tar->file.size - (tail ? ST_TAR_BLOCK - tail : 0);
        if (!rc && !note(tar, start, end, member))
            rc = st_fail(err, STOKER_ENOMEM, "out of memory for the index");
    }
    return rc;
}

static uint64_t tar_size(const void *self) { return ((const struct tar_writer *)self)->file.size; }

/* ---- the end ----------------------------------------------------------------------------------- */

/* The index as a block with checksums. */
static int build_index(const struct tar_writer *tar, const struct st_shard_stamp *stamp,
                       struct st_shard_index *out, struct stoker_error *err)
{
    struct st_shard_index plain;
    int rc = st_shard_build(&plain, &tar->index, st_shard_kind_tar.number, stamp, err);
    if (rc)
        return rc;
    rc = st_shard_index_sum(out, &plain, tar->crcs, err);
    st_shard_index_free(&plain);
    if (!rc)
        st_index_seal((uint8_t *)(uintptr_t)out->bytes, out->size);
    return rc;
}

static int put_index(struct tar_writer *tar, struct stoker_error *err)
{
    const struct st_shard_stamp stamp = {.size = tar->file.size};
    struct st_shard_index index;
    int rc = build_index(tar, &stamp, &index, err);
    if (rc)
        return rc;
    rc = put_member(tar, "__index__", (struct st_bytes){index.bytes, index.size}, err);
    st_shard_index_free(&index);
    return rc;
}

/* Next to the archive, where readers look for it. If it cannot be written, they build it. */
static void keep_index(const struct tar_writer *tar, const char *name)
{
    struct st_held held = {0};
    struct st_shard_stamp stamp;
    struct st_shard_index index;
    char beside[128];
    if (st_held_open(&held, tar->file.path, NULL))
        return;
    if (!st_shard_stamp_of(&held, &stamp, NULL) && !build_index(tar, &stamp, &index, NULL)) {
        snprintf(beside, sizeof beside, "%s.stoker-index", name);
        pack_file_put(tar->folder, beside, index.bytes, index.size, NULL);
        st_shard_index_free(&index);
    }
    st_held_close(&held);
}

static void tar_drop(void *self, bool leave)
{
    struct tar_writer *tar = self;
    pack_file_drop(&tar->file, leave);
    st_shard_builder_free(&tar->index);
    free(tar->crcs);
    for (uint32_t i = 0; i < ST_FIELDS_MAX; i++)
        st_buffer_free(&tar->members[i].room);
    *tar = (struct tar_writer){0};
}

static int tar_finish(void *self, struct st_pack_shard *shard, struct st_pack_beside *beside,
                      struct stoker_error *err)
{
    struct tar_writer *tar = self;
    (void)beside;
    int rc = put_index(tar, err);
    if (!rc)
        rc = pack_file_zeros(&tar->file, 2 * ST_TAR_BLOCK, err);
    if (!rc)
        rc = pack_file_finish(&tar->file, err);
    if (!rc) {
        shard->bytes = tar->file.size;
        shard->crc = tar->file.crc;
        keep_index(tar, shard->name);
    }
    return rc;
}

const struct pack_writer pack_writer_tar = {
    .name = "tar",
    .extension = ".tar",
    .sharded = true,
    .self_size = sizeof(struct tar_writer),
    .begin = tar_begin,
    .add = tar_add,
    .size = tar_size,
    .finish = tar_finish,
    .drop = tar_drop,
};
