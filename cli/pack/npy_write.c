/* npy_write.c - one .npy file per field
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "base/file.h"
#include "source/arrays/npy_header.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 256 };

struct npy_writer {
    const char *folder;
    uint64_t done, bytes; /* rows of an earlier run; bytes written by this one */
    struct pack_rows rows;
    struct pack_file files[ST_FIELDS_MAX];
};

static int npy_begin(void *self, const struct pack_options *opt, const struct pack_start *start,
                     struct stoker_error *err)
{
    struct npy_writer *npy = self;
    (void)err; /* files are named after the fields, which the first sample determines */
    npy->folder = opt->folder;
    npy->done = start->done;
    return STOKER_OK;
}

static int open_new(struct npy_writer *npy, uint32_t index, const char *name, struct stoker_error *err)
{
    char head[HEAD];
    pack_npy_header(head, sizeof head, &npy->rows.shapes[index], 0);
    const int rc = pack_file_open(&npy->files[index], npy->folder, name, err);
    return rc ? rc : pack_file_write(&npy->files[index], head, sizeof head, err);
}

/* A file of an earlier run must have the same kind of rows. Its header has their number if it was
 * finished. */
static int go_on(struct npy_writer *npy, uint32_t index, const char *name, struct stoker_error *err)
{
    struct pack_file *file = &npy->files[index];
    const struct st_piece *shape = &npy->rows.shapes[index];
    char wanted[HEAD];
    uint8_t head[HEAD];
    struct st_npy there;
    const uint64_t size = HEAD + npy->done * shape->bytes.size;
    const int rc = pack_file_go_on(file, npy->folder, name, size, err);
    if (rc)
        return rc;
    if (st_file_read(file->fd, file->temporary, 0, head, HEAD, NULL) ||
        st_npy_parse(&there, (struct st_bytes){head, HEAD}, name, NULL))
        return pack_was_changed(file->temporary, err);
    pack_npy_header(wanted, HEAD, shape, there.shape.sizes[0]);
    return memcmp(head, wanted, HEAD) ? pack_was_changed(file->temporary, err) : STOKER_OK;
}

static int open_files(struct npy_writer *npy, struct stoker_error *err)
{
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < npy->rows.count && !rc; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s.npy", npy->rows.names[i]);
        rc = npy->done ? go_on(npy, i, name, err) : open_new(npy, i, name, err);
    }
    npy->rows.rows += npy->done;
    return rc;
}

static int npy_add(void *self, const struct pack_options *opt, struct pack_sample *sample,
                   struct stoker_error *err)
{
    struct npy_writer *npy = self;
    struct st_piece row[ST_FIELDS_MAX];
    (void)opt;
    const bool first = npy->rows.count == 0;
    int rc = pack_rows_take(&npy->rows, sample, row, err);
    if (!rc && first)
        rc = open_files(npy, err);
    for (uint32_t i = 0; i < npy->rows.count && !rc; i++) {
        rc = pack_file_write(&npy->files[i], row[i].bytes.data, row[i].bytes.size, err);
        npy->bytes += row[i].bytes.size;
    }
    return rc;
}

static uint64_t npy_size(const void *self) { return ((const struct npy_writer *)self)->bytes; }

static int npy_keep(void *self, struct stoker_error *err)
{
    struct npy_writer *npy = self;
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < npy->rows.count && !rc; i++)
        rc = pack_file_sync(&npy->files[i], err);
    return rc;
}

static void npy_drop(void *self, bool leave)
{
    struct npy_writer *npy = self;
    for (uint32_t i = 0; i < ST_FIELDS_MAX; i++)
        pack_file_drop(&npy->files[i], leave);
    *npy = (struct npy_writer){0};
}

/* The file of the first field counts as the shard; the others are listed beside it. */
static int npy_finish(void *self, struct st_pack_shard *shard, struct st_pack_beside *beside,
                      struct stoker_error *err)
{
    struct npy_writer *npy = self;
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < npy->rows.count && !rc; i++) {
        char head[HEAD];
        pack_npy_header(head, sizeof head, &npy->rows.shapes[i], npy->rows.rows);
        rc = pack_file_begin_again(&npy->files[i], head, sizeof head, err);
    }
    beside->count = 0;
    for (uint32_t i = 0; i < npy->rows.count && !rc; i++) {
        const struct pack_file *file = &npy->files[i];
        struct st_pack_file *other = &beside->files[beside->count];
        char *name = i ? other->name : shard->name;
        snprintf(name, sizeof shard->name, "%.50s.npy", npy->rows.names[i]);
        *(i ? &other->bytes : &shard->bytes) = file->size;
        *(i ? &other->crc : &shard->crc) = file->crc;
        beside->count += i > 0;
        rc = pack_file_finish(&npy->files[i], err);
    }
    return rc;
}

const struct pack_writer pack_writer_npy = {
    .name = "npy",
    .extension = ".npy",
    .pixels = true,
    .self_size = sizeof(struct npy_writer),
    .begin = npy_begin,
    .add = npy_add,
    .size = npy_size,
    .keep = npy_keep,
    .finish = npy_finish,
    .drop = npy_drop,
};
