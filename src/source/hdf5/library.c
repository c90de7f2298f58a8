/* library.c - the calls of the HDF5 library
 *
 * Every public function here holds ST_LOCK_LIBRARIES for its whole duration. The library prints errors
 * unless told not to; its setting is restored afterwards, because the host may use the same library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/library.h"
#include "source/hdf5/layout.h"
#include "source/process.h"

#include <errno.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

/* A row in more chunks than this is a mistake or an attack. */
enum { CHUNKS_OF_ROW = 1 << 20 };

struct call {
    H5E_auto2_t print;
    void *data;
};

static struct call enter(void)
{
    struct call call = {0};
    st_process_lock(ST_LOCK_LIBRARIES);
    H5Eget_auto2(H5E_DEFAULT, &call.print, &call.data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5Eclear2(H5E_DEFAULT);
    return call;
}

static void leave(struct call call)
{
    H5Eset_auto2(H5E_DEFAULT, call.print, call.data);
    st_process_unlock(ST_LOCK_LIBRARIES);
}

static herr_t first_words(unsigned n, const H5E_error2_t *error, void *words)
{
    if (n == 0 && error->desc)
        *(const char **)words = error->desc;
    return 0;
}

/* The library's innermost error message, and the error number of a call in it, if any. */
static const char *library_words(int *errnum)
{
    const char *words = "no reason given";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_words, &words);
    const char *number = strstr(words, "errno = ");
    *errnum = number ? atoi(number + strlen("errno = ")) : 0;
    return words;
}

/* With the error number of a call the status follows from it, because a disk that fails is not a damaged
 * file; EAGAIN only means that somebody has locked it. */
static int library_fail(const struct st_held *file, const char *name, const char *what,
                        struct stoker_error *err)
{
    int errnum;
    const char *words = library_words(&errnum);
    const int code = errnum && errnum != EAGAIN ? st_fail_errno(NULL, errnum, "%s", what) : STOKER_EIO;
    return st_fail(err, code, "%s: %s%s%s (HDF5 %d.%d.%d: %.200s)", file->path, name ? name : "",
                   name ? ": " : "", what, H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE, words);
}

/* ---- rows through the library ------------------------------------------------------------------- */

static int read_one(const struct st_h5_array *array, const struct st_held *file, uint64_t row, void *out,
                    struct stoker_error *err)
{
    hsize_t start[H5S_MAX_RANK] = {row}, count[H5S_MAX_RANK];
    for (int32_t i = 0; i < array->grid.ndim; i++)
        count[i] = i ? array->grid.dims[i] : 1;
    int rc = 0;
    const hid_t memory = H5Screate_simple(array->grid.ndim, count, NULL);
    if (memory < 0 || H5Sselect_hyperslab(array->space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dread(array->set, array->type, memory, array->space, H5P_DEFAULT, out) < 0)
        rc = library_fail(file, array->rows.field.name, "cannot read a row", err);
    if (memory >= 0)
        H5Sclose(memory);
    return rc;
}

int st_h5_read_library(const struct st_h5_array *array, const struct st_held *file, uint64_t row,
                       uint8_t *out, struct stoker_error *err)
{
    const struct call call = enter();
    const int rc = read_one(array, file, row, out, err);
    leave(call);
    return rc;
}

/* ---- opening and closing ------------------------------------------------------------------------ */

struct listing {
    const struct st_h5_file *h5;
    const struct st_held *file;
    char *names;
    size_t size;
    bool full;
    int rc; /* the error of a damaged object */
    struct stoker_error *err;
};

static herr_t cannot_list(struct listing *listing, const char *name)
{
    listing->rc = library_fail(listing->file, name, "cannot be opened", listing->err);
    return -1;
}

/* A link that leads nowhere is left out; an object that cannot be read is an error, because without it
 * the samples would lack a field. */
static herr_t list_one(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    struct listing *listing = context;
    if (info->type == H5L_TYPE_HARD &&
        (listing->rc = st_h5_object_check(listing->file, listing->h5->base, info->u.address,
                                          listing->h5->shares, listing->err)) != 0)
        return -1;
    const hid_t set = H5Oopen(group, name, H5P_DEFAULT);
    if (set < 0)
        return info->type != H5L_TYPE_HARD && H5Oexists_by_name(group, name, H5P_DEFAULT) == 0
                   ? 0
                   : cannot_list(listing, name);
    if (H5Iget_type(set) == H5I_DATASET) {
        const hid_t space = H5Dget_space(set);
        if (space < 0) {
            cannot_list(listing, name);
            H5Oclose(set);
            return -1;
        }
        if (H5Sget_simple_extent_ndims(space) > 0) {
            const size_t more = strlen(name) + 2;
            char *names = realloc(listing->names, listing->size + more);
            listing->full = listing->full || !names;
            if (names) {
                listing->names = names;
                listing->size +=
                    (size_t)sprintf(names + listing->size, "%s%s", listing->size ? "," : "", name);
            }
        }
        H5Sclose(space);
    }
    H5Oclose(set);
    return 0;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sorts the names in the list; false if out of memory. */
static bool sort_names(struct listing *listing)
{
    char *copy = listing->names ? strdup(listing->names) : NULL, *rest = copy, *to = listing->names;
    char **names = st_calloc(listing->size / 2 + 1, sizeof *names);
    size_t count = 0;
    const bool enough = (copy || !listing->names) && names;
    while (enough && rest)
        names[count++] = strsep(&rest, ",");
    if (count)
        qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++)
        to += sprintf(to, "%s%s", i ? "," : "", names[i]);
    free(names);
    free(copy);
    return enough;
}

/* Lists the root's datasets that have rows, sorted by name; the caller frees the names. It uses the
 * native order, because in any other order the library first collects the links in a table, and frees
 * uninitialized entries of it if a link is damaged. */
static int list_root(struct listing *listing, struct stoker_error *err)
{
    if (H5Literate(listing->h5->id, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, list_one, listing) < 0)
        return listing->rc ? listing->rc
                           : library_fail(listing->file, NULL, "cannot list its datasets", err);
    return listing->full || !sort_names(listing)
               ? st_fail(err, STOKER_ENOMEM, "%s: out of memory", listing->file->path)
               : 0;
}

static int no_such_set(const struct st_h5_file *h5, const struct st_held *file, const char *name,
                       struct stoker_error *err)
{
    struct listing listing = {.h5 = h5, .file = file};
    struct st_name_list has = {0};
    char *rest = list_root(&listing, NULL) ? NULL : listing.names, *one;
    while (rest && (one = strsep(&rest, ",")) != NULL)
        st_name_list_add(&has, one, strlen(one));
    free(listing.names);
    return st_fail(err, STOKER_EINVAL, "%s: fields: there is no dataset %s; the root contains %s",
                   file->path, name, has.used ? has.text : "none");
}

static int read_shape(struct st_h5_array *array, const struct st_held *file, const char *name,
                      struct st_array_shape *shape, struct stoker_error *err)
{
    hsize_t dims[H5S_MAX_RANK];
    const int rank = H5Sget_simple_extent_ndims(array->space);
    if (rank < 1 || rank > ST_DIMS_MAX + 1 ||
        H5Sget_simple_extent_dims(array->space, dims, NULL) != rank)
        return st_fail(err, STOKER_EINVAL,
                       "%s: %s: has %d dimensions, but only 1 to %d are supported; reshape it",
                       file->path, name, rank < 0 ? 0 : rank, ST_DIMS_MAX + 1);
    shape->ndim = array->grid.ndim = rank;
    for (int i = 0; i < rank; i++)
        shape->sizes[i] = array->grid.dims[i] = dims[i];
    return 0;
}

/* Checks a link's object before the library reads it. */
static int check_link(const struct st_h5_file *h5, const struct st_held *file, const char *path,
                      struct stoker_error *err)
{
    H5L_info_t info;
    if (H5Lget_info(h5->id, path, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD)
        return 0;
    return st_h5_object_check(file, h5->base, info.u.address, h5->shares, err);
}

/* Does the same for every group on the path, then opens the dataset. */
static int open_by_path(struct st_h5_array *array, const struct st_h5_file *h5,
                        const struct st_held *file, const char *name, struct stoker_error *err)
{
    char *part = strdup(name);
    if (!part)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
    int rc = 0;
    for (char *slash = part; !rc && (slash = strchr(slash + 1, '/')) != NULL; *slash = '/') {
        *slash = '\0';
        rc = check_link(h5, file, part, err);
    }
    free(part);
    if (!rc)
        rc = check_link(h5, file, name, err);
    if (rc)
        return rc;
    array->set = H5Dopen2(h5->id, name, H5P_DEFAULT);
    return array->set < 0 ? no_such_set(h5, file, name, err) : 0;
}

/* Whether the stored size is enough for all rows: if not, the library would read past it. */
static int check_storage(const struct st_h5_array *array, const struct st_held *file, const char *name,
                         uint64_t unit, const struct st_h5_layout *layout, struct stoker_error *err)
{
    uint64_t bytes = unit, chunks = 1;
    for (int32_t i = 0; i < array->grid.ndim; i++) {
        if (!st_mul(bytes, array->grid.dims[i], &bytes))
            bytes = UINT64_MAX;
        const uint64_t chunk = layout->chunk[i] ? layout->chunk[i] : 1;
        if (i && !st_mul(chunks, array->grid.dims[i] / chunk + 1, &chunks))
            chunks = UINT64_MAX;
    }
    if (layout->class == ST_H5_LAYOUT_CHUNKED &&
        (layout->unit != unit || layout->ndim != array->grid.ndim))
        return st_fail(
            err, STOKER_ECORRUPT,
            "%s: %s: its chunks have elements of %llu bytes, but its type has %llu: it is damaged",
            file->path, name, (unsigned long long)layout->unit, (unsigned long long)unit);
    if (layout->class == ST_H5_LAYOUT_CHUNKED && chunks > CHUNKS_OF_ROW)
        return st_fail(
            err, STOKER_ELIMIT,
            "%s: %s: a row spans more than %d chunks; make them larger (h5repack -l %s:CHUNK=...)",
            file->path, name, CHUNKS_OF_ROW, name);
    if (layout->class > ST_H5_LAYOUT_CONTIGUOUS || layout->external || layout->at == ST_H5_UNWRITTEN ||
        bytes <= layout->size)
        return 0;
    return st_fail(err, STOKER_ECORRUPT,
                   "%s: %s: its rows have %llu bytes, but only %llu are stored: it is damaged",
                   file->path, name, (unsigned long long)bytes, (unsigned long long)layout->size);
}

/* Rows that only the library can decode require its filters; an optional filter may have been skipped,
 * as the first chunk's mask shows. */
static int check_filters(const struct st_h5_array *array, const struct st_held *file,
                         const struct st_h5_layout *layout, struct stoker_error *err)
{
    hsize_t place[H5S_MAX_RANK], size;
    unsigned mask;
    haddr_t at;
    if (array->way != ST_H5_LIBRARY || layout->class != ST_H5_LAYOUT_CHUNKED ||
        H5Dget_chunk_info(array->set, array->space, 0, place, &mask, &at, &size) < 0)
        return 0;
    for (uint32_t i = 0; i < layout->filter_count; i++)
        if (!(mask >> i & 1) && H5Zfilter_avail((H5Z_filter_t)layout->filters[i]) <= 0)
            return st_fail(
                err, STOKER_EUNSUPPORTED,
                "%s: %s: its chunks use the filter %s (number %u), which this HDF5 library does not "
                "have; set HDF5_PLUGIN_PATH to the folder of its plug-in, or copy the file with "
                "h5repack -f GZIP=4",
                file->path, array->rows.field.name, st_h5_filter_name(layout->filters[i]),
                layout->filters[i]);
    return 0;
}

/* Reads type, shape and layout of the open dataset. */
static int describe(struct st_h5_array *array, const struct st_h5_file *h5, const struct st_held *file,
                    const struct st_field_request *request, struct st_h5_layout *layout,
                    struct stoker_error *err)
{
    struct st_array_shape shape;
    array->space = H5Dget_space(array->set);
    array->type = H5Dget_type(array->set);
    if (array->space < 0 || array->type < 0)
        return library_fail(file, request->name, "cannot read its properties", err);
    const uint64_t unit = H5Tget_size(array->type);
    int rc = read_shape(array, file, request->name, &shape, err);
    if (!rc)
        rc = st_h5_open_type(array, file, request, &shape, err);
    if (!rc)
        rc = st_h5_layout_read(layout, file, h5->base, st_h5_header_address(array->set), err);
    if (!rc)
        rc = check_storage(array, file, request->name, array->variable ? ST_H5_REFERENCE : unit, layout,
                           err);
    if (!rc && array->variable)
        rc = st_h5_locate_references(array, h5->base, file, layout, err);
    else if (!rc)
        array->reason = st_h5_choose_way(array, layout);
    if (!rc && layout->tree) /* before the library uses it */
        rc =
            st_h5_index(array->chunks, array->chunks ? &array->grid : NULL, file, h5->base, layout, err);
    if (!rc)
        rc = check_filters(array, file, layout, err);
    return rc ? rc : st_h5_compare_chunks(array, h5->base, file, err);
}

static int open_array(struct st_h5_array *array, const struct st_h5_file *h5, const struct st_held *file,
                      const struct st_field_request *request, struct stoker_error *err)
{
    struct st_h5_layout layout = {0};
    int rc = open_by_path(array, h5, file, request->name, err);
    if (!rc)
        rc = describe(array, h5, file, request, &layout, err);
    free(layout.fill);
    return rc;
}

int st_h5_array_open(struct st_h5_array *array, const struct st_h5_file *h5, const struct st_held *file,
                     const struct st_field_request *request, struct stoker_error *err)
{
    const struct call call = enter();
    array->at = ST_H5_UNWRITTEN;
    const int rc = open_array(array, h5, file, request, err);
    leave(call);
    return rc;
}

int st_h5_file_open(struct st_h5_file *h5, const struct st_held *file, struct stoker_error *err)
{
    const struct call call = enter();
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hsize_t base = 0;
    size_t address_size = 0, length_size = 0;
    unsigned tables = 0;
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(access, true, true); /* work without locks if the file system has none */
#endif
    int errnum;
    do /* it handles interrupted reads itself, but not an interrupted open */
        h5->id = H5Fopen(file->copy ? file->copy : file->path, H5F_ACC_RDONLY, access);
    while (h5->id < 0 && library_words(&errnum) && errnum == EINTR);
    int rc = h5->id < 0 ? library_fail(file, NULL, "cannot open it as an HDF5 file", err) : 0;
    H5Pclose(access);
    if (!rc) {
        const hid_t plist = H5Fget_create_plist(h5->id);
        if (H5Pget_userblock(plist, &base) < 0 || H5Pget_sizes(plist, &address_size, &length_size) < 0)
            rc = library_fail(file, NULL, "cannot read its properties", err);
        else if (H5Pget_shared_mesg_nindexes(plist, &tables) < 0)
            rc = library_fail(file, NULL, "cannot read its properties", err);
        else if (address_size != 8 || length_size != 8)
            rc = st_fail(err, STOKER_EUNSUPPORTED,
                         "%s: HDF5 files with addresses of %zu bytes are not supported; only 8 are",
                         file->path, address_size);
        H5Pclose(plist);
    }
    h5->id = h5->id < 0 ? 0 : h5->id;
    h5->base = base;
    h5->shares = tables > 0;
    if (!rc) /* check the root group */
        rc = st_h5_object_check(file, base, st_h5_header_address(h5->id), h5->shares, err);
    leave(call);
    return rc;
}

int st_h5_file_list(const struct st_h5_file *h5, const struct st_held *file, char **out,
                    struct stoker_error *err)
{
    const struct call call = enter();
    struct listing listing = {.h5 = h5, .file = file, .err = err};
    int rc = list_root(&listing, err);
    leave(call);
    if (!rc && !listing.names)
        rc = st_fail(err, STOKER_EINVAL,
                     "%s: there is no dataset at its root; select some with fields=", file->path);
    if (rc)
        free(listing.names);
    else
        *out = listing.names;
    return rc;
}

void st_h5_array_close(struct st_h5_array *array)
{
    const struct call call = enter();
    if (array->space > 0)
        H5Sclose(array->space);
    if (array->type > 0)
        H5Tclose(array->type);
    if (array->set > 0)
        H5Dclose(array->set);
    leave(call);
    free(array->fill);
    free(array->chunks);
}

void st_h5_file_close(struct st_h5_file *h5)
{
    if (!h5->id)
        return;
    const struct call call = enter();
    H5Fclose(h5->id);
    leave(call);
    h5->id = 0;
}
