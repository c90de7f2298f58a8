/* hdf5_write.c - one data set a field in an HDF5 file, a row a sample
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hdf5.h>

enum { CHUNK_BYTES = 1 << 20 }; /* or one row, if that is more */

struct hdf5_writer {
    struct pack_rows rows;
    hid_t file, sets[ST_FIELDS_MAX]; /* 0: not open */
    uint64_t bytes;
    char path[PATH_MAX], temporary[PATH_MAX];
};

static int failed(const struct hdf5_writer *w, struct stoker_error *err)
{
    return st_fail(err, STOKER_EIO,
                   "%.600s cannot be written: %s. Make room and run the same command again", w->path,
                   errno ? strerror(errno) : "the HDF5 library failed");
}

static hid_t type_of(enum stoker_dtype dtype)
{
    switch (dtype) {
    case STOKER_U8:
    case STOKER_BOOL: /* as numbers: HDF5 has no booleans */
        return H5T_NATIVE_UINT8;
    case STOKER_I8:
        return H5T_NATIVE_INT8;
    case STOKER_I16:
        return H5T_NATIVE_INT16;
    case STOKER_I32:
        return H5T_NATIVE_INT32;
    case STOKER_I64:
        return H5T_NATIVE_INT64;
    case STOKER_U16:
        return H5T_NATIVE_UINT16;
    case STOKER_U32:
        return H5T_NATIVE_UINT32;
    case STOKER_U64:
        return H5T_NATIVE_UINT64;
    case STOKER_F32:
        return H5T_NATIVE_FLOAT;
    case STOKER_F64:
        return H5T_NATIVE_DOUBLE;
    default:
        return -1;
    }
}

/* Workers may ask the library for rows, and some builds of it serve one thread alone. */
static bool hdf5_beside(const char *scheme)
{
    hbool_t safe = false;
    return strcmp(scheme, "hdf5") || (H5is_library_threadsafe(&safe) >= 0 && safe);
}

static int hdf5_begin(void *self, const struct pack_options *opt, const char *name,
                      struct stoker_error *err)
{
    struct hdf5_writer *w = self;
    (void)name;
    int rc = pack_path(w->path, opt->folder, "data.h5", err);
    if (!rc)
        rc = pack_path(w->temporary, opt->folder, ".partial-data.h5", err);
    if (rc)
        return rc;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* what fails is said once, by us */
    errno = 0;
    w->file = H5Fcreate(w->temporary, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (w->file >= 0)
        return STOKER_OK;
    w->file = 0;
    return failed(w, err);
}

/* [0, ...] and growing, in chunks of whole rows. */
static int make_set(struct hdf5_writer *w, uint32_t index, struct stoker_error *err)
{
    const struct st_piece *shape = &w->rows.shapes[index];
    const hid_t type = type_of(shape->dtype);
    hsize_t sizes[ST_DIMS_MAX + 1] = {0}, most[ST_DIMS_MAX + 1] = {H5S_UNLIMITED},
                                chunk[ST_DIMS_MAX + 1];
    if (type < 0)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "the field %.100s has numbers of a type that HDF5 lacks", w->rows.names[index]);
    const uint64_t row = shape->bytes.size ? shape->bytes.size : 1;
    chunk[0] = row < CHUNK_BYTES ? CHUNK_BYTES / row : 1;
    for (int32_t k = 0; k < shape->ndim; k++)
        sizes[k + 1] = most[k + 1] = chunk[k + 1] = (hsize_t)shape->shape[k];
    const hid_t space = H5Screate_simple(shape->ndim + 1, sizes, most);
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    hid_t set = -1;
    if (space >= 0 && how >= 0 && H5Pset_chunk(how, shape->ndim + 1, chunk) >= 0)
        set = H5Dcreate2(w->file, w->rows.names[index], type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    H5Pclose(how);
    H5Sclose(space);
    if (set < 0)
        return failed(w, err);
    w->sets[index] = set;
    return STOKER_OK;
}

static int put_row(struct hdf5_writer *w, uint32_t index, const struct st_piece *row,
                   struct stoker_error *err)
{
    hsize_t sizes[ST_DIMS_MAX + 1] = {w->rows.rows}, start[ST_DIMS_MAX + 1] = {w->rows.rows - 1};
    hsize_t count[ST_DIMS_MAX + 1] = {1};
    for (int32_t k = 0; k < row->ndim; k++)
        sizes[k + 1] = count[k + 1] = (hsize_t)row->shape[k];
    errno = 0;
    if (H5Dset_extent(w->sets[index], sizes) < 0)
        return failed(w, err);
    const hid_t all = H5Dget_space(w->sets[index]), one = H5Screate_simple(row->ndim + 1, count, NULL);
    const bool good =
        all >= 0 && one >= 0 &&
        H5Sselect_hyperslab(all, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
        H5Dwrite(w->sets[index], type_of(row->dtype), one, all, H5P_DEFAULT, row->bytes.data) >= 0;
    H5Sclose(one);
    H5Sclose(all);
    w->bytes += row->bytes.size;
    return good ? STOKER_OK : failed(w, err);
}

static int hdf5_add(void *self, const struct pack_options *opt, struct pack_sample *sample,
                    struct stoker_error *err)
{
    struct hdf5_writer *w = self;
    struct st_piece row[ST_FIELDS_MAX];
    const bool first = w->rows.count == 0;
    (void)opt;
    int rc = pack_rows_take(&w->rows, sample, row, err);
    for (uint32_t i = 0; i < w->rows.count && !rc && first; i++)
        rc = make_set(w, i, err);
    for (uint32_t i = 0; i < w->rows.count && !rc; i++)
        rc = put_row(w, i, &row[i], err);
    return rc;
}

static uint64_t hdf5_size(const void *self) { return ((const struct hdf5_writer *)self)->bytes; }

/* False: what was buffered could not be written. */
static bool close_all(struct hdf5_writer *w)
{
    bool good = true;
    for (uint32_t i = 0; i < ST_FIELDS_MAX; i++)
        if (w->sets[i])
            good &= H5Dclose(w->sets[i]) >= 0;
    if (w->file)
        good &= H5Fclose(w->file) >= 0;
    memset(w->sets, 0, sizeof w->sets);
    w->file = 0;
    return good;
}

static void hdf5_drop(void *self)
{
    struct hdf5_writer *w = self;
    close_all(w);
    if (w->temporary[0])
        unlink(w->temporary);
    *w = (struct hdf5_writer){0};
}

static int hdf5_finish(void *self, struct pack_shard *shard, struct stoker_error *err)
{
    struct hdf5_writer *w = self;
    errno = 0;
    int rc = close_all(w) ? pack_sum_file(w->temporary, shard, err) : failed(w, err);
    if (!rc && rename(w->temporary, w->path))
        rc = st_fail_errno(err, errno, "%s", w->path);
    snprintf(shard->name, sizeof shard->name, "data.h5");
    if (!rc)
        w->temporary[0] = '\0';
    hdf5_drop(w);
    return rc;
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
    .finish = hdf5_finish,
    .drop = hdf5_drop,
};
