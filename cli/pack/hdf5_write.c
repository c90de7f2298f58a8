/* hdf5_write.c - an HDF5 file with one dataset per field and one row per sample
 *
 * If the library is killed while writing, it leaves a file that cannot be opened. Therefore it only
 * creates the file, with room for all samples, and tells where the rows are; we write them, which
 * changes none of the structures of the library. If bad samples left room at the end, the rows are
 * finally copied into a file without it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/check.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <hdf5.h>

enum { LIBRARY_BYTES = 64 * 1024 }; /* more than the library itself needs */

struct hdf5_writer {
    const char *folder;
    uint64_t most, done; /* most samples; samples of an earlier run */
    uint64_t room;       /* rows in the file */
    struct pack_rows rows;
    uint64_t at[ST_FIELDS_MAX]; /* offset of the first row */
    int fd;                     /* 0: not open */
    uint64_t bytes;
    char path[PATH_MAX], temporary[PATH_MAX];
};

static int failed(const char *path, struct stoker_error *err)
{
    if (errno)
        return pack_cannot_write(path, errno, err);
    return st_fail(err, STOKER_EIO, "%.600s: the HDF5 library failed to write the file", path);
}

static hid_t type_of(enum stoker_dtype dtype)
{
    switch (dtype) {
    case STOKER_DTYPE_U8:
    case STOKER_DTYPE_BOOL: /* as numbers: HDF5 has no boolean type */
        return H5T_NATIVE_UINT8;
    case STOKER_DTYPE_I8:
        return H5T_NATIVE_INT8;
    case STOKER_DTYPE_I16:
        return H5T_NATIVE_INT16;
    case STOKER_DTYPE_I32:
        return H5T_NATIVE_INT32;
    case STOKER_DTYPE_I64:
        return H5T_NATIVE_INT64;
    case STOKER_DTYPE_U16:
        return H5T_NATIVE_UINT16;
    case STOKER_DTYPE_U32:
        return H5T_NATIVE_UINT32;
    case STOKER_DTYPE_U64:
        return H5T_NATIVE_UINT64;
    case STOKER_DTYPE_F32:
        return H5T_NATIVE_FLOAT;
    case STOKER_DTYPE_F64:
        return H5T_NATIVE_DOUBLE;
    default:
        return -1;
    }
}

/* Workers may read rows through the library, and some builds of it are not thread-safe. */
static bool hdf5_beside(const char *scheme)
{
    hbool_t safe = false;
    H5dont_atexit(); /* it would crash on files that it could not close */
    return strcmp(scheme, "hdf5") || (H5is_library_threadsafe(&safe) >= 0 && safe);
}

static int hdf5_begin(void *self, const struct pack_options *opt, const struct pack_start *start,
                      struct stoker_error *err)
{
    struct hdf5_writer *w = self;
    w->folder = opt->folder;
    w->most = start->most;
    w->done = start->done;
    int rc = pack_path(w->path, opt->folder, "data.h5", err);
    if (!rc)
        rc = pack_temporary(w->temporary, opt->folder, "data.h5", err);
    if (!rc && start->done)
        rc = pack_take_up(w->temporary, w->path, err);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* we report errors ourselves */
    return rc;                             /* the first sample determines the fields */
}

/* ---- done by the library ------------------------------------------------------------------------- */

/* [rows, ...], contiguous, allocated now. */
static bool make_set(const struct hdf5_writer *w, hid_t file, uint32_t index, uint64_t rows)
{
    const struct st_piece *shape = &w->rows.shapes[index];
    hsize_t sizes[ST_DIMS_MAX + 1] = {rows};
    for (int32_t k = 0; k < shape->ndim; k++)
        sizes[k + 1] = (hsize_t)shape->shape[k];
    const hid_t space = H5Screate_simple(shape->ndim + 1, sizes, NULL);
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    hid_t set = -1;
    if (space >= 0 && how >= 0 && H5Pset_layout(how, H5D_CONTIGUOUS) >= 0 &&
        H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5Pset_fill_time(how, H5D_FILL_TIME_NEVER) >= 0 &&
        H5Pset_obj_track_times(how, false) >= 0) /* so that the same samples give the same file */
        set = H5Dcreate2(file, w->rows.names[index], type_of(shape->dtype), space, H5P_DEFAULT, how,
                         H5P_DEFAULT);
    H5Pclose(how);
    H5Sclose(space);
    return set >= 0 && H5Dclose(set) >= 0;
}

/* Whether a file of this size is allowed, with disk space for what the library writes: it does not
 * recover from a failed write. */
static int try_size(const char *path, uint64_t size)
{
    static const uint8_t zeros[LIBRARY_BYTES];
    const int fd = st_file_open(path, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0)
        return errno;
    const bool good =
        pack_truncate(fd, size + sizeof zeros) && st_file_write(fd, 0, zeros, sizeof zeros);
    const int why = good ? 0 : errno;
    close(fd);
    unlink(path);
    return why;
}

/* Creates a file with room for this many rows. */
static int make_file(const struct hdf5_writer *w, const char *path, uint64_t rows,
                     struct stoker_error *err)
{
    uint64_t size = 0, bytes;
    for (uint32_t i = 0; i < w->rows.count; i++) {
        if (type_of(w->rows.shapes[i].dtype) < 0)
            return st_fail(err, STOKER_EUNSUPPORTED,
                           "the field %.100s has a number type that HDF5 does not have",
                           w->rows.names[i]);
        if (!st_mul(rows, w->rows.shapes[i].bytes.size, &bytes) || !st_add(size, bytes, &size) ||
            size > INT64_MAX - LIBRARY_BYTES)
            return pack_cannot_write(w->path, EFBIG, err);
    }
    if (unlink(path) && errno != ENOENT)
        return st_fail_errno(err, errno, "%s", path);
    const int why = try_size(path, size);
    if (why)
        return pack_cannot_write(w->path, why, err);
    hid_t file;
    do {
        errno = 0;
        file = H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    } while (file < 0 && errno == EINTR);
    bool good = file >= 0;
    for (uint32_t i = 0; i < w->rows.count && good; i++)
        good = make_set(w, file, i, rows);
    good = file >= 0 && H5Fclose(file) >= 0 && good;
    return good ? STOKER_OK : failed(w->path, err);
}

/* The offset of the rows of a field; false: the dataset was not created by make_set. */
static bool find_set(const struct hdf5_writer *w, hid_t file, uint32_t index, uint64_t *rows,
                     uint64_t *at)
{
    const struct st_piece *shape = &w->rows.shapes[index];
    hsize_t sizes[ST_DIMS_MAX + 1] = {0};
    const hid_t set = H5Dopen2(file, w->rows.names[index], H5P_DEFAULT);
    const hid_t space = set >= 0 ? H5Dget_space(set) : -1, type = set >= 0 ? H5Dget_type(set) : -1;
    bool same = space >= 0 && type >= 0 && H5Tequal(type, type_of(shape->dtype)) > 0 &&
                H5Sget_simple_extent_ndims(space) == shape->ndim + 1 &&
                H5Sget_simple_extent_dims(space, sizes, NULL) >= 0;
    for (int32_t k = 0; k < shape->ndim && same; k++)
        same = sizes[k + 1] == (hsize_t)shape->shape[k];
    const haddr_t offset = same ? H5Dget_offset(set) : HADDR_UNDEF;
    *rows = sizes[0];
    *at = offset;
    H5Tclose(type);
    H5Sclose(space);
    if (set >= 0)
        H5Dclose(set);
    return same && (offset != HADDR_UNDEF || shape->bytes.size == 0);
}

static int find_sets(const struct hdf5_writer *w, const char *path, uint64_t *rows, uint64_t *at,
                     struct stoker_error *err)
{
    hid_t file;
    do {
        errno = 0;
        file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    } while (file < 0 && errno == EINTR);
    bool same = file >= 0;
    for (uint32_t i = 0; i < w->rows.count && same; i++) {
        uint64_t own = 0;
        same = find_set(w, file, i, &own, &at[i]) && (i == 0 || own == *rows);
        *rows = own;
    }
    if (file >= 0)
        H5Fclose(file);
    return same ? STOKER_OK : pack_was_changed(path, err);
}

/* ---- written by us ------------------------------------------------------------------------------- */

static int open_file(struct hdf5_writer *w, struct stoker_error *err)
{
    int rc = w->done ? STOKER_OK : make_file(w, w->temporary, w->most, err);
    if (!rc)
        rc = find_sets(w, w->temporary, &w->room, w->at, err);
    if (rc)
        return rc;
    w->rows.rows += w->done;
    const int fd = st_file_open(w->temporary, O_RDWR | O_NOFOLLOW);
    if (fd < 0)
        return pack_cannot_write(w->path, errno, err);
    w->fd = fd;
    return STOKER_OK;
}

static int put_row(struct hdf5_writer *w, uint32_t index, struct st_bytes row, struct stoker_error *err)
{
    const uint64_t at = w->at[index] + (w->rows.rows - 1) * row.size;
    if (w->rows.rows > w->room)
        return pack_was_changed(w->temporary, err);
    w->bytes += row.size;
    return st_file_write(w->fd, at, row.data, row.size) ? STOKER_OK
                                                        : pack_cannot_write(w->path, errno, err);
}

static int hdf5_add(void *self, const struct pack_options *opt, struct pack_sample *sample,
                    struct stoker_error *err)
{
    struct hdf5_writer *w = self;
    struct st_piece row[ST_FIELDS_MAX];
    const bool first = w->rows.count == 0;
    (void)opt;
    int rc = pack_rows_take(&w->rows, sample, row, err);
    if (!rc && first)
        rc = open_file(w, err);
    for (uint32_t i = 0; i < w->rows.count && !rc; i++)
        rc = put_row(w, i, row[i].bytes, err);
    return rc;
}

static uint64_t hdf5_size(const void *self) { return ((const struct hdf5_writer *)self)->bytes; }

static int hdf5_keep(void *self, struct stoker_error *err)
{
    const struct hdf5_writer *w = self;
    return st_file_sync(w->fd) ? STOKER_OK : pack_cannot_write(w->path, errno, err);
}

static void hdf5_drop(void *self, bool leave)
{
    struct hdf5_writer *w = self;
    if (w->fd)
        close(w->fd);
    if (w->temporary[0] && !leave)
        unlink(w->temporary);
    *w = (struct hdf5_writer){0};
}

/* ---- the end ----------------------------------------------------------------------------------- */

static int copy_rows(const struct hdf5_writer *w, int to, const uint64_t *at, struct stoker_error *err)
{
    for (uint32_t i = 0; i < w->rows.count; i++) {
        loff_t from_at = (loff_t)w->at[i], to_at = (loff_t)at[i];
        uint64_t left = w->rows.rows * w->rows.shapes[i].bytes.size;
        while (left) {
            const ssize_t done = copy_file_range(w->fd, &from_at, to, &to_at, left, 0);
            if (done < 0 && errno == EINTR)
                continue;
            if (done <= 0)
                return pack_cannot_write(w->path, done < 0 ? errno : EIO, err);
            left -= (uint64_t)done;
        }
    }
    return STOKER_OK;
}

/* Copies the rows into a file without the unused room, which atomically replaces the other. */
static int tighten(struct hdf5_writer *w, struct stoker_error *err)
{
    char tight[PATH_MAX];
    uint64_t rows, at[ST_FIELDS_MAX];
    int rc = pack_temporary(tight, w->folder, "tight.h5", err);
    if (rc)
        return rc;
    rc = make_file(w, tight, w->rows.rows, err);
    if (!rc)
        rc = find_sets(w, tight, &rows, at, err);
    const int to = rc ? -1 : st_file_open(tight, O_RDWR | O_NOFOLLOW);
    if (!rc)
        rc = to < 0 ? pack_cannot_write(w->path, errno, err) : copy_rows(w, to, at, err);
    if (!rc && !st_file_sync(to))
        rc = pack_cannot_write(w->path, errno, err);
    if (to >= 0)
        close(to);
    if (!rc)
        rc = pack_rename(tight, w->temporary, err);
    if (rc)
        unlink(tight);
    return rc;
}

static int hdf5_finish(void *self, struct st_pack_shard *shard, struct st_pack_beside *beside,
                       struct stoker_error *err)
{
    struct hdf5_writer *w = self;
    (void)beside;
    int rc = w->rows.rows < w->room ? tighten(w, err) : STOKER_OK;
    return rc ? rc : pack_finish_as(w->temporary, w->path, shard, err);
}

const struct pack_writer pack_writer_hdf5 = {
    .name = "hdf5",
    .extension = ".h5",
    .pixels = true,
    .self_size = sizeof(struct hdf5_writer),
    .beside = hdf5_beside,
    .begin = hdf5_begin,
    .add = hdf5_add,
    .size = hdf5_size,
    .keep = hdf5_keep,
    .finish = hdf5_finish,
    .drop = hdf5_drop,
};
