/* types.c - converts types of HDF5 elements to fields
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/layout.h"

#include <hdf5.h>
#include <stdio.h>
#include <string.h>

static bool is_foreign(hid_t type)
{
    const H5T_order_t own = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? H5T_ORDER_LE : H5T_ORDER_BE;
    const H5T_order_t order = H5Tget_order(type);
    return order != own && order != H5T_ORDER_NONE;
}

static bool is_ieee(hid_t type, size_t size)
{
    size_t sign, exponent, exponent_size, mantissa, mantissa_size;
    if (H5Tget_fields(type, &sign, &exponent, &exponent_size, &mantissa, &mantissa_size) < 0)
        return false;
    const size_t bits = size == 2 ? 5 : size == 4 ? 8 : 11;
    return (size == 2 || size == 4 || size == 8) && sign == 8 * size - 1 && exponent_size == bits &&
           mantissa == 0 && exponent == 8 * size - 1 - bits && mantissa_size == exponent &&
           H5Tget_ebias(type) == (1u << (bits - 1)) - 1;
}

/* h5py's bool: an enumeration of FALSE and TRUE. */
static bool is_bool(hid_t type)
{
    if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2)
        return false;
    bool yes = true;
    for (unsigned i = 0; i < 2 && yes; i++) {
        uint8_t value = 2;
        char *name = H5Tget_member_name(type, i);
        yes = name && H5Tget_member_value(type, i, &value) >= 0 && value < 2 &&
              !strcmp(name, value ? "TRUE" : "FALSE");
        H5free_memory(name);
    }
    return yes;
}

/* Describes the elements of a type; false if only a conversion by the library would turn them into
 * numbers. */
static bool element_of(hid_t type, struct st_element *out)
{
    const size_t size = H5Tget_size(type);
    *out = (struct st_element){.size = (uint32_t)size, .swapped = is_foreign(type)};
    if (!size || size > 1u << 30)
        return false;
    switch (H5Tget_class(type)) {
    case H5T_BITFIELD:
    case H5T_INTEGER:
        out->type = H5Tget_class(type) == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2 ? 'i' : 'u';
        return H5Tget_precision(type) == 8 * size && H5Tget_offset(type) == 0 &&
               (size == 1 || size == 2 || size == 4 || size == 8);
    case H5T_FLOAT:
        out->type = 'f';
        return is_ieee(type, size);
    case H5T_STRING:
        out->type = 'S';
        out->swapped = false;
        return H5Tis_variable_str(type) == 0;
    case H5T_OPAQUE:
        out->type = 'V';
        out->swapped = false;
        return true;
    case H5T_ENUM: {
        const bool yes = is_bool(type);
        const hid_t base = H5Tget_super(type);
        const bool known = base >= 0 && element_of(base, out);
        if (base >= 0)
            H5Tclose(base);
        if (yes)
            out->type = 'b';
        return known;
    }
    default:
        return false;
    }
}

/* A type of array elements adds its dimensions to the shape. */
static bool element_of_array(hid_t type, struct st_element *out, struct st_array_shape *shape)
{
    hsize_t dims[H5S_MAX_RANK];
    const int rank = H5Tget_array_ndims(type);
    if (rank < 1 || shape->ndim + rank > ST_DIMS_MAX + 1 || H5Tget_array_dims2(type, dims) < 0)
        return false;
    for (int i = 0; i < rank; i++)
        shape->sizes[shape->ndim++] = dims[i];
    const hid_t base = H5Tget_super(type);
    const bool known = base >= 0 && H5Tget_class(base) != H5T_ARRAY && element_of(base, out);
    if (base >= 0)
        H5Tclose(base);
    return known;
}

static int unsupported(const struct st_held *file, const char *name, const char *what,
                       struct stoker_error *err)
{
    return st_fail(err, STOKER_EUNSUPPORTED, "%s: %s: %s", file->path, name, what);
}

/* Variable-length strings and sequences. */
static int open_variable(struct st_h5_array *array, const struct st_held *file,
                         const struct st_field_request *request, const struct st_array_shape *shape,
                         hid_t type, struct stoker_error *err)
{
    struct st_field *field = &array->rows.field;
    const bool string = H5Tget_class(type) == H5T_STRING;
    if (shape->ndim != 1)
        return unsupported(file, request->name,
                           "a row has several strings or sequences; at most one is supported", err);
    *field = (struct st_field){.name = request->name,
                               .kind = string ? ST_FIELD_TEXT : ST_FIELD_ARRAY,
                               .ndim = 1,
                               .shape = {-1}};
    array->variable = true;
    array->unit = ST_H5_REFERENCE; /* H5Tget_size returns its size in memory */
    array->rows.count = shape->sizes[0];
    array->rows.row_bytes = ST_H5_REFERENCE;
    array->rows.element = (struct st_element){'S', 1, false};
    if (!string) {
        const hid_t base = H5Tget_super(type);
        const bool known =
            base >= 0 && element_of(base, &array->rows.element) && array->rows.element.type != 'V';
        if (base >= 0)
            H5Tclose(base);
        struct st_rows one;
        const struct st_array_shape row = {2, {1, 1}};
        const struct st_field_request plain = {
            .name = request->name, .typed = true, .kind = ST_FIELD_ARRAY};
        if (!known || st_rows_init(&one, &array->rows.element, &row, &plain, request->name, err))
            return unsupported(file, request->name,
                               "variable-length sequences of this type are not supported", err);
        field->dtype = one.field.dtype;
    }
    const bool bytes = string || field->dtype == STOKER_DTYPE_U8;
    if (request->typed && request->kind != field->kind &&
        (!bytes || request->kind == ST_FIELD_ARRAY || request->kind == ST_FIELD_INT ||
         request->kind == ST_FIELD_FLOAT))
        return st_fail(err, STOKER_EINVAL, "%s: %s: cannot be read as %s", file->path, request->name,
                       st_field_kind_name(request->kind));
    if (request->typed)
        field->kind = request->kind;
    if (field->kind != ST_FIELD_ARRAY)
        field->ndim = 0;
    return 0;
}

int st_h5_open_type(struct st_h5_array *array, const struct st_held *file,
                    const struct st_field_request *request, struct st_array_shape *shape,
                    struct stoker_error *err)
{
    const hid_t type = array->type;
    const H5T_class_t class = H5Tget_class(type);
    struct st_element element;
    char where[600];
    snprintf(where, sizeof where, "%.300s: %.250s", file->path, request->name);
    array->unit = (uint32_t)H5Tget_size(type);
    if (class == H5T_VLEN || (class == H5T_STRING && H5Tis_variable_str(type) > 0))
        return open_variable(array, file, request, shape, type, err);
    bool known =
        class == H5T_ARRAY ? element_of_array(type, &element, shape) : element_of(type, &element);
    if (!known && (class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_BITFIELD)) {
        const hid_t native = H5Tget_native_type(type, H5T_DIR_ASCEND);
        known = native >= 0 && element_of(native, &element);
        if (known) {
            H5Tclose(type);
            array->type = native;
            array->unit = element.size;
            array->way = ST_H5_LIBRARY;
            array->reason = "a non-standard number format";
        } else if (native >= 0) {
            H5Tclose(native);
        }
    }
    if (!known)
        return unsupported(file, request->name,
                           "this type is not supported; supported are numbers, bool, enumerations, "
                           "strings and arrays of them",
                           err);
    return st_rows_init(&array->rows, &element, shape, request, where, err);
}
