/* fuzz_hdf5_heap.c - strings and sequences of any length in an HDF5 file: the input is a reference and
 * the file behind it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_held file;
    struct st_h5_object object;
    char path[40];
    if (size < ST_H5_REFERENCE)
        return 0;
    const int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!st_held_open(&file, path, NULL)) {
        for (uint32_t unit = 1; unit <= 8; unit *= 2)
            if (!st_h5_heap_find(&object, &file, 0, data, unit, NULL) &&
                (object.at > size || object.size > size - object.at))
                abort();
        st_held_close(&file);
    }
    close(fd);
    return 0;
}
