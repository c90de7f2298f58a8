/* fuzz_hdf5_index.c - the part of an HDF5 file that is read without its library: an object header and
 * the tree of chunks
 *
 * The first byte says how many dimensions the dataset has, the second where the header is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_held file;
    char path[40];
    const int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct st_h5_grid grid = {.ndim = size ? 1 + data[0] % 3 : 1};
    for (int32_t i = 0; i < grid.ndim; i++) {
        grid.dims[i] = 7;
        grid.chunk[i] = 2;
    }
    if (st_h5_grid_init(&grid) && !st_held_open(&file, path, NULL)) {
        struct st_h5_chunk *chunks = st_calloc(grid.total, sizeof *chunks);
        struct st_h5_layout layout;
        st_h5_object_check(&file, 0, size > 1 ? data[1] : 0, size > 2 && data[2], NULL);
        if (st_h5_layout_read(&layout, &file, 0, size > 1 ? data[1] : 0, NULL))
            layout = (struct st_h5_layout){0};
        if (layout.class <= ST_H5_LAYOUT_CONTIGUOUS && layout.at != ST_H5_UNWRITTEN && layout.at > size)
            abort();
        if (layout.ndim != grid.ndim || memcmp(layout.chunk, grid.chunk, sizeof layout.chunk))
            layout.tree = false;
        if (chunks && layout.tree && !st_h5_index(chunks, &grid, &file, 0, &layout, NULL))
            for (uint64_t i = 0; i < grid.total; i++)
                if (chunks[i].at != ST_H5_UNWRITTEN && chunks[i].at + chunks[i].size > size)
                    abort();
        free(chunks);
        free(layout.fill);
        st_held_close(&file);
    }
    close(fd);
    return 0;
}
