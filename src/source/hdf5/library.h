/* library.h - the calls of the HDF5 library: these functions take ST_LOCK_LIBRARIES
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_LIBRARY_H
#define ST_SOURCE_HDF5_LIBRARY_H

#include "source/hdf5/array.h"

struct st_h5_file {
    int64_t id;    /* the library's handle; 0: closed */
    uint64_t base; /* size of the user block in front of the HDF5 data */
    bool shares;   /* object headers may refer to messages elsewhere */
};

int st_h5_file_open(struct st_h5_file *h5, const struct st_held *file, struct stoker_error *err);
/* Names of the datasets with rows at the file's root, separated by commas; the caller frees them. */
int st_h5_file_list(const struct st_h5_file *h5, const struct st_held *file, char **out,
                    struct stoker_error *err);
int st_h5_array_open(struct st_h5_array *array, const struct st_h5_file *h5, const struct st_held *file,
                     const struct st_field_request *request, struct stoker_error *err);
int st_h5_read_library(const struct st_h5_array *array, const struct st_held *file, uint64_t row,
                       uint8_t *out, struct stoker_error *err);
void st_h5_array_close(struct st_h5_array *array);
void st_h5_file_close(struct st_h5_file *h5);

#endif
