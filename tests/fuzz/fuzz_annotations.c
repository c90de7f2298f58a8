/* fuzz_annotations.c - an annotation file that somebody sent: KIND says of which format
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "annotations.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_annotated table = {0};
    struct stoker_error err = {0};
    char path[60];
    const int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int rc = annotations_read(&table, KIND, path, &err);
    if (rc && (err.code != rc || strncmp(err.message, path, strlen(path))))
        abort(); /* an error that does not name the file */
    if (!rc)
        (void)annotations_draw_all(&table, &err);
    st_annotated_free(&table);
    close(fd);
    return 0;
}
