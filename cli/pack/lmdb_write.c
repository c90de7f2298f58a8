/* lmdb_write.c - writes samples into an LMDB database: images, or Caffe's Datum if they have a label
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/check.h"
#include "cli/pack/message.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <lmdb.h>

/* The database may grow to this size: address space, not disk space. Where there is less (39-bit
 * kernels, `ulimit -v`), a quarter of it is tried, and so on. */
#define MAP_MOST  ((size_t)1 << 42)
#define MAP_LEAST ((size_t)1 << 30)

struct lmdb_writer {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    uint64_t rows, bytes;
    uint64_t there; /* rows in the database when it was opened: at least those in the manifest */
    struct st_buffer datum;
    char path[PATH_MAX], temporary[PATH_MAX];
};

static int failed(const struct lmdb_writer *w, int why, struct stoker_error *err)
{
    if (why > 0)
        return pack_cannot_write(w->path, why == EIO ? ENOSPC : why, err); /* EIO: short write */
    return st_fail(err, STOKER_EIO, "%.600s: %s", w->path, mdb_strerror(why));
}

static void close_all(struct lmdb_writer *w)
{
    if (w->txn)
        mdb_txn_abort(w->txn);
    if (w->env)
        mdb_env_close(w->env);
    w->txn = NULL;
    w->env = NULL;
}

static int open_env(struct lmdb_writer *w, size_t map_size)
{
    int why = mdb_env_create(&w->env);
    if (!why)
        why = mdb_env_set_mapsize(w->env, map_size);
    if (!why)
        why = mdb_env_open(w->env, w->temporary, MDB_NOSUBDIR | MDB_NOLOCK, 0666);
    return why;
}

static int open_all(struct lmdb_writer *w, struct stoker_error *err)
{
    size_t map_size = MAP_MOST;
    int why = open_env(w, map_size);
    while (why == ENOMEM && map_size > MAP_LEAST) {
        close_all(w);
        map_size /= 4;
        why = open_env(w, map_size);
    }
    if (!why)
        why = mdb_txn_begin(w->env, NULL, 0, &w->txn);
    if (!why)
        why = mdb_dbi_open(w->txn, NULL, 0, &w->dbi);
    return why ? failed(w, why, err) : STOKER_OK;
}

/* A killed run may have committed more than the manifest says: those rows are not put again. */
static int go_on(struct lmdb_writer *w, uint64_t done, struct stoker_error *err)
{
    MDB_stat stat;
    const int why = mdb_stat(w->txn, w->dbi, &stat);
    if (why)
        return failed(w, why, err);
    w->there = stat.ms_entries;
    w->rows = done;
    return w->there < done ? pack_was_changed(w->temporary, err) : STOKER_OK;
}

static int lmdb_begin(void *self, const struct pack_options *opt, const struct pack_start *start,
                      struct stoker_error *err)
{
    struct lmdb_writer *w = self;
    int rc = pack_path(w->path, opt->folder, "data.mdb", err);
    if (!rc)
        rc = pack_temporary(w->temporary, opt->folder, "data.mdb", err);
    if (!rc && start->done)
        rc = pack_take_up(w->temporary, w->path, err);
    if (!rc)
        rc = open_all(w, err);
    return rc || !start->done ? rc : go_on(w, start->done, err);
}

/* Field numbers of Datum: 4 data, 5 label, 7 encoded; for raw pixels 1 channels, 2 height, 3 width. */
static bool make_datum(struct lmdb_writer *w, const struct st_piece *image, int64_t label)
{
    w->datum.size = 0;
    return pack_put_bytes(&w->datum, 4, image->bytes.data, image->bytes.size) &&
           pack_put_number(&w->datum, 5, (uint64_t)label) && pack_put_number(&w->datum, 7, 1);
}

static int make_value(struct lmdb_writer *w, const struct pack_sample *sample, MDB_val *value,
                      struct stoker_error *err)
{
    const struct pack_field *image = NULL, *label = NULL;
    for (uint32_t i = sample->count; i-- > 0;) {
        image = sample->fields[i].kind == ST_FIELD_IMAGE ? &sample->fields[i] : image;
        label = sample->fields[i].kind == ST_FIELD_INT ? &sample->fields[i] : label;
    }
    const uint32_t known = (image != NULL) + (label != NULL);
    if (!image || image->piece.ndim || known != sample->count)
        return st_fail(
            err, STOKER_EINVAL,
            "an LMDB database takes one encoded image and one whole number per sample: choose them with "
                   "--fields, encode pixels with --quality, or use --format tar");
    *value = (MDB_val){image->piece.bytes.size, (void *)(uintptr_t)image->piece.bytes.data};
    if (label && !make_datum(w, &image->piece, label->piece.whole))
        return st_fail(err, STOKER_ENOMEM, "out of memory for a Datum");
    if (label)
        *value = (MDB_val){w->datum.size, w->datum.data};
    return STOKER_OK;
}

static int lmdb_add(void *self, const struct pack_options *opt, struct pack_sample *sample,
                    struct stoker_error *err)
{
    struct lmdb_writer *w = self;
    char name[PACK_KEY_MAX + 16];
    MDB_val value;
    (void)opt;
    int rc = make_value(w, sample, &value, err);
    if (rc)
        return rc;
    /* The leading number makes the order of keys the order of packing. */
    const int size = snprintf(name, sizeof name, "%010llu_%s", (unsigned long long)w->rows, sample->key);
    MDB_val key = {(size_t)size, name};
    const int why = w->rows < w->there ? 0 : mdb_put(w->txn, w->dbi, &key, &value, MDB_APPEND);
    w->bytes += value.mv_size + key.mv_size;
    w->rows += !why;
    return why ? failed(w, why, err) : STOKER_OK;
}

static uint64_t lmdb_size(const void *self) { return ((const struct lmdb_writer *)self)->bytes; }

/* A commit writes everything to the disk, or nothing. */
static int commit(struct lmdb_writer *w, struct stoker_error *err)
{
    const int why = mdb_txn_commit(w->txn);
    w->txn = NULL;
    return why ? failed(w, why, err) : STOKER_OK;
}

/* Reopened, because pages that the library reuses in memory would carry old bytes into the gaps between
 * samples. This way every run writes the same file, whether it was killed or not. */
static int lmdb_keep(void *self, struct stoker_error *err)
{
    struct lmdb_writer *w = self;
    const int rc = commit(w, err);
    close_all(w);
    return rc ? rc : open_all(w, err);
}

static void lmdb_drop(void *self, bool leave)
{
    struct lmdb_writer *w = self;
    close_all(w);
    if (w->temporary[0] && !leave)
        unlink(w->temporary);
    st_buffer_free(&w->datum);
    *w = (struct lmdb_writer){0};
}

static int lmdb_finish(void *self, struct st_pack_shard *shard, struct st_pack_beside *beside,
                       struct stoker_error *err)
{
    struct lmdb_writer *w = self;
    (void)beside;
    int rc = commit(w, err);
    close_all(w);
    return rc ? rc : pack_finish_as(w->temporary, w->path, shard, err);
}

const struct pack_writer pack_writer_lmdb = {
    .name = "lmdb",
    .extension = ".mdb",
    .self_size = sizeof(struct lmdb_writer),
    .begin = lmdb_begin,
    .add = lmdb_add,
    .size = lmdb_size,
    .keep = lmdb_keep,
    .finish = lmdb_finish,
    .drop = lmdb_drop,
};
