/* registry.c - the kinds of source that a URI can name
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/kinds.h"
#include "st_config.h"

const struct st_source *const st_sources[] = {
    &st_source_folder, /* the default for a folder without a scheme */
    &st_source_flat,
    &st_source_csv,
#if ST_HAVE_HDF5
    &st_source_hdf5,
#endif
    &st_source_jsonl,
    &st_source_lmdb,
    &st_source_npy,
    &st_source_npz,
    &st_source_tar,
    &st_source_tfrecord,
    &st_source_zip,
    NULL,
};
